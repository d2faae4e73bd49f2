"""A small reply set with everything that methods may look at, and strategies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from snne_guard.scorers import Inputs
from snne_guard.types import BoolArray, FloatArray

SIMILARITY = [
    [1.0, 0.8, 0.2, 0.4],
    [0.8, 1.0, 0.0, 0.25],
    [0.2, 0.0, 1.0, 0.1],
    [0.4, 0.25, 0.1, 1.0],
]
# Contradiction, neutral, entailment; premise first. The first two mean the same.
ENTAILMENT = [
    [[0.0, 0.0, 1.0], [0.05, 0.15, 0.8], [0.7, 0.2, 0.1], [0.1, 0.6, 0.3]],
    [[0.02, 0.08, 0.9], [0.0, 0.0, 1.0], [0.8, 0.15, 0.05], [0.2, 0.7, 0.1]],
    [[0.75, 0.2, 0.05], [0.6, 0.3, 0.1], [0.0, 0.0, 1.0], [0.5, 0.4, 0.1]],
    [[0.1, 0.3, 0.6], [0.3, 0.5, 0.2], [0.4, 0.5, 0.1], [0.0, 0.0, 1.0]],
]
GRAPH = [
    [0.0, 2.0, 0.0, 1.5],
    [2.0, 0.0, 0.0, 1.0],
    [0.0, 0.0, 0.0, 0.5],
    [1.5, 1.0, 0.5, 0.0],
]
CLUSTERS = [0, 0, 1, 2]
TOKENS = [[-0.1, -0.4], [-0.2], [-1.5, -0.3, -0.9], [-2.0, -0.5]]
IMPORTANCE = [[0.5, 0.25], [0.9], [0.1, 0.0, 0.7], [0.0, 0.0]]
STATES = [[1.0, 0.0, -1.0], [0.9, 0.2, -1.0], [-0.5, 1.0, 0.3], [0.1, 0.4, -0.6]]
MEANS = [-0.25, -0.2, -0.9, -1.25]
TEXTS = ["Armstrong", "Neil Armstrong", "Aldrin", "Nobody"]


class Recorded:
    """A similarity that knows the four answers by their texts."""

    name = "recorded"

    def __init__(self) -> None:
        self.calls = 0

    def __call__(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> FloatArray:
        del question
        self.calls += 1
        places = [TEXTS.index(text) for text in texts]
        return np.array(SIMILARITY)[np.ix_(places, places)]

    def probabilities(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> FloatArray:
        del question
        places = [TEXTS.index(text) for text in texts]
        return np.array(ENTAILMENT)[np.ix_(places, places)]

    def equivalent(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> BoolArray:
        del question
        ids = np.array([CLUSTERS[TEXTS.index(text)] for text in texts])
        alike: BoolArray = ids[:, None] == ids
        return alike


def inputs(order: Sequence[int] = range(4), **changes: Any) -> Inputs:
    """Return the four answers, in some order, with all that is known of them."""
    known = {
        "token_logprobs": TOKENS,
        "hidden_states": STATES,
        "token_importance": IMPORTANCE,
    }
    options: dict[str, Any] = {
        name: [values[place] for place in order] for name, values in known.items()
    }
    options |= {"similarity": Recorded(), "name": "recorded", "p_true_logprob": -0.3}
    return Inputs([TEXTS[place] for place in order], **{**options, **changes})


def same(texts: Sequence[str], /, *, question: str | None = None) -> FloatArray:
    """Return 1 for equal texts and 0 for others."""
    del question
    return np.array([[float(one == other) for one in texts] for other in texts])


def entailed(support: FloatArray) -> FloatArray:
    """Return probabilities in which texts support each other so far."""
    return np.stack([1 - support, np.zeros_like(support), support], axis=2)


@st.composite
def similarities(draw: st.DrawFn, most: int = 6) -> FloatArray:
    """Draw a symmetric similarity with diagonal 1."""
    n = draw(st.integers(1, most))
    shares = st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.8, 1.0]) | st.floats(0, 1)
    cells = draw(st.lists(shares, min_size=n * n, max_size=n * n))
    upper = np.triu(np.array(cells).reshape(n, n), 1)
    matrix: FloatArray = upper + upper.T + np.eye(n)
    return matrix


def logprob_lists(n: int, least: float = -20.0) -> st.SearchStrategy[list[float]]:
    """Draw n log-probabilities."""
    return st.lists(st.floats(least, 0.0), min_size=n, max_size=n)
