"""What callback handlers are told, when, and what they never see."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.callbacks import (
    CallbackManager,
)
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, LLMResult

from snne_guard.errors import SamplingError
from snne_guard.sampling.langchain_models import Candidate
from snne_guard.sampling.langchain_runs import (
    ANSWER_TAG,
    NOSTREAM_TAG,
    SAMPLE_TAG,
    AsyncRunLog,
    RunLog,
)
from tests.sampling.runs import PARENT, model, under
from tests.support.handlers import AsyncEverythingHandler, EverythingHandler

WAYS = pytest.mark.parametrize("way", ["threads", "tasks"])
MESSAGES = [HumanMessage("Capital of France?")]
USAGE: Any = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}


def result(*texts: str, **output: Any) -> LLMResult:
    return LLMResult(
        generations=[
            [
                ChatGeneration(
                    message=AIMessage(
                        text,
                        usage_metadata=USAGE,
                        response_metadata={"finish_reason": "stop", "token_usage": {}},
                    ),
                    generation_info={"finish_reason": "stop"},
                )
                for text in texts
            ]
        ],
        llm_output=output,
    )


class Twin:
    """Both logs behind one face."""

    def __init__(self, way: str, **options: Any) -> None:
        self.way = way
        self.log: Any = (RunLog if way == "threads" else AsyncRunLog)(**options)

    def open(self, candidate: Candidate, **options: Any) -> Any:
        manager = self.log.manager(candidate)
        asked = (SAMPLE_TAG, candidate, MESSAGES, options)
        return self._do(self.log.open, manager, *asked)

    def close(self, run: Any, outcome: LLMResult) -> None:
        self._do(self.log.close, run, outcome)

    def fail(self, run: Any, fault: BaseException) -> None:
        self._do(self.log.fail, run, fault)

    def release(self, *, withheld: bool) -> None:
        self._do(lambda: self.log.release(withheld=withheld))

    def _do(self, act: Callable[..., Any], *args: Any) -> Any:
        if self.way == "threads":
            return act(*args)
        return asyncio.run(_awaited(act, *args))


async def _awaited(act: Callable[..., Any], *args: Any) -> Any:
    return await act(*args)


def ended(handler: EverythingHandler) -> list[LLMResult]:
    return [event.args[0] for event in handler.events if event.name == "on_llm_end"]


def told(handler: EverythingHandler) -> list[AIMessage]:
    """Return the messages that ended the runs."""
    generations = [
        each for outcome in ended(handler) for each in outcome.generations[0]
    ]
    messages = [g.message for g in generations if isinstance(g, ChatGeneration)]
    assert len(messages) == len(generations)
    return [message for message in messages if isinstance(message, AIMessage)]


# --- what is told -------------------------------------------------------------------


@WAYS
def test_a_run_is_nested_tagged_and_named(way: str) -> None:
    outer, on_model, on_binding = (EverythingHandler() for _ in range(3))
    candidate = Candidate(
        model=model(callbacks=[on_model], tags=["model"], metadata={"m": 1}),
        kwargs={"stop": ["x"]},
        config={
            "callbacks": CallbackManager(handlers=[on_binding]),
            "tags": ["binding"],
            "metadata": {"b": 2},
        },
    )
    twin = Twin(way, config=under(outer, tags=["call"], metadata={"c": 3}))
    twin.close(twin.open(candidate, temperature=1.0), result("Paris"))
    for handler in (outer, on_model, on_binding):
        assert handler.names == ["on_chat_model_start", "on_llm_end"]
    start, end = outer.events
    assert (start.parent_run_id, end.run_id) == (PARENT, start.run_id)
    tags = start.kwargs["tags"]
    assert {"call", "binding", "model", SAMPLE_TAG, NOSTREAM_TAG} == set(tags)
    metadata = start.kwargs["metadata"]
    assert (metadata["m"], metadata["b"], metadata["c"]) == (1, 2, 3)
    assert metadata["ls_model_type"] == "chat"
    assert start.args[0]["name"] == "FakeListChatModel"
    assert start.args[0]["id"][-1] == "FakeListChatModel"
    assert start.args[1] == [MESSAGES]
    assert start.kwargs["name"] == "FakeListChatModel"
    assert start.kwargs["options"] == {"temperature": 1.0}
    assert start.kwargs["invocation_params"] == {
        "_type": "fake-list-chat-model",
        "temperature": 1.0,
    }


def test_the_answer_has_a_tag_of_its_own() -> None:
    handler = EverythingHandler()
    log = RunLog(config=under(handler))
    candidate = Candidate(model=model())
    log.open(log.manager(candidate), ANSWER_TAG, candidate, MESSAGES, {})
    assert ANSWER_TAG in handler.events[0].kwargs["tags"]


async def test_async_handlers_are_told_too() -> None:
    handler = AsyncEverythingHandler()
    log = AsyncRunLog(config={"callbacks": [handler]})
    candidate = Candidate(model=model())
    manager = log.manager(candidate)
    run = await log.open(manager, SAMPLE_TAG, candidate, MESSAGES, {})
    await log.close(run, result("Paris"))
    assert handler.names == ["on_chat_model_start", "on_llm_end"]


@WAYS
@pytest.mark.parametrize("hold", [False, True])
def test_where_nobody_listens_nothing_is_told(way: str, *, hold: bool) -> None:
    twin = Twin(way, config={}, hold=hold)
    run = twin.open(Candidate(model=model()))
    assert run is None
    twin.close(run, result("Paris"))
    twin.fail(run, ValueError())
    assert not twin.log.held
    twin.release(withheld=True)


@WAYS
def test_usage_is_told_once_for_a_request(way: str) -> None:
    handler = EverythingHandler()
    twin = Twin(way, config=under(handler))
    twin.close(twin.open(Candidate(model=model())), result("a", "b", model_name="m"))
    first, second = told(handler)
    assert (first.content, second.content) == ("a", "b")
    assert (first.usage_metadata, second.usage_metadata) == (USAGE, None)
    assert first.response_metadata == {"finish_reason": "stop", "model_name": "m"}
    assert ended(handler)[0].llm_output is None


@WAYS
def test_usage_is_left_to_an_outer_run_that_counts_it(way: str) -> None:
    handler = EverythingHandler()
    twin = Twin(way, config=under(handler), usage=False)
    twin.close(twin.open(Candidate(model=model())), result("a"))
    assert told(handler)[0].usage_metadata is None


@WAYS
def test_texts_are_left_out_where_the_user_wants_none(way: str) -> None:
    handler = EverythingHandler()
    twin = Twin(way, config=under(handler), texts=False)
    twin.close(twin.open(Candidate(model=model())), result("Paris", model="m"))
    assert handler.leaks("Paris") == []
    message = told(handler)[0]
    assert message == AIMessage(
        "", usage_metadata=USAGE, response_metadata={"model_name": "m"}
    )


@WAYS
def test_a_failure_is_told_as_it_is(way: str) -> None:
    handler, fault = EverythingHandler(), ValueError("no")
    twin = Twin(way, config=under(handler))
    twin.fail(twin.open(Candidate(model=model())), fault)
    assert handler.names == ["on_chat_model_start", "on_llm_error"]
    assert handler.events[1].args[0] is fault


@WAYS
def test_a_failure_while_held_back_does_not_quote_what_was_drawn(way: str) -> None:
    handler = EverythingHandler()
    twin = Twin(way, config=under(handler), hold=True)
    twin.fail(twin.open(Candidate(model=model())), ValueError("quoting Paris"))
    assert handler.leaks("Paris") == []
    shown = handler.events[1].args[0]
    assert isinstance(shown, SamplingError)
    assert str(shown) == "ValueError while drawing"


@WAYS
@pytest.mark.parametrize("withheld", [False, True])
def test_what_is_held_back_is_told_after_the_decision(
    way: str, *, withheld: bool
) -> None:
    handler = EverythingHandler()
    twin = Twin(way, config=under(handler), hold=True)
    for text in ("Paris", "Lyon"):
        twin.close(twin.open(Candidate(model=model())), result(text))
    assert handler.names == ["on_chat_model_start"] * 2
    assert handler.leaks("Paris") == []
    twin.release(withheld=withheld)
    assert handler.names == ["on_chat_model_start"] * 2 + ["on_llm_end"] * 2
    assert bool(handler.leaks("Paris")) is not withheld
    assert bool(handler.leaks("Lyon")) is not withheld
    assert [message.usage_metadata for message in told(handler)] == [USAGE, USAGE]
    twin.release(withheld=withheld)
    assert len(handler.names) == 4


@WAYS
@pytest.mark.parametrize("withheld", [False, True])
def test_what_ends_after_the_decision_is_closed_at_once(
    way: str, *, withheld: bool
) -> None:
    handler = EverythingHandler()
    twin = Twin(way, config=under(handler), hold=True)
    run = twin.open(Candidate(model=model()))
    twin.release(withheld=withheld)
    twin.close(run, result("Paris"))
    assert handler.names == ["on_chat_model_start", "on_llm_end"]
    assert bool(handler.leaks("Paris")) is not withheld


def test_a_decision_while_a_run_is_being_kept_leaves_it_not_open() -> None:
    handler = EverythingHandler()
    twin = Twin("threads", config=under(handler), hold=True)

    class Interrupted(deque[Any]):
        """As if another thread decided in the middle of it."""

        def append(self, item: Any, /) -> None:
            twin.release(withheld=True)
            super().append(item)

    twin.log.held = Interrupted()
    twin.close(twin.open(Candidate(model=model())), result("Paris"))
    assert handler.names == ["on_chat_model_start", "on_llm_end"]
    assert handler.leaks("Paris") == []


def test_what_has_no_usage_and_no_name_is_told_without() -> None:
    handler = EverythingHandler()
    twin = Twin("threads", config=under(handler), hold=True)
    bare = LLMResult(generations=[[ChatGeneration(message=AIMessage("Paris"))]])
    twin.close(twin.open(Candidate(model=model())), bare)
    twin.close(twin.open(Candidate(model=model())), bare)
    twin.release(withheld=True)
    (shown, _) = told(handler)
    assert (shown.content, shown.response_metadata, shown.usage_metadata) == (
        "",
        {},
        None,
    )
