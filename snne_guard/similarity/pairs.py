"""From a list of texts to all pairs of them, equal ones compared only once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from snne_guard.errors import InputError
from snne_guard.types import FloatArray


def check_texts(texts: Sequence[str], /) -> None:
    """Raise InputError for anything but a sequence of strings."""
    if isinstance(texts, str) or not isinstance(texts, Sequence):
        msg = f"expected a sequence of texts, got one {type(texts).__name__}"
        raise InputError(msg)
    for kind in set(map(type, texts)):
        if not issubclass(kind, str):
            msg = f"expected every text to be a str, got {kind.__name__}"
            raise InputError(msg)


def distinct_texts(texts: Sequence[str], /) -> list[str]:
    """Return each distinct text once, in order; InputError as of ``check_texts``."""
    check_texts(texts)
    return list(dict.fromkeys(texts))


def spread(
    matrix: FloatArray, distinct: Sequence[str], texts: Sequence[str], /
) -> FloatArray:
    """Return the matrix of all texts from that of the distinct ones."""
    if len(distinct) == len(texts):
        return matrix
    place = {text: row for row, text in enumerate(distinct)}
    places = [place[text] for text in texts]
    return matrix[np.ix_(places, places)]


def compare_ordered(
    texts: Sequence[str],
    compare: Callable[[list[tuple[str, str]]], ArrayLike],
    /,
    *,
    equal: ArrayLike,
) -> NDArray[Any]:
    """Return the result for each ordered pair of texts; ``equal`` for equal texts."""
    distinct = distinct_texts(texts)
    n = len(distinct)
    table = np.tile(np.asarray(equal), (n, n, *[1] * np.ndim(equal)))
    if n > 1:
        rows, columns = zip(*permutations(range(n), 2), strict=True)
        table[rows, columns] = compare([*permutations(distinct, 2)])
    return spread(table, distinct, texts)
