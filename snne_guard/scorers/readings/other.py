"""A method of another reading: what its base is, but for a name and a function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from snne_guard.scorers.method import FunctionMethod
from snne_guard.types import MethodInputs

__all__ = ["CODE", "other_reading"]

CODE = "as in the authors' code"


def other_reading(
    base: FunctionMethod,
    name: str,
    says: str,
    function: Callable[[MethodInputs], float],
    **changes: Any,  # noqa: ANN401 - fields of many kinds
) -> FunctionMethod:
    """Return a method as it is but for its name, its function and what is changed."""
    source = f"{base.source}; {says}"
    parts = {"partial": None, "anchors": False, **changes}
    return replace(base, name=name, source=source, function=function, **parts)
