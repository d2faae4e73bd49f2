"""From the options of ``SNNEGuard`` to its parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.runnables.base import coerce_to_runnable
from pydantic import BaseModel

from snne_guard.assess import Shared, build_assessor
from snne_guard.langchain.core import GuardCore
from snne_guard.sampling.langchain_models import (
    answer_settings,
    check_model,
    has_choices,
    model_name,
    model_names,
)

__all__ = ["build", "described"]

_SHOWN = (
    "n",
    "include_answer",
    "temperature",
    "method",
    "similarity",
    "tau",
    "threshold",
    "calibration",
    "allow_mismatch",
    "prompt_version",
    "on_uncertain",
    "on_error",
    "tool_calls",
    "min_samples",
    "schedule",
    "rounds",
    "timeout",
    "sample_timeout",
    "sample_max_tokens",
    "max_concurrency",
    "sample_rate",
    "prices",
    "budget",
    "breaker",
)
_BY_TYPE = frozenset({"method", "similarity", "calibration", "on_uncertain"})
"""What is shown by its type's name where it is no word."""


def build(
    options: Mapping[str, Any], shared: Shared | None
) -> tuple[GuardCore, Shared]:
    """Return the parts of a guard, and what it shares with those made from it.

    Raises:
        ConfigurationError: If an option makes no sense, alone or with another one.
    """
    check_model(options["model"])
    model = options["model"]
    named = options["calibration"] is not None and not options["chosen"]
    fixed = not has_choices(model)
    assessor, shared = build_assessor(
        options,
        shared,
        model=model_name(model) if named else None,
        answer_settings=answer_settings(model) if named and fixed else {},
    )
    if assessor.judge.binding is not None and fixed:
        asked = model_names(model), answer_settings(model)
        assessor = assessor.on_models(*asked)
    fallback = options["fallback"]
    core = GuardCore(
        model=model,
        assessor=assessor,
        fallback=None if fallback is None else coerce_to_runnable(fallback),
        refusal=options["refusal"],
        trace_samples=options["trace_samples"],
        structured=options["structured"],
    )
    return core, shared


def described(guard: BaseModel) -> str:
    """Return a guard's settings that differ from the defaults; no secret in them.

    What users hand in (models, callables, observers) is left to its type's name: a
    bound option may be a key.
    """
    fields = type(guard).model_fields
    shown = [
        f"{name}={_shown(name, value)}"
        for name in _SHOWN
        if (value := getattr(guard, name)) != fields[name].default
    ]
    model: Any = getattr(guard, "model", None)
    while "bound" in vars(model):
        model = model.bound
    return f"{type(guard).__name__}({', '.join([type(model).__name__, *shown])})"


def _shown(name: str, value: object) -> str:
    named = name in _BY_TYPE and not isinstance(value, str)
    return type(value).__name__ if named else repr(value)
