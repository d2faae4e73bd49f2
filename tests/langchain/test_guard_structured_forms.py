"""A fallback whose provider answers in another form than the guarded model's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from langchain_core.exceptions import OutputParserException
from langchain_core.messages import AIMessage
from langchain_core.runnables import ConfigurableField

from snne_guard import GuardedChatModel, SNNEGuard
from tests.support.chat_server import Script, always
from tests.support.guarding import run_in_loop
from tests.support.naming import SCHEMAS, City, giving, makers

PAIRS = [("anthropic", "openai"), ("openai", "anthropic")]
WAYS = ["invoke", "ainvoke", "stream", "astream"]
both_ways = pytest.mark.parametrize(("front", "behind"), PAIRS)


@contextmanager
def failing(front: str, behind: str, script: Script) -> Iterator[SNNEGuard]:
    """A guard on a provider that is down, with another behind it."""
    serve, chat = makers()[front]
    serve_other, chat_other = makers()[behind]
    with serve(always("", status=401)) as down, serve_other(script) as other:
        yield SNNEGuard(chat(down), fallback=chat_other(other))


@contextmanager
def instead(front: str, fallback: Any) -> Iterator[SNNEGuard]:
    """A guard on a provider that is down, with something else behind it."""
    serve, chat = makers()[front]
    with serve(always("", status=401)) as down:
        yield SNNEGuard(chat(down), fallback=fallback)


def asked(runnable: Any, way: str) -> Any:
    """Return what is given at last, None where nothing is."""
    if way == "invoke":
        return runnable.invoke("Capital of France?")
    if way == "ainvoke":
        return run_in_loop(runnable.ainvoke("Capital of France?"))
    if way == "stream":
        chunks = list(runnable.stream("Capital of France?"))
    else:
        chunks = run_in_loop(_collected(runnable))
    whole: Any = None
    for chunk in chunks:  # as dicts of parts, where the raw message is included
        joins = isinstance(whole, dict) and "name" not in chunk
        whole = {**whole, **chunk} if joins else chunk
    return whole


async def _collected(runnable: Any) -> list[Any]:
    return [chunk async for chunk in runnable.astream("Capital of France?")]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("chat_model", [False, True])
@pytest.mark.parametrize("kind", SCHEMAS)
@both_ways
def test_its_answer_is_read_by_the_parser_of_the_model(
    front: str, behind: str, kind: str, way: str, *, chat_model: bool
) -> None:
    wanted = City(name="Paris") if kind == "pydantic" else {"name": "Paris"}
    with failing(front, behind, giving("Paris")) as guard:
        model: Any = GuardedChatModel(guard) if chat_model else guard
        assert asked(model.with_structured_output(SCHEMAS[kind]), way) == wanted
        whole = model.with_structured_output(SCHEMAS[kind], include_raw=True)
        found = asked(whole, way)
    assert (found["parsed"], found["parsing_error"]) == (wanted, None)
    assert found["raw"].response_metadata["snne_guard"]["decision"] == "fallback"


def test_its_message_is_left_alone_where_the_form_is_the_same() -> None:
    with failing("openai", "openai", giving("Paris")) as guard:
        chain = guard.with_structured_output(City, include_raw=True)
        raw = chain.invoke("Capital of France?")["raw"]
    assert (raw.content, raw.tool_calls) == ('{"name": "Paris"}', [])
    assert raw.additional_kwargs["parsed"] == City(name="Paris")


@pytest.mark.parametrize("way", WAYS)
@both_ways
def test_fields_that_do_not_fit_the_schema_are_an_error(
    front: str, behind: str, way: str
) -> None:
    with (
        failing(front, behind, giving("P")) as guard,
        pytest.raises(ValueError, match="at least 2 characters"),
    ):
        asked(guard.with_structured_output(City), way)


@pytest.mark.parametrize("front", ["anthropic", "openai"])
def test_fields_that_do_not_fit_are_given_with_the_error_where_asked(
    front: str,
) -> None:
    with failing(front, "anthropic", giving("P")) as guard:
        chain = guard.with_structured_output(City, include_raw=True)
        found = chain.invoke("Capital of France?")
    assert found["parsed"] is None
    assert "at least 2 characters" in str(found["parsing_error"])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", SCHEMAS)
@both_ways
def test_an_answer_without_fields_is_an_error(
    front: str, behind: str, kind: str, way: str
) -> None:
    with (
        failing(front, behind, always("I cannot say.")) as guard,
        pytest.raises(ValueError, match=r"I cannot say|[Ii]nvalid|fields of City"),
    ):
        asked(guard.with_structured_output(SCHEMAS[kind]), way)


@pytest.mark.parametrize("kind", SCHEMAS)
@pytest.mark.parametrize("front", ["anthropic", "openai"])
def test_an_answer_without_fields_is_given_with_the_error_where_asked(
    front: str, kind: str
) -> None:
    with failing(front, "anthropic", always("I cannot say.")) as guard:
        whole = guard.with_structured_output(SCHEMAS[kind], include_raw=True)
        found = whole.invoke("Capital of France?")
    assert found["parsed"] is None
    assert found["raw"].text == "I cannot say."
    assert isinstance(found["parsing_error"], ValueError)


@pytest.mark.parametrize("front", ["anthropic", "openai"])
@pytest.mark.parametrize(
    "answer",
    [
        lambda _messages: '{"name": "Paris"}',
        lambda _messages: AIMessage('```json\n{"name": "Paris"}\n```'),
        lambda _messages: AIMessage('<think>City?</think>{"name": "Paris"}'),
        lambda _messages: AIMessage(
            "", additional_kwargs={"parsed": City(name="Paris")}
        ),
        lambda _messages: AIMessage(
            "", additional_kwargs={"parsed": {"name": "Paris"}}
        ),
        lambda _messages: AIMessage(
            "", tool_calls=[{"name": "City", "args": {"name": "Paris"}, "id": "1"}]
        ),
    ],
    ids=["text", "markdown", "thinking", "parsed", "fields", "call"],
)
def test_a_function_may_give_the_fields_in_any_form(
    front: str, answer: Callable[[Any], Any]
) -> None:
    with instead(front, answer) as guard:
        found = guard.with_structured_output(City).invoke("Capital of France?")
    assert found == City(name="Paris")


@pytest.mark.parametrize("text", ["Paris", "", "[1]", "5"])
def test_a_function_that_gives_no_fields_is_an_error(text: str) -> None:
    with instead("anthropic", lambda _messages: text) as guard:
        chain = guard.with_structured_output(City, include_raw=True)
        found = chain.invoke("Capital of France?")
    assert found["parsed"] is None
    assert isinstance(found["parsing_error"], OutputParserException)


def test_the_error_says_what_the_fallback_has_to_give() -> None:
    with (
        instead("anthropic", lambda _messages: "Paris") as guard,
        pytest.raises(OutputParserException, match="the fields of City: it has to"),
    ):
        guard.with_structured_output(City).invoke("Capital of France?")


def test_a_call_of_a_tool_of_the_users_is_still_one() -> None:
    call = {"name": "look", "args": {"at": "a map"}, "id": "1"}
    look = {"type": "function", "function": {"name": "look", "parameters": {}}}
    answer = AIMessage("", tool_calls=[call])
    with instead("openai", lambda _messages: answer) as guard:
        chain = guard.with_structured_output(City, tools=[look], include_raw=True)
        found = chain.invoke("Where am I?")
    assert (found["parsed"], found["parsing_error"]) == (None, None)
    assert found["raw"].tool_calls[0]["name"] == "look"


@both_ways
def test_the_form_of_a_model_with_fallbacks_of_its_own_cannot_be_told(
    front: str, behind: str
) -> None:
    serve, chat = makers()[front]
    serve_other, chat_other = makers()[behind]
    with (
        serve(always("", status=401)) as down,
        serve_other(giving("Paris")) as other,
    ):
        model = chat(down).with_fallbacks([chat(down)])
        guard = SNNEGuard(model, fallback=chat_other(other))
        found = guard.with_structured_output(City).invoke("Capital of France?")
    assert found == City(name="Paris")


def test_without_a_schema_the_text_is_parsed_as_json() -> None:
    with instead("openai", lambda _messages: '{"name": "Paris"}') as guard:
        chain = guard.with_structured_output(None, method="json_mode")
        assert chain.invoke("Capital of France?") == {"name": "Paris"}


def test_a_model_whose_parser_cannot_be_told_gets_both() -> None:
    with instead("openai", lambda _messages: '{"name": "Paris"}') as guard:
        model: Any = guard.model
        field = ConfigurableField(id="temperature")
        chosen = guard.on(model.configurable_fields(temperature=field))
        chain = chosen.with_structured_output(City, include_raw=True)
        raw = chain.invoke("Capital of France?")["raw"]
    assert raw.content == '{"name": "Paris"}'
    assert raw.tool_calls[0]["args"] == {"name": "Paris"}
