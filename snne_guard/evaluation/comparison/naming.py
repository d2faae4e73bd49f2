"""Names of sets by which files of one name in different folders are told apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from snne_guard.evaluation.results import EvaluatedSet

__all__ = ["told_apart"]


def told_apart(sets: Sequence[EvaluatedSet], /) -> tuple[EvaluatedSet, ...]:
    """Return the sets, their folders in front where files have the same stem.

    Where the folder does not tell them apart either, it is the whole path.

    Example:
        >>> sets = [EvaluatedSet(name="a", path=f"{run}/a.jsonl") for run in (1, 2)]
        >>> [one.name for one in told_apart(sets)]
        ['1/a', '2/a']
    """
    paths = {one.path for one in sets}
    names = {path: _name(path, paths) for path in paths}
    return tuple(
        replace(one, name=names[one.path] + one.name.removeprefix(Path(one.path).stem))
        for one in sets
    )


def _name(path: str, paths: set[str]) -> str:
    stem, folder = Path(path).stem, Path(path).parent.name
    alike = [Path(other) for other in paths if Path(other).stem == stem]
    if len(alike) == 1:
        return stem
    same = sum(other.parent.name == folder for other in alike)
    return f"{folder}/{stem}" if same == 1 and folder else path
