"""The table of provider classes, and rows that a user adds."""

from __future__ import annotations

import importlib
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel
from pydantic import Field

from snne_guard import SNNEGuard
from snne_guard.sampling.langchain import providers
from snne_guard.sampling.langchain.providers import (
    PROVIDERS,
    Provider,
    capabilities,
    model_key,
)
from snne_guard.sampling.replies import ProviderCapabilities
from tests.langchain.support import metadata_of


class Heated(FakeListChatModel):
    """Has a temperature by another name, and notes it; copies share the list."""

    model_name: str = "a"
    temperature: float | None = None
    heat: float = 0.0
    heats: list[float] = Field(default_factory=list)

    def _generate(self, *args: Any, **kwargs: Any) -> Any:
        self.heats.append(self.heat)
        return super()._generate(*args, **kwargs)


class Mild(Heated):
    """A subclass with a row of its own."""


@pytest.mark.parametrize(
    "name", sorted({name for row in PROVIDERS for name in row.classes})
)
def test_every_row_names_a_class_that_is_there(name: str) -> None:
    package, _, kind = name.partition(".")
    module = (
        "langchain_openai.chat_models.base" if kind == "BaseChatOpenAI" else package
    )
    module = "snne_guard.langchain" if package == "snne_guard" else module
    there = getattr(importlib.import_module(module), kind)
    assert f"{there.__module__.partition('.')[0]}.{there.__name__}" == name


def test_a_class_in_no_row_is_asked_in_the_safe_way() -> None:
    assert capabilities(FakeListChatModel(responses=["x"])) == ProviderCapabilities()


def test_a_row_of_the_users_own_counts_for_subclasses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    row = Provider(classes=("tests.Heated",), temperature="heat")
    mild = replace(row, classes=("tests.Mild",), temperature_range=(0.0, 0.5))
    for kind, heat in ((Heated, 1.0), (Mild, 1.0), (Mild, 0.5)):
        own = [mild, row] if heat == 0.5 else [row]
        monkeypatch.setattr(providers, "PROVIDERS", [*own, *PROVIDERS])
        model = kind(responses=["Paris"])
        record = metadata_of(SNNEGuard(model, n=2).invoke("x"))
        assert (sorted(model.heats), model.heat) == ([0.0, heat], 0.0)
        assert ("temperature_unset" in record["reasons"]) is (heat == 0.5)


def test_rejections_are_kept_for_a_model_by_its_name() -> None:
    key = model_key(Heated(responses=["x"]))
    assert model_key(Heated(responses=["y"])) == key
    assert model_key(Heated(responses=["x"], model_name="b")) != key
