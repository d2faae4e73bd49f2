"""A fallback in wrappers behind structured output, and one that cannot be asked so."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel, FakeListChatModel
from langchain_core.runnables import (
    ConfigurableField,
    Runnable,
    RunnableLambda,
    RunnableParallel,
    RunnablePassthrough,
)

from snne_guard import SNNEGuard
from tests.support.chat_server import (
    ChatServer,
    Reply,
    Request,
    Script,
    always,
    chat_openai,
)
from tests.support.guarding import run_in_loop
from tests.support.naming import City, chat_anthropic, giving

Wrap = Callable[[Any], Any]
"""Puts a wrapper around a model."""


def openai_behind(script: Script, wrap: Wrap, **options: Any) -> tuple[Any, list[Any]]:
    """Return what a structured call is answered, and the bodies of its requests."""
    with ChatServer(always("", status=401)) as down, ChatServer(script) as server:
        guard = SNNEGuard(chat_openai(down), fallback=wrap(chat_openai(server)))
        found = guard.with_structured_output(City, **options).invoke("Capital?")
        return found, [request.body for request in server.requests]


def failing_once(request: Request) -> Reply:
    if request.index:
        return giving("Paris")(request)
    return Reply(status=500)


@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
@pytest.mark.parametrize(
    "wrap",
    [
        lambda model: model.with_retry(),
        lambda model: model.with_config(tags=["second"]),
        lambda model: model.bind(seed=7),
        lambda model: model.bind(seed=7).with_retry().with_config(tags=["second"]),
        lambda model: model.with_fallbacks([model]).with_retry(),
        lambda model: model.configurable_fields(
            temperature=ConfigurableField(id="temperature")
        ).with_retry(),
        lambda model: SNNEGuard(model, n=2).with_retry(),
    ],
    ids=["retry", "config", "bind", "nested", "fallbacks", "fields", "guard"],
)
def test_a_model_in_wrappers_is_asked_in_the_form(wrap: Wrap, method: str) -> None:
    found, bodies = openai_behind(giving("Paris"), wrap, method=method)
    assert found == City(name="Paris")
    asked = "response_format" if method == "json_schema" else "tools"
    assert all(asked in body for body in bodies)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda model: model.bind(temperature=0.0, seed=7),
        lambda model: model.bind(temperature=0.0).bind(seed=7),
        lambda model: model.bind(temperature=0.0, seed=3).bind(seed=7),
        lambda model: model.with_retry().bind(temperature=0.0, seed=7),
        lambda model: model.with_fallbacks([model]).bind(temperature=0.0, seed=7),
        lambda model: SNNEGuard(model, n=2).bind(temperature=0.0, seed=7),
    ],
    ids=["bind", "twice", "over", "retry", "fallbacks", "guard"],
)
def test_the_options_bound_to_it_are_sent(wrap: Wrap) -> None:
    found, bodies = openai_behind(giving("Paris"), wrap)
    assert found == City(name="Paris")
    sent = [(body.get("temperature"), body.get("seed")) for body in bodies]
    assert (0.0, 7) in sent  # the samples of a guard have their own


@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
def test_tools_bound_to_it_do_not_take_the_place_of_the_schema(method: str) -> None:
    def look(place: str) -> str:
        """Look up a place."""
        return place

    wrap: Wrap = lambda model: model.bind_tools([look]).bind(seed=7)  # noqa: E731
    found, (body,) = openai_behind(giving("Paris"), wrap, method=method)
    assert found == City(name="Paris")
    names = [tool["function"]["name"] for tool in body.get("tools", [])]
    assert names == ([] if method == "json_schema" else ["City"])
    assert body["seed"] == 7


def test_it_is_tried_again_as_it_was_to_be() -> None:
    wrap: Wrap = lambda model: model.with_retry(  # noqa: E731
        stop_after_attempt=2, wait_exponential_jitter=False
    )
    found, bodies = openai_behind(failing_once, wrap)
    assert (found, len(bodies)) == (City(name="Paris"), 2)


def test_a_wrapped_model_is_asked_without_blocking_the_loop() -> None:
    with ChatServer(always("", status=401)) as down, ChatServer(giving("Rome")) as it:
        model: Any = chat_openai(it)
        fields = model.configurable_fields(temperature=ConfigurableField(id="t"))
        guard = SNNEGuard(chat_openai(down), fallback=fields.with_retry())
        asking = guard.with_structured_output(City).ainvoke("Capital of Italy?")
        assert run_in_loop(asking) == City(name="Rome")


class Refusing(FakeListChatModel):
    """A model that cannot be asked for what it is asked for."""

    error: Exception

    def with_structured_output(
        self, schema: Any, *, include_raw: bool = False, **kwargs: Any
    ) -> Runnable[Any, Any]:
        del schema, include_raw, kwargs
        raise self.error


@pytest.mark.parametrize(
    "error",
    [ValueError("no tools"), TypeError("tools"), NotImplementedError()],
    ids=["value", "type", "not_implemented"],
)
@pytest.mark.parametrize("front", [chat_openai, chat_anthropic])
def test_one_that_cannot_be_asked_for_the_schema_is_asked_plainly(
    front: Callable[[ChatServer], BaseChatModel], error: Exception
) -> None:
    with ChatServer(always("", status=401)) as down:
        for text in ('{"name": "Paris"}', "It is Paris."):
            fallback = Refusing(responses=[text], error=error)
            guard = SNNEGuard(front(down), fallback=fallback.bind(stop=["."]))
            chain = guard.with_structured_output(City)
            if text.startswith("{"):
                assert chain.invoke("Capital of France?") == City(name="Paris")
            else:
                with pytest.raises(ValueError, match=r"fields of City|Structured"):
                    chain.invoke("Capital of France?")


def test_with_an_option_that_one_provider_knows_a_guard_can_be_made() -> None:
    mistral: Any = pytest.importorskip("langchain_mistralai").ChatMistralAI
    with ChatServer(always("", status=401)) as down, ChatServer(giving("Rome")) as it:
        behind = mistral(api_key="test", base_url=it.url, max_retries=0)
        guard = SNNEGuard(chat_openai(down), fallback=behind)
        chain = guard.with_structured_output(City, tools=[])
        with pytest.raises(ValueError, match="Structured Output response"):
            chain.invoke("Capital of Italy?")


def test_a_sequence_in_a_wrapper_is_left_as_it_is() -> None:
    first: Runnable[Any, Any] = RunnableLambda(lambda _value: "x")
    chain: Runnable[Any, Any] = first | (lambda _value: '{"name": "Rome"}')
    with ChatServer(always("", status=401)) as down:
        guard = SNNEGuard(chat_anthropic(down), fallback=chain.with_retry())
        found = guard.with_structured_output(City).invoke("Capital of Italy?")
    assert found == City(name="Rome")


def test_the_form_of_another_provider_in_the_fallbacks_own_fallback() -> None:
    with (
        ChatServer(always("", status=401)) as down,
        ChatServer(giving("Rome")) as server,
    ):
        behind = chat_anthropic(down).with_fallbacks([chat_openai(server)])
        for front in (chat_anthropic, chat_openai):
            guard = SNNEGuard(front(down), fallback=behind)
            found = guard.with_structured_output(City).invoke("Capital of Italy?")
            assert found == City(name="Rome")


class Spelling(FakeListChatModel):
    """A model whose structured output is in a language of its own."""

    def with_structured_output(
        self, schema: Any, *, include_raw: bool = False, **kwargs: Any
    ) -> Runnable[Any, Any]:
        del kwargs
        assert include_raw
        parsed = RunnableLambda(lambda raw: schema(name=raw.text.removeprefix("name=")))
        return RunnableParallel(raw=self) | RunnablePassthrough.assign(
            parsed=itemgetter("raw") | parsed, parsing_error=lambda _raw: None
        )


@pytest.mark.parametrize("front", [chat_openai, chat_anthropic])
def test_what_only_the_fallback_can_read_is_taken_from_it(
    front: Callable[[ChatServer], BaseChatModel],
) -> None:
    with ChatServer(always("", status=401)) as down:
        guard = SNNEGuard(front(down), fallback=Spelling(responses=["name=Rome"]))
        found = guard.with_structured_output(City).invoke("Capital of Italy?")
    assert found == City(name="Rome")


class Opaque(FakeListChatModel):
    """A model that nobody sees in its structured output."""

    def with_structured_output(
        self, schema: Any, *, include_raw: bool = False, **kwargs: Any
    ) -> Runnable[Any, Any]:
        del schema, kwargs
        assert include_raw
        return RunnableLambda(lambda value: {"raw": self.invoke(value)})


def test_a_guard_can_be_made_where_options_can_be_bound_to_nothing() -> None:
    fallback = Opaque(responses=['{"name": "Rome"}']).bind(stop=["."])
    with ChatServer(always("", status=401)) as down:
        guard = SNNEGuard(chat_openai(down), fallback=fallback)
        found = guard.with_structured_output(City).invoke("Capital of Italy?")
    assert found == City(name="Rome")
