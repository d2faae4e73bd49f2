"""A small response set with everything that methods may look at, and strategies."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import strategies as st

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


def inputs(**changes: Any) -> SimpleNamespace:
    """Return everything about four answers, the first of them delivered."""
    entailment = np.array(ENTAILMENT)
    fields: dict[str, Any] = {
        "tau": 1.0,
        "anchor": 0.0,
        "similarity": np.array(SIMILARITY),
        "answers": ("Neil Armstrong did", "Armstrong", "Aldrin", "Nobody"),
        "question": "Who was first?",
        "mean_logprobs": np.array(MEANS),
        "token_logprobs": tuple(map(np.array, TOKENS)),
        "token_importance": tuple(map(np.array, IMPORTANCE)),
        "cluster_ids": np.array(CLUSTERS),
        "entailment": entailment,
        "graph": np.array(GRAPH),
        "hidden_states": np.array(STATES),
        "p_true_logprob": -0.3,
        "main_answer": "Neil Armstrong did",
        "main_logprobs": np.array(TOKENS[0]),
        "main_similarity": np.array(SIMILARITY[0][1:]),
        "main_entailment": np.stack([entailment[0, 1:], entailment[1:, 0]], axis=1),
        "sample_mean_logprobs": np.array(MEANS[1:]),
    }
    return SimpleNamespace(**{**fields, **changes})


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


TEXTS = ["Armstrong", "Neil Armstrong", "Aldrin", "Nobody"]


def same(texts: Sequence[str], /, *, question: str | None = None) -> FloatArray:
    """Return 1 for equal texts and 0 for others."""
    del question
    return np.array([[float(one == other) for one in texts] for other in texts])


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
