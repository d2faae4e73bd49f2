"""What the tests of frameworks share."""

from __future__ import annotations

import ast
import importlib
import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.openai_server import APART, Scripted, always, split

__all__ = [
    "CALLS",
    "EXAMPLES",
    "QUESTION",
    "REFUSAL",
    "framework",
    "part_of_example",
]

EXAMPLES = Path(__file__).parents[2] / "examples" / "frameworks"

QUESTION = "Capital of France?"
REFUSAL = "I am not certain enough of the answer to give one."

CALLS: list[tuple[Scripted, str, str, str]] = [
    (always("Paris it is"), "refuse", "Paris it is", "accept"),
    (split("Paris it is", *APART), "refuse", REFUSAL, "refuse"),
    (split("Paris it is", *APART), "flag", "Paris it is", "flag"),
]
"""A script, ``on_uncertain``, the text that is delivered and the decision."""


def framework(module: str) -> Any:
    """Return a framework; skip the tests of it where it is not installed.

    ``SNNE_GUARD_FRAMEWORK``, which ``make test-frameworks`` sets, names the one whose
    tests must not be skipped.
    """
    if os.environ.get("SNNE_GUARD_FRAMEWORK") == module:
        return importlib.import_module(module)
    return pytest.importorskip(module)


def part_of_example(name: str, wanted: str) -> Any:
    """Return a class of an example without running the program."""
    tree = ast.parse((EXAMPLES / name).read_text(encoding="utf-8"))
    kept = (ast.Import, ast.ImportFrom, ast.ClassDef)
    tree.body = [part for part in tree.body if isinstance(part, kept)]
    namespace: dict[str, Any] = {"__name__": wanted}
    exec(compile(tree, name, "exec"), namespace)  # noqa: S102 - the project's own
    return namespace[wanted]
