"""What members score: literal values, log-probabilities, calls, faults."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from snne_guard.assess import Judge
from snne_guard.decision import Policy, Threshold
from snne_guard.types import FloatArray, Sample
from tests.assess.judging import (
    CALL,
    LYON,
    OTHER_CALL,
    PARIS,
    certain,
    judged,
    limited,
)


def wsnne(matrix: list[list[float]], logprobs: list[float]) -> float:
    """Return WSNNE with 0.7 on the answer written out, the slow oracle."""
    weights = [math.exp(value) for value in logprobs]
    total = sum(weights)
    rows = [math.log(sum(math.exp(f) for f in row)) for row in matrix]
    mean = sum(w / total * row for w, row in zip(weights, rows, strict=True))
    return -0.3 * mean - 0.7 * rows[0]


# --- scores --------------------------------------------------------------------------


def test_literal_scores() -> None:
    found, _ = judged(PARIS, PARIS, LYON)
    assert found.score == pytest.approx(-1.8309, abs=5e-5)  # 0.3 of -1.7585 is SNNE's
    assert found.uncertainty == pytest.approx(0.5573, abs=5e-5)
    assert found.method == "snne"
    assert found.matrix is not None
    assert found.matrix.tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 1]]
    assert judged(PARIS, PARIS)[0].uncertainty == 0.0
    assert judged(PARIS, LYON)[0].uncertainty == 1.0


def test_the_paper_s_similarity_has_the_paper_s_values() -> None:
    found, _ = judged(
        PARIS, PARIS, LYON, judge=Judge(policy=Policy(), similarity="rouge_l")
    )
    assert found.score == pytest.approx(-1.7585, abs=5e-5)
    assert found.uncertainty == pytest.approx(0.6842, abs=5e-5)


def test_log_probabilities_weigh_the_members() -> None:
    members = [certain("Paris", -0.1), certain("Paris", -0.2), certain("Lyon", -3.0)]
    found, _ = judged(*members)
    expected = wsnne([[1, 1, 0], [1, 1, 0], [0, 0, 1]], [-0.1, -0.2, -3.0])
    assert found.method == "wsnne"
    assert found.score == pytest.approx(expected, abs=1e-12)
    assert found.reasons == ("no_threshold",)


def test_a_mean_is_weighed_not_a_sum() -> None:
    long = Sample(text="Paris", token_logprobs=(-0.5,) * 10)
    found, _ = judged(long, certain("Paris", -0.5), certain("Lyon", -0.5))
    assert found.score == pytest.approx(-1.8309, abs=5e-5)


@pytest.mark.parametrize("tau", [0.1, 1, 7.5, np.float32(2.0)])
def test_tau_reaches_the_score(tau: Any) -> None:
    judge = Judge(policy=Policy(), tau=tau, method="snne")
    found, _ = judged(PARIS, LYON, judge=judge)
    expected = -math.log(math.exp(1 / float(tau)) + 1)
    assert found.score == pytest.approx(expected, rel=1e-9)


def test_auto_is_settled_by_the_guard_and_not_by_the_call() -> None:
    members = [certain("Paris", -0.1), certain("Lyon", -0.2)]
    seen: list[bool] = []

    def never(found: bool) -> bool:
        seen.append(found)
        return False

    found, _ = judged(*members, settle_logprobs=never)
    assert (found.method, found.reasons, seen) == ("snne", ("no_threshold",), [True])
    found, _ = judged(PARIS, LYON, settle_logprobs=never)
    assert (found.method, seen) == ("snne", [True, False])


@pytest.mark.parametrize("method", ["auto", "wsnne"])
@pytest.mark.parametrize("known", [0, 1, 2])
def test_missing_log_probabilities_are_scored_without_and_named(
    method: str, known: int
) -> None:
    members = [certain("Paris", -0.1) if i < known else PARIS for i in range(3)]
    judge = Judge(policy=limited(1.0), method=method)
    found, _ = judged(*members, judge=judge, settle_logprobs=lambda _seen: True)
    assert (found.method, found.reasons) == ("snne", ("logprobs_missing",))
    assert found.decision == "accept"


@pytest.mark.parametrize("settled", [True, False])
def test_log_probabilities_of_other_tokens_are_named(*, settled: bool) -> None:
    odd = Sample(text="Paris", misaligned=True)
    found, _ = judged(certain("Paris", -1), odd, settle_logprobs=lambda _seen: settled)
    missing = ["logprobs_missing"] if settled else []
    assert found.method == "snne"
    assert found.reasons == ("no_threshold", *missing, "logprobs_misaligned")
    judge = Judge(policy=Policy(), method="snne")  # it needs none
    assert judged(PARIS, odd, judge=judge)[0].reasons == ("no_threshold",)


def test_without_need_for_log_probabilities_nothing_is_settled() -> None:
    def fail(_seen: bool) -> bool:
        pytest.fail("SNNE needs none")

    judge = Judge(policy=Policy(), method="snne")
    found, _ = judged(certain("a", -1), PARIS, judge=judge, settle_logprobs=fail)
    assert (found.method, found.reasons) == ("snne", ("no_threshold",))
    assert not judge.wants_logprobs
    assert Judge(policy=Policy()).wants_logprobs


def test_a_threshold_certified_for_wsnne_accepts_no_snne() -> None:
    certified = Threshold(
        value=0.5, kind="error_rate", status="certified", level=0.1, method="wsnne"
    )
    judge = Judge(policy=Policy(threshold=certified))
    whole = [certain("Paris", -0.1), certain("Paris", -0.2)]
    found, _ = judged(*whole, judge=judge, settle_logprobs=lambda _seen: True)
    assert (found.decision, found.certified, found.threshold) == ("accept", True, 0.5)
    found, _ = judged(*whole, PARIS, judge=judge, settle_logprobs=lambda _seen: True)
    assert (found.uncertainty, found.decision) == (0.0, "flag")
    assert found.reasons == ("logprobs_missing",)


# --- calls of tools ------------------------------------------------------------------


def test_calls_are_compared_field_by_field_where_they_are_scored() -> None:
    judge = Judge(policy=Policy(), tool_calls="score")
    found, _ = judged(CALL, CALL, OTHER_CALL, judge=judge)
    assert found.scored == (CALL.tool_calls, CALL.tool_calls, OTHER_CALL.tool_calls)
    assert found.matrix is not None
    assert found.matrix[0, 1] == 1.0
    assert 0 < found.matrix[0, 2] < 1
    assert found.reasons == ("no_threshold",)


def test_structured_answers_are_compared_field_by_field_too() -> None:
    answers = [Sample(text='{"a": 1, "b": 2}'), Sample(text='{"b": 2.0, "a": 1}')]
    judge = Judge(policy=Policy(), tool_calls="score")
    assert judged(*answers, judge=judge)[0].uncertainty == 0.0
    assert (judged(*answers)[0].uncertainty or 0) > 0


def test_a_similarity_of_the_users_own_compares_calls_too() -> None:
    judge = Judge(policy=Policy(), tool_calls="score", similarity="rouge_l")
    found, _ = judged(CALL, OTHER_CALL, judge=judge)
    assert found.matrix is not None
    by_field, _ = judged(
        CALL, OTHER_CALL, judge=Judge(policy=Policy(), tool_calls="score")
    )
    assert by_field.matrix is not None
    assert found.matrix[0, 1] != by_field.matrix[0, 1]


# --- code of the user's own ----------------------------------------------------------


def with_ones(texts: Sequence[str], /, *, question: str | None = None) -> FloatArray:
    del question
    return np.ones((len(texts), len(texts)))


def test_a_similarity_of_the_users_own_is_given_the_question() -> None:
    asked: list[tuple[tuple[str, ...], str | None]] = []

    def same(texts: Sequence[str], /, *, question: str | None = None) -> FloatArray:
        asked.append((tuple(texts), question))
        return np.ones((len(texts), len(texts)))

    judge = Judge(policy=Policy(), similarity=same)
    found, _ = judged(PARIS, LYON, judge=judge, question="Capital?")
    assert asked == [(("Paris", "Lyon"), "Capital?")]
    assert found.uncertainty == 0.0
    assert not judge.light


@pytest.mark.parametrize(
    ("options", "light"),
    [
        ({}, True),
        ({"similarity": "rouge_l", "method": "snne"}, True),
        ({"similarity": "content_f1"}, True),
        ({"similarity": "structured"}, False),
        ({"tool_calls": "score"}, False),
        ({"similarity": with_ones}, False),
    ],
)
def test_what_may_take_long_is_known(options: dict[str, Any], *, light: bool) -> None:
    assert Judge(policy=Policy(), **options).light is light


def failing(texts: Sequence[str], /, *, question: str | None = None) -> FloatArray:
    raise RuntimeError(*texts, question)


def with_nan(texts: Sequence[str], /, *, question: str | None = None) -> FloatArray:
    del question
    return np.full((len(texts), len(texts)), np.nan)


@pytest.mark.parametrize(
    "failure", [(failing, "RuntimeError"), (with_nan, "InputError")]
)
@pytest.mark.parametrize(
    ("on_error", "expected"),
    [
        ("uncertain", ("refuse", "refuse")),
        ("accept", ("unscored", "deliver")),
        ("raise", ("unscored", "raise")),
    ],
)
def test_scoring_that_fails_is_named_and_loses_nothing(
    failure: tuple[Any, str],
    on_error: Any,
    expected: tuple[str, str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    similarity, kind = failure
    policy = limited(on_uncertain="refuse", on_error=on_error)
    judge = Judge(policy=policy, similarity=similarity)
    with caplog.at_level(logging.DEBUG):
        found, verdict = judged(PARIS, LYON, judge=judge, question="Capital?")
    assert (found.decision, verdict.action) == expected
    assert found.reasons == ("scoring_failed",)
    assert (found.score, found.uncertainty, found.matrix) == (None, None, None)
    assert (found.n_used, found.scored) == (2, ())
    assert found.samples == (LYON,)
    assert caplog.messages == [f"scoring failed with {kind}"]
    assert caplog.records[0].exc_info is None


def test_an_interrupt_while_scoring_is_not_swallowed() -> None:
    def stop(*_texts: object, **_options: object) -> FloatArray:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        judged(PARIS, LYON, judge=Judge(policy=Policy(), similarity=stop))
