"""Questions in order of uncertainty, those with equal uncertainty as one group."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from snne_guard.types import FloatArray

__all__ = ["IntArray", "Ranking", "TieGroups"]

IntArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class TieGroups:
    """Data sets as their groups of equal uncertainty, the most certain group first.

    Attributes:
        sizes: ``(b, g)`` questions in each group of each of b data sets; 0 is allowed.
        quality: ``(b, g)`` sums of their quality.
        n: Questions in each data set.
    """

    sizes: FloatArray
    quality: FloatArray
    n: int

    @property
    def ends(self) -> IntArray:
        """``(b, g)`` questions up to the end of each group."""
        return self.sizes.cumsum(axis=1).astype(np.int64)


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

    def groups(self, counts: NDArray[np.integer] | None = None) -> TieGroups:
        """Return the groups of data sets that hold so many questions of each cell.

        Args:
            counts: ``(b, cells)`` of b data sets, of equal size each. None: the one
                that was ranked.
        """
        if counts is None:
            counts = np.bincount(self.cell_of, minlength=self.n_cells)[None, :]
        sizes = counts.astype(np.float64)
        quality = sizes * self._quality
        if len(self._starts) < self.n_cells:
            sizes = np.add.reduceat(sizes, self._starts, axis=1)
            quality = np.add.reduceat(quality, self._starts, axis=1)
        return TieGroups(sizes=sizes, quality=quality, n=int(counts[0].sum()))


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
