"""Which members count, what they score, and what is decided and said of it."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snne_guard.assess import Judge
from snne_guard.assess.judge import unusable
from snne_guard.decision import Policy, Threshold, Verdict
from snne_guard.errors import ConfigurationError
from snne_guard.scorers import FunctionMethod
from snne_guard.types import Assessment, Cost, FloatArray, ResponseSet, Sample

PARIS, LYON = Sample(text="Paris"), Sample(text="Lyon")
TOO_FEW = ("too_few_samples",)
EMPTY = Sample(text=" \n")
THOUGHT = Sample(text="", reasoned=True)
CUT = Sample(text="Par", finish_reason="length")
REFUSED = Sample(text="I cannot", refused=True)
CALL = Sample(text="", tool_calls='[{"args":{"a":1},"name":"add"}]')
OTHER_CALL = Sample(text="", tool_calls='[{"args":{"a":2},"name":"add"}]')


def certain(text: str, logprob: float, **options: Any) -> Sample:
    return Sample(text=text, token_logprobs=(logprob,), **options)


def judged(
    answer: Sample, *samples: Sample, judge: Judge | None = None, **options: Any
) -> tuple[Assessment, Verdict]:
    settle = options.pop("settle_logprobs", bool)
    responses = ResponseSet(answer=answer, samples=samples, **options)
    judge = Judge(policy=Policy()) if judge is None else judge
    return judge.judge(responses, assessment_id="an id", settle_logprobs=settle)


def limited(threshold: float | Threshold = 0.5, **options: Any) -> Policy:
    fixed = Threshold.fixed(threshold) if isinstance(threshold, float) else threshold
    return Policy(threshold=fixed, **options)


def wsnne(matrix: list[list[float]], logprobs: list[float]) -> float:
    """Return WSNNE written out, the slow oracle."""
    weights = [math.exp(value) for value in logprobs]
    total = sum(weights)
    rows = [math.log(sum(math.exp(f) for f in row)) for row in matrix]
    return -sum(w / total * row for w, row in zip(weights, rows, strict=True))


# --- members -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sample", "skipping", "scoring"),
    [
        (PARIS, None, None),
        (EMPTY, "empty", "empty"),
        (THOUGHT, "reasoning_only", "reasoning_only"),
        (CUT, "truncated", "truncated"),
        (REFUSED, "refused", "refused"),
        (CALL, "tool_calls", None),
        (replace(CALL, finish_reason="length"), "tool_calls", "truncated"),
        (replace(CALL, refused=True), "refused", "refused"),
        (Sample(text="x", reasoned=True), None, None),
        (replace(THOUGHT, finish_reason="length"), "reasoning_only", "reasoning_only"),
        (replace(EMPTY, finish_reason="MAX_TOKENS"), "empty", "empty"),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_is_told_apart(
    sample: Sample, skipping: str | None, scoring: str | None
) -> None:
    assert unusable(sample, tool_calls="skip") == skipping
    assert unusable(sample, tool_calls="score") == scoring


@pytest.mark.parametrize(
    ("sample", "reason"),
    [
        (EMPTY, "empty_samples"),
        (THOUGHT, "reasoning_only_samples"),
        (CUT, "truncated_samples"),
        (REFUSED, "refused_samples"),
        (CALL, "tool_call_samples"),
    ],
)
def test_samples_that_cannot_be_compared_leave_the_set_and_are_named(
    sample: Sample, reason: str
) -> None:
    found, verdict = judged(PARIS, PARIS, sample, LYON, sample, judge=None)
    assert found.scored == ("Paris", "Paris", "Lyon")
    assert (found.n_used, found.reasons) == (3, ("no_threshold", reason))
    assert found.samples == (PARIS, sample, LYON, sample)
    assert found.uncertainty == pytest.approx(0.6842, abs=5e-5)
    assert verdict.decision is None


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (EMPTY, "answer_empty"),
        (THOUGHT, "answer_reasoning_only"),
        (REFUSED, "answer_refused"),
        (CALL, "tool_calls"),
    ],
)
@pytest.mark.parametrize(
    ("on_error", "decision"),
    [("uncertain", "refuse"), ("accept", "unscored"), ("raise", "unscored")],
)
def test_an_answer_that_cannot_be_compared_is_not_scored(
    answer: Sample, reason: str, on_error: Any, decision: str
) -> None:
    judge = Judge(policy=limited(on_uncertain="refuse", on_error=on_error))
    found, verdict = judged(answer, PARIS, PARIS, PARIS, judge=judge)
    assert (found.decision, found.reasons) == (decision, (reason,))
    assert (found.score, found.uncertainty, found.method) == (None, None, None)
    assert (found.matrix, found.scored, found.n_used) == (None, (), 0)
    assert (verdict.action == "raise") is (on_error == "raise")


def test_a_cut_off_answer_is_what_the_application_gets_and_is_compared() -> None:
    found, _ = judged(CUT, PARIS, judge=Judge(policy=limited(1.0)))
    assert found.scored == ("Par", "Paris")
    assert (found.decision, found.reasons) == ("accept", ("answer_truncated",))


@pytest.mark.parametrize(
    ("models", "mixed"),
    [
        (("a", "a", "a"), False),
        (("a", "a", "b"), True),
        (("a", "b", "b"), True),
        (("a", None, "a"), False),
        ((None, "a", "b"), True),
        ((None, None, None), False),
        ((None, "a", ""), False),
    ],
)
@pytest.mark.parametrize("include_answer", [True, False])
def test_samples_of_another_model_are_named(
    models: tuple[str | None, ...], *, include_answer: bool, mixed: bool
) -> None:
    answer, *samples = (Sample(text="Paris", model=model) for model in models)
    found, _ = judged(answer, *samples, include_answer=include_answer)
    assert ("mixed_models" in found.reasons) is mixed


def test_the_model_of_a_sample_that_left_the_set_does_not_count() -> None:
    answer = Sample(text="Paris", model="a")
    found, _ = judged(answer, answer, Sample(text="", model="b"))
    assert found.reasons == ("no_threshold", "empty_samples")


def test_the_answer_is_left_out_where_the_samples_alone_are_scored() -> None:
    found, _ = judged(LYON, PARIS, PARIS, include_answer=False)
    assert found.scored == ("Paris", "Paris")
    assert found.uncertainty == 0.0
    found, _ = judged(EMPTY, PARIS, PARIS, include_answer=False)
    assert found.reasons == ("no_threshold", "answer_empty")


@pytest.mark.parametrize(
    ("given_samples", "decision", "reasons"),
    [(2, "accept", ()), (1, "refuse", TOO_FEW), (0, "refuse", TOO_FEW)],
)
def test_too_few_members_are_not_scored(
    given_samples: int, decision: str, reasons: tuple[str, ...]
) -> None:
    judge = Judge(policy=limited(min_samples=3, on_uncertain="refuse"))
    found, _ = judged(PARIS, *[PARIS] * given_samples, judge=judge)
    assert (found.decision, found.reasons) == (decision, reasons)
    assert found.n_used == given_samples + 1
    assert (found.uncertainty is None) is (decision == "refuse")


# --- scores --------------------------------------------------------------------------


def test_literal_scores() -> None:
    found, _ = judged(PARIS, PARIS, LYON)
    assert found.score == pytest.approx(-1.7585, abs=5e-5)
    assert found.uncertainty == pytest.approx(0.6842, abs=5e-5)
    assert found.method == "snne"
    assert found.matrix is not None
    assert found.matrix.tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 1]]
    assert judged(PARIS, PARIS)[0].uncertainty == 0.0
    assert judged(PARIS, LYON)[0].uncertainty == 1.0


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
    assert found.score == pytest.approx(-1.7585, abs=5e-5)


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
    certified = Threshold(value=0.5, certified=True, method="wsnne")
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


# --- agreement that could not be -----------------------------------------------------


@pytest.mark.parametrize("include_answer", [True, False])
@pytest.mark.parametrize("method", ["auto", "snne"])
def test_suspect_agreement_is_not_taken_for_confidence(
    method: str, *, include_answer: bool
) -> None:
    judge = Judge(policy=limited(on_uncertain="refuse"), method=method)
    cached = certain("Paris in spring", -30.0)
    found, verdict = judged(
        PARIS, cached, cached, cached, judge=judge, include_answer=include_answer
    )
    assert found.reasons == ("suspect_agreement",)
    assert (found.decision, found.uncertainty) == ("refuse", None)
    assert verdict.action == "refuse"
    chance = certain("Paris in spring", -0.5)
    found, _ = judged(PARIS, chance, chance, chance, judge=judge)
    assert "suspect_agreement" not in found.reasons
    cooler = replace(judge, temperature=0.5)
    found, _ = judged(PARIS, cached, cached, cached, judge=cooler)
    assert "suspect_agreement" not in found.reasons


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


UNBOUNDED = FunctionMethod(
    name="count", source="this test", function=lambda inputs: float(inputs.tau)
)


def test_a_method_without_bounds_measures_and_takes_no_threshold() -> None:
    judge = Judge(policy=Policy(), method=UNBOUNDED, tau=3.0)
    found, _ = judged(PARIS, LYON, judge=judge)
    assert (found.method, found.score, found.uncertainty) == ("count", 3.0, None)
    assert found.reasons == ("no_threshold", "no_bounds")
    assert not judge.light
    with pytest.raises(ConfigurationError, match="'count' has no bounds"):
        Judge(policy=limited(), method=UNBOUNDED)


# --- options, records ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"tool_calls": "maybe"},
            "tool_calls must be 'skip', 'score' or a Policy; got 'maybe'",
        ),
        ({"tau": 0}, "tau must be a number above 0, or None; got 0"),
        ({"tau": -1.0}, "got -1.0"),
        ({"tau": math.nan}, "got nan"),
        ({"tau": math.inf}, "got inf"),
        ({"tau": "1"}, "got '1'"),
        ({"tau": True}, "got True"),
        ({"method": "magic"}, "method .*'magic'"),
        ({"similarity": "magic"}, "similarity .*'magic'"),
        ({"similarity": 3}, "similarity .*3"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        Judge(policy=Policy(), **options)


def test_the_record_holds_what_came_and_why() -> None:
    cost = Cost(calls=2, attempts=3, prompt_tokens=5)
    found, _ = judged(
        PARIS, EMPTY, LYON, EMPTY,
        judge=Judge(policy=limited(0.25)), n_requested=5, question="Capital?",
        reasons=("samples_late", "empty_samples"), cost=cost,
    )  # fmt: skip
    assert found == Assessment(
        id="an id", answer=PARIS, samples=(EMPTY, LYON, EMPTY),
        scored=("Paris", "Lyon"), method="snne", score=found.score, uncertainty=1.0,
        threshold=0.25, decision="flag", n_requested=5, n_used=2,
        reasons=("samples_late", "empty_samples"), cost=cost, question="Capital?",
    )  # fmt: skip


def test_the_record_of_a_call_that_is_not_scored() -> None:
    responses = ResponseSet(answer=CALL, reasons=("first",), n_requested=5)
    certified = Threshold(value=0.5, certified=True)
    judge = Judge(policy=Policy(threshold=certified))
    verdict = Verdict(decision="unscored")
    found = judge.record(
        responses, assessment_id="an id", verdict=verdict, reasons=("tool_calls",)
    )
    assert found.reasons == ("first", "tool_calls")
    assert (found.decision, found.threshold, found.certified) == ("unscored", 0.5, True)
    bare = Judge(policy=Policy()).record(
        responses, assessment_id="an id", verdict=Verdict(decision=None)
    )
    assert bare.reasons == ("no_threshold", "first")
    assert (bare.threshold, bare.certified, bare.decision) == (None, False, None)


samples = st.lists(
    st.sampled_from([PARIS, LYON, EMPTY, THOUGHT, CUT, REFUSED, CALL]), max_size=8
)


@given(st.sampled_from([PARIS, EMPTY, CUT, CALL]), samples, st.floats(0, 1))
def test_nothing_that_is_not_scored_is_accepted(
    answer: Sample, drawn: list[Sample], threshold: float
) -> None:
    judge = Judge(policy=limited(threshold, on_uncertain="refuse"))
    found, verdict = judged(answer, *drawn, judge=judge)
    assert found.decision == verdict.decision
    assert (
        (found.uncertainty is None) is (found.score is None) is (found.matrix is None)
    )
    accepted = found.uncertainty is not None and found.uncertainty <= threshold
    assert (found.decision == "accept") is accepted
    usable = sum(sample in (PARIS, LYON) for sample in drawn)
    assert found.n_used == (usable + 1 if answer in (PARIS, CUT) else 0)
    assert len(set(found.reasons)) == len(found.reasons)
