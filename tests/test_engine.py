"""The engine decides by hand-fed replies: no thread, no loop, no server."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from snne_guard.call import GuardState, Outcome, Request
from snne_guard.decision import Calibration, Threshold
from snne_guard.engine import guarded_call, wants_logprobs
from snne_guard.errors import (
    ConfigurationError,
    GuardTimeoutError,
    SamplingError,
    UncertainAnswerError,
)
from snne_guard.sampling.replies import Draw, ProviderCapabilities
from snne_guard.settings import GuardSettings
from snne_guard.types import Prices, Sample
from tests.support.senders import Said, feed, reply

PARIS = ["Paris"] * 9
MIXED = ["Paris", "Rome", "Oslo", "Bern", "Lima"]


def request(
    *,
    n: bool = False,
    logprobs: bool = False,
    state: GuardState | None = None,
    **options: Any,
) -> Request:
    asked = {
        name: options.pop(name)
        for name in (
            "tools_bound",
            "side_effects",
            "structured",
            "answer",
            "answer_settings",
        )
        if name in options
    }
    return Request(
        settings=GuardSettings(**options),
        state=state or GuardState(),
        capabilities=ProviderCapabilities(n=n, logprobs=logprobs),
        question="Where?",
        **asked,
    )


def ask(
    asked: Request, answer: Said, samples: Sequence[Said], *, per_request: int = 100
) -> Outcome:
    def script(draw: Draw, place: int) -> Said:
        return answer if draw.role == "answer" else samples[place]

    return feed(asked, script, per_request=per_request)


def said(text: str, **fields: Any) -> Sample:
    return Sample(text=text, finish_reason="stop", **fields)


# -- Decisions -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "decision", "delivery"),
    [
        ({}, None, "answer"),
        ({"threshold": 0.4}, "flag", "answer"),
        ({"threshold": 1.0}, "accept", "answer"),
        ({"threshold": 0.4, "on_uncertain": "refuse"}, "refuse", "refusal"),
        (
            {"threshold": 0.4, "on_uncertain": "fallback", "fallback": object()},
            "fallback",
            "fallback",
        ),
        ({"threshold": 0.4, "on_uncertain": "raise"}, "refuse", "nothing"),
        ({"threshold": (0.4, 0.9)}, "refuse", "refusal"),
        ({"threshold": (0.4, 1.0)}, "flag", "answer"),
        ({"threshold": 0.4, "on_uncertain": lambda _: "refuse"}, "refuse", "refusal"),
        ({"threshold": 0.4, "on_uncertain": lambda _: 7}, "flag", "replacement"),
    ],
)
def test_an_answer_that_its_samples_contradict(
    options: dict[str, Any], decision: str | None, delivery: str
) -> None:
    outcome = ask(request(**options), "Paris", MIXED[1:])
    assert outcome.assessment.uncertainty == pytest.approx(1.0)
    assert (outcome.assessment.decision, outcome.delivery) == (decision, delivery)


def test_an_answer_that_all_samples_repeat_is_accepted_by_any_threshold() -> None:
    outcome = ask(request(threshold=0.0, on_uncertain="refuse"), "Paris", PARIS)
    made = outcome.assessment
    assert (made.uncertainty, made.decision, made.n_used) == (0.0, "accept", 5)
    assert made.reasons == ()
    assert np.array_equal(made.matrix, np.ones((5, 5)))  # type: ignore[arg-type] # it is there


def test_without_a_threshold_nothing_is_decided() -> None:
    made = ask(request(), "Paris", PARIS).assessment
    assert made.decision is None
    assert made.reasons == ("no_threshold",)


def test_what_is_raised_names_the_assessment_and_not_the_answer() -> None:
    outcome = ask(request(threshold=0.4, on_uncertain="raise"), "Paris", MIXED[1:])
    assert isinstance(outcome.error, UncertainAnswerError)
    assert outcome.error.assessment_id == outcome.assessment.id
    assert "Paris" not in f"{outcome.error} {vars(outcome.error)}"


def test_what_the_users_function_raises_comes_through() -> None:
    def broken(_: object) -> str:
        raise KeyError("mine")

    outcome = ask(request(threshold=0.4, on_uncertain=broken), "Paris", MIXED[1:])
    assert isinstance(outcome.error, KeyError)
    assert outcome.assessment.uncertainty == pytest.approx(1.0)


def test_an_unknown_word_of_the_users_function_is_refused() -> None:
    asked = request(threshold=0.4, on_uncertain=lambda _: "maybe")
    outcome = ask(asked, "Paris", MIXED[1:])
    assert isinstance(outcome.error, ConfigurationError)
    assert outcome.delivery == "nothing"


# -- Too few members -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "decision", "delivery"),
    [
        ({}, None, "answer"),
        ({"threshold": 0.4, "on_uncertain": "refuse"}, "refuse", "refusal"),
        ({"threshold": 0.4, "on_error": "accept"}, "unscored", "answer"),
        ({"threshold": 0.4, "on_error": "raise"}, "unscored", "nothing"),
        ({"on_error": "raise"}, "unscored", "nothing"),
    ],
)
def test_too_few_samples_never_pass_as_confidence(
    options: dict[str, Any], decision: str | None, delivery: str
) -> None:
    outcome = ask(request(**options), "Paris", ["", "", "Paris", ""])
    made = outcome.assessment
    assert (made.uncertainty, made.score) == (None, None)
    assert {"too_few_samples", "unreadable_samples"} <= set(made.reasons)
    assert (made.decision, outcome.delivery) == (decision, delivery)
    if delivery == "nothing":
        assert isinstance(outcome.error, SamplingError)
        assert (outcome.error.n_used, outcome.error.needed) == (2, 3)


@pytest.mark.parametrize(
    ("sample", "reason"),
    [
        (said("  "), "unreadable_samples"),
        (said("a picture", unreadable=True), "unreadable_samples"),
        (said("I cannot", refused=True), "refused_samples"),
        (said("Par", truncated=True), "truncated_samples"),
        (said("", tool_calls='[{"args":{},"name":"look"}]'), "tool_call_samples"),
    ],
)
def test_a_sample_that_cannot_be_compared_leaves_the_set(
    sample: Sample, reason: str
) -> None:
    made = ask(request(threshold=0.4), "Paris", ["Paris", sample, "Paris", "Paris"])
    assert made.assessment.n_used == 4
    assert made.assessment.reasons == (reason,)
    assert len(made.assessment.samples) == 4
    assert made.assessment.decision == "accept"


@pytest.mark.parametrize(
    ("answer", "reason", "decision"),
    [
        (said("\n"), "answer_unreadable", "refuse"),
        (said("No.", refused=True), "answer_refused", "refuse"),
        (said("Paris", truncated=True), "answer_truncated", "accept"),
    ],
)
def test_an_answer_that_is_odd_is_named(
    answer: Sample, reason: str, decision: str
) -> None:
    asked = request(threshold=0.4, on_uncertain="refuse")
    made = ask(asked, answer, PARIS).assessment
    assert reason in made.reasons
    assert made.decision == decision


def test_samples_of_another_model_are_named() -> None:
    samples = [said("Paris", model=name) for name in ("a", "a", "b", "a")]
    made = ask(request(), said("Paris", model="a"), samples).assessment
    assert "mixed_models" in made.reasons


# -- Drawing ---------------------------------------------------------------------------


def test_samples_come_in_one_request_where_the_provider_takes_n() -> None:
    made = ask(request(n=True), "Paris", PARIS).assessment
    assert (made.n_used, made.cost.completion_tokens, made.cost.prompt_tokens) == (
        5,
        5,
        20,
    )


def test_an_ignored_n_is_topped_up_and_remembered() -> None:
    state = GuardState()
    made = ask(request(n=True, state=state), "Paris", PARIS, per_request=1).assessment
    assert (made.n_used, state.n_ignored) == (5, True)
    call = guarded_call(request(n=True, state=state))
    assert [draw.n for draw in next(call).draws] == [1, 1, 1, 1, 1]  # type: ignore[union-attr] # draws come first


def test_what_another_call_learns_meanwhile_loses_no_samples() -> None:
    state = GuardState()
    call = guarded_call(request(n=True, state=state))
    next(call)
    state.n_ignored = True
    wanted = call.send([reply("Paris"), reply("Paris")])
    assert len(wanted.draws) == 3  # type: ignore[union-attr] # draws


def test_a_refused_n_is_topped_up_and_no_failure() -> None:
    def script(draw: Draw, place: int) -> Said:
        return ValueError("n must be 1") if draw.n > 1 else "Paris"

    made = feed(request(n=True), script).assessment
    assert made.n_used == 5
    assert "samples_failed" not in made.reasons


def test_a_failed_sample_loses_neither_the_answer_nor_the_others() -> None:
    samples: list[Said] = ["Paris", ValueError("500"), "Paris", "Paris"]
    outcome = ask(request(threshold=0.4), "Paris", samples)
    assert outcome.assessment.n_used == 4
    assert outcome.assessment.reasons == ("samples_failed",)
    assert outcome.delivery == "answer"


def test_late_samples_are_left_out_and_their_cost_is_a_lower_bound() -> None:
    samples: list[Said] = ["Paris", TimeoutError(), "Paris", "Paris"]
    made = ask(request(sample_timeout=1.0), "Paris", samples).assessment
    assert made.n_used == 4
    assert "samples_late" in made.reasons
    assert made.cost.lower_bound


def test_a_failed_answer_is_raised_as_itself() -> None:
    error = ValueError("bad key")
    outcome = ask(request(threshold=0.4), error, PARIS)
    assert outcome.error is error
    assert "answer_failed" in outcome.assessment.reasons


def test_a_failed_answer_goes_to_the_fallback() -> None:
    outcome = ask(request(threshold=0.4, fallback=object()), ValueError(), PARIS)
    assert outcome.delivery == "fallback"
    assert outcome.assessment.decision == "fallback"


def test_an_answer_that_does_not_come_in_time() -> None:
    outcome = ask(request(timeout=2.0), TimeoutError(), PARIS)
    assert isinstance(outcome.error, GuardTimeoutError)
    assert outcome.error.timeout == 2.0


def test_a_late_answer_is_not_mistaken_for_a_failed_sample() -> None:
    outcome = ask(request(timeout=2.0), TimeoutError(), [ValueError("500")] * 4)
    assert isinstance(outcome.error, GuardTimeoutError)


def test_answer_first_draws_samples_when_the_answer_is_there() -> None:
    call = guarded_call(request(schedule="answer_first"))
    first = next(call)
    assert [draw.role for draw in first.draws] == ["answer"]  # type: ignore[union-attr] # draws
    then = call.send([reply("Paris")])
    assert [draw.role for draw in then.draws] == ["sample"] * 4  # type: ignore[union-attr] # draws


def test_the_paper_leaves_the_answer_out_of_the_set() -> None:
    asked = request(include_answer=False, n=True, threshold=0.4)
    asked = replace(asked, settings=GuardSettings(n=4, include_answer=False))
    made = ask(asked, "Rome", PARIS).assessment
    assert (made.uncertainty, made.scored) == (0.0, ("Paris",) * 4)


def test_an_answer_that_exists_is_not_drawn_again() -> None:
    made = ask(request(answer=reply("Paris")), ValueError("drawn"), PARIS).assessment
    assert (made.n_used, made.uncertainty) == (5, 0.0)


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_the_sample_rate_decides_whether_a_call_is_sampled(rate: float) -> None:
    made = ask(request(sample_rate=rate, threshold=0.4), "Paris", PARIS).assessment
    assert made.decision == ("accept" if rate else "unscored")
    assert ("not_sampled" in made.reasons) is (rate == 0)


def test_a_disabled_guard_is_the_bare_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SNNE_GUARD_DISABLED", "1")
    outcome = ask(request(threshold=0.4, on_uncertain="refuse"), "Paris", MIXED[1:])
    assert (outcome.delivery, outcome.assessment.samples) == ("answer", ())
    assert "disabled" in outcome.assessment.reasons


def test_where_a_sample_could_act_none_is_drawn_and_the_answer_is_unscored() -> None:
    asked = request(side_effects=True, threshold=0.4, on_uncertain="refuse")
    outcome = ask(asked, "Paris", PARIS)
    assert (outcome.delivery, outcome.assessment.samples) == ("refusal", ())
    assert "side_effects" in outcome.assessment.reasons


# -- Calls of tools --------------------------------------------------------------------

TRANSFER = '[{"args":{"amount":%d,"from":"a","to":"b"},"name":"transfer"}]'


def call_of(amount: int) -> Sample:
    return said("", tool_calls=TRANSFER % amount)


def test_a_call_of_a_bound_tool_passes_and_draws_no_samples() -> None:
    outcome = ask(request(tools_bound=True, threshold=0.4), call_of(1), [ValueError()])
    made = outcome.assessment
    assert (outcome.delivery, made.decision) == ("answer", "unscored")
    assert made.reasons == ("tool_calls",)
    assert made.cost.completion_tokens == 1


@pytest.mark.parametrize(
    "options", [{"tools_bound": True, "tool_calls": "score"}, {}, {"structured": True}]
)
def test_calls_are_compared_where_they_do_not_pass(options: dict[str, Any]) -> None:
    samples = [call_of(amount) for amount in (20, 300, 4_000, 50_000)]
    made = ask(request(threshold=0.4, **options), call_of(1), samples).assessment
    assert made.decision == "flag"
    assert made.uncertainty is not None
    assert made.uncertainty > 0.5
    alike = ask(request(threshold=0.4, **options), call_of(1), [call_of(1)] * 4)
    assert alike.assessment.uncertainty == 0.0


# -- Scoring ---------------------------------------------------------------------------


def likely(text: str, logprob: float = -0.1) -> Sample:
    return said(text, token_logprobs=(logprob,))


def test_log_probabilities_make_it_wsnne_and_settle_it() -> None:
    state = GuardState()
    samples: list[Said] = [
        likely("Paris"),
        likely("Paris"),
        likely("Lyon"),
        likely("Paris"),
    ]
    made = ask(request(logprobs=True, state=state), likely("Paris"), samples).assessment
    assert (made.method, state.method) == ("wsnne", "wsnne")
    missing = ask(request(logprobs=True, state=state), "Paris", PARIS).assessment
    assert (missing.method, missing.reasons[0]) == ("snne", "logprobs_missing")


def test_without_log_probabilities_it_is_snne_and_none_are_asked_for_again() -> None:
    asked = request(logprobs=True)
    assert wants_logprobs(asked)
    assert ask(asked, "Paris", PARIS).assessment.method == "snne"
    assert not wants_logprobs(asked)


def test_agreement_that_chance_does_not_produce_is_no_confidence() -> None:
    same = said("a long tale", token_logprobs=(-9.0, -8.0, -7.0))
    made = ask(
        request(threshold=0.4, on_uncertain="refuse"), same, [same] * 4
    ).assessment
    assert made.decision == "refuse"
    assert "suspect_agreement" in made.reasons


def test_a_similarity_that_fails_is_no_confidence() -> None:
    def broken(texts: Sequence[str], *, question: str | None = None) -> Any:
        raise RuntimeError(texts[0])

    made = ask(request(threshold=0.4, similarity=broken), "Paris", PARIS).assessment
    assert (made.decision, made.uncertainty) == ("flag", None)
    assert "scoring_failed" in made.reasons


def test_a_similarity_of_the_users_own_gets_texts_and_question() -> None:
    seen: list[Any] = []

    def same(texts: Sequence[str], *, question: str | None = None) -> Any:
        seen.append((tuple(texts), question))
        return np.ones((len(texts), len(texts)))

    made = ask(request(similarity=same), "Paris", MIXED[1:]).assessment
    assert made.uncertainty == 0.0
    assert seen == [(tuple(MIXED), "Where?")]


# -- Calibration -----------------------------------------------------------------------


def calibrated(**settings: Any) -> Calibration:
    made = {
        "n": 5,
        "include_answer": True,
        "temperature": 1.0,
        "method": "snne",
        "similarity": "content_f1",
        "anchor": 0.7,
        "tau": 1.0,
        "model": "m",
        **settings,
    }
    return Calibration(settings=made, threshold=Threshold.fixed(0.4))


@pytest.mark.parametrize(
    ("change", "covered"),
    [
        ({}, True),
        ({"model": "other"}, False),
        ({"failed": True}, False),
        ({"answer_settings": {"answer_temperature": 1.0}}, False),
    ],
)
def test_only_sets_like_the_calibrated_ones_are_accepted(
    change: dict[str, Any], covered: bool
) -> None:
    model = change.pop("model", "m")
    samples: list[Said] = [said("Paris", model=model)] * 4
    if change.pop("failed", False):
        samples[2] = ValueError("500")
    asked = request(calibration=calibrated(answer_temperature=0.0), **change)
    made = ask(asked, said("Paris", model="m"), samples).assessment
    assert made.uncertainty == 0.0
    assert (made.decision == "accept") is covered
    assert ("uncalibrated" in made.reasons) is not covered


# -- Cost and interruption -------------------------------------------------------------


def test_money_is_what_the_prices_make_of_all_draws() -> None:
    prices = Prices(prompt=1e6, completion=2e6)
    made = ask(request(n=True, prices=prices), "Paris", PARIS).assessment
    assert made.cost.money == 20 + 2 * 5


@pytest.mark.parametrize("kind", [KeyboardInterrupt, GeneratorExit])
def test_an_interrupted_call_tells_what_it_cost(kind: type[BaseException]) -> None:
    call = guarded_call(request(schedule="answer_first"))
    next(call)
    call.send([reply("Paris")])
    with pytest.raises(StopIteration) as end:
        call.throw(kind())
    outcome: Outcome = end.value.value
    assert isinstance(outcome.error, kind)
    assert outcome.assessment.reasons == ("cancelled",)
    assert outcome.assessment.cost.completion_tokens == 1


def test_metadata_hold_no_text_and_are_plain() -> None:
    import json

    made = ask(request(threshold=0.4), "Paris", PARIS).assessment
    told = json.dumps(made.to_metadata(), allow_nan=False)
    assert "Paris" not in told
    assert math.isclose(json.loads(told)["uncertainty"], 0.0)


def test_a_similarity_that_cannot_give_what_the_method_needs_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="'dse' needs a similarity with"):
        GuardSettings(method="dse", similarity="rouge_l")


def test_a_text_beside_a_call_is_compared_too() -> None:
    def beside(text: str) -> Sample:
        return said(text, tool_calls=TRANSFER % 1)

    samples: list[Said] = [beside(f"You have {number}00.") for number in range(2, 6)]
    made = ask(request(threshold=0.4), beside("You have 100."), samples).assessment
    assert made.decision == "flag"


def test_a_disabled_guard_has_no_fallback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SNNE_GUARD_DISABLED", "1")
    error = ValueError("bad key")
    outcome = ask(request(fallback=object()), error, PARIS)
    assert (outcome.error, outcome.delivery) == (error, "nothing")


def test_one_reply_without_log_probabilities_settles_nothing() -> None:
    asked = request(logprobs=True)
    samples: list[Said] = [likely("Paris"), "Paris", likely("Paris"), likely("Paris")]
    assert ask(asked, likely("Paris"), samples).assessment.method == "snne"
    assert asked.state.method is None
    assert wants_logprobs(asked)
