"""What requests to a guarded ``openai`` client may ask for, and what of it is kept."""

from __future__ import annotations

import json
from typing import Any

import openai
import pytest
from openai.types import CreateEmbeddingResponse
from openai.types.chat import ChatCompletion
from pydantic import BaseModel

from snne_guard import (
    ConfigurationError,
)
from snne_guard_integrations.openai import assessment, guard_client
from tests.support.chat_server import (
    ChatServer,
    Reply,
    Request,
    ToolCall,
    always,
    cycle,
    error,
    rejecting,
)
from tests.support.guarded_openai import APART, CHAT, REQUEST, guarding
from tests.support.guarding import is_sample, split
from tests.support.openai_clients import BOTH, client

both = pytest.mark.parametrize("way", BOTH)
NO = "I am not certain enough of the answer to give one."


@both
def test_tools_that_are_called_pass_unscored_or_are_compared(way: str) -> None:
    def call(city: str) -> Reply:
        return Reply(tool_calls=[[ToolCall(name="w", arguments={"city": city})]])

    def script(request: Request) -> Reply:
        return call("Rome" if is_sample(request) else "Paris")

    tools = [{"type": "function", "function": {"name": "w", "parameters": {}}}]
    for policy, decision in (("skip", "unscored"), ("score", "refuse")):
        with (
            ChatServer(script) as server,
            guarding(
                server, way, threshold=0.2, on_uncertain="refuse", tool_calls=policy
            ) as ask,
        ):
            found = ask(**REQUEST, tools=tools)
        assert assessment(found)["decision"] == decision
        assert bool(found.choices[0].message.tool_calls) is (policy == "skip")


@both
@pytest.mark.parametrize(
    ("options", "reason"),
    [({"n": 2}, "several_answers"), ({"web_search_options": {}}, "side_effects")],
)
def test_what_is_not_sampled_counts_as_uncertain(
    way: str, options: dict[str, Any], reason: str
) -> None:
    with ChatServer(always("Paris")) as server:
        with guarding(server, way, threshold=0.4) as ask:
            found = ask(**REQUEST, **options)
            assert len(found.choices) == options.get("n", 1)
            assert reason in assessment(found)["reasons"]
            assert len(server.requests) == 1
        with guarding(server, way, threshold=0.4, on_uncertain="refuse") as ask:
            assert [c.message.content for c in ask(**REQUEST, **options).choices] == [
                NO
            ]


@both
def test_options_of_the_call_reach_the_samples_but_for_what_is_its_own(
    way: str,
) -> None:
    with ChatServer(always("Paris")) as server, guarding(server, way) as ask:
        ask(
            **REQUEST,
            store=True,
            metadata={"a": "b"},
            seed=3,
            top_p=0.9,
            extra_headers={"X-Team": "a", "Idempotency-Key": "1"},
            extra_query={"v": "2"},
            extra_body={"top_k": 5},
            timeout=11,
        )
    (answer,) = (r for r in server.requests if not is_sample(r))
    (sample,) = (r for r in server.requests if is_sample(r))
    for request in (answer, sample):
        assert request.headers["x-team"] == "a"
        assert request.path.endswith("?v=2")
        assert (request.body["top_p"], request.body["top_k"]) == (0.9, 5)
        assert request.headers["x-stainless-read-timeout"] == "11"
    assert answer.headers["idempotency-key"] == "1"
    assert sample.headers.get("idempotency-key") != "1"
    assert (answer.body["store"], answer.body["seed"]) == (True, 3)
    assert sample.body["store"] is False
    assert "metadata" not in sample.body
    assert sample.body["seed"] != 3


class City(BaseModel):
    name: str


@both
def test_parse_gives_the_user_s_type_or_a_refusal(way: str) -> None:
    texts = [json.dumps({"name": name}) for name in APART]
    path = "chat.completions.parse"
    with ChatServer(split('{"name": "Paris"}', texts)) as server:
        with guarding(server, way, threshold=0.4, similarity="structured") as ask:
            found = ask(path, **REQUEST, response_format=City)
            assert found.choices[0].message.parsed == City(name="Paris")
            assert assessment(found)["decision"] == "flag"
        with guarding(server, way, threshold=0.2, on_uncertain="refuse") as ask:
            found = ask(path, **REQUEST, response_format=City)
            message = found.choices[0].message
            assert (message.parsed, message.content) == (None, None)
            assert message.refusal == NO
            found = ask(f"beta.{path}", **REQUEST, response_format=City)
            assert found.choices[0].message.refusal == NO
        formats = {r.body["response_format"]["type"] for r in server.requests}
        assert formats == {"json_schema"}
        with guarding(server, way, fallback=lambda _request: '{"name": "Bern"}') as ask:
            server.script = lambda _request: error(500)
            found = ask(path, **REQUEST, response_format=City)
            assert found.choices[0].message.parsed == City(name="Bern")


@both
def test_the_raw_response_is_given_where_nothing_can_be_withheld(way: str) -> None:
    path = "chat.completions.with_raw_response.create"
    with ChatServer(always("Paris", headers={"X-Request-Id": "req_1"})) as server:
        with guarding(server, way, threshold=0.4) as ask:
            raw = ask(path)
            assert assessment(ask(f"with_raw_response.{CHAT}").parse())
            assert raw.headers["x-request-id"] == "req_1"
            assert raw.parse().choices[0].message.content == "Paris"
            assert assessment(raw.parse())["decision"] == "accept"
            assert raw.parse().choices[0].logprobs is None
            assert ask()._request_id == "req_1"
            with pytest.raises(ConfigurationError, match="with_raw_response shows"):
                ask(path, **REQUEST, stream=True)
            server.script = lambda _request: error(500)
            with pytest.raises(openai.InternalServerError):
                ask(path)
        server.script = split("Rom", APART)
        with guarding(server, way, threshold=0.4, on_uncertain="refuse") as ask:
            with pytest.raises(ConfigurationError, match="with_raw_response shows"):
                ask(path)
            assert ask()._request_id is None
        before = len(server.requests)
        with client(server) as own:
            guarded = guard_client(own)
            streamed = guarded.chat.completions.with_streaming_response
            with (
                pytest.raises(ConfigurationError, match="with_streaming_response"),
                streamed.create(**REQUEST),
            ):
                pass
            with pytest.raises(ConfigurationError, match="a type of your own"):
                guarded.post("/chat/completions", cast_to=dict[str, Any], body=REQUEST)
            with pytest.raises(ConfigurationError, match="the body of a request"):
                guarded.post("/chat/completions", cast_to=ChatCompletion)
        assert len(server.requests) == before


@both
def test_what_is_not_guarded_passes_through(way: str) -> None:
    vector = {"object": "embedding", "index": 0, "embedding": [0.5]}
    body = {"object": "list", "model": "e", "usage": {}, "data": [vector]}
    with ChatServer([Reply(body=body)]) as server, guarding(server, way) as ask:
        server.paths = ("/embeddings",)
        found = ask("embeddings.create", model="e", input="x", encoding_format="float")
        assert isinstance(found, CreateEmbeddingResponse)
        assert not hasattr(found, "snne_guard")
    assert len(server.requests) == 1


@both
def test_other_options_make_another_guarded_client(way: str) -> None:
    with (
        ChatServer(always("Paris")) as server,
        guarding(server, way, threshold=0.4, max_concurrency=1) as ask,
    ):
        other = ask.client.with_options(timeout=7)
        assert type(other) is type(ask.client)
        assert assessment(ask(on=other))["decision"] == "accept"
        seen = {r.headers["x-stainless-read-timeout"] for r in server.requests}
        assert seen == {"7"}
        ours, theirs = ask.client._snne_guarding, other._snne_guarding
        assert ours.guard._core.assessor is theirs.guard._core.assessor
        assert isinstance(other.copy(max_retries=3), type(ask.client))


@both
def test_the_switch_shows_that_nothing_was_guarded(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SNNE_GUARD_DISABLED", "1")
    with (
        ChatServer(cycle(APART)) as server,
        guarding(server, way, threshold=0.4, on_uncertain="refuse") as ask,
    ):
        found = ask()
        assert found.choices[0].message.content == "Rome"
        assert assessment(found)["reasons"] == ["disabled"]
        assert len(server.requests) == 1


@both
def test_a_server_without_log_probabilities_is_asked_once_more(way: str) -> None:
    with (
        ChatServer(rejecting("logprobs", always("Paris"))) as server,
        guarding(server, way, threshold=0.4) as ask,
    ):
        found = ask()
    assert assessment(found)["method"] == "snne"
    assert found.choices[0].message.content == "Paris"
