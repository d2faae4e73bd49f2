"""What the methods demand of the arrays that they are given."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from numbers import Real
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.scorers.clusters import as_cluster_ids
from snne_guard.scorers.rows import as_floats, clipped_logprobs
from snne_guard.scorers.small import all_finite, is_symmetric, max_of, min_of
from snne_guard.types import FloatArray, IntArray

__all__ = [
    "Ragged",
    "as_graph",
    "as_logprobs",
    "as_matrix",
    "as_places",
    "as_ragged",
    "as_shares",
    "as_token_logprobs",
    "as_vector",
    "check_at_least",
    "check_number",
    "check_unit",
    "check_weights",
    "given",
    "graph_of",
]

T = TypeVar("T")

_ROUNDING = 1e-6
_LARGEST = 1e100


def given(value: T | None, /) -> T:
    """Return a need that ``FunctionMethod`` has made sure of."""
    assert value is not None  # noqa: S101 - see above
    return value


def as_matrix(values: ArrayLike, /, *, what: str) -> FloatArray:
    """Return an ``(n, n)`` matrix of finite numbers, n >= 1.

    Raises:
        InputError: It is none.
    """
    try:
        matrix: FloatArray = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        matrix = as_floats(values, what=what)
    if not all_finite(matrix):
        as_floats(matrix, what=what)  # says what is wrong, unless it is -inf
        msg = f"expected {what} of finite numbers, got -inf"
        raise InputError(msg)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:  # noqa: PLR2004 - a matrix has two axes
        msg = f"expected {what} to be (n, n) with n >= 1, got shape {matrix.shape}"
        raise InputError(msg)
    return matrix


def as_graph(weights: ArrayLike, /) -> FloatArray:
    """Return ``(n, n)`` edge weights, symmetric and with an empty diagonal.

    Raises:
        InputError: They are not finite, below 0 or not symmetric.
    """
    return graph_of(as_matrix(weights, what="weights"))


def graph_of(matrix: FloatArray, /) -> FloatArray:
    """Return what ``as_graph`` returns of what ``as_matrix`` returned.

    Raises:
        InputError: As for ``as_graph``.
    """
    check_weights(matrix)
    if not is_symmetric(matrix):
        gap = float(np.abs(matrix - matrix.T).max())
        if gap > _ROUNDING:
            msg = f"expected symmetric weights, got a pair {gap} apart"
            raise InputError(msg)
        matrix = (matrix + matrix.T) / 2
    graph = matrix.copy()
    graph.flat[:: len(graph) + 1] = 0.0
    return graph


def check_weights(weights: FloatArray, /) -> None:
    """Raise InputError where the weight of an edge is below 0 or beyond all measure."""
    least, most = min_of(weights), max_of(weights)
    if least < 0:
        msg = f"expected weights of at least 0, got {least}"
        raise InputError(msg)
    if most > _LARGEST:
        msg = f"expected weights of at most {_LARGEST}, got {most}"
        raise InputError(msg)


def as_vector(values: ArrayLike, /, *, what: str, n: int | None = None) -> FloatArray:
    """Return ``(n,)`` numbers, at least one of them; ``-inf`` is one.

    Raises:
        InputError: They are not n numbers, or NaN or ``+inf`` is among them.
    """
    vector = as_floats(values, what=what)
    if vector.ndim != 1 or not len(vector) or (n is not None and len(vector) != n):
        expected = "at least one" if n is None else str(n)
        msg = f"expected {expected} {what}, got shape {vector.shape}"
        raise InputError(msg)
    return vector


def as_logprobs(values: ArrayLike, /, *, what: str, n: int | None = None) -> FloatArray:
    """Return ``(n,)`` natural log-probabilities, at most 0.

    Raises:
        InputError: They are none, or one is above 0 by more than rounding.
    """
    vector = as_vector(values, what=what, n=n)
    return clipped_logprobs(vector, what=what)


def as_shares(values: ArrayLike, /, *, what: str, slack: float) -> list[float]:
    """Return a list of numbers in [0, 1], those beyond by no more than slack cut off.

    Raises:
        InputError: There is none, or one lies further outside.
    """
    shares: list[float] = as_vector(values, what=what).tolist()
    least, most = min(shares), max(shares)
    if least >= 0 and most <= 1:
        return shares
    if least < -slack or most > 1 + slack:
        wrong = least if least < -slack else most
        msg = f"expected {what} in [0, 1], got {wrong}"
        raise InputError(msg)
    return [min(max(share, 0.0), 1.0) for share in shares]


class Ragged(NamedTuple):
    """Numbers of the tokens of n answers, one after the other.

    Attributes:
        flat: All of them.
        starts: Where each of the n answers begins.
        lengths: How many tokens each has, at least 1.
    """

    flat: FloatArray
    starts: list[int]
    lengths: list[int]

    def sums(self, values: FloatArray, /) -> FloatArray:
        """Return the ``(n,)`` sums over each answer's tokens."""
        return np.add.reduceat(values, self.starts)


def as_ragged(lists: Sequence[ArrayLike], /, *, what: str) -> Ragged:
    """Return numbers of the tokens of each answer.

    Raises:
        InputError: There are no answers, one has no tokens, or a number is NaN or
            ``+inf``.
    """
    if not len(lists):
        msg = f"expected {what} of at least one answer, got none"
        raise InputError(msg)
    try:
        arrays = [np.asarray(tokens, dtype=np.float64) for tokens in lists]
    except (TypeError, ValueError):
        arrays = _each_checked(lists, what=what)
    lengths = [array.size for array in arrays]
    if 0 in lengths or any(array.ndim != 1 for array in arrays):
        place, shape = next(
            (place, array.shape)
            for place, array in enumerate(arrays)
            if array.ndim != 1 or not array.size
        )
        msg = (
            f"expected {what} of at least one token for answer {place}, "
            f"got shape {shape}"
        )
        raise InputError(msg)
    flat = np.concatenate(arrays)
    # All at once, and one by one only to say which answer is wrong.
    if not max_of(flat) < math.inf:
        _each_checked(lists, what=what)
    starts = [0, *accumulate(lengths[:-1])]
    return Ragged(flat, starts, lengths)


def _each_checked(lists: Sequence[ArrayLike], *, what: str) -> list[FloatArray]:
    return [
        as_floats(tokens, what=f"{what} of answer {place}")
        for place, tokens in enumerate(lists)
    ]


def as_token_logprobs(lists: Sequence[ArrayLike], /) -> Ragged:
    """Return natural log-probabilities of the tokens of each answer, at most 0.

    Raises:
        InputError: As for ``as_ragged``, or one is above 0 by more than rounding.
    """
    ragged = as_ragged(lists, what="token_logprobs")
    flat = clipped_logprobs(ragged.flat, what="token_logprobs")
    return Ragged(flat, ragged.starts, ragged.lengths)


def as_places(cluster_ids: ArrayLike, /, *, n: int | None = None) -> IntArray:
    """Return ``(n,)`` places 0 ... M-1 of the clusters, whatever their numbers.

    Raises:
        InputError: They are not n whole numbers, n >= 1.
    """
    ids = as_cluster_ids(cluster_ids)
    if n is not None and len(ids) != n:
        msg = f"expected {n} cluster ids, got {len(ids)}"
        raise InputError(msg)
    places = {name: place for place, name in enumerate(sorted(set(ids)))}
    return np.array([places[name] for name in ids], dtype=np.intp)


def check_number(value: object, /, *, what: str) -> None:
    """Raise ConfigurationError unless a value is a number."""
    if not isinstance(value, (float, Real)):  # a float first, which is fast to tell
        msg = f"expected {what} to be a number, got {value!r}"
        raise ConfigurationError(msg)


def check_unit(value: float, /, *, what: str) -> None:
    """Raise ConfigurationError unless a number lies in [0, 1]."""
    check_number(value, what=what)
    if not 0 <= value <= 1:
        msg = f"expected {what} in [0, 1], got {value!r}"
        raise ConfigurationError(msg)


def check_at_least(
    value: float, least: float, /, *, what: str, above: bool = False
) -> None:
    """Raise ConfigurationError unless a finite number reaches a least one."""
    check_number(value, what=what)
    if not (value > least if above else value >= least) or value == math.inf:
        word = "above" if above else "of at least"
        msg = f"expected a finite {what} {word} {least}, got {value!r}"
        raise ConfigurationError(msg)
