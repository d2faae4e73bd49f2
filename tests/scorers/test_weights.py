"""How much an answer weighs: by its likelihood, or by what the paper prints."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.scorers import kle_full, score, semantic_entropy, snne, wsnne
from snne_guard.scorers.graph_kernels import cluster_kernel
from snne_guard.scorers.rows import printed_weights, softmax_weights

values = st.lists(st.floats(-50, -1e-6), min_size=2, max_size=8)


@given(values)
def test_the_printed_weights_are_reversed(logprobs: list[float]) -> None:
    n = len(logprobs)
    printed = printed_weights(logprobs, n=n)
    likely = softmax_weights(logprobs, n=n)

    assert printed / printed.sum() == pytest.approx(np.array(logprobs) / sum(logprobs))
    assert ((printed > 0) & (printed <= 1)).all()
    for i in range(n):
        for j in range(n):
            if logprobs[i] < logprobs[j]:
                assert printed[i] >= printed[j]
                assert likely[i] <= likely[j]


@given(values, st.sampled_from([0.1, 1.0, 10.0]))
def test_wsnne_by_them(logprobs: list[float], tau: float) -> None:
    n = len(logprobs)
    matrix = np.fromfunction(lambda i, j: 1 / (1 + abs(i - j)), (n, n))
    rows = [math.log(sum(math.exp(f / tau) for f in row)) for row in matrix]
    total = sum(logprobs)
    expected = -sum(one / total * row for one, row in zip(logprobs, rows, strict=True))

    got = wsnne(matrix, logprobs, tau=tau, reading="printed")

    assert got == pytest.approx(expected, rel=1e-9)


def test_with_equal_log_probabilities_it_is_snne() -> None:
    matrix = [[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 1.0]]

    assert wsnne(matrix, [-0.3] * 3, reading="printed") == snne(matrix)


def test_what_is_impossible_has_all_the_weight() -> None:
    assert printed_weights([-1.0, -math.inf, -math.inf], n=3).tolist() == [0, 1, 1]
    assert semantic_entropy([0, 1], [-1.0, -math.inf], reading="printed") == 0.0


@pytest.mark.parametrize("values", [[0.0, 0.0], [-0.0, 0.0], [1e-4, 0.0]])
def test_nothing_over_nothing_is_refused(values: list[float]) -> None:
    said = "expected a mean log-probability below 0 .* got 2 that are 0"
    with pytest.raises(InputError, match=said):
        wsnne(np.eye(2), values, reading="printed")
    with pytest.raises(InputError, match=said):
        semantic_entropy([0, 1], values, reading="printed")
    with pytest.raises(InputError, match=said):
        score(["a", "b"], token_logprobs=[[0.0], [0.0]], method="wsnne_printed")


@pytest.mark.parametrize(
    "call",
    [
        lambda values: wsnne(np.eye(2), values),
        lambda values: wsnne(np.eye(2), values, reading="printed"),
        lambda values: semantic_entropy([0, 1], values),
        lambda values: semantic_entropy([0, 1], values, reading="printed"),
        lambda values: cluster_kernel([0, 1], values),
        lambda values: kle_full(np.ones((2, 2)), [0, 1], values),
    ],
    ids=["wsnne", "wsnne_printed", "se", "se_printed", "cluster_kernel", "kle_full"],
)
def test_a_log_probability_above_0_is_none(call: Any) -> None:
    with pytest.raises(InputError, match=r"mean_logprobs of at most 0, got 0\.5"):
        call([-1.0, 0.5])
    # As much as a provider's rounding makes counts as 0.
    assert np.all(call([-1.0, 1e-4]) == call([-1.0, 0.0]))


@pytest.mark.parametrize(
    "call",
    [
        lambda: wsnne(np.eye(2), [-1, -2], reading="paper"),  # type: ignore[arg-type]
        lambda: semantic_entropy([0, 1], [-1, -2], reading="paper"),  # type: ignore[arg-type]
    ],
    ids=["wsnne", "se"],
)
def test_an_unknown_reading_is_refused(call: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"'code', 'printed'.*got 'paper'"):
        call()
