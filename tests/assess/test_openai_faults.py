"""What a provider may do wrong to a guard for the ``openai`` package, one by one."""

from __future__ import annotations

import asyncio
from typing import Any

import openai
import pytest

from snne_guard import Assessment, AsyncOpenAIGuard
from tests.support.chat_server import (
    ChatServer,
    Reply,
    Request,
    cycle,
    error,
    failing,
    ignoring_n,
    in_turn,
    rejecting_n,
    response,
)
from tests.support.guarding import split
from tests.support.openai_clients import BOTH, assessing, async_client
from tests.support.patience import in_time

PARIS = ["Paris"] * 4
both = pytest.mark.parametrize("way", BOTH)


def samples_of(server: ChatServer) -> list[Request]:
    return [request for request in server.requests if "temperature" in request.body]


def essence(found: Assessment) -> tuple[Any, ...]:
    return found.decision, found.n_used, found.reasons


# --- requests that fail ---------------------------------------------------------------


@both
@pytest.mark.parametrize("status", [408, 429, 500, 502, 503])
def test_a_burst_of_failures_is_waited_out(way: str, status: int) -> None:
    burst = in_turn([error(status), error(status), Reply(texts=PARIS)])
    with (
        ChatServer(split("Paris", burst)) as server,
        assessing(server, way, threshold=0.4) as assess,
    ):
        found = assess("x")
        assert len(samples_of(server)) == 3
    assert essence(found) == ("accept", 5, ())
    assert (found.cost.attempts, found.cost.calls) == (4, 2)


@both
def test_retry_after_is_honoured(way: str) -> None:
    waiting = in_turn([error(429, retry_after=1), Reply(texts=PARIS)])
    with (
        ChatServer(split("Paris", waiting)) as server,
        assessing(server, way, threshold=0.4) as assess,
    ):
        found = assess("x")
        first, second = samples_of(server)
    assert essence(found) == ("accept", 5, ())
    assert second.arrived - first.arrived >= 1.0


@both
def test_a_retry_after_beyond_all_patience_is_a_failure(way: str) -> None:
    waiting = in_turn([error(429, retry_after=3600), Reply(texts=PARIS)])
    with (
        ChatServer(split("Paris", waiting)) as server,
        assessing(server, way, threshold=0.4) as assess,
    ):
        found = assess("x")
        assert len(samples_of(server)) == 1
    assert "samples_failed" in found.reasons


@both
@pytest.mark.parametrize("fault", ["drop", "reset"])
def test_a_connection_lost_in_the_body_is_tried_again(way: str, fault: str) -> None:
    broken: dict[str, Any] = {fault: True}
    script = in_turn([Reply(texts=PARIS, **broken), Reply(texts=PARIS)])
    with (
        ChatServer(split("Paris", script)) as server,
        assessing(server, way, threshold=0.4) as assess,
    ):
        found = assess("x")
    assert essence(found) == ("accept", 5, ())
    assert found.cost.lower_bound  # what was cut off was perhaps billed


@both
def test_malformed_json_was_billed_and_is_not_asked_for_again(way: str) -> None:
    broken = Reply(malformed=True, texts=PARIS)
    with (
        ChatServer(split("Paris", in_turn([broken]))) as server,
        assessing(server, way, threshold=0.4) as assess,
    ):
        found = assess("x")
        assert len(samples_of(server)) == 1
    assert essence(found) == ("flag", 1, ("samples_failed", "too_few_samples"))
    assert found.cost.lower_bound


@both
def test_a_stall_beyond_the_client_s_timeout_is_tried_again(way: str) -> None:
    def check(limit: float) -> None:
        script = in_turn([Reply(stall=True), Reply(texts=PARIS)])
        options = {"timeout": limit}
        with (
            ChatServer(split("Paris", script)) as server,
            assessing(server, way, threshold=0.4, client_options=options) as assess,
        ):
            try:
                found = assess("x")
            except openai.APITimeoutError as late:
                raise AssertionError from late  # the answer has to come in time
            assert len(samples_of(server)) == 2
        assert essence(found) == ("accept", 5, ())
        assert found.cost.lower_bound

    in_time(check)


@both
def test_an_answer_keeps_its_client_s_retries_and_samples_have_their_own(
    way: str,
) -> None:
    busy = error(503)
    answering = in_turn([busy, Reply(texts=["Paris"])])
    with (
        ChatServer(split(answering, in_turn([busy]))) as server,
        assessing(
            server, way, threshold=0.4, client_options={"max_retries": 2}
        ) as assess,
    ):
        found = assess("x")
        assert len(samples_of(server)) == 4  # max_attempts, not 4 x 3
        assert len(server.requests) == 6
    assert essence(found) == ("flag", 1, ("samples_failed", "too_few_samples"))


# --- replies that are not what was asked for ------------------------------------------


@both
@pytest.mark.parametrize(
    ("script", "calls"),
    [
        (ignoring_n(PARIS), 5),
        (rejecting_n(cycle(PARIS)), 5),
        (rejecting_n(cycle(PARIS), max_n=3), 3),
    ],
    ids=["ignored", "rejected", "capped"],
)
def test_whatever_becomes_of_n_the_set_is_whole_and_paid_once(
    way: str, script: Any, calls: int
) -> None:
    with (
        ChatServer(split("Paris", script)) as server,
        assessing(server, way, threshold=0.4) as assess,
    ):
        found = assess("x")
        assert found.cost.completion_tokens == server.billed.completion_tokens == 5
    assert essence(found) == ("accept", 5, ())
    assert found.cost.calls == calls


@both
def test_choices_in_another_order_keep_their_log_probabilities(way: str) -> None:
    shuffled = Reply(
        texts=["a", "b", "c", "d"],
        logprobs=[[-0.1], [-0.2], [-0.3], [-0.4]],
        order=[2, 0, 3, 1],
    )
    with (
        ChatServer(split("a", lambda _request: shuffled)) as server,
        assessing(server, way) as assess,
    ):
        found = assess("x")
    drawn = [(each.text, each.token_logprobs) for each in found.samples]
    assert drawn == [("a", (-0.1,)), ("b", (-0.2,)), ("c", (-0.3,)), ("d", (-0.4,))]


@both
@pytest.mark.parametrize(
    ("fault", "reasons"),
    [
        ({"logprobs": [[-0.1], None, [-0.1], [-0.1]]}, ("logprobs_missing",)),
        (
            {"texts": ["Paris it is"], "tokens": [["Paris", " it"]]},
            ("logprobs_missing", "logprobs_misaligned"),
        ),
        (
            {"tokens": [["Paris"], ["Rome"], ["Paris"], ["Paris"]]},
            ("logprobs_missing", "logprobs_misaligned"),
        ),
    ],
    ids=["missing", "truncated", "misaligned"],
)
def test_log_probabilities_that_cannot_be_used_are_named(
    way: str, fault: dict[str, Any], reasons: tuple[str, ...]
) -> None:
    reply = Reply(**{"texts": PARIS, **fault})
    with (
        ChatServer(split("Paris", lambda _request: reply)) as server,
        assessing(server, way, threshold=0.9) as assess,
    ):
        found = assess("x")
    assert (found.method, found.n_used, found.reasons) == ("snne", 5, reasons)


@both
def test_the_same_unlikely_answer_again_and_again_is_no_confidence(way: str) -> None:
    unlikely = Reply(texts=["one two three four"], logprobs=[[-9.0] * 4])
    with (
        ChatServer([unlikely]) as server,
        assessing(server, way, threshold=0.4, on_uncertain="refuse") as assess,
    ):
        found = assess("x")
    assert found.decision == "refuse"
    assert "suspect_agreement" in found.reasons


@both
def test_refused_empty_and_cut_off_samples_leave_the_set(way: str) -> None:
    odd = Reply(
        texts=["Paris", "", "Paris", "Par"],
        refusals=[None, None, "I cannot.", None],
        finish_reasons=["stop", "stop", "stop", "length"],
    )
    with (
        ChatServer(split("Paris", lambda _request: odd)) as server,
        assessing(server, way, threshold=0.4) as assess,
    ):
        found = assess("x")
    assert (found.decision, found.n_used) == ("flag", 2)
    assert set(found.reasons) == {
        "empty_samples",
        "refused_samples",
        "truncated_samples",
        "too_few_samples",
    }


@both
def test_an_answer_that_a_filter_ended_is_no_confidence(way: str) -> None:
    filtered = Reply(texts=["Par"], finish_reasons=["content_filter"])
    with (
        ChatServer(split(lambda _request: filtered, PARIS)) as server,
        assessing(server, way, threshold=0.4, on_uncertain="refuse") as assess,
    ):
        found = assess("x")
    assert (found.decision, found.reasons) == ("refuse", ("answer_refused",))


@both
def test_samples_that_a_filter_or_a_full_context_refuses_are_not_repeated(
    way: str,
) -> None:
    for code in ("content_filter", "context_length_exceeded"):
        refusal = error(400, "no", code=code, param="messages")
        with (
            ChatServer(split("Paris", in_turn([refusal]))) as server,
            assessing(server, way, threshold=0.4) as assess,
        ):
            found = assess("x")
            assert len(samples_of(server)) == 1
        assert essence(found) == ("flag", 1, ("samples_failed", "too_few_samples"))


@both
def test_samples_from_another_model_are_named(way: str) -> None:
    other = Reply(texts=PARIS, model="test-model-mini")
    with (
        ChatServer(split("Paris", lambda _request: other)) as server,
        assessing(server, way, threshold=0.4) as assess,
    ):
        found = assess("x")
    assert found.reasons == ("mixed_models",)
    assert found.samples[0].model == "test-model-mini"


@both
def test_responses_that_say_that_they_failed_are_failures(way: str) -> None:
    broken = response("", failed="server_error")
    script = in_turn([response("Paris"), broken, response("Paris")])
    with (
        ChatServer(script) as server,
        assessing(
            server, way, threshold=0.4, api="responses", n=2, schedule="answer_first"
        ) as assess,
    ):
        found = assess("x")
        assert len(server.requests) == 3
    assert essence(found) == ("accept", 2, ())


# --- everything at once ---------------------------------------------------------------


async def test_at_20_percent_failures_every_call_ends_with_a_true_record() -> None:
    script = failing(cycle(["Paris"]), rate=0.2, seed=3)
    async with asyncio.timeout(300):
        with ChatServer(script) as server:
            async with async_client(server) as client:
                guard = AsyncOpenAIGuard(
                    client, model="m", n=3, threshold=0.4, max_concurrency=20
                )
                calls = [guard.assess(f"question {index}") for index in range(100)]
                found = await asyncio.gather(*calls, return_exceptions=True)
            billed, asked = server.billed, len(server.requests)
    answered = [each for each in found if isinstance(each, Assessment)]
    failed = [each for each in found if isinstance(each, openai.InternalServerError)]
    assert len(answered) + len(failed) == 100
    assert 0 < len(failed) < 40  # an answer without retries fails one time in five
    assert all(each.decision is not None for each in answered)
    # The calls that failed took their samples with them, perhaps.
    assert sum(each.cost.attempts for each in answered) <= asked
    assert sum(each.cost.calls for each in answered) <= billed.requests
    spent = sum(each.cost.completion_tokens for each in answered)
    assert spent <= billed.completion_tokens
    assert max(each.cost.attempts for each in answered) <= 1 + 4
