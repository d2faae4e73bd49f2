"""What the engine decides by itself, on hand-fed replies: no thread, loop or server.

What a provider may do is in ``tests/langchain/test_scenarios.py``, a row each.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from snne_guard.engine import Draw, GuardState, Outcome, Request
from snne_guard.engine.call import guarded_call
from snne_guard.engine.protocol import Call, Work
from snne_guard.errors import MissingExtraError
from snne_guard.settings import GuardSettings
from snne_guard.similarity import SIMILARITIES
from snne_guard.types import Assessment, Reply
from tests.support.calibrations import calibration
from tests.support.senders import Scripted, feed, response

ALIKE = ["Paris"] * 9
APART = ["Rome", "Oslo", "Bern", "Lima"]


KEY = "a model"


def request(*takes: str, state: GuardState | None = None) -> Request:
    """Return a request to a provider that takes some parameters."""
    return Request(
        settings=GuardSettings(),
        state=state or GuardState(),
        parameters=frozenset(takes),
        keys=(KEY,),
        question="Where?",
    )


def guarding(**options: Any) -> Request:
    """Return a request with options of the guard."""
    return replace(request(), settings=GuardSettings(**options))


def run(request: Request, answer: Scripted, samples: Sequence[Scripted]) -> Outcome:
    def script(draw: Draw, place: int) -> Scripted:
        return answer if draw.role == "answer" else samples[place]

    return feed(request, script)


def assess(
    request: Request, answer: Scripted, samples: Sequence[Scripted]
) -> Assessment:
    return run(request, answer, samples).assessment


def reply(text: str, **fields: Any) -> Reply:
    return Reply(text=text, finish_reason="stop", **fields)


def draws_of(call: Call, results: Any = None) -> Sequence[Draw]:
    """Send results to a call and return the draws that it wants next."""
    wanted = call.send(results)
    assert not isinstance(wanted, Work)
    return wanted


# -- Drawing ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("structured", "first"),
    [(False, 1), (frozenset({"Answer"}), 1), (True, 5)],
)
def test_samples_wait_for_an_answer_that_may_call_a_tool(
    structured: Any, first: int
) -> None:
    asking = replace(request(), tools_bound=True, structured=structured)
    assert len(draws_of(guarded_call(asking))) == first


def test_an_ignored_n_is_remembered() -> None:
    state = GuardState()
    outcome = feed(request("n", state=state), lambda *_: "Paris", per_request=1)
    assert outcome.assessment.n_used == 5
    later = guarded_call(request("n", state=state))
    assert [draw.n for draw in draws_of(later)] == [1, 1, 1, 1, 1]


def test_what_another_call_learns_meanwhile_loses_no_samples() -> None:
    state = GuardState()
    call = guarded_call(request("n", state=state))
    assert [draw.n for draw in draws_of(call)] == [1, 4]
    state.rejections.learn(KEY, {"n"})
    assert len(draws_of(call, [response("Paris"), response("Paris")])) == 3


# -- Calls of tools --------------------------------------------------------------------


def calling(amount: int, text: str = "") -> Reply:
    arguments = {"amount": amount, "from": "a", "to": "b"}
    calls = json.dumps([{"args": arguments, "name": "transfer"}])
    return reply(text, tool_calls=calls)


def test_a_text_that_comes_with_a_call_is_compared_too() -> None:
    first, *others = [calling(1, f"You have {n}00.") for n in range(1, 6)]
    assert assess(guarding(threshold=0.4), first, others).decision == "flag"


# -- Scoring ---------------------------------------------------------------------------


def likely(text: str) -> Reply:
    return reply(text, token_logprobs=(-0.1,))


def test_each_call_takes_wsnne_where_it_has_log_probabilities() -> None:
    asking = request("logprobs")
    samples = [likely("Paris"), likely("Paris"), likely("Lyon"), likely("Paris")]
    for _ in range(2):
        assert assess(asking, likely("Paris"), samples).method == "wsnne"
        bare = assess(asking, "Paris", ALIKE)
        assert (bare.method, bare.reasons[0]) == ("snne", "logprobs_missing")


@pytest.mark.parametrize("method", ["auto", "wsnne"])
def test_what_is_known_to_be_rejected_is_said_each_time(method: str) -> None:
    asking = replace(request("logprobs"), settings=GuardSettings(method=method))
    asking.state.rejections.learn(KEY, {"logprobs"})
    assert not any(draw.logprobs for draw in draws_of(guarded_call(asking)))
    for _ in range(2):
        assert "logprobs_missing" in assess(asking, "Paris", ALIKE).reasons


@pytest.mark.parametrize("name", ["content_f1", "exact"])
def test_a_similarity_does_the_same_by_its_name_and_as_a_function(name: str) -> None:
    by_name, as_function = [
        assess(
            replace(guarding(similarity=similarity), structured=True),
            calling(1),
            [calling(amount) for amount in (1, 2, 2, 3)],
        ).uncertainty
        for similarity in (name, SIMILARITIES[name])
    ]
    assert by_name == as_function


def test_calls_of_tools_miss_no_log_probabilities() -> None:
    asking = replace(request("logprobs"), structured=True)
    found = assess(asking, calling(1), [calling(1)] * 4)
    assert (found.method, found.reasons) == ("snne", ("no_threshold",))


def test_what_is_missing_to_compare_answers_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def compare(texts: Sequence[str], *, question: str | None = None) -> None:
        raise MissingExtraError("sentence-transformers", extra="nli")

    found = assess(guarding(similarity=compare), "Paris", ALIKE)
    assert "scoring_failed" in found.reasons
    assert 'pip install "snne-guard[nli]"' in caplog.text


def test_one_reply_without_log_probabilities_settles_nothing() -> None:
    asking = request("logprobs")
    samples = [likely("Paris"), reply("Paris"), likely("Paris"), likely("Paris")]
    assert assess(asking, likely("Paris"), samples).method == "snne"
    assert all(draw.logprobs for draw in draws_of(guarded_call(asking)))


# -- Calibration -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("samples", "settings", "covered"),
    [
        ([reply("Paris", model="m")] * 4, {}, True),
        ([reply("Paris", model="other")] * 4, {}, False),
        ([reply("Paris", model="m")] * 3 + [ValueError("500")], {}, False),
        ([reply("Paris", model="m")] * 4, {"answer_temperature": 1.0}, False),
    ],
    ids=["as calibrated", "another model", "a failed sample", "a hotter answer"],
)
def test_only_sets_like_the_calibrated_ones_are_accepted(
    samples: list[Scripted], settings: dict[str, Any], covered: bool
) -> None:
    made = calibration(answer_temperature=0.0)
    request = replace(guarding(calibration=made), answer_settings=settings)
    assessment = assess(request, reply("Paris", model="m"), samples)
    assert assessment.uncertainty == 0.0
    assert (assessment.decision == "accept") is covered
    assert ("uncalibrated" in assessment.reasons) is not covered


# -- Interruption ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", [KeyboardInterrupt, GeneratorExit])
def test_an_interrupted_call_says_what_it_cost(kind: type[BaseException]) -> None:
    call = guarded_call(guarding(schedule="answer_first"))
    assert [draw.role for draw in draws_of(call)] == ["answer"]
    assert [draw.role for draw in draws_of(call, [response("Paris")])] == ["sample"] * 4
    with pytest.raises(StopIteration) as end:
        call.throw(kind())
    outcome: Outcome = end.value.value
    assert isinstance(outcome.error, kind)
    assert outcome.assessment.reasons == ("cancelled",)
    cost = outcome.assessment.cost
    assert (cost.completion_tokens, cost.attempts) == (1, 5)
    assert cost.lower_bound
