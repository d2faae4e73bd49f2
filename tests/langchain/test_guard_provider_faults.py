"""What a provider may do wrong to the samples of a guarded call, one fault a test."""

from __future__ import annotations

from typing import Any

import openai
import pytest

from snne_guard import SNNEGuard
from tests.support.chat_server import (
    ChatServer,
    Reply,
    always,
    chat_openai,
    cycle,
    error,
    in_turn,
    rejecting_n,
)
from tests.support.guarding import (
    WHOLE,
    Witness,
    ask,
    record,
    samples_of,
    split,
)

PARIS = ["Paris", "Paris", "Paris", "Paris"]
TOO_LONG = error(
    400,
    "This model's maximum context length is 8192 tokens.",
    code="context_length_exceeded",
    param="messages",
)


@pytest.mark.parametrize("way", WHOLE)
@pytest.mark.parametrize("status", [408, 429, 500, 502, 503])
def test_a_burst_of_failures_is_waited_out(way: str, status: int) -> None:
    burst = [error(status), error(status), Reply(texts=PARIS)]
    with ChatServer(split("Paris", in_turn(burst))) as server:
        guard = SNNEGuard(chat_openai(server), threshold=0.4)
        found = record(ask(guard, "x", way))
        assert len(samples_of(server)) == 3
    assert (found["decision"], found["n_used"], found["reasons"]) == ("accept", 5, [])
    assert (found["cost"]["attempts"], found["cost"]["calls"]) == (4, 2)


@pytest.mark.parametrize("way", WHOLE)
def test_a_capped_n_is_asked_for_in_chunks_and_learnt(way: str) -> None:
    script = rejecting_n(cycle(["a", "b"]), max_n=3)
    with ChatServer(split("Paris", script)) as server:
        guard = SNNEGuard(chat_openai(server), n=8, min_samples=8)
        first = record(ask(guard, "x", way))
        assert first["n_used"] == 8
        assert first["cost"]["calls"] == 4  # 7 is too many; then 3, 3 and 1
        sizes = [request.n for request in samples_of(server)]
        assert (sizes[0], sorted(sizes[1:])) == (7, [1, 3, 3])
        before = len(samples_of(server))
        ask(guard, "x", way)
        assert sorted(r.n for r in samples_of(server)[before:]) == [1, 3, 3]


@pytest.mark.parametrize("way", WHOLE)
def test_choices_in_another_order_keep_their_own_log_probabilities(way: str) -> None:
    witness = Witness()
    reply = Reply(
        texts=["a", "b", "c", "d"],
        logprobs=[[-0.1], [-0.2], [-0.3], [-0.4]],
        order=[2, 0, 3, 1],
    )
    with ChatServer(split("a", lambda _request: reply)) as server:
        ask(SNNEGuard(chat_openai(server), observers=[witness]), "x", way)
    drawn = {s.text: s.token_logprobs for s in witness.last.samples}
    assert drawn == {"a": (-0.1,), "b": (-0.2,), "c": (-0.3,), "d": (-0.4,)}
    assert witness.last.method == "wsnne"


@pytest.mark.parametrize("way", WHOLE)
def test_the_same_answer_again_and_again_is_no_confidence(way: str) -> None:
    unlikely = Reply(texts=["one two three four"], logprobs=[[-9.0, -9.0, -9.0, -9.0]])
    with ChatServer(lambda _request: unlikely) as server:
        guard = SNNEGuard(chat_openai(server), threshold=0.4, on_uncertain="refuse")
        found = record(ask(guard, "x", way))
    assert found["decision"] == "refuse"
    assert "suspect_agreement" in found["reasons"]


@pytest.mark.parametrize("way", WHOLE)
def test_a_context_that_is_too_long_is_asked_for_no_more(way: str) -> None:
    with ChatServer(split("Paris", lambda _request: TOO_LONG)) as server:
        guard = SNNEGuard(chat_openai(server), threshold=0.4, on_uncertain="refuse")
        found = record(ask(guard, "x", way))
        assert len(samples_of(server)) == 1  # neither retried nor asked for less
    assert found["decision"] == "refuse"
    assert {"samples_failed", "too_few_samples"} <= set(found["reasons"])


@pytest.mark.parametrize("way", WHOLE)
def test_a_context_too_long_for_the_answer_is_the_providers_own_error(way: str) -> None:
    with ChatServer(lambda _request: TOO_LONG) as server:
        guard = SNNEGuard(chat_openai(server), threshold=0.4, on_uncertain="refuse")
        with pytest.raises(openai.BadRequestError, match="context length"):
            ask(guard, "x", way)


@pytest.mark.parametrize("way", WHOLE)
def test_a_content_filter_that_refuses_the_request_is_no_confidence(way: str) -> None:
    filtered = error(400, "content management policy", code="content_filter")
    with ChatServer(split("Paris", lambda _request: filtered)) as server:
        guard = SNNEGuard(chat_openai(server), threshold=0.4, on_uncertain="refuse")
        found = record(ask(guard, "x", way))
    assert found["decision"] == "refuse"
    assert "samples_failed" in found["reasons"]


@pytest.mark.parametrize("way", WHOLE)
def test_a_provider_that_dies_in_the_middle_leaves_what_had_come(way: str) -> None:
    replies: list[Any] = [Reply(texts=["Paris"]), Reply(texts=["Paris"])]
    dying = in_turn([*replies, Reply(drop=True)])
    script = split("Paris", rejecting_n(dying))
    with ChatServer(script) as server:
        guard = SNNEGuard(
            chat_openai(server), threshold=0.4, max_attempts=2, max_concurrency=1
        )
        found = record(ask(guard, "x", way))
    assert (found["decision"], found["n_used"]) == ("accept", 3)
    assert found["reasons"] == ["samples_failed"]
    assert found["cost"]["lower_bound"]


def test_an_answer_alone_is_no_set() -> None:
    with ChatServer(split(always("Paris"), lambda _request: error(401))) as server:
        found = record(SNNEGuard(chat_openai(server), threshold=0.4).invoke("x"))
    assert found["uncertainty"] is None
    assert "too_few_samples" in found["reasons"]
