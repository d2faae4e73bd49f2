"""Providers that fail, stall, lie or give too little: what is lost, what is said."""

from __future__ import annotations

from typing import Any

import openai
import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.globals import set_llm_cache
from langchain_core.language_models import BaseChatModel, FakeListChatModel
from langchain_core.messages import AIMessage

from snne_guard import (
    GuardedChatModel,
    GuardTimeoutError,
    SamplingError,
    SNNEGuard,
    UncertainAnswerError,
)
from tests.support.chat_server import (
    ChatServer,
    Gate,
    Reply,
    Request,
    Script,
    ToolCall,
    always,
    chat_openai,
    error,
    in_turn,
    rejecting_n,
)
from tests.support.guarding import (
    WAYS,
    WHOLE,
    Witness,
    ask,
    is_sample,
    record,
    samples_of,
    split,
)
from tests.support.patience import in_time

PARIS = ["Paris"]


@pytest.mark.parametrize("way", WHOLE)
def test_some_samples_fail_and_the_rest_is_scored(way: str) -> None:
    bad = error(401, "no")
    replies = [bad, bad, Reply(texts=PARIS), Reply(texts=PARIS)]
    with ChatServer(split("Paris", rejecting_n(in_turn(replies)))) as server:
        found = record(ask(SNNEGuard(chat_openai(server), threshold=0.4), "x", way))
    assert (found["decision"], found["n_used"]) == ("accept", 3)
    assert found["reasons"] == ["samples_failed"]


@pytest.mark.parametrize("way", WHOLE)
@pytest.mark.parametrize(
    ("on_error", "on_uncertain", "decision"),
    [
        ("uncertain", "flag", "flag"),
        ("uncertain", "refuse", "refuse"),
        ("accept", "refuse", "unscored"),
    ],
)
def test_all_samples_fail_and_the_policy_for_errors_decides(
    way: str, on_error: Any, on_uncertain: Any, decision: str
) -> None:
    with ChatServer(split("Paris", always("", status=401))) as server:
        guard = SNNEGuard(
            chat_openai(server),
            threshold=0.4,
            on_error=on_error,
            on_uncertain=on_uncertain,
        )
        message = ask(guard, "x", way)
    found = record(message)
    assert found["decision"] == decision
    assert (found["uncertainty"], found["score"]) == (None, None)
    assert found["reasons"] == ["samples_failed", "too_few_samples"]
    assert (message.content == "Paris") is (decision != "refuse")


@pytest.mark.parametrize("way", WHOLE)
def test_all_samples_fail_and_on_error_raises(way: str) -> None:
    with ChatServer(split("Paris", always("", status=401))) as server:
        guard = SNNEGuard(chat_openai(server), threshold=0.4, on_error="raise")
        with pytest.raises(SamplingError) as caught:
            ask(guard, "x", way)
    assert (caught.value.n_used, caught.value.needed) == (1, 3)
    assert "samples_failed" in caught.value.reasons


@pytest.mark.parametrize("policy", ["flag", "refuse"])
@pytest.mark.parametrize("chat_model", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_the_answer_fails_with_the_providers_own_error(
    way: str, chat_model: bool, policy: Any
) -> None:
    witness = Witness()
    with ChatServer(split(always("", status=401), PARIS)) as server:
        guard = SNNEGuard(
            chat_openai(server), threshold=0.4, on_uncertain=policy, observers=[witness]
        )
        runnable = GuardedChatModel(guard) if chat_model else guard
        with pytest.raises(openai.AuthenticationError):
            ask(runnable, "x", way)
    assert witness.last.reasons == ("answer_failed",)
    assert witness.last.answer is None
    assert witness.last.cost.attempts >= 1


@pytest.mark.parametrize("chat_model", [False, True])
@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream"])
def test_the_answer_fails_and_the_fallback_answers(way: str, chat_model: bool) -> None:
    with ChatServer(split(always("", status=401), PARIS)) as server:
        guard = SNNEGuard(
            chat_openai(server), threshold=0.4, fallback=lambda _m: AIMessage("B")
        )
        runnable = GuardedChatModel(guard) if chat_model else guard
        message = ask(runnable, "x", way)
    assert message.content == "B"
    assert record(message)["decision"] == "fallback"
    assert "answer_failed" in record(message)["reasons"]


@pytest.mark.parametrize("way", WHOLE)
def test_a_sample_that_stalls_is_left_behind_and_said_to_be_late(way: str) -> None:
    replies = [Reply(stall=True), *[Reply(texts=PARIS)] * 3]

    def check(limit: float) -> None:
        with ChatServer(split("Paris", rejecting_n(in_turn(replies)))) as server:
            guard = SNNEGuard(chat_openai(server), threshold=0.4, sample_timeout=limit)
            found = record(ask(guard, "x", way))
        assert found["decision"] == "accept"
        assert (found["n_used"], found["reasons"]) == (4, ["samples_late"])

    in_time(check)


@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream"])
def test_an_answer_that_stalls_ends_in_a_timeout_of_our_own(way: str) -> None:
    with ChatServer(split(always("", stall=True), PARIS)) as server:
        guard = SNNEGuard(chat_openai(server), timeout=0.5)
        with pytest.raises(GuardTimeoutError) as caught:
            ask(guard, "x", way)
    assert caught.value.timeout == 0.5
    assert isinstance(caught.value, TimeoutError)


@pytest.mark.parametrize("way", WHOLE)
def test_the_time_limit_of_the_call_scores_what_has_arrived(way: str) -> None:
    def check(limit: float) -> None:
        with ChatServer(split("Paris", always("", stall=True))) as server:
            guard = SNNEGuard(
                chat_openai(server), threshold=0.4, timeout=limit, on_uncertain="refuse"
            )
            try:
                found = record(ask(guard, "x", way))
            except GuardTimeoutError as late:
                raise AssertionError from late  # the answer has to come in time
        assert (found["decision"], found["n_used"]) == ("refuse", 1)
        assert found["reasons"] == ["samples_late", "too_few_samples"]

    in_time(check)


@pytest.mark.parametrize("way", WHOLE)
def test_a_global_cache_never_answers_for_the_samples(way: str) -> None:
    set_llm_cache(InMemoryCache())
    try:
        with ChatServer(split("Paris", ["a", "b", "c", "d"])) as server:
            guard = SNNEGuard(chat_openai(server))
            found = [record(ask(guard, "x", way)) for _ in "12"]
            assert len(samples_of(server)) == 2
            assert len(server.requests) == 3
    finally:
        set_llm_cache(None)
    assert [each["uncertainty"] for each in found] == [1.0, 1.0]
    assert [each["cost"]["attempts"] for each in found] == [2, 1]
    assert [each["cost"]["calls"] for each in found] == [2, 1]


@pytest.mark.parametrize("way", WHOLE)
def test_samples_of_another_model_are_named(way: str) -> None:
    failing_samples = split(always("Paris", model="first"), always("", status=500))
    with (
        ChatServer(failing_samples) as server,
        ChatServer(always("Paris", model="second")) as other,
    ):
        model = chat_openai(server).with_fallbacks([chat_openai(other)])
        witness = Witness()
        guard = SNNEGuard(model, threshold=0.4, observers=[witness])
        found = record(ask(guard, "x", way))
    assert found["reasons"] == ["mixed_models"]
    assert {sample.model for sample in witness.last.samples} == {"second"}


@pytest.mark.parametrize("way", WHOLE)
def test_an_answer_that_calls_tools_passes_without_a_score(way: str) -> None:
    call = Reply(texts=[None], tool_calls=[[ToolCall(name="f", arguments={"a": 1})]])
    tool = {"type": "function", "function": {"name": "f", "parameters": {}}}
    with ChatServer([call]) as server:
        guard = SNNEGuard(
            chat_openai(server).bind(tools=[tool]), threshold=0.4, on_uncertain="refuse"
        )
        message = ask(guard, "x", way)
        assert len(server.requests) == 1  # the answer first: no sample was paid for
    assert message.tool_calls[0]["name"] == "f"
    found = record(message)
    assert (found["decision"], found["reasons"]) == ("unscored", ["tool_calls"])


@pytest.mark.parametrize("way", WHOLE)
@pytest.mark.parametrize(("other", "decision"), [(1, "accept"), (2, "refuse")])
def test_tool_calls_are_compared_field_by_field_where_asked(
    way: str, other: int, decision: str
) -> None:
    def calling(value: int) -> Script:
        calls = [[ToolCall(name="f", arguments={"a": value})]]
        return lambda _request: Reply(texts=[None], tool_calls=calls)

    with ChatServer(split(calling(1), calling(other))) as server:
        guard = SNNEGuard(
            chat_openai(server),
            threshold=0.2,
            on_uncertain="refuse",
            tool_calls="score",
        )
        assert record(ask(guard, "x", way))["decision"] == decision


@pytest.mark.parametrize("way", WHOLE)
def test_tools_that_run_at_the_provider_are_never_run_for_a_sample(way: str) -> None:
    with ChatServer(always("Paris")) as server:
        tool = {"type": "web_search"}
        model = chat_openai(server, use_responses_api=False).bind(tools=[tool])
        guard = SNNEGuard(model, threshold=0.4, on_uncertain="refuse")
        found = record(ask(guard, "x", way))
        assert not samples_of(server)
    assert (found["decision"], found["reasons"]) == ("refuse", ["side_effects"])


def test_a_sample_stores_nothing_at_the_provider() -> None:
    with ChatServer(always("Paris")) as server:
        SNNEGuard(chat_openai(server, store=True)).invoke("x")
        stored = {is_sample(r): r.body.get("store") for r in server.requests}
    assert stored[False] is True
    assert not stored[True]


@pytest.mark.parametrize("way", WHOLE)
def test_a_similarity_that_raises_loses_nothing_and_passes_nothing(way: str) -> None:
    def broken(_texts: Any, *, question: str | None = None) -> Any:
        raise RuntimeError(question)

    with ChatServer(split("Paris", PARIS)) as server:
        guard = SNNEGuard(
            chat_openai(server), threshold=0.4, on_uncertain="refuse", similarity=broken
        )
        found = record(ask(guard, "x", way))
    assert (found["decision"], found["reasons"]) == ("refuse", ["scoring_failed"])


def test_a_model_whose_temperature_cannot_be_set_is_named() -> None:
    model = FakeListChatModel(responses=["a"])
    found = record(SNNEGuard(model, threshold=0.4, n=3).invoke("x"))
    assert found["reasons"] == ["temperature_unset"]
    assert found["method"] == "snne"


def test_a_hanging_threads_sample_does_not_hold_the_call() -> None:
    gate = Gate()
    with ChatServer(split("Paris", always("Paris", gate=gate))) as server:
        guard = SNNEGuard(chat_openai(server), threshold=0.4, sample_timeout=0.3)
        found = record(guard.invoke("x"))
        gate.open()
    assert "samples_late" in found["reasons"]


def test_the_raised_error_is_langchains_own_too() -> None:
    from langchain_core.exceptions import LangChainException

    with ChatServer(split("Paris", ["a", "b"])) as server:
        guard = SNNEGuard(chat_openai(server), threshold=0.1, on_uncertain="raise")
        with pytest.raises(LangChainException) as caught:
            guard.invoke("x")
    assert isinstance(caught.value, UncertainAnswerError)
    assert getattr(caught.value, "is_retryable", None) is False


@pytest.mark.parametrize("way", ["stream", "astream"])
def test_a_stream_that_stalls_between_chunks_ends_in_our_timeout(way: str) -> None:
    slow = always("one two three four", chunk_delay=60.0)
    with ChatServer(split(slow, PARIS)) as server:
        guard = SNNEGuard(chat_openai(server), timeout=1.0)
        with pytest.raises(GuardTimeoutError):
            ask(guard, "x", way)


@pytest.mark.parametrize("way", WHOLE)
@pytest.mark.parametrize("policy", ["flag", "refuse"])
def test_the_providers_own_timeout_is_not_ours(way: str, policy: Any) -> None:
    with ChatServer(split(always("", stall=True), PARIS)) as server:
        model = chat_openai(server, timeout=0.3)
        guard = SNNEGuard(model, threshold=0.4, on_uncertain=policy, timeout=60)
        with pytest.raises(openai.APITimeoutError):
            ask(guard, "x", way)


class Slow(BaseChatModel):
    """A model of the user's own, which gives up with a plain TimeoutError."""

    @property
    def _llm_type(self) -> str:
        return "slow"

    def _generate(self, *_args: Any, **_kwargs: Any) -> Any:
        raise TimeoutError


@pytest.mark.parametrize("way", WHOLE)
def test_a_timeout_error_of_the_model_stays_the_models(way: str) -> None:
    with pytest.raises(TimeoutError) as caught:
        ask(SNNEGuard(Slow(), timeout=60, max_attempts=1), "x", way)
    assert not isinstance(caught.value, GuardTimeoutError)


@pytest.mark.parametrize("param", ["messages", None])
def test_a_bad_request_for_the_answer_is_the_providers_own_error(
    param: str | None,
) -> None:
    with ChatServer([error(400, "context too long", param=param)]) as server:
        with pytest.raises(openai.BadRequestError, match="context too long"):
            SNNEGuard(chat_openai(server)).invoke("x")
        answers = [request for request in server.requests if not is_sample(request)]
    # Where nobody says what is wrong, it may be what only the guard had asked for.
    asked = [request.logprobs for request in answers]
    assert asked == ([True] if param else [True, False])


@pytest.mark.parametrize("way", WAYS)
def test_an_answer_never_fails_for_what_only_the_guard_wanted(way: str) -> None:
    def script(request: Request) -> Reply:
        return error(400, "no") if request.logprobs else Reply(texts=["Paris"])

    with ChatServer(script) as server:
        found = record(ask(SNNEGuard(chat_openai(server), n=2), "x", way))
        assert len(server.requests) == found["cost"]["attempts"] == 4
    assert (found["n_used"], found["method"]) == (2, "snne")
