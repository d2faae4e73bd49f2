"""Requests past LangChain's callbacks, and what they bring.

What ``generate`` and ``agenerate`` do with the same request is what is right.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import (
    BaseChatModel,
    FakeListChatModel,
    GenericFakeChatModel,
)
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult, LLMResult

from snne_guard.sampling.langchain_direct import (
    agenerate,
    ais_direct,
    asend,
    generate,
    is_direct,
    send,
)
from snne_guard.sampling.langchain_models import Candidate
from snne_guard.sampling.langchain_runs import AsyncRunLog, RunLog
from tests.sampling.models import fake, gpt
from tests.support.chat_server import (
    ChatServer,
    Reply,
    Usage,
    chat_openai,
    cycle,
    in_turn,
    response,
)
from tests.support.guarding import run_in_loop
from tests.support.handlers import EverythingHandler
from tests.support.rate_limits import Counting

WAYS = pytest.mark.parametrize("way", ["threads", "tasks"])
QUESTION = [HumanMessage("Capital of France?")]
IMAGE = {
    "type": "image",
    "source_type": "base64",
    "mime_type": "image/png",
    "data": "aGk=",
}
DOCUMENT = {
    "type": "file",
    "source_type": "base64",
    "mime_type": "application/pdf",
    "data": "aGk=",
    "filename": "a.pdf",
}


def ask(
    way: str,
    model: BaseChatModel,
    options: dict[str, Any],
    messages: Sequence[BaseMessage] = QUESTION,
    *,
    by: str = "send",
    marks: Sequence[str] = (),
    **config: Any,
) -> LLMResult:
    """Send one request by a function of the module, as a guard does."""
    candidate = Candidate(model=model)
    if way == "threads":
        log = RunLog(config={"callbacks": [], **config})  # type: ignore[typeddict-item]  # any key of it
        run = log.unheard(log.manager(candidate), *marks)
        return {"send": send, "generate": generate}[by](model, messages, options, run)
    alog = AsyncRunLog(config={"callbacks": [], **config})  # type: ignore[typeddict-item]  # any key of it
    arun = alog.unheard(alog.manager(candidate), *marks)
    chosen = {"send": asend, "generate": agenerate}[by]
    return run_in_loop(chosen(model, messages, options, arun))


def ask_as_ever(
    way: str,
    model: BaseChatModel,
    options: dict[str, Any],
    messages: Sequence[BaseMessage] = QUESTION,
) -> LLMResult:
    if way == "threads":
        return model.generate([list(messages)], callbacks=[], **options)
    return run_in_loop(model.agenerate([list(messages)], callbacks=[], **options))


def seen_of(result: LLMResult) -> list[Any]:
    """Return what there is in a result, without the ids of runs."""
    found = []
    for generation in result.generations[0]:
        assert isinstance(generation, ChatGeneration)
        message = generation.message
        mark = (message.id or "").split("--")
        assert mark[0] != "lc_run" or len(mark[1]) >= 36
        bare = message.model_copy(update={"id": mark[0]})
        found.append((type(message), bare, generation.generation_info))
    return found


def is_way_direct(way: str, model: BaseChatModel, options: dict[str, Any]) -> bool:
    return (is_direct if way == "threads" else ais_direct)(model, options)


# --- the same as ever ----------------------------------------------------------------


RESPONSES = {"use_responses_api": True}
SEVERAL = {"n": 3, "logprobs": True}


@WAYS
@pytest.mark.parametrize(
    ("settings", "options"),
    [
        ({}, {}),
        ({}, {"temperature": 1.0, "seed": 3, "stop": ["."]}),
        ({}, SEVERAL),
        ({"output_version": "v1"}, SEVERAL),
        ({"streaming": True}, {"logprobs": True}),
        ({"streaming": True, "output_version": "v1"}, {}),
        ({"disable_streaming": True}, SEVERAL),
        (RESPONSES, {}),
        ({**RESPONSES, "output_version": "v1"}, {"max_tokens": 9}),
    ],
    ids=str,
)
def test_a_real_clients_reply_is_the_same_and_so_is_the_request(
    way: str, settings: dict[str, Any], options: dict[str, Any]
) -> None:
    outcomes = []
    for asking in (ask_as_ever, ask):
        texts = cycle(["<think>hm</think> Paris", "Lyon", "Nice"])
        responses = in_turn([response("Paris")])
        script = responses if "use_responses_api" in settings else texts
        with ChatServer(script) as server:
            model = chat_openai(server, **settings)
            assert is_way_direct(way, model, options)
            found = seen_of(asking(way, model, options))
            (request,) = server.requests
        outcomes.append((found, [str(each) for each in found], request.body))
    assert outcomes[0] == outcomes[1]


@WAYS
def test_the_client_is_told_of_what_it_counts_and_who_answered(way: str) -> None:
    reply = Reply(texts=["a", "b"], model="served", usage=Usage(prompt=3, completion=2))
    with ChatServer([reply]) as server:
        result = ask(way, chat_openai(server), {"n": 2})
    assert result.llm_output is not None
    assert result.llm_output["model_name"] == "served"
    assert result.llm_output["token_usage"]["prompt_tokens"] == 3


@WAYS
@pytest.mark.parametrize("block", [IMAGE, DOCUMENT], ids=["image", "file"])
def test_blocks_of_older_forms_reach_the_server_as_ever(way: str, block: Any) -> None:
    messages = [HumanMessage([{"type": "text", "text": "What is it?"}, block])]
    with ChatServer(cycle(["Paris"])) as server:
        model = chat_openai(server)
        ask_as_ever(way, model, {}, messages)
        ask(way, model, {}, messages)
        first, second = server.requests
    assert second.body == first.body
    assert messages[0].content[1] == block


@WAYS
def test_what_only_tracers_are_told_does_not_reach_the_provider(way: str) -> None:
    told: dict[str, Any] = {
        "ls_structured_output_format": {"kwargs": {}, "schema": {}},
        "structured_output_format": {"kwargs": {}, "schema": {}},
    }
    with ChatServer(cycle(["Paris"])) as server:
        ask(way, chat_openai(server), told)
        (request,) = server.requests
    assert not told.keys() & request.body.keys()
    assert len(told) == 2


class Scripted(BaseChatModel):
    """A model that knows no tasks, and keeps what it was given."""

    given: list[Any] = []  # noqa: RUF012 - pydantic copies it for each model

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        self.given.append((messages, stop, run_manager, kwargs))
        assert run_manager is not None
        run_manager.on_llm_new_token("Paris")
        info = {"finish_reason": "stop"}
        message = AIMessage("Paris", response_metadata={"own": 1})
        generation = ChatGeneration(message=message, generation_info=info)
        return ChatResult(generations=[generation], llm_output={"model_name": "m"})


@WAYS
def test_a_model_without_tasks_is_asked_in_a_thread(way: str) -> None:
    model, options = Scripted(), {"stop": ["."], "k": 1}
    wanted = seen_of(ask_as_ever(way, model, options))
    assert seen_of(ask(way, model, options)) == wanted
    (_, message, _) = wanted[0]
    assert message.response_metadata == {
        "finish_reason": "stop",
        "own": 1,
        "model_name": "m",
    }
    (first, second) = model.given
    assert first[:2] == second[:2] == (QUESTION, ["."])
    assert first[3] == second[3] == {"k": 1}


@WAYS
def test_the_run_that_a_model_is_given_tells_nobody_and_says_whose_it_is(
    way: str,
) -> None:
    model = Scripted(tags=["model"], metadata={"m": 1})
    config: dict[str, Any] = {"tags": ["call"], "metadata": {"c": 2}}
    result = ask(way, model, {}, marks=["sample"], **config)
    run = model.given[0][2]
    assert isinstance(run, CallbackManagerForLLMRun)
    assert run.handlers == run.inheritable_handlers == []
    assert sorted(run.tags) == ["call", "model", "sample"]
    assert (run.metadata["m"], run.metadata["c"]) == (1, 2)
    (generation,) = result.generations[0]
    assert isinstance(generation, ChatGeneration)
    assert generation.message.id == f"lc_run--{run.run_id}-0"


class Plain(FakeListChatModel):
    """A model whose methods take no run."""

    def _generate(  # type: ignore[override]  # as older classes had it
        self, messages: list[BaseMessage], stop: Any = None, **kwargs: Any
    ) -> ChatResult:
        assert "run_manager" not in kwargs
        return super()._generate(messages, stop)

    async def _agenerate(  # type: ignore[override]  # as older classes had it
        self, messages: list[BaseMessage], stop: Any = None, **kwargs: Any
    ) -> ChatResult:
        assert "run_manager" not in kwargs
        return super()._generate(messages, stop)


@WAYS
def test_a_model_whose_methods_take_no_run_is_given_none(way: str) -> None:
    assert seen_of(ask(way, Plain(responses=["Paris"]), {}))[0][1].content == "Paris"


@WAYS
def test_a_rate_limiter_is_waited_for(way: str) -> None:
    limiter = Counting()
    ask(way, gpt_like(rate_limiter=limiter), {})
    assert limiter.asked == 1


def gpt_like(**options: Any) -> GenericFakeChatModel:
    return GenericFakeChatModel(messages=iter(["Paris is it"]), **options)


@WAYS
def test_a_failure_is_the_models_own(way: str) -> None:
    fault = ValueError("no")

    class Failing(Scripted):
        def _generate(self, *_args: Any, **_kwargs: Any) -> ChatResult:
            raise fault

    with pytest.raises(ValueError, match="no") as raised:
        ask(way, Failing(), {})
    assert raised.value is fault


# --- any request --------------------------------------------------------------------


@WAYS
def test_what_cannot_be_sent_directly_is_generated(way: str) -> None:
    asked: list[str] = []

    class Own(type(gpt())):  # type: ignore[misc]  # a class of the client's
        def generate(self, *args: Any, **kwargs: Any) -> LLMResult:
            asked.append("generate")
            result: LLMResult = super().generate(*args, **kwargs)
            return result

        async def agenerate(self, *args: Any, **kwargs: Any) -> LLMResult:
            asked.append("agenerate")
            result: LLMResult = await super().agenerate(*args, **kwargs)
            return result

    reply = Reply(texts=["a", "b"], model="served")
    with ChatServer([reply]) as server:
        given = chat_openai(server)
        model = Own(**{name: getattr(given, name) for name in given.model_fields_set})
        result = ask(way, model, {"n": 2}, by="generate")
    assert asked == ["generate" if way == "threads" else "agenerate"]
    assert [g.text for g in result.generations[0]] == ["a", "b"]
    assert result.llm_output is not None
    assert result.llm_output["model_name"] == "served"


@WAYS
def test_what_can_is_sent(way: str) -> None:
    result = ask(way, gpt_like(), {}, by="generate")
    assert result.generations[0][0].text == "Paris is it"


@WAYS
def test_a_log_that_tells_nobody_still_says_whose_a_run_is(way: str) -> None:
    handler = EverythingHandler()
    kind: Any = RunLog if way == "threads" else AsyncRunLog
    log = kind(config={"tags": ["t"], "callbacks": [handler]}, told=False)
    manager = log.manager(Candidate(model=fake()))
    assert manager.handlers == manager.inheritable_handlers == []
    run = log.unheard(manager, "a")
    assert (run.tags, run.handlers) == (["t", "a"], [])
