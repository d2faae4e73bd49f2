"""What is asked of the API: the user's own request, and samples beside it."""

from __future__ import annotations

import math
from typing import Any

import openai
import pytest

from snne_guard.self_check import SelfCheck
from tests.openai.guarded import PATHS, guarded
from tests.support.openai_clients import WAYS
from tests.support.openai_server import (
    CHAT,
    RESPONSES,
    Answer,
    Asked,
    always,
    rejecting,
)


@pytest.mark.parametrize("way", WAYS)
def test_the_answer_is_the_user_s_request_and_samples_are_hot_and_unstored(
    way: str,
) -> None:
    body: dict[str, Any] = {"temperature": 0, "seed": 3, "store": True}
    headers = {"Idempotency-Key": "1", "X-Mine": "2"}
    with guarded(always("Paris"), way, n=4) as (server, call):
        answer = call(**body, extra_headers=headers)
        (asked,), (sample,) = server.answers, server.samples
        server.requests.clear()
        included = ["reasoning.encrypted_content"]
        response = call(PATHS[1], store=True, include=included)
        (asked_too,), samples = server.answers, server.samples
    assert asked.body == {**CHAT, **body, "logprobs": True}
    hot: dict[str, Any] = {"temperature": 1.0, "store": False}
    assert sample.body == {**CHAT, **hot, "n": 3, "logprobs": True}
    assert asked.headers["idempotency-key"] == "1"
    assert "idempotency-key" not in sample.headers
    assert asked.headers["x-mine"] == sample.headers["x-mine"] == "2"
    plain = {**RESPONSES, "include": [*included, "message.output_text.logprobs"]}
    assert asked_too.body == {**plain, "store": True}
    assert [each.body for each in samples] == [{**plain, **hot}] * 3
    # The user has not asked for log-probabilities.
    assert answer.choices[0].logprobs is None
    assert response.output[0].content[0].logprobs == []


@pytest.mark.parametrize("way", WAYS)
def test_log_probabilities_that_the_user_asked_for_are_delivered(way: str) -> None:
    with guarded(always("Paris"), way) as (_, call):
        chat = call(logprobs=True)
        response = call(PATHS[1], include=("message.output_text.logprobs",))
    assert chat.choices[0].logprobs.content
    assert response.output[0].content[0].logprobs


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("stream", [True, False])
def test_an_answer_never_fails_for_log_probabilities(
    path: str, way: str, *, named: bool, stream: bool
) -> None:
    script = rejecting("logprobs", always("Paris"), named=named)
    with guarded(script, way, n=2) as (_, call):
        answer = call(path, stream=stream)
        record = (call.parts(answer)[-1] if stream else answer).snne_guard
    assert (record["n_used"], record["method"]) == (2, "snne")
    assert "logprobs_missing" in record["reasons"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("error", [{"message": "no"}, {"param": "messages"}])
def test_a_request_that_fails_whatever_is_left_out_teaches_nothing(
    error: dict[str, str], way: str
) -> None:
    with guarded(always(status=400, body={"error": error}), way) as (server, call):
        with pytest.raises(openai.BadRequestError):
            call()
        server.script = always("Paris")
        assert call().snne_guard["method"] == "wsnne"


@pytest.mark.parametrize("way", WAYS)
def test_what_was_learnt_is_not_asked_again(way: str) -> None:
    script = always("Paris")
    for parameter in ("logprobs", "temperature", "n"):
        script = rejecting(parameter, script)
    with guarded(script, way) as (server, call):
        call()
        for _ in range(2):
            server.requests.clear()
            record = call().snne_guard
            assert len(server.requests) == 5
        call(model="other")
        assert len(server.requests) > 10  # what another model takes is not known
    said = ["temperature_unset", "logprobs_missing", "no_threshold"]
    assert record["reasons"] == said


# -- Self-checks and views -------------------------------------------------------------

PROMPT = SelfCheck().prompt
NUMBER = SelfCheck(form="number")


def turns(asked: Asked) -> list[Any]:
    given = asked.body.get("messages") or asked.body.get("input")
    messages = given if isinstance(given, list) else [{"content": given}]
    return [message["content"] for message in messages]


def checking(word: str) -> Any:
    """Return a script that says one thing to a self-check, Paris to the rest."""
    return lambda asked: Answer(texts=[word if turns(asked)[-1] == PROMPT else "Paris"])


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("path", PATHS)
def test_the_model_is_asked_about_its_own_answer(
    path: str, way: str, stream: bool
) -> None:
    options = {"n": 3, "threshold": 0.4, "self_check": True}
    with guarded(checking("No"), way, **options) as (server, call):
        answer = call(path, stream=stream)
        record = (call.parts(answer)[-1] if stream else answer).snne_guard
        (check,) = [asked for asked in server.requests if turns(asked)[-1] == PROMPT]
    assert turns(check)[1:] == ["Paris", PROMPT]
    assert check.logprobs
    assert check.body["top_logprobs"] == 5
    assert "temperature" not in check.body
    assert not check.body.get("stream")
    # The server gives No a log-probability of -0.1, and Yes the rest.
    assert record["self_check"] == pytest.approx(1 - math.exp(-0.1))
    assert (record["n_used"], record["disagreement"]) == (2, 0.0)


@pytest.mark.parametrize(("said", "p"), [("about 20", 0.2), ("Yes", 0.5)])
@pytest.mark.parametrize("path", PATHS)
def test_a_number_is_read_as_the_probability(path: str, said: str, p: float) -> None:
    def script(asked: Asked) -> Answer:
        asks = turns(asked)[-1] == NUMBER.prompt
        return Answer(texts=[said if asks else "Paris"])

    with guarded(script, "threads", n=3, self_check=NUMBER) as (_, call):
        record = call(path).snne_guard
    assert record["self_check"] == pytest.approx(p)
    assert ("self_check_unknown" in record["reasons"]) is (said == "Yes")


@pytest.mark.parametrize("path", PATHS)
def test_samples_are_drawn_in_their_views(path: str) -> None:
    views = ["plain", "examples"]
    with guarded(always("Paris"), "threads", n=3, views=views) as (server, call):
        call(path)
        plain, examples = sorted(map(turns, server.samples), key=len)
    assert plain == ["Capital of France?"]
    assert (len(examples), examples[-1:]) == (7, plain)
