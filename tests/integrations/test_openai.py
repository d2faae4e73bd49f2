"""The guarded ``openai`` client: the same calls, and answers that are assessed."""

from __future__ import annotations

import json
import traceback
from typing import Any

import openai
import pytest
from openai.types import CreateEmbeddingResponse
from openai.types.chat import ChatCompletion
from pydantic import BaseModel

from snne_guard import (
    Assessment,
    ConfigurationError,
    InputError,
    MissingExtraError,
    UncertainAnswerError,
)
from snne_guard_integrations._openai.requests import api_of
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
from tests.support.guarding import Witness, is_sample, split
from tests.support.handlers import find_text
from tests.support.openai_clients import BOTH, client

both = pytest.mark.parametrize("way", BOTH)
NO = "I am not certain enough of the answer to give one."
JSON = {"type": "json_object"}


# --- what comes back ------------------------------------------------------------------


@both
def test_the_answer_is_the_client_s_own_with_the_assessment_on_it(way: str) -> None:
    with (
        ChatServer(split("It is Paris", APART)) as server,
        guarding(server, way, threshold=0.4) as ask,
    ):
        plain = ask(on=ask.own)
        found = ask()
    assert type(found) is type(plain) is ChatCompletion
    assert found.choices == plain.choices
    assert found.usage == plain.usage
    record = assessment(found)
    assert (record["decision"], record["uncertainty"]) == ("flag", 1.0)
    assert record["cost"]["calls"] == server.billed.requests - 1
    assert found.model_dump()["snne_guard"] == record
    assert json.loads(found.to_json())["snne_guard"] == record
    # What is sent back in the next turn carries nothing that the API would refuse.
    assert "snne_guard" not in found.choices[0].message.to_dict()


@both
def test_log_probabilities_stay_only_where_they_were_asked_for(way: str) -> None:
    with (
        ChatServer(always("Paris")) as server,
        guarding(server, way, threshold=0.4) as ask,
    ):
        without, asked = ask(), ask(**REQUEST, logprobs=True)
    assert without.choices[0].logprobs is None
    assert [entry.token for entry in asked.choices[0].logprobs.content] == ["Paris"]
    assert assessment(without)["method"] == assessment(asked)["method"] == "wsnne"


@both
def test_the_client_is_of_the_user_s_class_and_theirs_is_not_changed(way: str) -> None:
    with ChatServer(always("Paris")) as server, guarding(server, way) as ask:
        ask(on=ask.own)
        before = dict(vars(ask.own))
        assert isinstance(ask.client, type(ask.own))
        assert type(ask.client).__name__ == f"Guarded{type(ask.own).__name__}"
        ask()
        assert vars(ask.own) == before
        assert not hasattr(ask(on=ask.own), "snne_guard")
        # A resource that theirs has made already is made anew for the guarded one.
        guarded = guard_client(ask.own)
        assert hasattr(ask(on=guarded), "snne_guard")
        assert hasattr(ask(on=ask.client, **REQUEST), "snne_guard")
        with pytest.raises(ConfigurationError, match="guarded already"):
            guard_client(guarded)


def test_azure_keeps_its_ways() -> None:
    with ChatServer(always("Paris")) as server:
        server.paths = ("/chat/completions",)
        own = openai.AzureOpenAI(
            azure_endpoint=server.url, api_key="test", api_version="2026-01-01"
        )
        with own, guard_client(own, threshold=0.4) as guarded:
            assert isinstance(guarded, openai.AzureOpenAI)
            found = guarded.chat.completions.create(**REQUEST)
            assert assessment(found)["decision"] == "accept"
    assert all("deployments/test-model" in r.path for r in server.requests)
    assert all("api-version=2026-01-01" in r.path for r in server.requests)


# --- what is done with an uncertain answer --------------------------------------------


@both
@pytest.mark.parametrize("policy", ["refuse", lambda _assessment: "refuse"])
def test_a_refusal_holds_nothing_of_the_answer(way: str, policy: Any) -> None:
    with (
        ChatServer(split("It is Paris", APART)) as server,
        guarding(server, way, threshold=0.4, on_uncertain=policy) as ask,
    ):
        found = ask(**REQUEST, logprobs=True)
    choice = found.choices[0]
    assert {type(found)} == {ChatCompletion}
    assert (choice.message.content, choice.message.refusal) == (NO, NO)
    assert (choice.finish_reason, choice.logprobs) == ("stop", None)
    assert found.model == "test-model"
    assert found.usage.completion_tokens == 3
    assert assessment(found)["decision"] == "refuse"
    assert "Paris" not in found.to_json()


@both
def test_a_refusal_says_what_it_is_told_to(way: str) -> None:
    with (
        ChatServer(split("Paris", APART)) as server,
        guarding(
            server, way, threshold=0.4, on_uncertain="refuse", refusal="Ask Anna."
        ) as ask,
    ):
        assert ask().choices[0].message.content == "Ask Anna."
        found = ask(**REQUEST, response_format=JSON)
    # What is to be parsed as JSON is none, as OpenAI does it.
    message = found.choices[0].message
    assert (message.content, message.refusal) == (None, "Ask Anna.")


@both
def test_an_error_in_its_place_holds_no_text_either(way: str) -> None:
    with (
        ChatServer(split("It is Paris", APART)) as server,
        guarding(server, way, threshold=0.4, on_uncertain="raise") as ask,
        pytest.raises(UncertainAnswerError) as caught,
    ):
        ask()
    assert find_text("It is Paris", caught.value) == []
    for frame, _ in traceback.walk_tb(caught.tb):
        if "snne_guard" in frame.f_code.co_filename:
            assert "It is Paris" not in repr(frame.f_locals)


@both
@pytest.mark.parametrize("failing", [False, True])
def test_another_model_answers_instead(way: str, *, failing: bool) -> None:
    witness = Witness()

    def script(request: Request) -> Reply:
        if request.body["model"] == "careful":
            return Reply(texts=("Paris, France",))
        if failing and not is_sample(request):
            return error(500)
        return split("Rom", APART)(request)

    with (
        ChatServer(script) as server,
        guarding(
            server,
            way,
            threshold=0.4,
            on_uncertain="fallback",
            fallback="careful",
            observers=[witness],
        ) as ask,
    ):
        found = ask(**REQUEST, max_tokens=9)
    assert found.choices[0].message.content == "Paris, France"
    assert found.model == "careful"
    assert assessment(found)["decision"] == "fallback"
    assert assessment(found)["id"] == witness.last.id
    assert len(witness.assessments) == 1
    assert server.requests[-1].body["max_tokens"] == 9


@both
@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_function_answers_instead(way: str, *, asynchronous: bool) -> None:
    seen: list[dict[str, Any]] = []

    def fallback(request: dict[str, Any]) -> str:
        seen.append(request)
        return "Look it up."

    async def later(request: dict[str, Any]) -> str:
        return fallback(request)

    settings: dict[str, Any] = {"fallback": later if asynchronous else fallback}
    with (
        ChatServer(split("Rom", APART)) as server,
        guarding(
            server, way, threshold=0.4, on_uncertain=lambda _a: "fallback", **settings
        ) as ask,
    ):
        if asynchronous and way == "threads":
            with pytest.raises(ConfigurationError, match="async fallback needs"):
                ask()
            return
        found = ask(**REQUEST, timeout=9, extra_headers={"X-Team": "a"})
    assert found.choices[0].message.content == "Look it up."
    assert found.model == "test-model"
    assert assessment(found)["decision"] == "fallback"
    headers = {"extra_headers": {"X-Team": "a"}}
    assert seen == [{**REQUEST, "timeout": 9, **headers}]


@both
def test_another_client_answers_instead(way: str) -> None:
    with (
        ChatServer(split("Rom", APART)) as server,
        ChatServer(always("Paris")) as elsewhere,
        client(elsewhere) as other,
    ):

        def fallback(request: dict[str, Any]) -> ChatCompletion:
            found: ChatCompletion = other.chat.completions.create(**request)
            return found

        with guarding(
            server, way, threshold=0.4, on_uncertain="fallback", fallback=fallback
        ) as ask:
            found = ask()
    assert found.choices[0].message.content == "Paris"
    assert assessment(found)["decision"] == "fallback"


@both
def test_a_fallback_that_there_is_not_is_an_error(way: str) -> None:
    with (
        ChatServer(split("Paris", APART)) as server,
        guarding(server, way, threshold=0.4, on_uncertain=lambda _a: "fallback") as ask,
        pytest.raises(ConfigurationError, match="the client has no fallback"),
    ):
        ask()


@both
def test_the_answer_s_own_failure_comes_through(way: str) -> None:
    witness = Witness()
    with (
        ChatServer([error(401)]) as server,
        guarding(server, way, observers=[witness]) as ask,
        pytest.raises(openai.AuthenticationError),
    ):
        ask()
    assert witness.last.reasons == ("answer_failed",)


# --- what the request may ask for -----------------------------------------------------


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


# --- bad input ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"fallback": ""}, "fallback must be the name of a model"),
        ({"fallback": 3}, "fallback must be the name of a model"),
        ({"on_uncertain": "fallback", "threshold": 0.4}, "needs a fallback"),
        ({"on_uncertain": "refuse"}, "needs a threshold"),
        ({"thresold": 0.4}, "has no option 'thresold'"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    settings: dict[str, Any], expected: str
) -> None:
    with (
        openai.OpenAI(api_key="x") as own,
        pytest.raises(ConfigurationError, match=expected),
    ):
        guard_client(own, **settings)


def test_what_is_no_client_is_refused() -> None:
    nothing: Any = object()
    with pytest.raises(ConfigurationError, match="got object"):
        guard_client(nothing)


def test_an_answer_of_another_client_has_no_assessment() -> None:
    with pytest.raises(InputError, match="no assessment on this Assessment"):
        assessment(Assessment(id="1", answer=None))


def test_a_package_that_is_too_old_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "snne_guard_integrations._extras.version", lambda _name: "1.99.9"
    )
    with (
        openai.OpenAI(api_key="x") as own,
        pytest.raises(MissingExtraError, match=r"openai 1\.109 or later \(found 1"),
    ):
        guard_client(own)


@pytest.mark.parametrize(
    ("path", "api"),
    [
        ("/chat/completions", "chat"),
        ("chat/completions?a=b", "chat"),
        ("https://elsewhere.example/v1/chat/completions", "chat"),
        ("/responses", "responses"),
        ("/responses?beta=true", "responses"),
        ("/responses/compact", None),
        ("https://elsewhere.example/v1/embeddings", None),
    ],
)
def test_an_answer_is_guarded_however_its_path_is_written(
    path: str, api: str | None
) -> None:
    assert api_of(path) == api
