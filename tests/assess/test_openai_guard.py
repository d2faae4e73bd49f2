"""Guards for the ``openai`` package: what they ask, decide, raise and record."""

from __future__ import annotations

import asyncio
from typing import Any

import openai
import pytest

from snne_guard import (
    Budget,
    ConfigurationError,
    GuardTimeoutError,
    ModelCancelledError,
    Prices,
    SamplingError,
    UncertainAnswerError,
)
from snne_guard.decision import Threshold
from snne_guard.types import Assessment
from tests.support.chat_server import (
    ChatServer,
    Reply,
    ToolCall,
    Usage,
    always,
    cycle,
    error,
    rejecting,
    response,
)
from tests.support.guarding import Witness, split
from tests.support.handlers import find_text
from tests.support.openai_clients import BOTH, assessing

ALIKE = ["Paris"] * 4
APART = ["Rome", "Lyon", "Bonn", "Oslo"]
both = pytest.mark.parametrize("way", BOTH)


def refuse(_assessment: Assessment) -> str:
    return "refuse"


# --- decisions ------------------------------------------------------------------------


@both
@pytest.mark.parametrize(
    ("samples", "settings", "decision"),
    [
        (ALIKE, {"threshold": 0.4}, "accept"),
        (APART, {"threshold": 0.4}, "flag"),
        (APART, {"threshold": Threshold.fixed(0.4)}, "flag"),
        (APART, {"threshold": 0.4, "on_uncertain": "refuse"}, "refuse"),
        (APART, {"threshold": (0.1, 0.5)}, "refuse"),
        (APART, {"threshold": 0.4, "on_uncertain": refuse}, "refuse"),
        (APART, {"threshold": None}, None),
    ],
)
def test_an_answer_is_decided_on_by_its_uncertainty(
    way: str, samples: list[str], settings: dict[str, Any], decision: str | None
) -> None:
    with (
        ChatServer(split("Paris", samples)) as server,
        assessing(server, way, **settings) as assess,
    ):
        found = assess("Capital of France?")
    assert found.decision == decision
    assert found.answer is not None
    assert found.answer.text == "Paris"
    assert found.uncertainty == pytest.approx(0.0 if samples is ALIKE else 1.0)
    assert found.raw.choices[0].message.content == "Paris"
    assert (found.n_requested, found.n_used, found.method) == (5, 5, "wsnne")
    assert found.scored == ("Paris", *samples)
    assert found.question == "Capital of France?"
    assert found.reasons == (("no_threshold",) if decision is None else ())
    assert found.to_metadata()["decision"] == decision


@both
def test_a_withheld_answer_is_in_no_error_and_reaches_observers(way: str) -> None:
    witness = Witness()
    with (
        ChatServer(split("Paris", APART)) as server,
        assessing(
            server, way, threshold=0.4, on_uncertain="raise", observers=[witness]
        ) as assess,
        pytest.raises(UncertainAnswerError, match="it has uncertainty 1") as caught,
    ):
        assess("x")
    told = witness.last
    assert (told.decision, told.id) == ("refuse", caught.value.assessment_id)
    assert told.answer is not None
    assert told.answer.text == "Paris"
    assert caught.value.threshold == 0.4
    assert [text for text in ("Paris", *APART) if find_text(text, caught.value)] == []


@both
def test_events_name_the_model_and_the_provider(way: str) -> None:
    witness = Witness()
    with (
        ChatServer(split("Paris", APART)) as server,
        assessing(server, way, observers=[witness]) as assess,
    ):
        assess("x")
    events = [*witness.started, *witness.ended]
    assert {(each.model, each.provider) for each in events} == {
        ("test-model", "openai")
    }
    ids = {sample.response_id for each in witness.ended for sample in each.samples}
    assert None not in ids


@both
@pytest.mark.parametrize(
    ("raised", "told"),
    [(LookupError, LookupError), (asyncio.CancelledError, ModelCancelledError)],
)
def test_what_the_user_s_function_raises_comes_through(
    way: str, raised: type[BaseException], told: type[Exception]
) -> None:
    def fail(_assessment: Assessment) -> str:
        raise raised

    witness = Witness()
    with (
        ChatServer(split("Paris", APART)) as server,
        assessing(
            server, way, threshold=0.4, on_uncertain=fail, observers=[witness]
        ) as assess,
        pytest.raises(told),
    ):
        assess("x")
    assert witness.last.decision == "unscored"
    assert witness.last.reasons == ("on_uncertain_failed",)
    assert len(witness.assessments) == 1


@both
def test_a_word_that_means_nothing_is_refused(way: str) -> None:
    with (
        ChatServer(split("Paris", APART)) as server,
        assessing(server, way, threshold=0.4, on_uncertain=lambda _a: "shrug") as run,
        pytest.raises(ConfigurationError, match="must be one of"),
    ):
        run("x")


@both
def test_a_fallback_is_a_decision_that_the_caller_carries_out(way: str) -> None:
    for policy in ("fallback", lambda _assessment: "fallback"):
        with (
            ChatServer(split("Paris", APART)) as server,
            assessing(server, way, threshold=0.4, on_uncertain=policy) as assess,
        ):
            assert assess("x").decision == "fallback"


@both
def test_an_async_function_is_for_the_async_guard(way: str) -> None:
    async def decide(assessment: Assessment) -> str:
        return "raise" if assessment.n_used == 5 else "flag"

    expected = ConfigurationError if way == "threads" else UncertainAnswerError
    with (
        ChatServer(split("Paris", APART)) as server,
        assessing(server, way, threshold=0.4, on_uncertain=decide) as assess,
        pytest.raises(expected),
    ):
        assess("x")


# --- what cannot be scored ------------------------------------------------------------


@both
@pytest.mark.parametrize(
    ("on_error", "decision"), [("uncertain", "flag"), ("accept", "unscored")]
)
def test_too_few_samples_are_a_named_outcome(
    way: str, on_error: str, decision: str
) -> None:
    with (
        ChatServer(split("Paris", lambda _request: error(401, "no"))) as server,
        assessing(server, way, threshold=0.4, on_error=on_error) as assess,
    ):
        found = assess("x")
    assert (found.decision, found.uncertainty, found.n_used) == (decision, None, 1)
    assert found.reasons == ("samples_failed", "too_few_samples")


@both
def test_too_few_samples_raise_where_that_is_wanted(way: str) -> None:
    with (
        ChatServer(split("Paris", lambda _request: error(401, "no"))) as server,
        assessing(server, way, threshold=0.4, on_error="raise") as assess,
        pytest.raises(SamplingError, match="1 of 5 members could be used") as caught,
    ):
        assess("x")
    assert (caught.value.n_used, caught.value.needed) == (1, 3)
    assert isinstance(caught.value.causes[0], openai.AuthenticationError)


@both
def test_min_samples_is_the_user_s_to_set(way: str) -> None:
    two = split("Paris", cycle(["Paris", "Paris", "", ""]))
    with (
        ChatServer(two) as server,
        assessing(server, way, threshold=0.4, min_samples=4) as assess,
    ):
        found = assess("x")
    assert found.reasons == ("empty_samples", "too_few_samples")


@both
def test_tool_calls_pass_or_are_scored(way: str) -> None:
    calls = Reply(tool_calls=[[ToolCall(name="f", arguments={"a": 1})]])
    tools = [{"type": "function", "function": {"name": "f", "parameters": {}}}]
    with ChatServer([calls]) as server:
        with assessing(server, way, threshold=0.4, tool_calls="skip") as assess:
            found = assess("x", tools=tools)
            assert (found.decision, found.reasons) == ("unscored", ("tool_calls",))
            assert len(server.requests) == 1
        with assessing(server, way, threshold=0.4, tool_calls="score") as assess:
            found = assess("x", tools=tools)
    assert (found.decision, found.n_used) == ("accept", 5)


@both
def test_calls_that_are_not_sampled_say_why(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = {"tools": [{"type": "web_search"}]}
    with ChatServer([response("Paris")]) as server:
        with assessing(server, way, threshold=0.4, api="responses") as assess:
            found = assess("x", **search)
            assert (found.decision, found.reasons) == ("flag", ("side_effects",))
        with assessing(server, way, threshold=0.4, sample_rate=0.0) as assess:
            server.script = always("Paris")
            found = assess("x")
            assert (found.decision, found.reasons) == ("unscored", ("not_sampled",))
        monkeypatch.setenv("SNNE_GUARD_DISABLED", "1")
        with assessing(server, way, threshold=0.4) as assess:
            found = assess("x")
            assert (found.decision, found.reasons) == ("unscored", ("disabled",))
        assert len(server.requests) == 3
        assert not any(request.logprobs for request in server.requests)


# --- errors, limits, records ----------------------------------------------------------


@both
def test_the_provider_s_own_error_comes_through_and_is_recorded(way: str) -> None:
    witness = Witness()
    refusal = error(400, "flagged", code="content_filter", param="messages")
    with (
        ChatServer([refusal]) as server,
        assessing(server, way, observers=[witness]) as assess,
        pytest.raises(openai.BadRequestError, match="flagged"),
    ):
        assess("x")
    assert witness.last.reasons == ("answer_failed",)
    assert witness.last.answer is None
    assert witness.last.cost.attempts >= 1


@both
def test_an_answer_that_stalls_ends_in_a_timeout_of_our_own(way: str) -> None:
    with (
        ChatServer(split(lambda _request: Reply(stall=True), ALIKE)) as server,
        assessing(server, way, timeout=0.5) as assess,
        pytest.raises(GuardTimeoutError, match=r"timeout of 0\.5 s") as caught,
    ):
        assess("x")
    assert caught.value.timeout == 0.5
    assert caught.value.__suppress_context__


@both
def test_an_answer_refused_for_what_we_added_is_asked_once_more(way: str) -> None:
    witness = Witness()
    with (
        ChatServer(rejecting("logprobs", cycle(["Paris"]))) as server,
        assessing(
            server, way, schedule="answer_first", observers=[witness], n=3
        ) as assess,
    ):
        found = assess("x")
        assert found.cost.attempts == len(server.requests) == 3
    assert (found.method, found.cost.calls) == ("snne", 2)
    assert [event.role for event in witness.started] == ["answer", "sample"]


@both
def test_everything_that_was_paid_is_on_the_record(way: str) -> None:
    usage = Usage(prompt=100, completion=10, cached=64)
    script = cycle(["Paris"], usage=usage)
    prices = Prices(prompt=2.0, completion=8.0, cached=0.5)
    with (
        ChatServer(script) as server,
        assessing(server, way, prices=prices, threshold=0.4) as assess,
    ):
        cost = assess("x").cost
        assert cost.prompt_tokens == server.billed.prompt_tokens == 200
    assert (cost.cached_tokens, cost.completion_tokens) == (128, 20)
    assert cost.money == pytest.approx((72 * 2 + 128 * 0.5 + 20 * 8) / 1e6)


@both
def test_rounds_stop_when_enough_is_known(way: str) -> None:
    with (
        ChatServer(split("Paris", ["Paris"])) as server,
        assessing(
            server, way, n=10, rounds=(8, 10), threshold=0.9, method="snne"
        ) as assess,
    ):
        found = assess("x")
    assert found.decision == "accept"
    assert found.cost.samples_saved == 2
    assert "stopped_early" in found.reasons


@both
def test_a_rule_says_which_calls_are_worth_samples(way: str) -> None:
    def long(messages: list[Any]) -> bool:
        return len(messages[-1]["content"]) > 3

    with (
        ChatServer(cycle(["Paris"])) as server,
        assessing(server, way, threshold=0.4, sample_when=long) as assess,
    ):
        assert assess("x").reasons == ("skipped_by_rule",)
        assert assess("a longer one").decision == "accept"
        assert assess([{"role": "user"}]).reasons == ("sample_when_failed",)


@both
def test_a_budget_holds_samples_back(way: str) -> None:
    script = cycle(["Paris"], usage=Usage(prompt=100, completion=10))
    budget = Budget(tokens_per_call=150)
    with (
        ChatServer(script) as server,
        assessing(server, way, threshold=0.4, budget=budget) as assess,
    ):
        found = assess("x")
    assert found.reasons == ("over_budget",)
    assert found.cost.calls == 1


@both
def test_options_of_one_call_reach_all_of_its_requests(way: str) -> None:
    with (
        ChatServer(cycle(["Paris"])) as server,
        assessing(server, way, options={"max_tokens": 9, "stop": ["."]}) as assess,
    ):
        assess([{"role": "user", "content": "x"}], max_tokens=5)
        assert {request.body["max_tokens"] for request in server.requests} == {5}
        assert all(request.body["stop"] == ["."] for request in server.requests)
