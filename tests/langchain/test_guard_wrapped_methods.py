"""Structured output and tools of a guard on a model in wrappers, which are kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import ConfigurableField

from snne_guard import ConfigurationError, GuardedChatModel, SNNEGuard
from tests.support.calibrated import calibration
from tests.support.chat_server import (
    ChatServer,
    Reply,
    Request,
    Script,
    always,
    chat_openai,
    error,
)
from tests.support.guarding import is_sample, run_in_loop, split
from tests.support.naming import City, giving, makers

Wrap = Callable[[Any], Any]
"""Puts a wrapper around a model."""

GUARDED = pytest.mark.parametrize("guarded", [False, True], ids=["guard", "chat_model"])
RETRY: dict[str, Any] = {"stop_after_attempt": 2, "wait_exponential_jitter": False}


def look(place: str) -> str:
    """Look up a place."""
    return place


def guard_on(model: Any, *, guarded: bool, **options: Any) -> Any:
    guard = SNNEGuard(model, n=2, **options)
    return GuardedChatModel(guard) if guarded else guard


def asked(server: ChatServer, *, since: int = 0) -> tuple[list[Request], list[Request]]:
    """Return the requests for the answer, and those for samples."""
    every = server.requests[since:]
    samples = [request for request in every if is_sample(request)]
    return [request for request in every if request not in samples], samples


def failing_once(script: Script) -> Script:
    """Answer nothing to the first request that is not for samples."""
    failed: list[Request] = []

    def answer(request: Request) -> Reply:
        if failed:
            return script(request)
        failed.append(request)
        return error(500, "later")

    return split(answer, script)


@GUARDED
@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
@pytest.mark.parametrize(
    "wrap",
    [
        lambda model: model.with_retry(**RETRY),
        lambda model: model.bind(seed=7).with_retry(**RETRY),
        lambda model: model.with_retry(**RETRY).with_config(tags=["mine"]),
        lambda model: model.with_retry(**RETRY).with_fallbacks([model.bind(seed=9)]),
    ],
    ids=["retry", "bound", "configured", "each"],
)
def test_structured_output_of_a_retried_model_is_tried_again(
    wrap: Wrap, method: str, guarded: bool
) -> None:
    with ChatServer(failing_once(giving("Paris"))) as server:
        guard = guard_on(wrap(chat_openai(server)), guarded=guarded)
        chain = guard.with_structured_output(City, method=method)
        assert chain.invoke("Capital?") == City(name="Paris")
        answers, samples = asked(server)
    assert (len(answers), len(samples)) == (2, 1)
    form = "response_format" if method == "json_schema" else "tools"
    assert all(form in request.body for request in (*answers, *samples))


@GUARDED
@pytest.mark.parametrize(
    "wrap",
    [
        lambda model: model.bind(seed=7, top_p=0.5),
        lambda model: model.bind(seed=3).bind(seed=7, top_p=0.5),
        lambda model: model.bind(seed=3).with_retry().bind(seed=7, top_p=0.5),
        lambda model: model.bind(top_p=0.5).with_config(tags=["mine"]).bind(seed=7),
        lambda model: model.with_fallbacks([model]).bind(seed=7, top_p=0.5),
        lambda model: model.bind_tools([look]).bind(seed=7, top_p=0.5),
    ],
    ids=["bind", "over", "retry", "config", "fallbacks", "tools"],
)
def test_what_is_bound_is_sent_in_the_new_form(wrap: Wrap, guarded: bool) -> None:
    def script(request: Request) -> Reply:
        calls = request.body["tools"][0]["function"]["name"] == "City"
        return giving("Paris")(request) if calls else always("Paris")(request)

    takes: tuple[Wrap, ...] = (
        lambda guard: guard.with_structured_output(City, method="function_calling"),
        lambda guard: guard.bind_tools([City]),
    )
    for take in takes:
        with ChatServer(script) as server:
            guard = guard_on(wrap(chat_openai(server)), guarded=guarded)
            found = take(guard).invoke("?")
            answers, samples = asked(server)
        assert found == City(name="Paris") or found.tool_calls[0]["name"] == "City"
        assert [(each.body["seed"], each.body["top_p"]) for each in answers] == [
            (7, 0.5)
        ]
        assert {each.body["seed"] for each in samples} <= {8}
        assert all(len(each.body["tools"]) == 1 for each in (*answers, *samples))


@GUARDED
def test_tools_of_a_retried_model_are_bound_and_it_is_tried_again(
    guarded: bool,
) -> None:
    with ChatServer(failing_once(always("Paris"))) as server:
        model = chat_openai(server).with_retry(**RETRY)
        bound = guard_on(model, guarded=guarded).bind_tools([look])
        assert bound.invoke("Capital?").content == "Paris"
        answers, samples = asked(server)
    assert (len(answers), len(samples)) == (2, 1)
    assert all("tools" in request.body for request in (*answers, *samples))


@GUARDED
@pytest.mark.parametrize(
    "wrap",
    [
        lambda model: model.with_retry(stop_after_attempt=1),
        lambda model: model.bind(seed=7).with_config(tags=["mine"]),
        lambda model: model.with_retry(stop_after_attempt=1).with_fallbacks([model]),
        lambda model: model.with_fallbacks([model.with_retry(stop_after_attempt=1)]),
    ],
    ids=["retry", "bind", "retried", "second"],
)
def test_a_fallback_of_another_provider_answers_in_the_form_of_a_wrapped_model(
    wrap: Wrap, guarded: bool
) -> None:
    serve, chat = makers()["anthropic"]
    with ChatServer(always("", status=401)) as down, serve(giving("Paris")) as other:
        front, behind = wrap(chat_openai(down)), chat(other)
        guard = guard_on(front, guarded=guarded, fallback=behind)
        chain = guard.with_structured_output(City, include_raw=True)
        found = chain.invoke("Capital?")
    assert found["parsed"] == City(name="Paris")
    assert found["raw"].text == '{"name": "Paris"}'
    assert not found["raw"].tool_calls  # they are the other one's form


class Tags(BaseCallbackHandler):
    """A handler that keeps the tags of the runs of chat models."""

    def __init__(self) -> None:
        self.seen: list[list[str]] = []

    def on_chat_model_start(
        self, serialized: object, messages: object, *, tags: Any = None, **kwargs: Any
    ) -> None:
        del serialized, messages, kwargs
        self.seen.append(tags or [])


def test_the_configuration_around_a_model_is_kept() -> None:
    handler = Tags()
    with ChatServer(giving("Paris")) as server:
        model = chat_openai(server).with_config(tags=["mine"])
        chain = SNNEGuard(model, n=2).with_structured_output(City)
        assert chain.invoke("?", {"callbacks": [handler]}) == City(name="Paris")
    assert len(handler.seen) == 2
    assert all("mine" in tags for tags in handler.seen)


@GUARDED
@pytest.mark.parametrize(
    "wrap",
    [
        lambda model: model.with_fallbacks([model]).with_retry(),
        lambda model: model.with_fallbacks([model]).bind(seed=7).with_retry(),
        lambda model: model.with_fallbacks([model]).with_retry().bind(seed=7),
    ],
    ids=["plain", "inside", "outside"],
)
def test_a_retry_around_several_models_is_refused(wrap: Wrap, guarded: bool) -> None:
    with ChatServer(giving("Paris")) as server:
        guard = guard_on(wrap(chat_openai(server)), guarded=guarded)
        with pytest.raises(ConfigurationError, match=r"around each model: first\."):
            guard.with_structured_output(City)


@GUARDED
@pytest.mark.parametrize(
    "wrap",
    [
        lambda model: model,
        lambda model: model.bind(seed=7),
        lambda model: model.with_retry(**RETRY),
        lambda model: model.with_fallbacks([model]),
    ],
    ids=["plain", "bind", "retry", "fallbacks"],
)
def test_what_the_configuration_chooses_is_asked_for_structured_output(
    wrap: Wrap, guarded: bool
) -> None:
    with ChatServer(giving("Paris")) as server:
        model = chat_openai(server, temperature=0.2).configurable_fields(
            temperature=ConfigurableField(id="heat")
        )
        chain = guard_on(wrap(model), guarded=guarded).with_structured_output(City)
        for config, heat in (({"configurable": {"heat": 0.7}}, 0.7), (None, 0.2)):
            before = len(server.requests)
            assert chain.invoke("?", config) == City(name="Paris")
            assert run_in_loop(chain.ainvoke("?", config)) == City(name="Paris")
            answers, samples = asked(server, since=before)
            assert [each.temperature for each in answers] == [heat] * 2
            assert [each.temperature for each in samples] == [1.0] * 2


@GUARDED
def test_a_chosen_model_that_was_not_calibrated_is_told_in_the_call(
    guarded: bool,
) -> None:
    def told(name: str) -> Any:
        model = chat_openai(server).configurable_fields(
            model_name=ConfigurableField(id="which")
        )
        guard: Any = SNNEGuard.from_calibration(model, calibration())
        one: Any = GuardedChatModel(guard) if guarded else guard
        chain = one.with_structured_output(City, include_raw=True)
        raw = chain.invoke("?", {"configurable": {"which": name}})["raw"]
        return raw.response_metadata["snne_guard"]["reasons"]

    with ChatServer(giving("Paris")) as server:
        assert "uncalibrated_model" in told("other")
        assert "uncalibrated_model" not in told("test-model")
