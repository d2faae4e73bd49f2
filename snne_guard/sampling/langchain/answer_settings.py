"""What a LangChain model draws its answer with, for calibrations to compare."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.language_models import BaseChatModel

from snne_guard.sampling.langchain.wrappers import ChatRunnable, bound_models

__all__ = ["answer_settings_of", "model_name_of"]

_NAMES = {
    "answer_temperature": ("temperature",),
    "top_p": ("top_p",),
    "max_tokens": (
        "max_tokens",
        "max_completion_tokens",
        "max_output_tokens",
        "max_new_tokens",
        "num_predict",
    ),
    "stop": ("stop", "stop_sequences"),
}
"""What each setting is called by providers, in a call or as a field."""


def answer_settings_of(
    model: ChatRunnable, kwargs: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the settings of the answer that are known, by a calibration's names.

    Left out is what the model's class has no field for, and what differs between
    several models.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> model = FakeListChatModel(responses=["Paris"]).bind(stop=["."], top_p=0.9)
        >>> answer_settings_of(model)
        {'top_p': 0.9, 'stop': ['.']}
    """
    known = [_settings(one, options) for one, options in bound_models(model, kwargs)]
    first, *others = known
    return {
        name: value
        for name, value in first.items()
        if all(name in other and other[name] == value for other in others)
    }


def model_name_of(model: ChatRunnable) -> dict[str, Any]:
    """Return ``{"model": name}``, with None where it has none; empty for several."""
    models = [one for one, _ in bound_models(model)]
    if len(models) > 1:
        return {}
    named = (getattr(models[0], field, None) for field in ("model_name", "model"))
    return {"model": next((name for name in named if isinstance(name, str)), None)}


def _settings(model: BaseChatModel, options: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, aliases in _NAMES.items():
        given = [options[alias] for alias in aliases if options.get(alias) is not None]
        fields = [alias for alias in aliases if alias in type(model).model_fields]
        set_ = [getattr(model, field) for field in fields]
        values = [value for value in (*given, *set_) if value is not None]
        if values or fields:
            value = values[0] if values else None
            found[name] = (
                [value] if name == "stop" and isinstance(value, str) else value
            )
    return found
