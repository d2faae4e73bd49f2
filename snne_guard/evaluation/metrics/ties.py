"""Questions in order of uncertainty, those with equal uncertainty as one group."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from snne_guard.types import FloatArray

__all__ = ["IntArray", "Ranking", "TieGroups"]

IntArray = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class TieGroups:
    """Data sets as their groups of equal uncertainty, the most certain group first.

    Attributes:
        sizes: ``(b, g)`` questions in each group of each of b data sets; 0 is allowed.
        quality: ``(b, g)`` sums of their quality.
        means: ``(b, g)`` means of it, any number for a group of nobody.
        n: Questions in each data set.
    """

    sizes: IntArray
    quality: FloatArray
    means: FloatArray
    n: int

    @cached_property
    def ends(self) -> IntArray:
        """``(b, g + 1)`` questions up to the end of each group, after a 0."""
        ends = np.zeros((len(self.sizes), self.sizes.shape[1] + 1), dtype=np.int64)
        self.sizes.cumsum(axis=1, out=ends[:, 1:])
        return ends


class Ranking:
    """Questions from the most certain to the least certain.

    A *cell* is what a metric need not look into: questions of one group and of equal
    quality. How many questions each cell holds says all about a data set, so a
    resample is ``(cells,)`` counts, and the order of the input never matters.

    Args:
        uncertainty: ``(n,)`` without NaN, n >= 1.
        quality: ``(n,)`` finite.
        join: Whether neighbouring groups of one and the same quality become one. Means
            of the most certain questions, and the share of pairs in right order, stay
            what they are; the steps of a curve do not.

    Attributes:
        cell_of: ``(n,)`` cell of each question.
        n_cells: How many there are.
    """

    __slots__ = ("_quality", "_starts", "cell_of", "n_cells")

    def __init__(
        self, uncertainty: FloatArray, quality: FloatArray, *, join: bool = False
    ) -> None:
        order = np.lexsort((quality, uncertainty))
        sorted_quality = quality[order]
        opens_group = _changes(uncertainty[order])
        if join:
            opens_group = _joined(opens_group, sorted_quality)
        opens_cell = opens_group | _changes(sorted_quality)
        self.cell_of: IntArray = np.empty(len(order), dtype=np.int64)
        self.cell_of[order] = np.cumsum(opens_cell) - 1
        self.n_cells = int(np.count_nonzero(opens_cell))
        self._quality: FloatArray = sorted_quality[opens_cell]
        self._starts = np.flatnonzero(opens_group[opens_cell])

    def count(self, drawn: IntArray) -> IntArray:
        """Return the ``(b, cells)`` counts of ``(b, n)`` indices of questions."""
        cells = self.cell_of.take(drawn)
        cells += np.arange(len(drawn))[:, None] * self.n_cells
        counts = np.bincount(cells.ravel(), minlength=len(drawn) * self.n_cells)
        return counts.reshape(len(drawn), self.n_cells)

    def groups(self, counts: IntArray | None = None) -> TieGroups:
        """Return the groups of data sets that hold so many questions of each cell.

        Args:
            counts: ``(b, cells)`` of b data sets of n questions each. None: the one
                that was ranked.
        """
        counts = self._itself() if counts is None else counts
        return _grouped(counts, self._quality, self._starts)

    def best_first(self, counts: IntArray | None = None) -> TieGroups:
        """Return the same data sets in the best order: groups of equal quality."""
        counts = self._itself() if counts is None else counts
        order = np.argsort(-self._quality, kind="stable")
        quality = self._quality[order]
        starts = np.flatnonzero(_changes(quality))
        sizes = np.add.reduceat(counts.take(order, axis=1), starts, axis=1)
        return _grouped(sizes, quality[starts], np.arange(len(starts)))

    def _itself(self) -> IntArray:
        return np.bincount(self.cell_of, minlength=self.n_cells)[None, :]


def _grouped(
    sizes: IntArray, quality: FloatArray, starts: NDArray[np.intp]
) -> TieGroups:
    n, sums = int(sizes[0].sum()), sizes * quality
    if len(starts) == len(quality):
        means = np.broadcast_to(quality, sizes.shape)
        return TieGroups(sizes=sizes, quality=sums, means=means, n=n)
    sizes = np.add.reduceat(sizes, starts, axis=1)
    sums = np.add.reduceat(sums, starts, axis=1)
    return TieGroups(sizes=sizes, quality=sums, means=sums / np.maximum(sizes, 1), n=n)


def _changes(values: FloatArray) -> NDArray[np.bool_]:
    # No difference is taken, so infinite values are equal to themselves.
    return np.concatenate([[True], values[1:] != values[:-1]])


def _joined(opens_group: NDArray[np.bool_], quality: FloatArray) -> NDArray[np.bool_]:
    starts = np.flatnonzero(opens_group)
    first, last = quality[starts], quality[np.append(starts[1:], len(quality)) - 1]
    pure = first == last
    same = np.zeros(len(starts), dtype=np.bool_)
    same[1:] = pure[1:] & pure[:-1] & (first[1:] == first[:-1])
    joined = opens_group.copy()
    joined[starts[same]] = False
    return joined
