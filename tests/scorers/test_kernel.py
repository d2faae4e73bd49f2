"""Kernel Language Entropy against literal numbers, a slow oracle and its properties."""

import math
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.scorers.graph_kernels import (
    cluster_kernel,
    heat_kernel,
    matern_kernel,
    normalised_kernel,
    von_neumann_entropy,
)
from snne_guard.scorers.kernel import kle_full, kle_heat, kle_matern, kle_semantic
from snne_guard.types import FloatArray
from tests.scorers.slow_kernel import (
    EDGES5,
    IDS5,
    LOGPROBS5,
    slow_between,
    slow_entropy,
    slow_heat,
    slow_matern,
    slow_semantic_entropy,
    slow_shares,
    slow_unit,
)


def symmetric(matrix: FloatArray) -> FloatArray:
    upper = np.triu(matrix, 1)
    return upper + upper.T


graphs = st.integers(1, 8).flatmap(
    lambda n: arrays(np.float64, (n, n), elements=st.floats(0, 2)).map(symmetric)
)


@st.composite
def answers(draw: st.DrawFn) -> tuple[FloatArray, list[int], list[float]]:
    graph = draw(graphs)
    n = len(graph)
    ids = draw(st.lists(st.integers(0, n - 1), min_size=n, max_size=n))
    logprobs = draw(st.lists(st.floats(-1e4, 0), min_size=n, max_size=n))
    return graph, ids, logprobs


@pytest.mark.parametrize(
    ("t", "normalised", "expected"),
    [
        (0.3, False, 1.3720053769566452),
        (0.1, False, 1.5828016163502698),
        (0.7, False, 0.8716764362091298),
        (0.3, True, 1.5924611726101718),
        (0.0, False, math.log(5)),
    ],
)
def test_known_heat(t: float, normalised: bool, expected: float) -> None:
    slow = slow_entropy(slow_unit(slow_heat(EDGES5, t, normalised=normalised)))

    got = kle_heat(EDGES5, t=t, normalised=normalised)

    assert got == pytest.approx(expected, abs=1e-9)
    assert got == pytest.approx(slow, abs=1e-9)


@pytest.mark.parametrize(
    ("n", "expected"), [(2, 0.541), (4, 0.754), (10, 0.153), (20, 0.0015)]
)
def test_answers_all_alike_have_a_value_that_depends_on_n(
    n: int, expected: float
) -> None:
    kernel = np.exp(-0.3 * 2 * n)
    off = (1 - kernel) / n / (kernel + (1 - kernel) / n) / n
    values = [1 / n + (n - 1) * off, *[1 / n - off] * (n - 1)]
    by_hand = -sum(value * math.log(value) for value in values if value > 1e-8)

    got = kle_heat(2 * (np.ones((n, n)) - np.eye(n)))

    assert got == pytest.approx(by_hand, abs=1e-9)
    assert got == pytest.approx(expected, abs=5e-4)


@pytest.mark.parametrize(
    ("kappa", "nu", "expected"),
    [
        (1.0, 1, 1.460524918455579),
        (2.0, 3, 0.6694412655316413),
        (3.0, 1, 0.8623453588063655),
    ],
)
def test_known_matern(kappa: float, nu: int, expected: float) -> None:
    slow = slow_entropy(slow_unit(slow_matern(EDGES5, kappa, nu)))

    got = kle_matern(EDGES5, kappa=kappa, nu=nu)

    assert got == pytest.approx(expected, abs=1e-9)
    assert got == pytest.approx(slow, abs=1e-9)


def test_matern_on_the_normalised_laplacian() -> None:
    got = kle_matern(EDGES5, normalised=True)

    assert got == pytest.approx(1.583251857512506, abs=1e-9)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, 1.137239780952811),
        ({"alpha": 0.0}, 0.6970163527630123),
        ({"alpha": 1.0}, 1.3720053769566452),
        ({"drop_weights": True}, 1.2403862627596067),
        ({"kernel": matern_kernel}, 1.2122031010486247),
        ({"kernel": partial(heat_kernel, t=0.7)}, 0.8591272766241456),
    ],
)
def test_known_full(options: dict[str, Any], expected: float) -> None:
    got = kle_full(EDGES5, IDS5, LOGPROBS5, **options)

    assert got == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("ids", "overwrite", "expected"),
    [
        (IDS5, False, 0.9736162860953406),
        (IDS5, True, 0.9736162860953406),
        ([0, 1, 0, 1, 2], False, 0.9981070282112638),
        ([0, 1, 0, 1, 2], True, 1.0471584249888208),
    ],
)
def test_known_semantic(ids: list[int], overwrite: bool, expected: float) -> None:
    got = kle_semantic(EDGES5, ids, LOGPROBS5, overwrite=overwrite)

    assert got == pytest.approx(expected, abs=1e-9)


@given(graphs, st.floats(0, 2), st.booleans())
def test_heat_is_the_power_series(
    graph: FloatArray,
    t: float,
    normalised: bool,
) -> None:
    slow = slow_heat(graph, t, normalised=normalised)

    got = heat_kernel(graph, t=t, normalised=normalised)

    np.testing.assert_allclose(got, slow, atol=1e-9)
    entropy = kle_heat(graph, t=t, normalised=normalised)
    assert entropy == pytest.approx(slow_entropy(slow_unit(slow)), abs=1e-6)


@given(graphs, st.floats(0.1, 10), st.integers(1, 3))
def test_matern_is_so_many_inverses(graph: FloatArray, kappa: float, nu: int) -> None:
    slow = slow_matern(graph, kappa, nu) * (2 * nu / kappa**2) ** nu

    np.testing.assert_allclose(
        matern_kernel(graph, kappa=kappa, nu=nu), slow, atol=1e-9
    )


@given(answers(), st.floats(0, 1), st.booleans())
def test_every_entropy_lies_between_0_and_ln_n(
    drawn: tuple[FloatArray, list[int], list[float]],
    alpha: float,
    flag: bool,
) -> None:
    graph, ids, logprobs = drawn
    values = [
        kle_heat(graph, t=alpha, normalised=flag),
        kle_matern(graph, kappa=alpha + 1, normalised=flag),
        kle_full(graph, ids, logprobs, alpha=alpha, drop_weights=flag),
    ]

    assert all(0 <= value <= math.log(len(graph)) + 1e-9 for value in values)
    got = kle_semantic(graph, ids, logprobs, alpha=alpha, overwrite=flag)
    assert 0 <= got <= math.log(len(set(ids))) + 1e-9


@given(answers(), st.randoms(use_true_random=False))
def test_the_order_of_the_answers_and_the_names_of_clusters_do_not_matter(
    drawn: tuple[FloatArray, list[int], list[float]], random: Any
) -> None:
    graph, ids, logprobs = drawn
    order = list(range(len(ids)))
    random.shuffle(order)
    other = graph[np.ix_(order, order)]
    other_ids = [100 - ids[place] for place in order]
    other_logprobs = [logprobs[place] for place in order]

    assert kle_heat(other) == pytest.approx(kle_heat(graph), abs=1e-6)
    assert kle_full(other, other_ids, other_logprobs) == pytest.approx(
        kle_full(graph, ids, logprobs), abs=1e-6
    )
    assert kle_semantic(other, other_ids, other_logprobs) == pytest.approx(
        kle_semantic(graph, ids, logprobs), abs=1e-6
    )


@given(answers())
def test_full_goes_from_semantic_entropy_to_kle(
    drawn: tuple[FloatArray, list[int], list[float]],
) -> None:
    graph, ids, logprobs = drawn
    entropy = slow_semantic_entropy(ids, logprobs)

    assert kle_full(graph, ids, logprobs, alpha=0) == pytest.approx(entropy, abs=1e-6)
    assert von_neumann_entropy(cluster_kernel(ids, logprobs)) == pytest.approx(
        entropy, abs=1e-6
    )
    assert kle_full(graph, ids, logprobs, alpha=1) == kle_heat(graph)
    assert np.trace(cluster_kernel(ids, logprobs)) == pytest.approx(1)


@given(answers(), st.floats(0, 1), st.booleans())
def test_semantic_is_its_definition(
    drawn: tuple[FloatArray, list[int], list[float]],
    alpha: float,
    overwrite: bool,
) -> None:
    graph, ids, logprobs = drawn
    between = slow_between(graph, ids, overwrite=overwrite)
    mixed = alpha * slow_unit(slow_heat(between, 0.3))
    mixed += (1 - alpha) * np.diag(list(slow_shares(ids, logprobs).values()))

    got = kle_semantic(graph, ids, logprobs, alpha=alpha, overwrite=overwrite)

    assert got == pytest.approx(slow_entropy(mixed), abs=1e-6)


def test_one_answer_and_two() -> None:
    assert kle_heat([[0]]) == 0.0
    assert kle_matern([[5]]) == 0.0
    assert kle_full([[0]], [7], [-900.0]) == 0.0
    assert kle_semantic([[0, 2], [2, 0]], [7, 7], [0.0, -1.0]) == 0.0
    assert kle_heat([[0, 0], [0, 0]]) == round(math.log(2), 12)
    assert kle_full([[0, 0], [0, 0]], [0, 1], [-1, -1]) == round(math.log(2), 12)


def test_a_kernel_with_an_empty_row_stays_finite() -> None:
    assert normalised_kernel([[1, 0], [0, 0]]).tolist() == [[0.5, 0.0], [0.0, 0.0]]


def test_log_probabilities_far_below_what_a_float_holds() -> None:
    plain = kle_full(EDGES5, IDS5, LOGPROBS5)
    shifted = [value - 5000 for value in LOGPROBS5]

    assert kle_full(EDGES5, IDS5, shifted) == pytest.approx(plain, abs=1e-9)
    impossible = [-math.inf] * 5
    assert kle_full(EDGES5, IDS5, impossible) == pytest.approx(
        kle_full(EDGES5, IDS5, [0.0] * 5)
    )


def test_the_diagonal_of_the_weights_is_not_looked_at() -> None:
    with_loops = np.array(EDGES5) + np.diag([1.0, 2, 3, 4, 5])

    assert kle_heat(with_loops) == kle_heat(EDGES5)
    assert kle_heat(with_loops, normalised=True) == kle_heat(EDGES5, normalised=True)
    assert with_loops[1, 1] == 2


def test_edges_next_to_nothing_count_in_the_normalised_laplacian() -> None:
    smallest = np.full((4, 4), 5e-324)

    assert kle_heat(smallest, normalised=True) == pytest.approx(
        kle_heat(np.ones((4, 4)), normalised=True)
    )


def test_a_graph_too_large_to_be_remembered() -> None:
    n = 70
    smaller, larger = (2 * (np.ones((m, m)) - np.eye(m)) for m in (2, n))
    pairs = np.kron(np.eye(n // 2), smaller)

    assert kle_heat(larger, t=0.001) > 0
    # Pairs that are alike: each is half of one answer and half of two.
    assert kle_heat(pairs) == pytest.approx(kle_heat(smaller) + math.log(n / 2))


def test_scaled_by_ln_n() -> None:
    kernel = normalised_kernel(heat_kernel(EDGES5))

    assert von_neumann_entropy(kernel, scaled=True) == pytest.approx(
        kle_heat(EDGES5) / math.log(5)
    )
    assert von_neumann_entropy([[1.0]], scaled=True) == 0


def test_a_kernel_of_a_length_scale_that_a_power_would_overflow() -> None:
    got = kle_matern(EDGES5, kappa=1e-60, nu=3)

    assert got == pytest.approx(math.log(5), abs=1e-9)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([[0, 1], [0, 0]], "expected symmetric weights, got a pair 1.0 apart"),
        ([[0, -1], [-1, 0]], "weights of at least 0, got -1.0"),
        ([[0, math.nan], [math.nan, 0]], "weights without NaN"),
        ([[0, -math.inf], [-math.inf, 0]], "weights of finite numbers, got -inf"),
        ([[0, 1, 1], [1, 0, 1]], r"weights to be \(n, n\) with n >= 1, got .*2, 3"),
        ([], r"got shape \(0,\)"),
        ("no", "weights to be numbers, got str"),
    ],
)
def test_weights_that_are_no_graph(weights: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        kle_heat(weights)


def test_rounding_of_a_model_in_single_precision_is_evened_out() -> None:
    uneven = [[0.0, 1.0], [1.0 + 1e-7, 0.0]]

    assert kle_heat(uneven) == pytest.approx(kle_heat([[0, 1], [1, 0]]), abs=1e-7)


@pytest.mark.parametrize("t", [-0.1, math.nan, math.inf])
def test_heat_needs_a_time(t: float) -> None:
    with pytest.raises(ConfigurationError, match="finite t of at least 0, got"):
        kle_heat(EDGES5, t=t)


@pytest.mark.parametrize("option", ["kappa", "nu"])
@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf])
def test_matern_needs_numbers_above_0(option: str, value: float) -> None:
    with pytest.raises(ConfigurationError, match=f"finite {option} above 0, got"):
        kle_matern(EDGES5, **{option: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("alpha", [-0.1, 1.1, math.nan])
def test_alpha_is_a_share(alpha: float) -> None:
    for entropy in (kle_full, kle_semantic):
        with pytest.raises(ConfigurationError, match=r"alpha in \[0, 1\], got"):
            entropy(EDGES5, IDS5, LOGPROBS5, alpha=alpha)


def test_lengths_that_differ() -> None:
    for entropy in (kle_full, kle_semantic):
        with pytest.raises(InputError, match=r"5 cluster ids, got 4"):
            entropy(EDGES5, IDS5[:4], LOGPROBS5[:4])
        with pytest.raises(InputError, match="5 mean log-probabilities, got shape"):
            entropy(EDGES5, IDS5, LOGPROBS5[:4])


def test_a_kernel_with_a_diagonal_below_0() -> None:
    with pytest.raises(InputError, match=r"diagonal of at least 0, got -1\.0"):
        normalised_kernel([[1, 0], [0, -1]])
