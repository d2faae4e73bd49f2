"""Providers that reject a setting: what is asked for then, and what is counted."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel

from snne_guard import SNNEGuard
from snne_guard.sampling.retry import rejects
from tests.support.chat_server import (
    ChatServer,
    always,
    chat_openai,
    error,
    rejecting,
)
from tests.support.guarding import (
    WAYS,
    WHOLE,
    ask,
    record,
    samples_of,
    split,
)


@pytest.mark.parametrize("way", WAYS)
def test_a_provider_that_rejects_a_temperature_is_asked_without(way: str) -> None:
    with ChatServer(rejecting("temperature", always("Paris"))) as server:
        guard = SNNEGuard(chat_openai(server), threshold=0.4, schedule="answer_first")
        found = record(ask(guard, "x", way))
        first = len(server.requests)
        again = record(guard.invoke("y"))
        assert len(server.requests) == first + 2
    for each in (found, again):
        assert (each["decision"], each["n_used"]) == ("accept", 5)
        assert each["reasons"] == ["temperature_unset"]


@pytest.mark.parametrize("way", WHOLE)
def test_a_rejection_that_is_not_for_n_sets_off_no_storm(way: str) -> None:
    bad = error(400, "context length exceeded")
    with ChatServer(split("Paris", lambda _request: bad)) as server:
        found = record(ask(SNNEGuard(chat_openai(server), n=10), "x", way))
        assert len(samples_of(server)) == 3  # all, one, one without log-probabilities
        assert found["cost"]["attempts"] == len(server.requests)
    assert "samples_failed" in found["reasons"]


@pytest.mark.parametrize("way", WHOLE)
def test_a_rejection_for_something_else_by_name_sends_no_probe(way: str) -> None:
    bad = error(400, "Too long.\n\nShorten it, or ask less often.", param="messages")
    with ChatServer(split("Paris", lambda _request: bad)) as server:
        found = record(ask(SNNEGuard(chat_openai(server), n=10), "x", way))
        assert len(samples_of(server)) == 1
        assert found["cost"]["attempts"] == len(server.requests) == 2
    assert "samples_failed" in found["reasons"]


@pytest.mark.parametrize("way", WHOLE)
@pytest.mark.parametrize("refused", ["logprobs", "temperature", "n"])
def test_requests_that_were_rejected_and_repeated_are_counted(
    way: str, refused: str
) -> None:
    with ChatServer(always("Paris")) as server:
        server.script = split("Paris", rejecting(refused, always("Paris")))
        if refused == "temperature":  # without it samples look like answers
            server.script = rejecting(refused, always("Paris"))
        found = record(ask(SNNEGuard(chat_openai(server)), "x", way))
        assert found["cost"]["attempts"] == len(server.requests)
    assert found["n_used"] == 5


@pytest.mark.parametrize("way", WHOLE)
def test_a_temperature_that_none_takes_is_told_once(way: str) -> None:
    with ChatServer(rejecting("temperature", always("Paris"))) as server:
        other = FakeListChatModel(responses=["Paris"])
        guard = SNNEGuard(chat_openai(server).with_fallbacks([other]))
        reasons = record(ask(guard, "x", way))["reasons"]
    assert reasons.count("temperature_unset") == 1


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (TypeError("got an unexpected keyword argument 'n'"), True),
        (TypeError("got an unexpected keyword argument 'name'"), None),
        (NotImplementedError(), None),
        (ValueError("n"), False),
        (ConnectionResetError("n"), False),
    ],
)
def test_a_rejection_names_its_parameter_or_not(raised: Exception, told: Any) -> None:
    assert rejects(raised, "n") is told


def test_a_rejection_by_a_parameter_of_its_own_or_of_a_missing_model() -> None:
    class StatusError(Exception):
        def __init__(self, status: int, param: str | None) -> None:
            super().__init__("no")
            self.status_code, self.param = status, param

    assert rejects(StatusError(400, "n"), "n") is True
    assert rejects(StatusError(422, None), "n") is None
    assert rejects(StatusError(404, "n"), "n") is False
    assert rejects(StatusError(400, "messages"), "n") is False
    assert rejects(StatusError(400, "body.n"), "n") is True
    assert rejects(StatusError(400, ""), "n") is None


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("n must be 1", True),
        ("max n is 4", True),
        ("The Number of Completions is limited", True),
        ("only one choice is supported", True),
        ("multiple candidates are not enabled", True),
        ("maximum context length exceeded", None),
        ("too long\n\nsee the manual", None),
        (repr({"message": "too long\n\nsee the manual"}), None),
        ("name: no", None),
    ],
)
def test_a_message_names_the_number_of_replies_or_not(message: str, told: Any) -> None:
    class BadRequestError(Exception):
        status_code = 400

    assert rejects(BadRequestError(message), "n") is told
    assert rejects(BadRequestError(message), "temperature") is None
