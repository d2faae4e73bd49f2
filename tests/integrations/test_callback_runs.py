"""Which runs the callback handler assesses, and with which options samples come."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator, Sequence
from typing import Any
from uuid import uuid4

import pytest
from langchain.chat_models import init_chat_model
from langchain_core.caches import InMemoryCache
from langchain_core.callbacks import (
    CallbackManager,
    CallbackManagerForLLMRun,
    CallbackManagerForRetrieverRun,
    dispatch_custom_event,
)
from langchain_core.documents import Document
from langchain_core.language_models import (
    BaseChatModel,
    FakeListChatModel,
    FakeListLLM,
)
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult, Generation, LLMResult
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from openai import APIStatusError
from pydantic import BaseModel
from tenacity import RetryCallState, Retrying

from snne_guard import SNNEGuard
from snne_guard_integrations.callback import SNNECallbackHandler
from tests.support.chat_server import (
    ChatServer,
    Gate,
    Reply,
    Request,
    Script,
    ToolCall,
    chat_openai,
    error,
)
from tests.support.guarding import Witness, is_sample, split

QUESTION = "When does the library open?"


@tool
def opening_hours(place: str) -> str:
    """Return when a place opens."""
    return f"{place}: at nine"


class Hours(BaseModel):
    """When a place opens."""

    opens: int


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer(split("At nine", ["At nine", "At ten"])) as server:
        yield server


def watching(model: Any, **options: Any) -> tuple[SNNECallbackHandler, Witness]:
    witness = Witness()
    settings = {"n": 3, "method": "snne", "threshold": 0.2, **options}
    guard = SNNEGuard(model, observers=[witness], **settings)
    return SNNECallbackHandler(guard), witness


def invoke(model: Any, handler: SNNECallbackHandler, **options: Any) -> Any:
    """Run a model under a handler, and return its answer once that is assessed."""
    answer = model.invoke(QUESTION, {"callbacks": [handler]}, **options)
    assert handler.flush()
    return answer


def samples(server: ChatServer) -> list[Request]:
    return [request for request in server.requests if is_sample(request)]


def test_samples_end_where_the_answer_ended(server: ChatServer) -> None:
    model = chat_openai(server)
    handler, _ = watching(model)
    invoke(model.bind(stop=["."]), handler)
    invoke(model, handler, stop=["!"])
    invoke(model, handler)
    stops = [request.body.get("stop") for request in samples(server)]
    assert stops == [["."], ["!"], None]


def test_samples_have_the_tools_of_the_run(server: ChatServer) -> None:
    model = chat_openai(server)
    handler, witness = watching(model)
    with_tools = model.bind_tools([opening_hours], tool_choice="auto")
    invoke(with_tools, handler)
    answer, sample = server.requests
    for name in ("tools", "tool_choice"):
        assert sample.body[name] == answer.body[name]
    assert witness.last.uncertainty is not None


@pytest.mark.parametrize("method", ["json_schema", "json_mode"])
def test_samples_have_the_form_of_the_run(method: Any) -> None:
    replies = split('{"opens": 9}', ['{"opens": 9}', '{"opens": 10}'])
    with ChatServer(replies) as server:
        model = chat_openai(server)
        handler, witness = watching(model, similarity="structured")
        made = invoke(model.with_structured_output(Hours, method=method), handler)
        answer, sample = server.requests
    assert (made.opens if isinstance(made, Hours) else made) == 9
    wanted = answer.body["response_format"]
    assert sample.body["response_format"]["type"] == wanted["type"]
    assert witness.last.scored == ('{"opens": 9}', '{"opens": 9}', '{"opens": 10}')


def test_tools_of_another_providers_class_are_not_lost_silently(
    server: ChatServer,
) -> None:
    model = chat_openai(server)
    other = FakeListChatModel(responses=["At nine"])
    handler, _ = watching(other)
    invoke(model.bind_tools([opening_hours]), handler)
    assert handler.counts.reasons == {"shape_unknown": 1}
    invoke(model, handler)
    assert (handler.counts.taken, handler.counts.assessed) == (1, 1)


def test_a_guard_on_a_model_with_tools_of_its_own_keeps_them(
    server: ChatServer,
) -> None:
    class Elsewhere(type(chat_openai(server))):  # type: ignore[misc]  # a made-up provider
        @property
        def _llm_type(self) -> str:
            return "elsewhere"

    model = chat_openai(server)
    own = model.bind_tools([opening_hours])
    handler, _ = watching(own)
    invoke(Elsewhere(**_settings(server)).bind_tools([Hours]), handler)
    (sample,) = samples(server)
    assert [each["function"]["name"] for each in sample.body["tools"]] == [
        "opening_hours"
    ]


def _settings(server: ChatServer) -> dict[str, Any]:
    return {"model": "test-model", "base_url": server.url, "api_key": "x"}


@pytest.mark.parametrize("tools", [[], [opening_hours]])
def test_for_a_model_that_is_chosen_later_no_tools_are_known(
    tools: list[Any], server: ChatServer
) -> None:
    model = chat_openai(server)
    handler, _ = watching(init_chat_model(model_provider="openai"))
    invoke(model.bind_tools(tools) if tools else model, handler)
    # Without tools it is tried, and nobody says which model it is.
    assert handler.counts.reasons == {"shape_unknown" if tools else "TypeError": 1}


def test_tools_that_run_at_the_provider_are_not_called_again(
    server: ChatServer,
) -> None:
    model = chat_openai(server)
    handler, witness = watching(model)
    invoke(model.bind(web_search_options={}), handler)
    assert "side_effects" in witness.last.reasons
    assert samples(server) == []


def calling(request: Request) -> Reply:
    place = "pool" if is_sample(request) else "library"
    call = ToolCall(name="opening_hours", arguments={"place": place})
    return Reply(texts=(None,), tool_calls=((call,),))


@pytest.mark.parametrize(("policy", "drawn"), [("skip", 0), ("score", 1)])
def test_the_guard_says_what_happens_to_tool_calls(policy: Any, drawn: int) -> None:
    with ChatServer(calling) as server:
        model = chat_openai(server)
        handler, witness = watching(model, tool_calls=policy)
        invoke(model.bind_tools([opening_hours]), handler)
        assert len(samples(server)) == drawn
    assert ("tool_calls" in witness.last.reasons) is (policy == "skip")
    assert (witness.last.uncertainty is None) is (policy == "skip")
    assert handler.counts.assessed == 1


def test_of_several_generations_the_first_is_the_answer() -> None:
    script: Script = split(
        lambda _request: Reply(texts=["At nine", "At ten"]), ["At nine"]
    )
    with ChatServer(script) as server:
        model = chat_openai(server)
        handler, witness = watching(model)
        answer = invoke(model.bind(n=2), handler)
    assert witness.last.answer is not None
    assert answer.text == witness.last.answer.text == "At nine"
    assert witness.last.scored == ("At nine",) * 3


def test_an_answer_from_the_cache_was_seen_before(server: ChatServer) -> None:
    model = chat_openai(server).model_copy(update={"cache": InMemoryCache()})
    handler, _ = watching(model)
    for _ in range(3):
        invoke(model, handler)
    counts = handler.counts
    assert (counts.seen, counts.assessed, counts.reasons) == (3, 1, {"cached": 2})
    assert len(samples(server)) == 1  # which no cache answers


def test_a_completion_model_is_counted_and_left_alone(server: ChatServer) -> None:
    handler, _ = watching(chat_openai(server))
    invoke(FakeListLLM(responses=["At nine"]), handler)
    counts = handler.counts
    assert (counts.seen, counts.skipped) == (1, 1)
    assert counts.reasons == {"not_a_chat_model": 1}


def test_a_run_that_fails_fails_as_it_does_alone() -> None:
    with ChatServer([error(400, "no such model")]) as server:
        model = chat_openai(server)
        handler, _ = watching(model)
        with pytest.raises(APIStatusError, match="no such model"):
            invoke(model, handler)
    assert handler.counts.reasons == {"run_failed": 1}
    assert (handler.counts.seen, handler.counts.skipped) == (1, 1)


@pytest.mark.parametrize("way", ["closed", "collected"])
def test_a_stream_that_is_abandoned_is_let_go(way: str, server: ChatServer) -> None:
    model = chat_openai(server)
    handler, _ = watching(model)
    stream = model.stream(QUESTION, {"callbacks": [handler]})
    next(stream)
    if way == "closed":
        stream.close()  # type: ignore[attr-defined]  # it is a generator
    del stream
    gc.collect()
    assert handler.counts.reasons == {"abandoned": 1}


async def test_a_run_that_is_cancelled_is_let_go() -> None:
    gate = Gate()
    with ChatServer([Reply(gate=gate)]) as server:
        model = chat_openai(server)
        handler, _ = watching(model)
        asking = asyncio.create_task(model.ainvoke("x", {"callbacks": [handler]}))
        await asyncio.to_thread(server.wait_until, requests=1)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        gate.open()
    assert handler.counts.reasons == {"abandoned": 1}


async def test_a_stream_that_is_read_in_one_task_after_another_is_one_run(
    server: ChatServer,
) -> None:
    model = chat_openai(server)
    handler, witness = watching(model)
    stream = model.astream(QUESTION, {"callbacks": [handler]})

    async def further() -> str | None:
        chunk = await anext(stream, None)
        return None if chunk is None else str(chunk.text)

    texts: list[str] = []  # each in a task of its own, as under a time limit
    while (text := await asyncio.create_task(further())) is not None:
        texts.append(text)
    assert await handler.aflush()
    assert witness.last.scored[0] == "".join(texts) == "At nine"


class Outer(BaseChatModel):
    """A chat model that asks another one, under its own run."""

    inner: BaseChatModel

    @property
    def _llm_type(self) -> str:
        return "outer"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        assert run_manager is not None
        below = CallbackManager(
            handlers=run_manager.handlers, parent_run_id=run_manager.run_id
        )
        message = self.inner.invoke(messages, {"callbacks": below}, stop=stop, **kwargs)
        return ChatResult(generations=[ChatGeneration(message=message)])


def test_a_model_inside_a_model_is_one_answer(server: ChatServer) -> None:
    model = chat_openai(server)
    handler, _ = watching(model)
    assert invoke(Outer(inner=model), handler).text == "At nine"
    assert handler.counts.reasons == {"nested": 1}
    assert handler.counts.assessed == 1


@pytest.mark.parametrize("generations", [[], [[]], ["text"]])
def test_a_run_that_ends_without_a_message_has_no_answer(
    generations: Sequence[Any], server: ChatServer
) -> None:
    handler, _ = watching(chat_openai(server))
    run_id = uuid4()
    handler.on_chat_model_start({}, [[HumanMessage("x")]], run_id=run_id)
    given = [[Generation(text="x")]] if generations == ["text"] else [*generations]
    handler.on_llm_end(LLMResult(generations=given), run_id=run_id)
    assert handler.counts.reasons == {"no_answer": 1}


def test_the_message_may_change_after_the_run(server: ChatServer) -> None:
    model = chat_openai(server)
    handler, witness = watching(model)
    answer: AIMessage = model.invoke(QUESTION, {"callbacks": [handler]})
    answer.content = "changed by the application"
    assert handler.flush()
    assert witness.last.scored[0] == "At nine"


def test_only_runs_of_models_are_watched(server: ChatServer) -> None:
    class Library(BaseRetriever):
        def _get_relevant_documents(
            self, query: str, *, run_manager: CallbackManagerForRetrieverRun
        ) -> list[Document]:
            dispatch_custom_event(
                "searched", {}, config={"callbacks": run_manager.get_child()}
            )
            return [Document(query)]

    attempts: list[str] = []

    def unsteady(documents: list[Document]) -> str:
        attempts.append(documents[0].page_content)
        if len(attempts) == 1:
            raise OSError
        return documents[0].page_content

    model = chat_openai(server)
    handler, _ = watching(model)
    steady = RunnableLambda(unsteady).with_retry(wait_exponential_jitter=False)
    invoke(Library() | steady | model, handler)
    assert len(attempts) == 2
    manager = CallbackManager([handler]).on_llm_start({}, ["x"], run_id=uuid4())[0]
    manager.on_retry(RetryCallState(Retrying(), None, (), {}))
    assert handler.counts.reasons == {"not_a_chat_model": 1}
    assert (handler.counts.seen, handler.counts.assessed) == (2, 1)
