"""The guarded ``openai`` client: the same calls, and answers that are assessed."""

from __future__ import annotations

import json
import traceback
from typing import Any

import openai
import pytest
from openai.types.chat import ChatCompletion

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
    always,
    error,
)
from tests.support.guarded_openai import APART, REQUEST, guarding
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
