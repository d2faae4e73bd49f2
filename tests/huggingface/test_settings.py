"""Settings in and out of range, without torch."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from snne_guard.errors import ConfigurationError, MissingExtraError
from snne_guard.huggingface import GenerationSettings, HuggingFaceModel


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("max_tokens", 0, "a whole number of at least 1"),
        ("temperature", -0.1, "a finite number of at least 0"),
        ("top_k", 0, "a whole number of at least 1"),
        ("top_p", 1.01, "a finite number above 0 and at most 1"),
        ("stop", ("\n", ""), "texts that are not empty"),
    ],
)
def test_values_out_of_range(name: str, value: Any, expected: str) -> None:
    with pytest.raises(
        ConfigurationError, match=f"^expected {name} to be {expected}, got"
    ):
        GenerationSettings(**{name: value})


@pytest.mark.parametrize("package", ["torch", "transformers"])
def test_a_missing_package(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=rf"{package} .*snne-guard\[hf\]"):
        HuggingFaceModel.from_pretrained("any")
