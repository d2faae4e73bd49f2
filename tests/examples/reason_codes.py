"""Finds the reason codes that the library can write, in its source."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

__all__ = ["reason_codes"]

_CODE = re.compile(r"[a-z]+(_[a-z]+)*")
_NAME = re.compile(r"(^|(?<!finish)_)(reasons?|skips?|missing)$", re.IGNORECASE)
"""What a provider calls the end of a reply, its finish reason, is none of ours."""

Functions = Mapping[str, Sequence[ast.FunctionDef]]


def reason_codes(package: Path) -> set[str]:
    """Return every literal that can become a reason.

    Those are the literals in what is assigned, added, appended or passed under a name
    such as ``reasons``, and in what the functions return that are called there.
    """
    paths = sorted(package.rglob("*.py"))
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in paths]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    functions: defaultdict[str, list[ast.FunctionDef]] = defaultdict(list)
    for node in nodes:
        if isinstance(node, ast.FunctionDef):
            functions[node.name].append(node)
    feeds = [part for node in nodes for part in _feeds(node, functions)]
    codes: set[str] = set()
    asked: set[str] = set()
    while feeds:
        part = feeds.pop()
        if isinstance(part, ast.Constant) and _CODE.fullmatch(str(part.value)):
            codes.add(str(part.value))
        name = _called(part)
        if name not in functions:
            feeds += _parts(part)
        elif name not in asked:
            asked.add(name)
            feeds += [value for known in functions[name] for value in _returned(known)]
    return codes


def _feeds(node: ast.AST, functions: Functions) -> Iterator[ast.expr]:
    """Yield the expressions whose value becomes reasons."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _unpacked(target, node.value)
    elif isinstance(node, ast.AnnAssign | ast.AugAssign) and node.value is not None:
        yield from _unpacked(node.target, node.value)
    elif isinstance(node, ast.Call):
        yield from (
            word.value for word in node.keywords if _NAME.search(word.arg or "")
        )
        if _called(node) in {"append", "extend"}:
            function = node.func
            if isinstance(function, ast.Attribute) and _is_named(function.value):
                yield from node.args
        for known in functions.get(_called(node), ()):
            yield from _by_position(node, known)
    elif isinstance(node, ast.FunctionDef) and _NAME.search(node.name):
        yield from _returned(node)


def _unpacked(target: ast.expr, value: ast.expr) -> Iterator[ast.expr]:
    if not isinstance(target, ast.Tuple):
        if _is_named(target):
            yield value
    elif isinstance(value, ast.Tuple):
        for name, part in zip(target.elts, value.elts, strict=True):
            yield from _unpacked(name, part)
    elif any(map(_is_named, target.elts)):
        yield value


def _by_position(call: ast.Call, function: ast.FunctionDef) -> Iterator[ast.expr]:
    names = [argument.arg for argument in function.args.args]
    if isinstance(call.func, ast.Attribute) and names[:1] in (["self"], ["cls"]):
        names = names[1:]
    for name, value in zip(names, call.args, strict=False):
        if _NAME.search(name):
            yield value


def _returned(function: ast.FunctionDef) -> Iterator[ast.expr]:
    for node in ast.walk(function):
        if isinstance(node, ast.Return) and node.value is not None:
            yield node.value


def _called(node: ast.AST) -> str:
    function = node.func if isinstance(node, ast.Call) else None
    if isinstance(function, ast.Name):
        return function.id
    return function.attr if isinstance(function, ast.Attribute) else ""


def _is_named(target: ast.expr) -> bool:
    if isinstance(target, ast.Name):
        return bool(_NAME.search(target.id))
    return isinstance(target, ast.Attribute) and bool(_NAME.search(target.attr))


def _parts(part: ast.AST) -> list[ast.expr]:
    """Return what an expression takes its value from, conditions left out."""
    fields = {
        ast.Dict: ("values",),  # its keys are no reasons
        ast.IfExp: ("body", "orelse"),
        ast.BoolOp: ("values",),
        ast.BinOp: ("left", "right"),
        ast.Call: ("args",),  # frozenset({...}), list(...)
        ast.Starred: ("value",),
    }
    parts: list[ast.expr] = []
    for name in fields.get(type(part), ("elts",)):
        value = getattr(part, name, [])
        parts += value if isinstance(value, list) else [value]
    return parts
