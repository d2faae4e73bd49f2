"""A table of providers in which the scripted models have a row."""

from __future__ import annotations

import pytest

from snne_guard.sampling.langchain import Provider, providers, register_provider

ROW = Provider(
    classes=("tests.Scripted",),
    n="n",
    logprobs={"logprobs": True},
    side_effect_options=("conversation",),
)


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> Provider:
    """Register a row for the scripted models, for this test alone."""
    monkeypatch.setattr(providers, "PROVIDERS", [*providers.PROVIDERS])
    register_provider(ROW)
    return ROW
