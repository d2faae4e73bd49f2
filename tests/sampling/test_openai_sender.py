"""The draws of one call, sent by real clients to a scripted server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import openai
import pytest
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent

from snne_guard.errors import SamplingError
from snne_guard.sampling.openai import (
    ApiRequest,
    ChatApi,
    OpenAISender,
    ResponsesApi,
)
from snne_guard.sampling.replies import Draw, ProviderCapabilities, Reply
from tests.support.openai_clients import WAYS, clients, content
from tests.support.openai_server import (
    CHAT,
    RESPONSES,
    Answer,
    Server,
    always,
    rejecting,
)

ANSWER, SAMPLES = Draw(role="answer"), Draw(role="sample", n=3)


class Sending:
    """Sends draws of one request by a client of either kind."""

    def __init__(self, call: Any, api: str, **given: Any) -> None:
        body = {**(CHAT if api == "chat" else RESPONSES), **given.pop("body", {})}
        chat = api == "chat"
        stream_cls: Any = None
        if body.get("stream"):
            part: Any = ChatCompletionChunk if chat else ResponseStreamEvent
            tasks = isinstance(call.own, openai.AsyncOpenAI)
            kind: Any = openai.AsyncStream if tasks else openai.Stream
            stream_cls = kind[part]
        request = ApiRequest(
            api=ChatApi() if chat else ResponsesApi(),
            path="/chat/completions" if chat else "/responses",
            body=body,
            options={"headers": {"Idempotency-Key": "1", "X-Mine": "2"}},
            cast_to=ChatCompletion if chat else Response,
            stream_cls=stream_cls,
        )
        self.rejected: set[str] = set()
        options = {"temperature": 1.0, "logprobs": True, "rejected": self.rejected}
        self.sender = OpenAISender(call.client, request, **{**options, **given})
        self._call = call
        self._tasks = isinstance(call.own, openai.AsyncOpenAI)

    def __call__(self, draw: Draw) -> Reply:
        found: Reply = self._call.wait(
            self.sender.asend(draw) if self._tasks else self.sender.send(draw)
        )
        return found

    def stream(self) -> list[Any]:
        source: Any = self.sender.astream() if self._tasks else self.sender.stream()
        found: list[Any] = self._call.parts(source)
        return found


@contextmanager
def sending(server: Server, way: str, api: str = "chat", **given: Any) -> Iterator[Any]:
    client_options = given.pop("client_options", {})
    with clients(server, way, lambda client: client, **client_options) as call:
        yield Sending(call, api, **given)


@pytest.mark.parametrize("way", WAYS)
def test_the_answer_is_the_user_s_request_with_log_probabilities(way: str) -> None:
    with (
        Server(always("Paris")) as server,
        sending(server, way, body={"temperature": 0, "seed": 3}) as send,
    ):
        reply = send(ANSWER)
    (asked,) = server.requests
    assert asked.body == {**CHAT, "temperature": 0, "seed": 3, "logprobs": True}
    assert asked.headers["idempotency-key"] == "1"
    assert reply.first.token_logprobs == (-0.1,)
    assert reply.raw.choices[0].message.content == "Paris"
    assert reply.raw.choices[0].logprobs is None  # the user has not asked for them


@pytest.mark.parametrize("way", WAYS)
def test_log_probabilities_of_the_user_s_own_stay(way: str) -> None:
    body = {"logprobs": True, "top_logprobs": 2}
    with Server(always("Paris")) as server, sending(server, way, body=body) as send:
        (entry,) = send(ANSWER).raw.choices[0].logprobs.content
        assert entry.logprob == -0.1
        assert send(SAMPLES).first.token_logprobs == (-0.1,)
    assert server.requests[0].body == {**CHAT, **body}


@pytest.mark.parametrize("way", WAYS)
def test_samples_come_in_one_request(way: str) -> None:
    with (
        Server(always("Paris", "Rome", "Lyon")) as server,
        sending(server, way, body={"temperature": 0, "seed": 3, "store": True}) as send,
    ):
        reply = send(SAMPLES)
    (asked,) = server.requests
    expected = {"temperature": 1.0, "n": 3, "logprobs": True, "store": False}
    assert asked.body == {**CHAT, **expected}
    assert asked.headers["x-mine"] == "2"
    assert "idempotency-key" not in asked.headers
    assert [sample.text for sample in reply.samples] == ["Paris", "Rome", "Lyon"]
    assert (reply.cost.prompt_tokens, reply.cost.completion_tokens) == (5, 3)
    assert reply.temperature_set


@pytest.mark.parametrize("way", WAYS)
def test_a_response_s_samples_come_one_by_one_and_are_not_stored(way: str) -> None:
    body = {"store": True, "include": ["reasoning.encrypted_content"]}
    with (
        Server(always("Paris")) as server,
        sending(server, way, "responses", body=body) as send,
    ):
        answer, sample = send(ANSWER), send(Draw(role="sample"))
    first, second = server.requests
    included = ["reasoning.encrypted_content", "message.output_text.logprobs"]
    assert first.body == {**RESPONSES, "store": True, "include": included}
    unstored = {"store": False, "temperature": 1.0}
    assert second.body == {**RESPONSES, **unstored, "include": included}
    assert sample.first.token_logprobs == (-0.1,)
    assert answer.raw.output[0].content[0].logprobs == []


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("parameter", "named"),
    [
        ("logprobs", True),
        ("logprobs", False),
        ("n", True),
        ("temperature", True),
    ],
)
def test_what_a_server_rejects_is_left_out_and_remembered(
    parameter: str, way: str, *, named: bool
) -> None:
    script = rejecting(parameter, always("Paris"), named=named)
    with Server(script) as server, sending(server, way) as send:
        reply = send(SAMPLES)
        sent = len(server.requests)
        send(SAMPLES)
        assert len(server.requests) == sent + 1
        assert parameter not in server.requests[-1].body
    assert len(reply.samples) == (1 if parameter == "n" else 3)
    assert reply.cost.attempts == 1
    assert reply.temperature_set is (parameter != "temperature")
    assert parameter in send.rejected
    takes = ProviderCapabilities.of(ChatApi.parameters - send.rejected)
    assert not getattr(takes, parameter)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("api", ["chat", "responses"])
@pytest.mark.parametrize("stream", [True, False])
def test_an_answer_never_fails_for_log_probabilities(
    api: str, way: str, *, named: bool, stream: bool
) -> None:
    script = rejecting("logprobs", always("Paris"), named=named)
    body = {"stream": True} if stream else {}
    with Server(script) as server, sending(server, way, api, body=body) as send:
        if stream:
            assert content(send.stream()) == "Paris"
        else:
            assert send(ANSWER).first.text == "Paris"
    assert len(server.requests) == 2
    assert send.rejected == {"logprobs"}


@pytest.mark.parametrize("way", WAYS)
def test_a_rejection_for_something_else_is_raised_at_once(way: str) -> None:
    error = {"error": {"message": "too long", "param": "messages"}}
    with Server(always(status=400, body=error)) as server, sending(server, way) as send:
        with pytest.raises(openai.BadRequestError):
            send(ANSWER)
        with pytest.raises(openai.BadRequestError):
            send(SAMPLES)
    assert len(server.requests) == 2
    assert send.rejected == set()


@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_learnt_from_a_request_that_never_passes(way: str) -> None:
    error = {"error": {"message": "no"}}
    with (
        Server(always(status=400, body=error)) as server,
        sending(server, way) as send,
        pytest.raises(openai.BadRequestError),
    ):
        send(SAMPLES)
    assert len(server.requests) == 2  # the second without log-probabilities
    assert send.rejected == set()


@pytest.mark.parametrize("way", WAYS)
def test_an_ignored_n_brings_fewer_samples(way: str) -> None:
    with Server(always("Paris", choices=1)) as server, sending(server, way) as send:
        assert len(send(SAMPLES).samples) == 1


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("api", ["chat", "responses"])
def test_a_stream_is_passed_on_without_log_probabilities(api: str, way: str) -> None:
    with (
        Server(always("Paris it is")) as server,
        sending(server, way, api, body={"stream": True}) as send,
    ):
        parts = send.stream()
        reply = send.sender.streamed()
        sample = send(Draw(role="sample"))
    assert content(parts) == "Paris it is"
    assert not any("-0.1" in part.to_json() for part in parts)
    assert reply.first.token_logprobs == (-0.1, -0.1, -0.1)
    assert reply.first.finish_reason in {"stop", "completed"}
    assert reply.first.text == sample.first.text == "Paris it is"
    assert "stream" not in server.requests[1].body


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("retries", "sent"), [(0, 1), (2, 3)])
def test_only_the_client_s_own_retries_hold(way: str, retries: int, sent: int) -> None:
    headers = {"retry-after-ms": "1"}
    with (
        Server(always(status=503, headers=headers)) as server,
        sending(server, way, client_options={"max_retries": retries}) as send,
    ):
        for draw in (ANSWER, SAMPLES):
            server.requests.clear()
            with pytest.raises(openai.InternalServerError):
                send(draw)
            assert len(server.requests) == sent


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "answer",
    [
        Answer(body={"id": "x", "choices": []}),
        Answer(body={"error": {"code": "overloaded", "message": "sk-secret"}}),
    ],
)
def test_an_answer_without_a_reply_is_an_error(way: str, answer: Answer) -> None:
    with (
        Server(lambda _: answer) as server,
        sending(server, way) as send,
        pytest.raises(SamplingError, match=r"error in place|no reply") as caught,
    ):
        send(ANSWER)
    assert "sk-secret" not in str(caught.value)
