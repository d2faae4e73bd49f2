import asyncio
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.runnables import RunnableConfig, RunnableLambda

from tests.support.handlers import (
    AsyncEverythingHandler,
    EverythingHandler,
    find_text,
)

WITHHELD = "zanzibar"


def model_saying(text: str) -> GenericFakeChatModel:
    return GenericFakeChatModel(messages=iter([AIMessage(text)]))


def test_records_every_event_that_the_base_class_knows() -> None:
    handler = EverythingHandler()
    names = [name for name in dir(BaseCallbackHandler) if name.startswith("on_")]
    assert "on_chat_model_start" in names
    for name in names:
        getattr(handler, name)("what", run_id=None)
    assert handler.names == names


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("kind", [EverythingHandler, AsyncEverythingHandler])
def test_sees_the_answer_of_a_model(kind: Any, *, asynchronous: bool) -> None:
    handler = kind()
    config: RunnableConfig = {"callbacks": [handler]}
    model = model_saying(f"It is {WITHHELD}")
    if asynchronous:
        asyncio.run(model.ainvoke("where?", config))
    else:
        model.invoke("where?", config)
    assert handler.names == ["on_chat_model_start", "on_llm_end"]
    assert all("on_llm_end" in place for place in handler.leaks(WITHHELD))
    assert handler.leaks(WITHHELD)
    assert handler.leaks("where?")
    assert handler.leaks("never said") == []


def test_puts_tokens_together_for_each_run() -> None:
    handler = EverythingHandler()
    first, second = uuid4(), uuid4()
    for run, token in [(first, "zan"), (second, "xx"), (first, "zibar")]:
        handler.on_llm_new_token(token, run_id=run)
    assert handler.leaks(WITHHELD) == [f"tokens of run {first}"]


def test_sees_the_tokens_of_a_stream() -> None:
    handler = EverythingHandler()
    list(model_saying(f"on {WITHHELD}").stream("?", {"callbacks": [handler]}))
    assert "on_llm_new_token" in handler.names
    assert any("on_llm_new_token" in place for place in handler.leaks(WITHHELD))


def test_puts_the_tokens_of_streamed_events_together() -> None:
    handler = EverythingHandler()
    model = model_saying(f"in {WITHHELD}")
    list(model.stream_events("?", {"callbacks": [handler]}, version="v3"))
    assert "on_stream_event" in handler.names
    places = [place.partition(" ")[0] for place in handler.leaks(f"in {WITHHELD}")]
    assert "tokens" in places


def test_sees_the_runs_of_a_chain() -> None:
    handler = EverythingHandler()
    chain = RunnableLambda[str, str](lambda text: f"{text} {WITHHELD}")
    chain.invoke("to", {"callbacks": [handler]})
    assert handler.names == ["on_chain_start", "on_chain_end"]
    assert handler.leaks(WITHHELD) == ["1:on_chain_end.0"]


@dataclass(slots=True)
class Slotted:
    text: str = field(repr=False)


class Loop(dict[str, Any]):
    def __repr__(self) -> str:
        return "loop"


def looped() -> Loop:
    loop = Loop()
    loop["self"] = loop
    return loop


def failure(**attributes: Any) -> Exception:
    error = ValueError("no")
    for name, value in attributes.items():
        setattr(error, name, value)
    return error


@pytest.mark.parametrize(
    ("value", "places"),
    [
        (f"a {WITHHELD} b", ["value"]),
        (f"{WITHHELD}".encode(), ["value"]),
        (b"other", []),
        ([["a"], (f"x{WITHHELD}",)], ["value.1.0"]),
        ({WITHHELD: 1}, ["value.key"]),
        ({"k": Slotted(WITHHELD)}, ["value.k.text"]),
        (
            AIMessage("x", additional_kwargs={"k": WITHHELD}),
            ["value.fields.additional_kwargs.k"],
        ),
        (failure(withheld=Slotted(WITHHELD)), ["value.attributes.withheld.text"]),
        (failure(__cause__=KeyError(WITHHELD)), ["value.cause.args.0"]),
        (failure(__context__=KeyError(WITHHELD)), ["value.context.args.0"]),
        (failure(__notes__=[WITHHELD]), ["value.attributes.__notes__.0"]),
        (ExceptionGroup("many", [KeyError(WITHHELD)]), ["value.args.1.0.args.0"]),
        (type("Shown", (), {"__repr__": lambda _self: WITHHELD})(), ["value"]),
        (looped(), []),
        (None, []),
    ],
)
def test_finds_a_text_wherever_it_is(value: Any, places: list[str]) -> None:
    assert find_text(WITHHELD, value) == places


def test_finds_a_text_in_a_result() -> None:
    result = LLMResult(generations=[[ChatGeneration(message=AIMessage(WITHHELD))]])
    assert find_text(WITHHELD, result)
    assert find_text("elsewhere", result) == []
