"""What methods refuse: arrays of a wrong shape or range, options out of range."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.scorers import bounds, snne, uncertainty, wsnne
from snne_guard.scorers.cluster_entropy import (
    discrete_semantic_entropy,
    greedy_clusters,
    semantic_entropy,
)
from snne_guard.scorers.entailment import luq
from snne_guard.scorers.graph import eigenvalue_sum
from snne_guard.scorers.hidden_states import eigen_score
from snne_guard.scorers.likelihood import perplexity
from snne_guard.scorers.relevance import token_sar
from tests.scorers.support import MEANS, SIMILARITY

NAN, HUGE = math.nan, 10**400

# Function, arguments, what the message says.
ARRAYS: list[tuple[Callable[..., Any], tuple[Any, ...], str]] = [
    (snne, ([],), "at least one value of similarity"),
    (snne, ([[1, NAN], [0, 1]],), "similarity without NaN, got nan"),
    (snne, ([["a"]],), "real numbers"),
    (snne, ([[-HUGE]],), "range of a float"),
    (wsnne, ([[1, 0]], [0.0]), r"shape \(n, n\), got \(1, 2\)"),
    (wsnne, (SIMILARITY, [0.0]), r"mean_logprobs of shape \(4,\), got \(1,\)"),
    (wsnne, (SIMILARITY, [0.0, 0.0, 0.0, 0.5]), "mean_logprobs in .*, got 0.5"),
    (bounds, (0,), "expected n of at least 1"),
    (semantic_entropy, ([0, 1], [-0.1]), "mean_logprobs"),
    (discrete_semantic_entropy, ([0.5],), "cluster ids as whole numbers"),
    (greedy_clusters, (np.eye(2),), "booleans"),
    (greedy_clusters, (np.array([[True, True], [False, True]]),), "symmetric"),
    (eigenvalue_sum, ([[1, -0.5], [-0.5, 1]],), "weights in .* got -0.5"),
    (luq, (np.zeros((2, 2, 2)),), "shape"),
    (luq, (np.zeros((2, 2, 3)),), "add up to 1"),
    (token_sar, ([], []), "at least one answer"),
    (token_sar, ([[]], [[]]), "token_logprobs of answer 0"),
    (
        token_sar,
        ([[-1.0]], [[0.1, 0.2]]),
        r"token_importance of shape \(1,\), got \(2,\)",
    ),
    (eigen_score, ([[NAN]],), "hidden_states"),
    (perplexity, ([],), "main_logprobs"),
]


@pytest.mark.parametrize(("function", "arguments", "says"), ARRAYS)
def test_arrays(function: Callable[..., Any], arguments: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        function(*arguments)


@pytest.mark.parametrize("tau", [0, NAN, math.inf, "1", None, True, HUGE])
def test_tau(tau: Any) -> None:
    calls: list[Callable[[], object]] = [
        lambda: snne(SIMILARITY, tau=tau),
        lambda: wsnne(SIMILARITY, MEANS, tau=tau),
        lambda: uncertainty(-1.7, 3, tau=tau),
    ]
    for call in calls:
        with pytest.raises(ConfigurationError, match="tau"):
            call()
