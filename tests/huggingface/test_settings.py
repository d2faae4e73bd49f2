"""Settings in and out of range, without torch."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from snne_guard.errors import ConfigurationError, MissingExtraError
from snne_guard.sampling.huggingface import (
    Completion,
    GenerationSettings,
    HuggingFaceModel,
    Token,
)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("max_tokens", 0, "a whole number of at least 1"),
        ("temperature", -0.1, "a finite number of at least 0"),
        ("top_k", 0, "a whole number of at least 1"),
        ("top_p", 1.01, "a finite number above 0 and at most 1"),
    ],
)
def test_values_out_of_range(name: str, value: Any, expected: str) -> None:
    with pytest.raises(
        ConfigurationError, match=f"^expected {name} to be {expected}, got"
    ):
        GenerationSettings(**{name: value})


def test_the_repr_of_a_reply_shows_no_text() -> None:
    token = Token(id=3, text="secret", logprob=-0.5)
    reply = Completion(
        text="secret",
        tokens=(token,),
        finish_reason="stop",
        prompt_tokens=1,
        completion_tokens=2,
    )
    assert "secret" not in repr((token, reply))
    assert reply.token_logprobs == (-0.5,)


@pytest.mark.parametrize("package", ["torch", "transformers"])
def test_a_missing_package(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=rf"{package} .*snne-guard\[hf\]"):
        HuggingFaceModel.from_pretrained("any")
