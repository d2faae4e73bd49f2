"""What hypothesis draws: similarities, relations between answers, log-probabilities."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from snne_guard.types import BoolArray, FloatArray

__all__ = ["clusterings", "logprobs", "relations", "similarities", "supports"]

# The round ones make ties and duplicates.
_ENTRIES = st.sampled_from([0.0, 0.25, 0.5, 1.0]) | st.floats(0, 1)


def supports(most: int = 7) -> st.SearchStrategy[FloatArray]:
    """Any square matrices in [0, 1]."""
    return st.integers(1, most).flatmap(
        lambda n: arrays(np.float64, (n, n), elements=_ENTRIES)
    )


def similarities(most: int = 7) -> st.SearchStrategy[FloatArray]:
    """Symmetric matrices in [0, 1] with diagonal 1."""
    return supports(most).map(_symmetric)


def relations(most: int = 8) -> st.SearchStrategy[BoolArray]:
    """Symmetric relations with True on the diagonal, most of them not transitive."""
    return st.tuples(similarities(most), st.sampled_from([0.25, 0.5, 1.0])).map(
        lambda drawn: drawn[0] >= drawn[1]
    )


def clusterings(most: int = 10) -> st.SearchStrategy[list[int]]:
    """Cluster ids, not all of them contiguous."""
    return st.lists(st.integers(0, 4), min_size=1, max_size=most)


def logprobs(n: int) -> st.SearchStrategy[list[float]]:
    """Mean log-probabilities, the extreme ones in."""
    values = st.sampled_from([0.0, -0.5, -1e4]) | st.floats(-2000, 0)
    return st.lists(values, min_size=n, max_size=n)


def _symmetric(matrix: FloatArray) -> FloatArray:
    both: FloatArray = np.triu(matrix, 1)
    both = both + both.T
    np.fill_diagonal(both, 1.0)
    return both
