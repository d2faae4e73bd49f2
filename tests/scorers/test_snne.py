"""SNNE and WSNNE against literal numbers, a slow oracle and their properties."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.scorers import snne, wsnne
from snne_guard.types import FloatArray

TOY3 = [[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 1.0]]
TOY3_LOGPROBS = [-0.2, -0.7, -1.5]
ASYM4 = [
    [1.0, 0.9, 0.1, 0.0],
    [0.2, 1.0, 0.3, 0.05],
    [0.0, 0.4, 1.0, 0.6],
    [0.1, 0.1, 0.8, 1.0],
]
COSINE3 = [[1.0, -0.2, 0.3], [-0.2, 1.0, 0.9], [0.3, 0.9, 1.0]]


def slow_entropy(
    similarity: Sequence[Sequence[float]],
    logprobs: Sequence[float] | None = None,
    *,
    tau: float = 1.0,
    include_self: bool = True,
) -> float:
    """Both formulas as the paper's code has them, with nothing done for range."""
    n = len(similarity)
    weights = [1.0 / n] * n
    if logprobs is not None:
        total = sum(math.exp(value) for value in logprobs)
        weights = [math.exp(value) / total for value in logprobs]
    result = 0.0
    for i in range(n):
        inner = 0.0
        for j in range(n):
            if include_self or i != j:
                inner += math.exp(similarity[i][j] / tau)
        result -= weights[i] * math.log(inner)
    return result


def square(values: st.SearchStrategy[float]) -> st.SearchStrategy[FloatArray]:
    return st.integers(1, 8).flatmap(
        lambda n: arrays(np.float64, (n, n), elements=values)
    )


unit = square(st.floats(0, 1))
taus = st.floats(0.05, 100)


@pytest.mark.parametrize(
    ("similarity", "tau", "include_self", "expected"),
    [
        (TOY3, 1, True, -1.6373280184051735),
        (TOY3, 0.1, True, -10.00453722761057),
        (TOY3, 0.1, False, -3.568859292512727),
        (TOY3, 100, True, -1.1030659964651435),
        (ASYM4, 1, True, -1.9376889035372575),
        (ASYM4, 1, False, -1.4392803788088653),
        (COSINE3, 1, True, -1.7512696407844903),
        (COSINE3, 10, False, -0.72723855990395),
        ([[1]], 1, True, -1.0),
        ([[1]], 0.25, True, -4.0),
        ([[1]], 1, False, math.inf),
        ([[1, 1], [1, 1]], 1, True, -(1 + math.log(2))),
        ([[1, 0], [0, 1]], 1, True, -math.log(math.e + 1)),
    ],
)
def test_snne_of_known_matrices(
    similarity: list[list[float]], tau: float, include_self: bool, expected: float
) -> None:
    got = snne(similarity, tau=tau, include_self=include_self)

    assert got == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("tau", "include_self", "expected"),
    [
        (1, True, -1.6615854079721784),
        (0.1, True, -10.005793104183912),
        (0.1, False, -4.38109246647058),
        (100, False, -0.6952872621982568),
    ],
)
def test_wsnne_of_a_known_matrix(
    tau: float, include_self: bool, expected: float
) -> None:
    got = wsnne(TOY3, TOY3_LOGPROBS, tau=tau, include_self=include_self)

    assert got == pytest.approx(expected, abs=1e-9)


def test_the_default_is_tau_one_with_the_diagonal() -> None:
    assert snne(TOY3) == snne(TOY3, tau=1.0, include_self=True)
    assert wsnne(TOY3, TOY3_LOGPROBS) == wsnne(
        TOY3, TOY3_LOGPROBS, tau=1.0, include_self=True
    )


@given(unit, taus, st.booleans())
def test_snne_equals_the_slow_oracle(
    similarity: FloatArray, tau: float, include_self: bool
) -> None:
    if len(similarity) == 1 and not include_self:
        assert snne(similarity, tau=tau, include_self=False) == math.inf
        return
    expected = slow_entropy(similarity.tolist(), tau=tau, include_self=include_self)

    got = snne(similarity, tau=tau, include_self=include_self)

    assert got == pytest.approx(expected, rel=1e-12, abs=1e-9)


@given(unit, taus, st.data())
def test_wsnne_equals_the_slow_oracle(
    similarity: FloatArray, tau: float, data: st.DataObject
) -> None:
    logprobs = data.draw(logprobs_of(len(similarity)))
    expected = slow_entropy(similarity.tolist(), logprobs, tau=tau)

    got = wsnne(similarity, logprobs, tau=tau)

    assert got == pytest.approx(expected, rel=1e-12, abs=1e-9)


def logprobs_of(n: int) -> st.SearchStrategy[list[float]]:
    return st.lists(st.floats(-20, 0), min_size=n, max_size=n)


@given(square(st.floats(-5, 5) | st.just(-math.inf)), st.data())
def test_the_order_of_the_answers_changes_nothing(
    similarity: FloatArray, data: st.DataObject
) -> None:
    order = data.draw(st.permutations(range(len(similarity))))
    logprobs = np.array(data.draw(logprobs_of(len(similarity))))
    shuffled = similarity[np.ix_(order, order)]

    assert snne(shuffled) == snne(similarity)
    assert wsnne(shuffled, logprobs[order]) == wsnne(similarity, logprobs)


@given(unit, taus, st.data())
def test_more_similar_is_never_more_uncertain(
    similarity: FloatArray, tau: float, data: st.DataObject
) -> None:
    n = len(similarity)
    i, j = data.draw(st.integers(0, n - 1)), data.draw(st.integers(0, n - 1))
    logprobs = data.draw(logprobs_of(n))
    closer = similarity.copy()
    closer[i, j] = data.draw(st.floats(similarity[i, j], 1))

    assert snne(closer, tau=tau) <= snne(similarity, tau=tau) + 1e-12
    assert wsnne(closer, logprobs, tau=tau) <= wsnne(similarity, logprobs, tau=tau) + (
        1e-12
    )


def test_each_entry_counts() -> None:
    before = snne(ASYM4)
    for i in range(4):
        for j in range(4):
            closer = np.array(ASYM4)
            closer[i, j] += 0.1
            assert snne(closer) < before - 1e-3


@given(unit, taus, st.floats(-30, 0))
def test_equal_log_probabilities_make_wsnne_snne(
    similarity: FloatArray, tau: float, logprob: float
) -> None:
    equal = [logprob] * len(similarity)

    assert wsnne(similarity, equal, tau=tau) == snne(similarity, tau=tau)


@given(unit, st.data(), st.floats(-50, 0))
def test_only_differences_of_log_probabilities_count(
    similarity: FloatArray, data: st.DataObject, shift: float
) -> None:
    logprobs = np.array(data.draw(logprobs_of(len(similarity))))

    assert wsnne(similarity, logprobs + shift) == pytest.approx(
        wsnne(similarity, logprobs), rel=1e-9
    )


@given(unit)
def test_doubling_the_set_lowers_snne_by_ln_2(similarity: FloatArray) -> None:
    doubled = np.tile(similarity, (2, 2))

    assert snne(doubled) == pytest.approx(snne(similarity) - math.log(2), abs=1e-12)


def test_equal_rows_give_exactly_their_value() -> None:
    for n in range(1, 60):
        for tau in (0.1, 1 / 3, 1.0, 7.0):
            expected = -(math.log(n) + 1 / tau)
            logprobs = -np.arange(n) / 7
            assert snne(np.ones((n, n)), tau=tau) == pytest.approx(expected, abs=5e-15)
            assert wsnne(np.ones((n, n)), logprobs, tau=tau) == snne(
                np.ones((n, n)), tau=tau
            )


def test_the_caller_s_matrix_is_left_alone() -> None:
    similarity = np.array(TOY3)
    logprobs = np.array(TOY3_LOGPROBS)

    snne(similarity, include_self=False)
    wsnne(similarity, logprobs, include_self=False)

    assert similarity.tolist() == TOY3
    assert logprobs.tolist() == TOY3_LOGPROBS


def test_an_impossible_answer_has_no_weight() -> None:
    rest = wsnne(TOY3, [-0.5, -math.inf, -0.5])

    first, last = 1.6802696706417346, 1.551444713932051
    assert rest == pytest.approx(-(first + last) / 2, abs=1e-12)


def test_when_all_answers_are_impossible_the_weights_are_equal() -> None:
    assert wsnne(TOY3, [-math.inf] * 3) == snne(TOY3)


def test_a_row_without_neighbours_counts_only_with_its_weight() -> None:
    lonely = [[-math.inf, -math.inf], [0.0, 0.0]]

    assert snne(lonely) == math.inf
    assert wsnne(lonely, [-1, -1]) == math.inf
    assert wsnne(lonely, [-math.inf, -1]) == pytest.approx(-math.log(2))


def test_log_probabilities_that_underflow_keep_their_order() -> None:
    far = wsnne(TOY3, [-1000.0, -1000.5, -1001.3])

    assert far == pytest.approx(wsnne(TOY3, [0.0, -0.5, -1.3]), abs=1e-12)


@pytest.mark.parametrize("tau", [1e-300, 1e-6, 1e6, 1e300])
def test_any_tau_gives_a_finite_value(tau: float) -> None:
    assert math.isfinite(snne(TOY3, tau=tau))
    assert math.isfinite(wsnne(TOY3, TOY3_LOGPROBS, tau=tau))


def test_a_spread_beyond_a_float_s_range_is_no_warning() -> None:
    assert snne([[-1.7e308, -1.7e308], [1.7e308, 1.7e308]]) == math.inf


def test_large_tau_ranks_like_the_mean_similarity() -> None:
    tau = 1e4
    mean = float(np.mean(ASYM4))

    assert tau * (snne(ASYM4, tau=tau) + math.log(4)) == pytest.approx(-mean, abs=1e-4)


def test_small_tau_counts_exact_duplicates_or_takes_the_nearest() -> None:
    matrix = [[1.0, 1.0, 0.4], [1.0, 1.0, 0.7], [0.4, 0.7, 1.0]]
    tau = 1e-3

    assert snne(matrix, tau=tau) + 1 / tau == pytest.approx(-2 * math.log(2) / 3)
    nearest = -tau * snne(matrix, tau=tau, include_self=False)
    assert nearest == pytest.approx((1 + 1 + 0.7) / 3)


@pytest.mark.parametrize(
    ("similarity", "message"),
    [
        ([], r"got shape \(0,\)"),
        (np.empty((0, 0)), r"got shape \(0, 0\)"),
        ([1.0, 2.0], r"got shape \(2,\)"),
        (0.5, r"got shape \(\)"),
        ([[1, 0, 0], [0, 1, 0]], r"got shape \(2, 3\)"),
        (np.ones((2, 2, 2)), r"got shape \(2, 2, 2\)"),
        ([[1, math.nan], [0, 1]], r"got NaN at \(0, 1\)"),
        ([[1, 0], [math.inf, 1]], r"got \+inf at \(1, 0\)"),
        ([[1, 0], [0]], "got list"),
        ("text", "got str"),
    ],
)
def test_what_is_no_similarity_is_refused(similarity: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        snne(similarity)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=message):
        wsnne(similarity, [0.0])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("logprobs", "message"),
    [
        ([-0.1, -0.2], r"expected 3 mean log-probabilities, got shape \(2,\)"),
        ([], r"expected 3 mean log-probabilities, got shape \(0,\)"),
        ([[-0.1, -0.2, -0.3]], r"got shape \(1, 3\)"),
        ([-0.1, math.nan, -0.3], r"got NaN at \(1,\)"),
        ([-0.1, -0.2, math.inf], r"got \+inf at \(2,\)"),
        (["a", "b", "c"], "got list"),
    ],
)
def test_what_are_no_log_probabilities_is_refused(
    logprobs: object, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        wsnne(TOY3, logprobs)  # type: ignore[arg-type]


@pytest.mark.parametrize("tau", [0, -1.0, math.nan, math.inf, True, "1", None])
def test_a_tau_that_is_no_finite_number_above_0_is_refused(tau: float) -> None:
    with pytest.raises(ConfigurationError, match="finite number above 0"):
        snne(TOY3, tau=tau)
    with pytest.raises(ConfigurationError, match="finite number above 0"):
        wsnne(TOY3, TOY3_LOGPROBS, tau=tau)


def test_a_quotient_that_overflows_is_refused() -> None:
    with pytest.raises(InputError, match="within the range of a float"):
        snne(TOY3, tau=1e-320)


def test_a_matrix_that_changed_is_summed_up_anew() -> None:
    matrix = np.array(TOY3)
    before = snne(matrix)
    matrix[0, 1] = matrix[1, 0] = 1.0

    assert snne(matrix) < before
    assert snne(TOY3) == before
    assert snne(matrix, tau=np.array(0.5)) != snne(matrix)  # type: ignore[arg-type]


def test_large_matrices_are_summed_up_like_small_ones() -> None:
    assert snne(np.ones((64, 64))) == pytest.approx(-(1 + math.log(64)), abs=1e-12)
    assert snne(np.ones((65, 65))) == pytest.approx(-(1 + math.log(65)), abs=1e-12)
