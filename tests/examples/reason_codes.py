"""Finds the reason codes that the library can write, in its source."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

__all__ = ["reason_codes"]

_CODE = re.compile(r"[a-z]+(_[a-z]+)*")
_NAME = re.compile(r"reasons?$|_reasons$|^missing$|skips$", re.IGNORECASE)
_TELLS = frozenset({"_skip", "_skips", "unsampled", "reasons", "_why_none"})
"""Functions whose result is a reason, or several."""
_TAKES = frozenset({"_unscored"})
"""Functions whose first argument is a tuple of reasons."""


def reason_codes(package: Path) -> set[str]:
    """Return every literal that can become a reason.

    Those are the literals in what is assigned, added, appended or passed to a name
    that ends in ``reason`` or ``reasons``, and in what the functions return that
    tell a reason.
    """
    codes: set[str] = set()
    for path in sorted(package.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            for part in _reasons_in(node):
                codes |= _literals(part)
    return codes


def _reasons_in(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Assign):
        yield from _assigned(node)
    elif isinstance(node, ast.AnnAssign | ast.AugAssign):
        if node.value is not None and _names(node.target):
            yield node.value
    elif isinstance(node, ast.Call):
        yield from _passed(node)
    elif isinstance(node, ast.FunctionDef) and node.name in _TELLS:
        for inner in ast.walk(node):
            if isinstance(inner, ast.Return) and inner.value is not None:
                yield inner.value


def _assigned(node: ast.Assign) -> Iterator[ast.AST]:
    for target in node.targets:
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            pairs = zip(target.elts, node.value.elts, strict=True)
            yield from (value for name, value in pairs if _names(name))
        elif _names(target):
            yield node.value


def _passed(node: ast.Call) -> Iterator[ast.AST]:
    yield from (word.value for word in node.keywords if word.arg == "reasons")
    function = node.func
    if isinstance(function, ast.Attribute) and function.attr in {"append", "extend"}:
        if _names(function.value):
            yield from node.args
    elif isinstance(function, ast.Name) and function.id in _TAKES:
        yield node.args[0]


def _names(target: ast.AST) -> bool:
    if isinstance(target, ast.Name):
        return bool(_NAME.search(target.id))
    return isinstance(target, ast.Attribute) and bool(_NAME.search(target.attr))


def _literals(part: ast.AST) -> set[str]:
    """Return the codes in an expression; of a mapping, in its values only."""
    if isinstance(part, ast.Constant):
        text = str(part.value)
        return {text} if _CODE.fullmatch(text) else set()
    return set().union(*map(_literals, _parts(part)))


def _parts(part: ast.AST) -> list[ast.expr]:
    """Return what an expression takes its value from, conditions left out."""
    fields = {
        ast.Dict: ("values",),
        ast.IfExp: ("body", "orelse"),
        ast.BinOp: ("left", "right"),
        ast.Call: ("args",),  # frozenset({...}), list(...)
        ast.Starred: ("value",),
    }
    parts: list[ast.expr] = []
    for name in fields.get(type(part), ("elts",)):
        value = getattr(part, name, [])
        parts += value if isinstance(value, list) else [value]
    return parts
