"""What no scorer takes: arrays and options that make no sense, each with its name."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.scorers import (
    bounds,
    cocoa,
    degree,
    discrete_semantic_entropy,
    eccentricity,
    edge_weights,
    eigen_score,
    eigenvalue_sum,
    greedy_clusters,
    heat_kernel,
    kle,
    kle_full,
    lexical_similarity,
    luq,
    luq_pair,
    matern_kernel,
    naive_entropy,
    p_true,
    perplexity,
    sar,
    semantic_density,
    semantic_entropy,
    semantic_set_count,
    sent_sar,
    sequence_probability,
    snne,
    token_sar,
    uncertainty,
    vote_share,
    wsnne,
)
from tests.scorers.support import GRAPH, IMPORTANCE, MEANS, SIMILARITY, STATES, TOKENS

NAN, HUGE = math.nan, 10**400
AGREES = [[0.0, 0.2, 0.8]] * 2

# Function, arguments, what the message says.
ARRAYS: list[tuple[Callable[..., Any], tuple[Any, ...], str]] = [
    (snne, ([],), r"similarity .*\(n, n\)"),
    (wsnne, ([[1, 0]], [0.0]), r"got \(1, 2\)"),
    (snne, ([[1, NAN], [0, 1]],), r"got nan at \(0, 1\)"),
    (snne, ([["a"]],), "real numbers"),
    (snne, ([[1], [1, 2]],), "rows of different lengths"),
    (snne, ([[1 + 0j]],), "real numbers, got complex128"),
    (snne, (np.ma.masked_array([[1.0]]),), "without a mask"),
    (snne, ([[-HUGE]],), "range of a float"),
    (wsnne, (SIMILARITY, [0.0]), "mean_logprobs"),
    (wsnne, (SIMILARITY, [0.0, 0.0, 0.0, 0.5]), "mean_logprobs"),
    (bounds, (0,), "expected n"),
    (bounds, (2.5,), "expected n"),
    (semantic_entropy, ([0, 1], [-0.1]), "expected 2 mean_logprobs"),
    (naive_entropy, ([],), "mean_logprobs"),
    (discrete_semantic_entropy, ([],), "cluster ids as whole numbers"),
    (semantic_set_count, ([0.5],), "cluster ids as whole numbers"),
    (vote_share, ([[0]],), "cluster ids as whole numbers"),
    (greedy_clusters, (np.eye(2),), "expected"),
    (greedy_clusters, (np.array([[True, True], [False, True]]),), "expected"),
    (lexical_similarity, ([],), "similarity"),
    (degree, ([[1, 0]],), "similarity"),
    (eigenvalue_sum, ([[1, -0.5], [-0.5, 1]],), "at least 0, got -"),
    (eccentricity, ([[1, 0], [0, 0]],), "row of zeros, got one at 1"),
    (edge_weights, (np.zeros((2, 2, 2)),), "shape"),
    (edge_weights, (np.zeros((2, 2, 3)),), "add up to 1"),
    (edge_weights, (np.full((2, 2, 3), NAN),), "NaN"),
    (kle, ([[0, -1], [-1, 0]],), "at least 0, got -1"),
    (kle_full, (GRAPH, [0, 0, 1], MEANS[:3]), "expected 4 cluster ids, got 3"),
    (luq, ([[1, 2], [0, 1]],), "support"),
    (luq_pair, ([[1, 0]],), "support"),
    (token_sar, ([], []), "at least one answer"),
    (token_sar, ([[]], [[]]), "token_logprobs of answer 0"),
    (token_sar, ([[-1.0]], []), "token_importance of 1 answers, got 0"),
    (token_sar, ([[-1.0]], [[0.1, 0.2]]), "token_importance of answer 0 for 1 tokens"),
    (token_sar, ([[-1.0]], [[1.5]]), "token_importance of answer 0 in"),
    (sent_sar, (TOKENS, np.eye(2)), "similarity of 4 answers, got 2"),
    (sar, (TOKENS, IMPORTANCE, -np.eye(4)), "at least 0, got -1"),
    (eigen_score, ([],), "hidden_states"),
    (eigen_score, ([[NAN]],), "hidden_states"),
    (p_true, (0.5,), "p_true_logprob"),
    (perplexity, ([],), "main_logprobs"),
    (sequence_probability, ([0.5],), "main_logprobs"),
    (cocoa, ([-1.0], [1.5]), "main_similarity"),
    (cocoa, ([-1.0], []), "main_similarity"),
    (semantic_density, (np.zeros(0), []), "at least one mean_logprobs"),
    (semantic_density, ([AGREES], [-1.0, -1.0]), r"\(2, 2, 3\), got \(1, 2, 3\)"),
    (semantic_density, ([[[0.5, 0, 0]] * 2], [-1.0]), "add up to 1"),
]


@pytest.mark.parametrize(("function", "arguments", "says"), ARRAYS)
def test_arrays(function: Callable[..., Any], arguments: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        function(*arguments)


def test_an_answer_is_needed_for_its_density() -> None:
    with pytest.raises(InputError, match="expected at least 1 answers, got 0"):
        semantic_density([AGREES], [-1.0], answers=[])


@pytest.mark.parametrize("tau", [0, -1, NAN, math.inf, "1", None, True, HUGE, 1j])
def test_tau(tau: Any) -> None:
    for call in (
        lambda: snne(SIMILARITY, tau=tau),
        lambda: wsnne(SIMILARITY, MEANS, tau=tau),
        lambda: bounds(3, tau=tau),
        lambda: uncertainty(-1.7, 3, tau=tau),
    ):
        with pytest.raises(ConfigurationError, match="tau"):
            call()


@pytest.mark.parametrize(
    ("function", "arguments", "option", "says"),
    [
        (snne, [SIMILARITY], {"anchor": 1.1}, "anchor"),
        (bounds, [3], {"tau": 1e-320}, "1/tau"),
        (heat_kernel, [GRAPH], {"t": -1}, "t to be"),
        (matern_kernel, [GRAPH], {"kappa": 0}, "kappa"),
        (matern_kernel, [GRAPH], {"nu": math.inf}, "nu"),
        (kle_full, [GRAPH, [0, 0, 1, 2], MEANS], {"alpha": 2}, "alpha"),
        (sent_sar, [TOKENS, SIMILARITY], {"t": 0}, "expected t to be"),
        (sent_sar, [TOKENS, SIMILARITY], {"t": 1e-320}, "similarity / t"),
        (eigen_score, [STATES], {"alpha": -1}, "alpha"),
    ],
)
def test_options(
    function: Callable[..., Any], arguments: Any, option: Any, says: str
) -> None:
    with pytest.raises(ConfigurationError, match=says):
        function(*arguments, **option)


def test_a_tau_that_overflows() -> None:
    with pytest.raises(InputError, match="range of a float"):
        snne(SIMILARITY, tau=1e-320)
