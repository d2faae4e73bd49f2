"""``score``: what is scored, with what, and what is said about it."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.scorers import (
    METHODS,
    FunctionMethod,
    score,
    score_members,
    snne,
    uncertainty,
    wsnne,
)
from snne_guard.scorers.relation import Relation
from snne_guard.types import FloatArray, MethodInputs

PARIS = ["Paris", "Paris", "Lyon"]
PARIS_MATRIX = [[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
LOGPROBS = [[-0.1], [-0.3, -0.1], [-2.0]]


def exact(texts: Sequence[str], /, *, question: str | None = None) -> FloatArray:
    del question
    return np.array([[float(a == b) for a in texts] for b in texts])


def constant(value: float) -> FunctionMethod:
    return FunctionMethod(name="mine", source="here", function=lambda _inputs: value)


def test_the_defaults() -> None:
    result = score(PARIS)

    # Row sums 2e + 1 twice and e + 2; the row of the answer has 0.7 of the weight.
    answer, lyon = math.log(2 * math.e + 1), math.log(math.e + 2)
    expected = -0.3 * (2 * answer + lyon) / 3 - 0.7 * answer
    assert result.value == pytest.approx(expected, abs=1e-12)
    neighbours = (math.exp(-expected) - math.e) / 2
    u = (math.e - neighbours) / (math.e - 1)
    assert result.uncertainty == pytest.approx(u, abs=1e-12)
    assert u == pytest.approx(0.557271, abs=1e-6)
    assert (result.method, result.similarity, result.tau) == ("snne", "content_f1", 1.0)
    assert (result.n, result.reasons, result.anchor) == (3, (), 0.7)
    assert result.matrix is not None
    assert result.matrix.tolist() == PARIS_MATRIX


def test_alike_is_0_and_different_is_1() -> None:
    assert score(["yes"] * 10).uncertainty == 0.0
    assert score(["a", "b", "c", "d"]).uncertainty == pytest.approx(1.0)


def test_log_probabilities_bring_wsnne() -> None:
    result = score(PARIS, token_logprobs=LOGPROBS)

    assert result.method == "wsnne"
    weights = [math.exp(mean) for mean in (-0.1, -0.2, -2.0)]
    answer, lyon = math.log(2 * math.e + 1), math.log(math.e + 2)
    rows = [w * row for w, row in zip(weights, [answer, answer, lyon], strict=True)]
    expected = -0.3 * sum(rows) / sum(weights) - 0.7 * answer
    assert result.value == pytest.approx(expected, abs=1e-12)
    assert result.value == wsnne(PARIS_MATRIX, [-0.1, -0.2, -2.0], anchor=0.7)
    assert result.reasons == ()


def test_the_paper_s_similarity_has_the_paper_s_values() -> None:
    named: dict[str, Any] = {"similarity": "rouge_l"}
    found = score(PARIS, **named)

    assert (found.value, found.anchor) == (snne(PARIS_MATRIX), 0.0)
    assert found.uncertainty == pytest.approx(0.684186, abs=1e-6)
    weighted = score(PARIS, token_logprobs=LOGPROBS, **named)
    assert weighted.value == wsnne(PARIS_MATRIX, [-0.1, -0.2, -2.0])


def test_without_include_answer_all_are_samples_and_all_are_scored() -> None:
    alone = score(PARIS, include_answer=False)

    # The first one is no delivered answer: no weight lies on it before the others'.
    assert (alone.value, alone.n, alone.anchor) == (snne(PARIS_MATRIX), 3, 0.0)
    again = score(["Lyon", "Paris", "Paris"], include_answer=False)
    assert again.value == pytest.approx(alone.value, abs=1e-15)
    assert score(PARIS).value < alone.value < score(["Lyon", "Paris", "Paris"]).value


@pytest.mark.parametrize("missing", [None, []])
def test_log_probabilities_of_some_only_leave_snne(
    missing: list[float] | None,
) -> None:
    result = score(PARIS, token_logprobs=[[-0.1], missing, [-0.1]])

    assert result.method == "snne"
    assert result.value == score(PARIS).value
    assert result.reasons == ("logprobs_missing",)


def test_log_probabilities_of_none_are_no_surprise() -> None:
    result = score(PARIS, token_logprobs=[None, [], None])

    assert (result.method, result.reasons) == ("snne", ())


def test_a_chosen_snne_says_nothing_of_missing_log_probabilities() -> None:
    result = score(PARIS, token_logprobs=[[-0.1], None, None], method="snne")

    assert (result.method, result.reasons) == ("snne", ())


@pytest.mark.parametrize("given", [None, [[-0.1], None, [-0.1]]])
def test_a_chosen_wsnne_needs_log_probabilities(
    given: list[list[float] | None] | None,
) -> None:
    with pytest.raises(InputError, match="expected mean_logprobs for method 'wsnne'"):
        score(PARIS, token_logprobs=given, method="wsnne")


def test_a_token_that_could_not_be_drawn_has_weight_0() -> None:
    result = score(PARIS, token_logprobs=[[-0.1], [-0.2], [-math.inf, -0.1]])

    assert result.value == pytest.approx(-math.log(2 * math.e + 1), abs=1e-12)


def test_empty_samples_leave_the_set_and_are_named() -> None:
    result = score(["Paris", "", "Paris", " \n\t", "Lyon"])

    assert (result.n, result.reasons) == (3, ("empty_samples",))
    assert result.value == score(PARIS).value


def test_an_empty_sample_takes_its_log_probabilities_along() -> None:
    result = score(
        ["Paris", "", "Paris", "Lyon"],
        token_logprobs=[[-0.1], None, [-0.3, -0.1], [-2.0]],
    )

    assert (result.method, result.reasons) == ("wsnne", ("empty_samples",))
    assert result.value == score(PARIS, token_logprobs=LOGPROBS).value


@pytest.mark.parametrize("answers", [["", "Paris", "Paris"], [" "], ["", ""]])
def test_an_empty_answer_is_never_taken_for_confidence(answers: list[str]) -> None:
    result = score(answers)

    assert result.uncertainty is None
    assert result.value == math.inf
    assert (result.n, result.reasons) == (0, ("answer_empty",))
    assert result.matrix is None


def test_an_empty_first_sample_is_only_a_sample() -> None:
    result = score(["", *PARIS], include_answer=False)

    assert (result.n, result.reasons) == (3, ("empty_samples",))


def test_samples_that_are_all_empty_are_not_scored() -> None:
    result = score(["", " "], include_answer=False, token_logprobs=[[-1.0], [-1.0]])

    assert (result.value, result.uncertainty, result.n) == (math.inf, None, 0)
    assert result.reasons == ("empty_samples", "too_few_samples")
    assert result.method == "snne"


def test_one_answer_says_nothing() -> None:
    result = score(["Paris"])

    assert (result.value, result.uncertainty, result.n) == (-1.0, None, 1)
    assert result.reasons == ("too_few_samples",)


def test_one_answer_that_is_left_says_nothing() -> None:
    result = score(["Paris", "", ""])

    assert result.uncertainty is None
    assert result.reasons == ("empty_samples", "too_few_samples")


def test_tau_is_used_and_told() -> None:
    result = score(PARIS, tau=0.1)

    assert result.tau == 0.1
    assert result.value == snne(PARIS_MATRIX, tau=0.1, anchor=0.7)
    assert result.uncertainty == uncertainty(result.value, 3, tau=0.1)


def test_an_extreme_tau_is_named() -> None:
    result = score(PARIS, tau=1e300)

    assert (result.uncertainty, result.reasons) == (None, ("tau_too_extreme",))


def test_a_similarity_by_name() -> None:
    assert score(["東京", "東京"], similarity="rouge_l_paper").similarity == (
        "rouge_l_paper"
    )


def test_a_similarity_of_the_user_s_own_gets_the_question() -> None:
    seen: list[Any] = []

    def watching(texts: Sequence[str], /, *, question: str | None = None) -> FloatArray:
        seen.append((list(texts), question))
        return exact(texts)

    result = score(PARIS, question="Capital?", similarity=watching)

    assert seen == [(PARIS, "Capital?")]
    assert "watching" in str(result.similarity)
    assert (result.value, result.anchor) == (snne(PARIS_MATRIX), 0.0)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[1.0]], r"shape \(3, 3\), got \(1, 1\)"),
        (np.full((3, 3), math.nan), "NaN"),
        (np.full((3, 3), -0.5), r"in \[0, 1\]"),
        (None, "got NoneType|shape"),
    ],
)
def test_what_a_similarity_of_the_user_s_own_returns_is_checked(
    matrix: Any, message: str
) -> None:
    def wrong(texts: Sequence[str], /, *, question: str | None = None) -> FloatArray:
        del texts, question
        result: FloatArray = matrix
        return result

    with pytest.raises(InputError, match=message):
        score(PARIS, similarity=wrong)


def test_a_method_of_the_user_s_own() -> None:
    def mean_distance(inputs: MethodInputs) -> float:
        return float(1 - inputs.similarity.mean())

    mine = FunctionMethod(
        name="mine",
        source="here",
        function=mean_distance,
        limits=lambda n, /, *, tau=1.0: (0.0, tau - 1 / n),
    )

    result = score(PARIS, method=mine)

    assert (result.method, result.reasons) == ("mine", ())
    assert result.value == pytest.approx(4 / 9)
    assert result.uncertainty == pytest.approx(2 / 3)


def test_a_method_without_bounds_has_no_uncertainty() -> None:
    result = score(PARIS, method=constant(7.0))

    assert (result.value, result.uncertainty) == (7.0, None)
    assert result.reasons == ("no_bounds",)


def test_a_method_that_returns_nan_is_refused() -> None:
    with pytest.raises(InputError, match="'mine', got NaN"):
        score(PARIS, method=constant(math.nan))


@pytest.mark.parametrize("u", [-0.5, 1.5, math.nan])
def test_a_method_whose_u_is_outside_the_unit_interval_is_refused(u: float) -> None:
    wild = FunctionMethod(
        name="wild",
        source="here",
        function=lambda _inputs: 0.5,
        limits=lambda _n, /, *, tau=1.0: (0.0, tau),
        mapping=lambda _value, _n, /, *, tau=1.0: u * tau,
    )

    with pytest.raises(InputError, match=r"expected u in \[0, 1\] from method 'wild'"):
        score(PARIS, method=wild)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"answers": []}, "at least one answer"),
        ({"answers": "Paris"}, "a list of answers, got one text"),
        ({"answers": ["Paris", None]}, "answer 1 to be a text, got NoneType"),
        ({"answers": ["Paris", 3]}, "answer 1 to be a text, got int"),
        ({"token_logprobs": [[-0.1]]}, "each of 3 answers, got 1"),
        ({"token_logprobs": [[-0.1]] * 4}, "each of 3 answers, got 4"),
        ({"token_logprobs": [[-0.1], [math.nan], [-1]]}, "got nan for answer 1"),
        ({"token_logprobs": [[-0.1], [-1], [math.inf]]}, "got inf for answer 2"),
        ({"token_logprobs": [[0.9], [0.8], [0.7]]}, "at most 0, got 0.9"),
        ({"token_logprobs": [["a"], [-1], [-1]]}, "answer 0 to be a list of numbers"),
        ({"token_logprobs": [-0.1, -0.2, -0.3]}, "answer 0 to be a list of numbers"),
    ],
)
def test_bad_input(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        score(**{"answers": PARIS, **arguments})


def test_log_probabilities_may_be_rounded_above_0() -> None:
    assert score(PARIS, token_logprobs=[[1e-7]] * 3).method == "wsnne"


@pytest.mark.parametrize(
    "option",
    [{"method": "entropy"}, {"similarity": "cosine"}, {"tau": 0}, {"tau": math.nan}],
)
@pytest.mark.parametrize("answers", [PARIS, [""], ["Paris"]])
def test_options_that_make_no_sense_are_refused_whatever_the_answers(
    option: dict[str, Any], answers: list[str]
) -> None:
    with pytest.raises(ConfigurationError):
        score(answers, **option)


def test_arrays_are_log_probabilities_too() -> None:
    result = score(PARIS, token_logprobs=[np.array(row) for row in LOGPROBS])  # type: ignore[misc]

    assert result.value == pytest.approx(score(PARIS, token_logprobs=LOGPROBS).value)


def test_score_members_scores_every_text_as_it_is() -> None:
    result = score_members(
        ["", "", "Paris"],
        method=METHODS["snne"],
        relation=Relation.of("rouge_l"),
    )

    assert (result.n, result.reasons) == (3, ())
    assert result.value == snne(PARIS_MATRIX)


def test_score_members_needs_a_text() -> None:
    with pytest.raises(InputError, match="at least one text"):
        score_members(
            [],
            method=METHODS["snne"],
            relation=Relation.of("rouge_l"),
        )


@pytest.mark.parametrize(
    ("answers", "similarity", "reasons"),
    [
        (["東京", "東京"], "rouge_l_paper", ("tokenless_answers",)),
        (["Tokyo", "東京"], "rouge_l_paper", ("tokenless_answers",)),
        (["東京", "東京"], "rouge_l", ()),
        (["Tokyo", "São Paulo"], "rouge_l_paper", ()),
        (["?!", "42"], "rouge_l_paper", ()),
        (["५", "🙂"], "rouge_l_paper", ("tokenless_answers",)),
    ],
)
def test_letters_that_the_papers_tokenizer_cannot_see_are_named(
    answers: list[str], similarity: str, reasons: tuple[str, ...]
) -> None:
    assert score(answers, similarity=similarity).reasons == reasons


@pytest.mark.parametrize("method", ["perplexity", "ne", "answer_length"])
@pytest.mark.parametrize("similarity", ["rouge_l_paper", "asked"])
def test_a_method_that_compares_no_answers_asks_no_similarity(
    method: str, similarity: str
) -> None:
    def asked(texts: Sequence[str], /, *, question: str | None = None) -> FloatArray:
        raise AssertionError(texts, question)

    compare: Any = asked if similarity == "asked" else similarity
    found = score(
        ["東京", "大阪"], token_logprobs=[[-1], [-2]], method=method, similarity=compare
    )

    assert (found.similarity, found.matrix) == (None, None)
    assert "tokenless_answers" not in found.reasons
    empty = score(["", "x"], method=method, similarity=compare)
    assert (empty.similarity, empty.matrix) == (None, None)


@pytest.mark.parametrize("method", ["snne", "dse", "sum_eigv", "num_set"])
def test_a_method_that_compares_answers_keeps_what_was_compared(method: str) -> None:
    found = score(PARIS, method=method, similarity="exact")

    assert found.similarity == "exact"
    assert found.matrix is not None
    assert found.matrix.tolist() == PARIS_MATRIX
