"""What is asked of the API: the user's own request, and samples beside it."""

from __future__ import annotations

from typing import Any

import openai
import pytest

from tests.openai.guarded import PATHS, guarded
from tests.support.openai_clients import WAYS
from tests.support.openai_server import CHAT, RESPONSES, always, rejecting


@pytest.mark.parametrize("way", WAYS)
def test_the_answer_is_the_user_s_request_and_samples_are_hot_and_unstored(
    way: str,
) -> None:
    body: dict[str, Any] = {"temperature": 0, "seed": 3, "store": True}
    headers = {"Idempotency-Key": "1", "X-Mine": "2"}
    with guarded(always("Paris"), way, n=4) as (server, call):
        answer = call(**body, extra_headers=headers)
        (asked,), (sample,) = server.answers, server.samples
    assert asked.body == {**CHAT, **body, "logprobs": True}
    hot = {"temperature": 1.0, "n": 3, "logprobs": True, "store": False}
    assert sample.body == {**CHAT, **hot}
    assert asked.headers["idempotency-key"] == "1"
    assert "idempotency-key" not in sample.headers
    assert asked.headers["x-mine"] == sample.headers["x-mine"] == "2"
    assert answer.choices[0].logprobs is None  # the user has not asked for them


@pytest.mark.parametrize("way", WAYS)
def test_a_response_s_samples_come_one_by_one_and_are_not_stored(way: str) -> None:
    body = {"store": True, "include": ["reasoning.encrypted_content"]}
    with guarded(always("Paris"), way, n=3) as (server, call):
        answer = call(PATHS[1], **body)
        (asked,), samples = server.answers, server.samples
    included = ["reasoning.encrypted_content", "message.output_text.logprobs"]
    assert asked.body == {**RESPONSES, "store": True, "include": included}
    hot = {"store": False, "temperature": 1.0, "include": included}
    assert [sample.body for sample in samples] == [{**RESPONSES, **hot}] * 2
    assert answer.output[0].content[0].logprobs == []


@pytest.mark.parametrize("way", WAYS)
def test_log_probabilities_of_the_user_s_own_stay(way: str) -> None:
    body = {"logprobs": True, "top_logprobs": 2}
    with guarded(always("Paris"), way) as (server, call):
        (entry,) = call(**body).choices[0].logprobs.content
    assert entry.logprob == -0.1
    assert server.answers[0].body == {**CHAT, **body}


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
        server.requests.clear()
        record = call().snne_guard
        assert len(server.requests) == 5
        call(model="other")
        assert len(server.requests) > 10  # what another model takes is not known
    assert record["reasons"] == ["temperature_unset", "no_threshold"]
