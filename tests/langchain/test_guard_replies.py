"""Replies that are too few, too short, without log-probabilities or broken off."""

from __future__ import annotations

from typing import Any

import pytest

from snne_guard import (
    SNNEGuard,
)
from tests.support.chat_server import (
    ChatServer,
    Reply,
    Request,
    always,
    chat_openai,
    cycle,
    error,
    ignoring_n,
    in_turn,
    rejecting,
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

PARIS = ["Paris"]


@pytest.mark.parametrize("way", WHOLE)
def test_n_is_rejected_and_smaller_requests_are_learnt(way: str) -> None:
    with ChatServer(split("Paris", rejecting_n(cycle(PARIS), max_n=2))) as server:
        guard = SNNEGuard(chat_openai(server), n=5)
        assert record(ask(guard, "x", way))["n_used"] == 5
        assert sorted(r.n for r in samples_of(server)) == [2, 2, 4]
        assert record(guard.invoke("y"))["n_used"] == 5
        assert sorted(r.n for r in samples_of(server)) == [2, 2, 2, 2, 4]


@pytest.mark.parametrize("way", WHOLE)
def test_n_is_ignored_and_only_what_is_missing_is_asked_for(way: str) -> None:
    with ChatServer(split("Paris", ignoring_n(PARIS))) as server:
        guard = SNNEGuard(chat_openai(server), n=5)
        assert record(ask(guard, "x", way))["n_used"] == 5
        assert sorted(r.n for r in samples_of(server)) == [1, 1, 1, 4]
        assert server.billed.completion_tokens == 5


@pytest.mark.parametrize("way", WHOLE)
def test_fewer_choices_are_topped_up_by_what_is_missing(way: str) -> None:
    replies = [Reply(texts=["a", "b", "c"], choices=3), Reply(texts=["d"])]
    with ChatServer(split("Paris", in_turn(replies))) as server:
        witness = Witness()
        guard = SNNEGuard(chat_openai(server), n=5, observers=[witness])
        ask(guard, "x", way)
        assert [r.n for r in samples_of(server)] == [4, 1]
    assert [sample.text for sample in witness.last.samples] == ["a", "b", "c", "d"]
    assert witness.last.cost.calls == 3


@pytest.mark.parametrize("way", WHOLE)
@pytest.mark.parametrize(
    ("texts", "options", "reason", "n_used"),
    [
        (["", "Paris"], {}, "empty_samples", 3),
        (["<think>hm", "Paris"], {}, "reasoning_only_samples", 3),
        (["Paris"], {"finish_reasons": ["length", "stop"]}, "truncated_samples", 3),
        (["Paris"], {"refusals": ["no", None]}, "refused_samples", 3),
        (
            ["Paris"],
            {"finish_reasons": ["content_filter", "stop"]},
            "refused_samples",
            3,
        ),
    ],
)
def test_samples_that_say_nothing_leave_the_set_by_name(
    way: str, texts: list[str], options: Any, reason: str, n_used: int
) -> None:
    reply = Reply(texts=texts, **options)
    with ChatServer(split("Paris", lambda _request: reply)) as server:
        found = record(ask(SNNEGuard(chat_openai(server), threshold=0.4), "x", way))
    assert found["n_used"] == n_used
    assert reason in found["reasons"]
    assert found["uncertainty"] == 0.0


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Reply(texts=["  "]), "answer_empty"),
        (Reply(texts=["<think>hm"]), "answer_reasoning_only"),
        (Reply(texts=["no"], finish_reasons=["content_filter"]), "answer_refused"),
    ],
)
def test_an_answer_that_says_nothing_is_never_confidence(
    answer: Reply, reason: str
) -> None:
    with ChatServer(split(lambda _request: answer, [""])) as server:
        guard = SNNEGuard(chat_openai(server), threshold=0.4, on_uncertain="refuse")
        found = record(guard.invoke("x"))
    assert (found["decision"], found["uncertainty"]) == ("refuse", None)
    assert reason in found["reasons"]


def test_a_cut_off_answer_is_compared_and_named() -> None:
    cut = Reply(texts=["Paris"], finish_reasons=["length"])
    with ChatServer(split(lambda _request: cut, PARIS)) as server:
        found = record(SNNEGuard(chat_openai(server), threshold=0.4).invoke("x"))
    assert (found["decision"], found["n_used"]) == ("accept", 5)
    assert found["reasons"] == ["answer_truncated"]


@pytest.mark.parametrize("way", WHOLE)
def test_log_probabilities_missing_for_one_of_five_are_named(way: str) -> None:
    reply = Reply(texts=PARIS, logprobs=[[-0.1], None, [-0.2], [-0.3]])
    with ChatServer(split("Paris", lambda _request: reply)) as server:
        found = record(ask(SNNEGuard(chat_openai(server), threshold=0.4), "x", way))
    assert (found["method"], found["reasons"]) == ("snne", ["logprobs_missing"])


@pytest.mark.parametrize("way", WHOLE)
def test_log_probabilities_of_other_tokens_are_not_used_and_named(way: str) -> None:
    cut_short = [["Paris"], ["Paris"], ["Pa"], ["Paris"]]
    reply = Reply(texts=PARIS, tokens=cut_short, logprobs=[[-0.1]])
    with ChatServer(split("Paris", lambda _request: reply)) as server:
        found = record(ask(SNNEGuard(chat_openai(server), threshold=0.4), "x", way))
    assert found["method"] == "snne"
    assert found["reasons"] == ["logprobs_missing", "logprobs_misaligned"]


@pytest.mark.parametrize("way", WHOLE)
def test_a_provider_without_log_probabilities_settles_on_snne(way: str) -> None:
    with ChatServer(
        split(always("P", logprobs=None), cycle(["P"], logprobs=None))
    ) as server:
        guard = SNNEGuard(chat_openai(server), threshold=0.4)
        first = record(ask(guard, "x", way))
        server.script = split("P", ["P"])
        second = record(guard.invoke("x"))
        assert not server.requests[-1].logprobs
    assert [first["method"], second["method"]] == ["snne", "snne"]
    assert [first["reasons"], second["reasons"]] == [[], []]


@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream"])
def test_a_provider_that_rejects_log_probabilities_is_asked_without(way: str) -> None:
    with ChatServer(rejecting("logprobs", cycle(PARIS))) as server:
        guard = SNNEGuard(chat_openai(server), threshold=0.4)
        found = record(ask(guard, "x", way))
        sent = len(server.requests)
        record(guard.invoke("y"))
        assert len(server.requests) == sent + 2
    assert (found["method"], found["decision"]) == ("snne", "accept")


@pytest.mark.parametrize("way", WHOLE)
def test_429_waits_as_told_and_loses_nothing(way: str) -> None:
    arrivals: list[float] = []
    replies = in_turn([error(429, "slow down", retry_after=1), Reply(texts=PARIS)])

    def script(request: Request) -> Reply:
        arrivals.append(request.arrived)
        return replies(request)

    with ChatServer(split("Paris", script)) as server:
        found = record(ask(SNNEGuard(chat_openai(server), threshold=0.4), "x", way))
    assert (found["decision"], found["n_used"], found["reasons"]) == ("accept", 5, [])
    assert (found["cost"]["attempts"], found["cost"]["calls"]) == (3, 2)
    assert arrivals[1] - arrivals[0] >= 1.0


@pytest.mark.parametrize("way", WHOLE)
def test_only_one_layer_retries_and_only_so_often(way: str) -> None:
    with ChatServer(split("Paris", always("", status=500))) as server:
        model = chat_openai(server, max_retries=3).with_retry(stop_after_attempt=3)
        guard = SNNEGuard(model, threshold=0.4, max_attempts=2)
        found = record(ask(guard, "x", way))
        assert len(samples_of(server)) == 2
    assert found["reasons"] == ["samples_failed", "too_few_samples"]


@pytest.mark.parametrize("way", WHOLE)
@pytest.mark.parametrize("fault", ["drop", "malformed"])
def test_a_broken_body_is_a_failed_sample(way: str, fault: str) -> None:
    broken: dict[str, Any] = {fault: True}
    replies = [Reply(texts=PARIS, **broken), *[Reply(texts=PARIS)] * 3]
    with ChatServer(split("Paris", rejecting_n(in_turn(replies)))) as server:
        guard = SNNEGuard(chat_openai(server), threshold=0.4, max_attempts=1)
        found = record(ask(guard, "x", way))
    assert (found["n_used"], found["reasons"]) == (4, ["samples_failed"])
