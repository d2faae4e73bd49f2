"""Whether two paths name one file, and each file once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

__all__ = ["each_once", "same_file"]

P = TypeVar("P", bound=str | os.PathLike[str])


def each_once(
    paths: Iterable[P], /, *, on_again: Callable[[P], object] | None = None
) -> list[P]:
    """Return paths, less those of a file that an earlier one names.

    Args:
        paths: Files, there or not.
        on_again: Told each path that is left out.

    Example:
        >>> each_once(["a.jsonl", "b.jsonl", "./a.jsonl"])
        ['a.jsonl', 'b.jsonl']
    """
    kept: list[P] = []
    for path in paths:
        if not any(same_file(path, one) for one in kept):
            kept.append(path)
        elif on_again is not None:
            on_again(path)
    return kept


def same_file(one: str | os.PathLike[str], other: str | os.PathLike[str], /) -> bool:
    """Return whether two paths name one file, by links too.

    Example:
        >>> same_file("a.jsonl", "./a.jsonl")
        True
    """
    first, second = Path(one), Path(other)
    if first.exists() and second.exists():
        return first.samefile(second)
    return first.resolve() == second.resolve()
