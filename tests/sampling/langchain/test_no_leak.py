"""No handler, tracer, cache or counter sees a draw, wherever it was registered."""

from __future__ import annotations

import contextvars
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.callbacks import (
    BaseCallbackHandler,
    CallbackManager,
    get_usage_metadata_callback,
)
from langchain_core.globals import set_debug, set_llm_cache, set_verbose
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.runnables.config import set_config_context
from langchain_core.tracers.context import collect_runs
from langsmith.run_helpers import get_tracing_context, tracing_context

from snne_guard.sampling.langchain import LangChainSender
from tests.sampling.langchain.support import (
    ANSWER,
    SAMPLE,
    Call,
    ScriptedStream,
    sent,
    streamed,
)

OWN: contextvars.ContextVar[Any] = contextvars.ContextVar("OWN", default=None)


class Everything(BaseCallbackHandler):
    """Notes the name of every event."""

    run_inline = True

    def __init__(self) -> None:
        self.seen: list[str] = []

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("on_"):
            return lambda *_args, **_kwargs: self.seen.append(name)
        return super().__getattribute__(name)


class Outer(ScriptedStream):
    """A model whose hook invokes another model, with whatever callbacks it inherits."""

    inner: Any

    def _result(self, call: Call) -> Any:
        self.inner.invoke("x")
        return super()._result(call)


@contextmanager
def witnesses(handler: Everything) -> Iterator[dict[str, Any]]:
    """Register a handler in every way, and what else LangChain has to watch with."""
    set_llm_cache(InMemoryCache())
    set_verbose(True)
    with ExitStack() as stack:
        usage = stack.enter_context(get_usage_metadata_callback())
        runs = stack.enter_context(collect_runs())
        config: Any = {"callbacks": [handler], "tags": ["t"]}
        context = stack.enter_context(set_config_context(config))
        try:
            yield {"usage": usage, "runs": runs, "context": context}
        finally:
            set_llm_cache(None)
            set_verbose(False)


async def everything(draws: LangChainSender, way: str) -> None:
    await sent(draws, ANSWER, way)
    await sent(draws, SAMPLE, way)
    await streamed(draws, way)
    draws.streamed()


MODELS: dict[str, Any] = {
    "a model": lambda handler: ScriptedStream(callbacks=[handler], verbose=True),
    "wrappers": lambda handler: (
        ScriptedStream()
        .with_config(callbacks=[handler])
        .with_retry()
        .with_fallbacks([ScriptedStream()])
        .with_config(callbacks=CallbackManager(handlers=[handler]))
    ),
    "a model that invokes another": lambda _handler: Outer(inner=ScriptedStream()),
}


@pytest.mark.parametrize("way", ["send", "asend"])
@pytest.mark.parametrize("name", MODELS)
async def test_nobody_sees_a_draw(
    name: str, way: str, capsys: pytest.CaptureFixture[str]
) -> None:
    handler = Everything()
    model = MODELS[name](handler)
    with witnesses(handler) as seen:
        inside: contextvars.Context = seen["context"]
        token = OWN.set(handler)
        variables = inside.run(contextvars.copy_context)
        variables.run(OWN.set, handler)
        draws = LangChainSender(model, [HumanMessage("x")])
        if way == "send":
            variables.run(draws.send, ANSWER)
            variables.run(draws.send, SAMPLE)
            variables.run(lambda: (list(draws.stream()), draws.streamed()))
        else:
            await everything(draws, way)
        OWN.reset(token)
        assert handler.seen == []
        assert seen["usage"].usage_metadata == {}
        assert seen["runs"].traced_runs == []
        # The same witnesses do see what is called in the usual way.
        variables.run(model.invoke, "x")
        assert handler.seen
        assert seen["runs"].traced_runs
    if name != "a model that invokes another":
        assert "Paris" not in capsys.readouterr().out.split("[0m")[0]


@pytest.mark.parametrize("way", ["send", "asend"])
@pytest.mark.parametrize("name", ["a model", "wrappers"])
async def test_debugging_prints_nothing_of_a_draw(
    name: str, way: str, capsys: pytest.CaptureFixture[str]
) -> None:
    model = MODELS[name](Everything())
    set_debug(True)
    try:
        await everything(LangChainSender(model, [HumanMessage("x")]), way)
        assert capsys.readouterr().out == ""
        model.invoke("x")
        assert "Paris" in capsys.readouterr().out
    finally:
        set_debug(False)


@pytest.mark.parametrize("way", ["send", "asend"])
async def test_langsmith_by_environment_is_off_in_a_draw(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANGSMITH_TRACING", "true")
    monkeypatch.setenv("LANGSMITH_ENDPOINT", "http://127.0.0.1:9")
    found: list[Any] = []

    class Looking(ScriptedStream):
        def _result(self, call: Call) -> Any:
            context = get_tracing_context()
            found.append((context["enabled"], context["parent"]))
            return super()._result(call)

    with tracing_context(enabled=True):
        await everything(LangChainSender(Looking(), [HumanMessage("x")]), way)
        assert get_tracing_context()["enabled"] is True
    assert set(found) == {(False, None)}


@pytest.mark.parametrize("way", ["send", "asend"])
async def test_a_cache_answers_for_no_draw_and_keeps_none(way: str) -> None:
    cache = InMemoryCache()
    set_llm_cache(cache)
    try:
        for model in (ScriptedStream(), ScriptedStream(cache=InMemoryCache())):
            draws = LangChainSender(model, [HumanMessage("x")])
            await everything(draws, way)
            await everything(draws, way)
            assert len(model.calls) == 6
        assert cache._cache == {}
    finally:
        set_llm_cache(None)


async def test_events_of_a_chain_around_a_draw_do_not_show_it() -> None:
    async def step(_value: Any) -> str:
        draws = LangChainSender(ScriptedStream(), [HumanMessage("x")])
        await everything(draws, "asend")
        return "done"

    events = [event async for event in RunnableLambda(step).astream_events("x")]
    assert {event["event"] for event in events} <= {
        "on_chain_start",
        "on_chain_stream",
        "on_chain_end",
    }
    assert "Paris" not in str(events)


def test_variables_of_the_application_are_seen_in_a_draw() -> None:
    found: list[Any] = []

    class Looking(ScriptedStream):
        def _result(self, call: Call) -> Any:
            found.append(OWN.get())
            return super()._result(call)

    OWN.set("a span")
    LangChainSender(Looking(), [HumanMessage("x")]).send(SAMPLE)
    assert found == ["a span"]
