"""What the tests of frameworks share."""

from __future__ import annotations

import ast
import importlib
import os
from pathlib import Path
from typing import Any

import pytest

QUESTION = "Capital of France?"
_EXAMPLES = Path(__file__).parents[2] / "examples" / "frameworks"


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
    tree = ast.parse((_EXAMPLES / name).read_text(encoding="utf-8"))
    kept = (ast.Import, ast.ImportFrom, ast.ClassDef)
    tree.body = [part for part in tree.body if isinstance(part, kept)]
    namespace: dict[str, Any] = {"__name__": wanted}
    exec(compile(tree, name, "exec"), namespace)  # noqa: S102 - the project's own
    return namespace[wanted]
