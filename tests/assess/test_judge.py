"""Which members count, what they score, and what is decided and said of it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snne_guard.assess import Judge
from snne_guard.assess.judge import unusable
from snne_guard.decision import Policy, Threshold, Verdict
from snne_guard.errors import ConfigurationError
from snne_guard.scorers import FunctionMethod
from snne_guard.types import Assessment, Cost, ResponseSet, Sample
from tests.assess.judging import (
    CALL,
    CUT,
    EMPTY,
    LYON,
    PARIS,
    REFUSED,
    THOUGHT,
    TOO_FEW,
    certain,
    judged,
    limited,
)

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
    found, verdict = judged(PARIS, PARIS, sample, LYON, sample)
    assert found.scored == ("Paris", "Paris", "Lyon")
    assert (found.n_used, found.reasons) == (3, ("no_threshold", reason))
    assert found.samples == (PARIS, sample, LYON, sample)
    assert found.uncertainty == pytest.approx(0.5573, abs=5e-5)
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
    certified = Threshold(value=0.5, kind="error_rate", status="certified", level=0.1)
    judge = Judge(policy=Policy(threshold=certified))
    verdict = Verdict(decision="unscored")
    found = judge.record(
        responses, assessment_id="an id", verdict=verdict, reasons=("tool_calls",)
    )
    assert found.reasons == ("first", "tool_calls")
    assert (found.decision, found.threshold) == ("unscored", 0.5)
    assert not found.certified  # the promise is of answers that were scored
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
