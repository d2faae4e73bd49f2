"""Arrays and options outside of what a method is defined for are refused."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np
import pytest

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.scorers import (
    eccentricity,
    eigenvalue_sum,
    kle_full,
    kle_matern,
    luq,
    luq_pair,
    naive_entropy,
    p_true,
    score,
    sent_sar,
)
from snne_guard.scorers.cocoa import cocoa_msp
from snne_guard.scorers.graph_kernels import heat_kernel, von_neumann_entropy
from snne_guard.scorers.sar import token_sar

HUGE = np.full((3, 3), 1e308)
EYE = [[1.0, 0.0], [0.0, 1.0]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: eigenvalue_sum(HUGE), "weights of at most"),
        (lambda: kle_matern(HUGE), "weights of at most"),
        (lambda: von_neumann_entropy([[2, 0], [0, 2]]), "trace 1, got trace 4.0"),
        (lambda: luq([[1, 5.0], [5.0, 1]]), r"support in \[0, 1\], got 5.0"),
        (lambda: luq_pair([[1, -0.5], [5.0, 1]]), "got -0.5"),
        (lambda: naive_entropy([0.5]), "at most 0, got 0.5"),
        (lambda: cocoa_msp([-1.0], [-1e-9, 2.0]), "got 2.0"),
        (lambda: token_sar([[-1.0, -1.0]], [[-1e-9, 2.0]]), "got 2.0"),
    ],
    ids=count(),
)
def test_arrays(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sent_sar([[-1.0], [-1.0]], EYE, t=1e-310), "can be divided by"),
        (lambda: eccentricity(EYE, threshold=np.nan), "a threshold, got NaN"),
        (lambda: eccentricity(EYE, threshold="x"), "threshold to be a number"),  # type: ignore[arg-type]
        (lambda: eccentricity(EYE, smallest=1.5), "got 1.5"),  # type: ignore[arg-type]
        (lambda: heat_kernel(EYE, t="x"), "t to be a number, got 'x'"),  # type: ignore[arg-type]
        (lambda: kle_full(EYE, [0, 1], [-1, -1], alpha="x"), "alpha to be a number"),  # type: ignore[arg-type]
    ],
    ids=count(),
)
def test_options(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        call()


def test_log_probabilities_rounded_above_0_are_0_everywhere() -> None:
    assert naive_entropy([5e-4]) == naive_entropy([0.0])
    assert p_true(5e-4) == p_true(0.0)
    for method in ("wsnne", "perplexity", "ne", "mean_sequence_probability"):
        values = [
            score(["a", "b"], method=method, token_logprobs=[[one], [-1.0]]).value
            for one in (5e-4, 0.0)
        ]
        assert values[0] == values[1]
