"""What may go wrong around an agent: order, form, streams, loops, threads."""

from __future__ import annotations

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import openai
import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    ModelCallLimitMiddleware,
    ModelFallbackMiddleware,
    ModelResponse,
    ModelRetryMiddleware,
    model_fallback,
)
from langchain_core.callbacks import UsageMetadataCallbackHandler
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.errors import GraphRecursionError

from snne_guard import ConfigurationError, MissingExtraError, UncertainAnswerError
from snne_guard.langchain import is_refusal
from tests.support.agents import (
    OWN,
    SPREAD,
    agent_on,
    asked,
    calling,
    guarding,
    last,
    paper_of,
    run,
    saying,
    turns,
)
from tests.support.chat_server import (
    ChatServer,
    Gate,
    Reply,
    Request,
    chat_openai,
    error,
)
from tests.support.guarding import WHOLE, is_sample, run_in_loop, until

UNCERTAIN = turns(answer=saying(OWN), samples=saying(*SPREAD))
CERTAIN = turns(answer=saying(OWN), samples=saying(OWN, "It opens at nine"))
MODES = ["messages", "updates", "values", "custom"]


async def _streamed(agent: Any, config: Any) -> list[Any]:
    stream = agent.astream(asked(), config, stream_mode=MODES)
    events = agent.astream_events(asked(), config, version="v2")
    return [part async for part in stream] + [event async for event in events]


def streamed(agent: Any, way: str, config: Any = None) -> list[Any]:
    """Return everything that every mode of streaming shows."""
    if way == "invoke":
        return list(agent.stream(asked(), config, stream_mode=MODES))
    return run_in_loop(_streamed(agent, config))


@pytest.mark.parametrize("way", WHOLE)
@pytest.mark.parametrize("action", ["flag", "refuse"])
def test_samples_are_in_no_stream_and_nor_is_what_is_withheld(
    way: str, action: Any
) -> None:
    with ChatServer(UNCERTAIN) as server:
        middleware = guarding(threshold=0.4, on_uncertain=action, trace_samples=False)
        shown = repr(streamed(agent_on(server, middleware), way))
    assert not any(sample in shown for sample in SPREAD)
    assert (OWN in shown) is (action == "flag")


@pytest.mark.parametrize("way", WHOLE)
@pytest.mark.parametrize("action", ["flag", "refuse"])
def test_the_stream_of_messages_is_one_answer_or_one_refusal(
    way: str, action: Any
) -> None:
    with ChatServer(UNCERTAIN) as server:
        agent = agent_on(server, guarding(threshold=0.4, on_uncertain=action))
        parts = [
            part[1][0]
            for part in streamed(agent, way)
            if isinstance(part, tuple) and part[0] == "messages"
        ]
    texts = [part.text for part in parts if part.text]
    assert len({part.id for part in parts}) == 1
    if action == "flag":
        assert "".join(texts) == OWN
        assert len(texts) > 1
    else:
        assert texts == ["I am not certain enough of the answer to give one."]


@pytest.mark.parametrize("way", WHOLE)
def test_usage_is_counted_once(way: str) -> None:
    counter = UsageMetadataCallbackHandler()
    with ChatServer(CERTAIN) as server:
        run(agent_on(server, guarding(n=3)), way, config={"callbacks": [counter]})
        billed = server.billed.total_tokens
    assert counter.usage_metadata["test-model"]["total_tokens"] == billed


class Bypass(AgentMiddleware[Any, Any, Any]):
    """Answers in the model's place, listed too late."""

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        del request, handler
        return ModelResponse(result=[AIMessage("mine")])

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        return self.wrap_model_call(request, handler)


@pytest.mark.parametrize("way", WHOLE)
def test_a_guard_that_is_bypassed_says_so(way: str) -> None:
    with ChatServer(CERTAIN) as server:
        agent = agent_on(server, guarding(), Bypass())
        with pytest.raises(ConfigurationError, match="List UncertaintyMiddleware last"):
            run(agent, way)


@pytest.mark.parametrize("way", WHOLE)
def test_listed_after_the_others_every_model_is_guarded(way: str) -> None:
    failing = ChatServer([error(500)])
    with failing, ChatServer(CERTAIN) as other:
        agent = agent_on(
            failing,
            ModelFallbackMiddleware(chat_openai(other)),
            ModelRetryMiddleware(max_retries=1, initial_delay=0.0, on_failure="error"),
            guarding(threshold=0.4, n=3),
        )
        state = run(agent, way)
        answers = [r for r in failing.requests if not is_sample(r)]
    assert len(answers) == 2
    assert last(state).content == OWN
    assert state["uncertainty"][-1]["decision"] == "accept"


@pytest.mark.parametrize("way", WHOLE)
def test_an_uncertain_answer_that_raises_goes_to_the_fallback_middleware(
    way: str,
) -> None:
    with ChatServer(UNCERTAIN) as server, ChatServer(CERTAIN) as other:
        agent = agent_on(
            server,
            ModelFallbackMiddleware(chat_openai(other)),
            guarding(threshold=0.4, on_uncertain="raise"),
        )
        state = run(agent, way)
    # The record of what was dropped is with the observers; the state has the answer's.
    assert [record["decision"] for record in state["uncertainty"]] == ["accept"]


class Caching(AgentMiddleware[Any, Any, Any]):
    """Asks for a prompt cache in words that only one provider knows."""

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        settings = {"cache_control": {"type": "ephemeral"}}
        return handler(request.override(model_settings=settings))

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        return await self.wrap_model_call(request, handler)


@pytest.mark.skipif(
    not hasattr(model_fallback, "_sanitize_request_for_fallback"),
    reason="this LangChain does not strip them",
)
@pytest.mark.parametrize("way", WHOLE)
def test_the_fallback_is_not_asked_in_the_words_of_another_provider(way: str) -> None:
    model = FakeListChatModel(responses=[OWN, *SPREAD])
    with ChatServer([saying("At ten.")]) as other:
        middleware = guarding(
            threshold=0.4, on_uncertain="fallback", fallback=chat_openai(other)
        )
        agent = create_agent(model, middleware=[Caching(), middleware])
        state = run(agent, way)
    assert last(state).content == "At ten."


@pytest.mark.parametrize("way", WHOLE)
def test_a_fallback_that_fails_says_why_itself(way: str) -> None:
    with ChatServer(UNCERTAIN) as server, ChatServer([error(500)]) as other:
        middleware = guarding(
            threshold=0.4, on_uncertain="fallback", fallback=chat_openai(other)
        )
        with pytest.raises(openai.InternalServerError):
            run(agent_on(server, middleware), way)


@pytest.mark.parametrize("way", WHOLE)
def test_an_agent_that_loops_ends_at_its_limits(way: str) -> None:
    def again(_request: Request) -> Reply:
        return calling("library")

    with ChatServer(again) as server:
        agent = agent_on(server, guarding(tool_calls="score"), tools=[paper_of([])])
        with pytest.raises(GraphRecursionError):
            run(agent, way, config={"recursion_limit": 12})
        limited = agent_on(
            server,
            ModelCallLimitMiddleware(run_limit=2),
            guarding(tool_calls="score"),
            tools=[paper_of([])],
        )
        state = run(limited, way)
    assert len(state["uncertainty"]) == 2


@pytest.mark.parametrize("way", WHOLE)
def test_a_tool_that_raises_leaves_the_records_in_the_checkpoint(way: str) -> None:
    from langgraph.checkpoint.memory import InMemorySaver

    @tool
    def opening_hours(place: str) -> str:
        """Return nothing."""
        raise OSError(place)

    config = {"configurable": {"thread_id": "1"}}
    with ChatServer(turns(call=calling("library"))) as server:
        agent = agent_on(
            server, guarding(), tools=[opening_hours], checkpointer=InMemorySaver()
        )
        with pytest.raises(OSError, match="library"):
            run(agent, way, config=config)
    (record,) = agent.get_state(config).values["uncertainty"]
    assert record["kind"] == "tool_calls"


@pytest.mark.parametrize("way", WHOLE)
def test_a_sub_agent_has_records_of_its_own(way: str) -> None:
    with ChatServer(CERTAIN) as inner_server:
        inner = agent_on(inner_server, guarding(threshold=0.4))

        @tool
        def opening_hours(place: str) -> str:
            """Ask the other agent."""
            found = inner.invoke(asked(place))
            assert len(found["uncertainty"]) == 1
            return str(found["messages"][-1].content)

        with ChatServer(turns(call=calling("library"))) as server:
            agent = agent_on(server, guarding(threshold=0.4), tools=[opening_hours])
            state = run(agent, way)
    assert [record["kind"] for record in state["uncertainty"]] == [
        "tool_calls",
        "answer",
    ]
    assert state["messages"][2].content == OWN


@pytest.mark.parametrize("action", ["flag", "refuse"])
async def test_an_abandoned_stream_ends_what_is_in_flight(action: Any) -> None:
    gate = Gate()

    def script(request: Request) -> Reply:
        held = gate if is_sample(request) else None
        return Reply(texts=[OWN], gate=held)

    with ChatServer(script) as server:
        agent = agent_on(server, guarding(threshold=0.4, on_uncertain=action))
        task = asyncio.ensure_future(agent.ainvoke(asked()))
        await until(lambda: len(server.requests) >= 2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: server.abandoned >= 1)
        drawn = len(server.requests)
        gate.open()
    assert len(server.requests) == drawn


class Gated:
    """Replies: the answer at once, samples when the gate opens."""

    def __init__(self) -> None:
        self.gate = Gate()

    def __call__(self, request: Request) -> Reply:
        return Reply(texts=[OWN], gate=self.gate if is_sample(request) else None)


async def test_an_async_stream_that_nobody_reads_on_ends_its_samples() -> None:
    script = Gated()
    with ChatServer(script) as server:
        agent = agent_on(server, guarding(threshold=0.4))
        stream = agent.astream(asked(), stream_mode="messages")
        await anext(stream)
        await until(lambda: len(server.requests) >= 2)
        await stream.aclose()
        await until(lambda: server.abandoned >= 1)
        script.gate.open()


def test_a_stream_that_nobody_reads_on_leaves_nothing_behind() -> None:
    script = Gated()
    with ChatServer(script) as server:
        agent = agent_on(server, guarding(threshold=0.4))
        stream = agent.stream(asked(), stream_mode="messages")
        next(stream)
        server.wait_until(requests=2)
        # LangGraph waits for its node, so the samples may come.
        script.gate.open()
        stream.close()
        drawn = len(server.requests)
        assert last(agent.invoke(asked())).content == OWN
    assert len(server.requests) == 2 * drawn


async def test_a_plain_call_works_inside_a_running_event_loop() -> None:
    with ChatServer(UNCERTAIN) as server:
        agent = agent_on(server, guarding(threshold=0.4, on_uncertain="refuse"))
        state = agent.invoke(asked())
    assert is_refusal(last(state))


@pytest.mark.parametrize("way", WHOLE)
def test_an_uncertain_answer_is_not_worth_a_retry(way: str) -> None:
    with ChatServer(UNCERTAIN) as server:
        agent = agent_on(
            server,
            ModelRetryMiddleware(
                initial_delay=0.0,
                on_failure="error",
                # Older versions of it retry whatever is raised.
                retry_on=lambda error: getattr(error, "is_retryable", True),
            ),
            guarding(threshold=0.4, on_uncertain="raise"),
        )
        with pytest.raises(UncertainAnswerError):
            run(agent, way)
        assert len([r for r in server.requests if not is_sample(r)]) == 1


def test_threads_share_one_agent() -> None:
    def script(request: Request) -> Reply:
        question = next(t for t in request.texts if t.startswith("Room"))
        if is_sample(request) and question.endswith("odd"):
            return saying(*SPREAD)
        return saying(f"It is {question}.")

    with ChatServer(script) as server:
        agent = agent_on(server, guarding(threshold=0.4, on_uncertain="refuse"))
        questions = [f"Room {i} {'odd' if i % 2 else 'even'}" for i in range(12)]
        with ThreadPoolExecutor(6) as pool:
            states = list(pool.map(lambda q: agent.invoke(asked(q)), questions))
    for question, state in zip(questions, states, strict=True):
        assert is_refusal(last(state)) is question.endswith("odd")
        assert len(state["uncertainty"]) == 1
        if question.endswith("even"):
            assert question in str(last(state).content)


def test_an_older_langchain_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import langchain.agents.middleware as package

    import snne_guard_integrations._extras as extras

    monkeypatch.delattr(package, "ExtendedModelResponse")
    monkeypatch.setattr(extras, "version", lambda _name: "1.1.0")
    monkeypatch.delitem(sys.modules, "snne_guard_integrations.langchain_agent")
    with pytest.raises(MissingExtraError, match=r"langchain 1\.2\.15 or later \(found"):
        import snne_guard_integrations.langchain_agent  # noqa: F401


def test_what_is_missing_in_a_langchain_that_is_new_enough_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import langchain.agents.middleware as package

    monkeypatch.delattr(package, "hook_config")
    monkeypatch.delitem(sys.modules, "snne_guard_integrations.langchain_agent")
    with pytest.raises(ImportError, match="hook_config"):
        import snne_guard_integrations.langchain_agent  # noqa: F401


def test_the_error_of_a_withheld_turn_holds_none_of_it() -> None:
    with ChatServer(UNCERTAIN) as server:
        agent = agent_on(server, guarding(threshold=0.4, on_uncertain="raise"))
        with pytest.raises(UncertainAnswerError) as caught:
            agent.invoke(asked())
    assert OWN not in repr(caught.value)
