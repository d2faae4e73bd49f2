"""A guarded client is one of the same class that passes on what it does not guard."""

from __future__ import annotations

import importlib
import inspect
import sys
from typing import Any

import openai
import pytest
from openai.types.responses import Response

from snne_guard import ConfigurationError, MissingExtraError, SNNEGuard
from snne_guard.openai import AsyncGuardedOpenAI, GuardedOpenAI, guard_client
from snne_guard.openai.client import ClientOptions
from tests.openai.guarded import PATHS, guarded, text_of
from tests.support.calibrations import calibration
from tests.support.openai_clients import WAYS
from tests.support.openai_server import (
    APART,
    CHAT,
    Answer,
    Asked,
    Server,
    always,
    split,
)

OWN = openai.OpenAI(api_key="x")


def test_a_guarded_client_is_of_the_same_class() -> None:
    class Mine(openai.AzureOpenAI):
        pass

    place: Any = {"azure_endpoint": "http://127.0.0.1:1", "api_version": "1"}
    azure = {**place, "api_key": "x"}
    for own in (openai.OpenAI(api_key="x"), Mine(**azure)):
        before = {**own.__dict__}
        client = guard_client(own)
        assert isinstance(client, GuardedOpenAI)
        assert isinstance(client, type(own))
        assert client.api_key == "x"
        assert isinstance(client.with_options(timeout=3), type(client))
        assert client.with_options(timeout=3).timeout == 3
        assert own.__dict__ == before
        own.close()
    tasks = guard_client(openai.AsyncAzureOpenAI(**azure))
    assert isinstance(tasks, AsyncGuardedOpenAI)
    assert isinstance(tasks, openai.AsyncAzureOpenAI)


def test_its_options_are_those_of_the_other_guard() -> None:
    taken = inspect.signature(SNNEGuard.__init__).parameters.keys()
    own = {"self", "model", "fields", "provider"}
    assert taken - own == ClientOptions.__annotations__.keys()


def test_azure_asks_the_deployment() -> None:
    with Server(always("Paris")) as server:
        options: Any = {"azure_endpoint": server.url, "api_version": "1"}
        with openai.AzureOpenAI(**options, api_key="x") as own:
            answer: Any = guard_client(own).chat.completions.create(**CHAT)
    assert answer.snne_guard["n_used"] == 5
    places = {asked.path.partition("?")[0] for asked in server.requests}
    assert places == {"/v1/openai/deployments/test-model/chat/completions"}


@pytest.mark.parametrize("way", WAYS)
def test_copies_keep_the_guard_and_its_limits(way: str) -> None:
    with guarded(always("Paris"), way, n=3) as (server, call):
        for copy in (call.client.copy(), call.client.with_options(timeout=9)):
            answer = call(on=copy, extra_headers={"x-mine": "1"})
            assert answer.snne_guard["n_used"] == 3
        assert not hasattr(call(on=call.own), "snne_guard")
    assert {asked.headers.get("x-mine") for asked in server.requests} == {"1", None}


@pytest.mark.parametrize("way", WAYS)
def test_everything_else_passes_through(way: str) -> None:
    def script(_: Asked) -> Answer:
        item = {"embedding": [0.5], "index": 0, "object": "embedding"}
        return Answer(body={"object": "list", "model": "m", "data": [item]})

    with guarded(script, way, threshold=0.4) as (server, call):
        create = call.client.embeddings.create
        found = call.wait(create(model="m", input="x", encoding_format="float"))
    assert found.data[0].embedding == [0.5]
    assert len(server.requests) == 1


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("path", "request_", "message"),
    [
        (PATHS[0], {"n": 2}, "n above 1"),
        (PATHS[1], {"extra_body": {"n": 2}}, "n above 1"),
        (PATHS[1], {"background": True}, "background=True"),
        ("chat.completions.with_raw_response.create", {}, "with_raw_response"),
        ("responses.with_raw_response.create", {"stream": True}, "with_raw_response"),
    ],
)
def test_what_cannot_be_guarded_is_refused(
    path: str, request_: dict[str, Any], message: str, way: str
) -> None:
    with guarded(always("Paris"), way) as (server, call):
        with pytest.raises(ConfigurationError, match=message):
            call(path, **request_)
        assert server.requests == []


def test_a_reply_of_a_class_of_one_s_own_is_refused() -> None:
    with guarded(always("Paris"), "threads") as (_, call):
        for path in ("/chat/completions", f"{call.own.base_url}responses"):
            with pytest.raises(ConfigurationError, match="class of your own"):
                call.client.post(path, body=CHAT, cast_to=object)
        with pytest.raises(ConfigurationError, match="body that is not a dict"):
            call.client.post("/responses", body=[1], cast_to=Response)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fallback": 3}, "expected fallback to be"),
        ({"refusal_as": "both"}, "expected refusal_as to be one of 'content'"),
        ({"calibration": calibration(), "n": 6}, "n=5, here n=6"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises((ConfigurationError, TypeError), match=message):
        guard_client(OWN, **options)


@pytest.mark.parametrize(
    ("client", "message"),
    [(object(), "got object"), (guard_client(OWN), "guarded already")],
)
def test_what_is_no_client_or_guarded_already_is_refused(
    client: Any, message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        guard_client(client)


def test_without_the_openai_package_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    for module in ("snne_guard.openai", "snne_guard.openai.client"):
        monkeypatch.delitem(sys.modules, module)
    with pytest.raises(MissingExtraError, match=r"snne-guard\[openai\]"):
        importlib.import_module("snne_guard.openai")


def test_a_disabled_guard_is_the_bare_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SNNE_GUARD_DISABLED", "1")
    for way in WAYS:
        options: Any = {"threshold": 0.4, "on_uncertain": "refuse"}
        with guarded(split("Paris", *APART), way, **options) as (server, call):
            answer = call()
            assert text_of(answer) == "Paris"
            assert "disabled" in answer.snne_guard["reasons"]
            parts, _stream = call.stream()
            assert "disabled" in parts[-1].snne_guard["reasons"]
            assert len(server.requests) == 2
