"""What callback handlers are told, when, and what they never see."""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any, ClassVar
from uuid import UUID, uuid4

import pytest
from langchain_core.callbacks import (
    BaseCallbackHandler,
    CallbackManager,
    get_usage_metadata_callback,
)
from langchain_core.globals import set_debug
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import (
    ensure_config,
    set_config_context,
    var_child_runnable_config,
)
from langchain_core.tracers import ConsoleCallbackHandler, context
from langchain_core.tracers.context import (
    register_configure_hook,
    tracing_v2_callback_var,
)
from langsmith.run_helpers import get_tracing_context, tracing_context

from snne_guard.errors import SamplingError
from snne_guard.sampling.langchain_models import Candidate
from snne_guard.sampling.langchain_runs import (
    ANSWER_TAG,
    NOSTREAM_TAG,
    SAMPLE_TAG,
    AsyncRunLog,
    RunLog,
    quiet_config,
    quiet_context,
    silent,
)
from tests.support.chat_server import ChatServer, always, chat_openai
from tests.support.handlers import AsyncEverythingHandler, EverythingHandler

WAYS = pytest.mark.parametrize("way", ["threads", "tasks"])
MESSAGES = [HumanMessage("Capital of France?")]
USAGE: Any = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}


def model(**options: Any) -> FakeListChatModel:
    return FakeListChatModel(responses=["x"], **options)


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


def under(*handlers: BaseCallbackHandler, **options: Any) -> RunnableConfig:
    """Return the configuration of a call whose own run is the parent."""
    manager = CallbackManager(
        handlers=list(handlers),
        inheritable_handlers=list(handlers),
        parent_run_id=PARENT,
    )
    config: RunnableConfig = {"callbacks": manager, **options}  # type: ignore[typeddict-item]  # any key of it
    return config


PARENT = UUID(int=7)


class Twin:
    """Both logs behind one face."""

    def __init__(self, way: str, **options: Any) -> None:
        self.way = way
        self.log: Any = (RunLog if way == "threads" else AsyncRunLog)(**options)

    def open(self, candidate: Candidate, **options: Any) -> Any:
        manager = self.log.manager(candidate, SAMPLE_TAG)
        return self._do(self.log.open, manager, candidate, MESSAGES, options)

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


# --- contexts and configurations -----------------------------------------------------


def test_handlers_opened_with_with_are_hidden_and_the_users_context_is_not() -> None:
    config: RunnableConfig = {"callbacks": [], "tags": ["t"]}
    with ChatServer(always("Paris")) as server, get_usage_metadata_callback() as usage:
        client = chat_openai(server)
        quiet = quiet_context()
        assert quiet.run(lambda: client.invoke("x", config)).content == "Paris"
        assert usage.usage_metadata == {}
        client.invoke("x", config)
        assert usage.usage_metadata["test-model"]["total_tokens"] == 2


@contextmanager
def variable_set(variable: contextvars.ContextVar[Any], value: Any) -> Any:
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


OWN: contextvars.ContextVar[Any] = contextvars.ContextVar("own", default=None)


@pytest.mark.parametrize("variable", [tracing_v2_callback_var, OWN])
def test_tracers_and_managers_in_variables_are_hidden(variable: Any) -> None:
    for value in (EverythingHandler(), CallbackManager(handlers=[])):
        with variable_set(variable, value):
            found = quiet_context()[variable]
            assert not isinstance(found, EverythingHandler | CallbackManager)
            assert variable.get() is value


@pytest.mark.parametrize("value", ["text", 3, {"a": 1}, None])
def test_variables_of_the_application_travel_unchanged(value: object) -> None:
    with variable_set(OWN, value):
        assert quiet_context()[OWN] is value


def test_the_run_that_we_are_in_is_not_inherited() -> None:
    handler = EverythingHandler()
    config = under(handler, tags=["kept"], metadata={"k": "v"}, run_id=uuid4())
    with set_config_context(config) as inside:
        quiet = inside.run(quiet_context)
        assert inside[var_child_runnable_config] == config
    inherited = quiet.run(ensure_config)
    assert inherited["callbacks"] == []
    assert inherited["tags"] == ["kept"]
    quiet.run(model().invoke, "x")
    assert handler.names == []


def test_a_quiet_configuration_keeps_all_but_the_handlers_and_the_run() -> None:
    config = under(
        EverythingHandler(), tags=["t"], metadata={"k": 1}, run_id=PARENT, run_name="r",
        configurable={"c": 2}, max_concurrency=3,
    )  # fmt: skip
    assert quiet_config(config) == {
        "tags": ["t"],
        "metadata": {"k": 1},
        "configurable": {"c": 2},
        "max_concurrency": 3,
        "callbacks": [],
    }
    assert "run_name" in config


def test_langsmiths_own_tracing_is_off_inside() -> None:
    with tracing_context(enabled=True):
        inside = quiet_context().run(get_tracing_context)
        assert (inside["enabled"], inside["parent"]) == (False, None)
        assert get_tracing_context()["enabled"] is True


def test_debugging_prints_nothing_of_a_quiet_call(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert silent() == []
    set_debug(value=True)
    try:
        config = quiet_config({"callbacks": [EverythingHandler()]})
        (inert,) = config["callbacks"]  # type: ignore[misc]  # a list in this case
        assert isinstance(inert, ConsoleCallbackHandler)
        quiet_context().run(model().invoke, "x", config)
        assert capsys.readouterr().out == ""
        model().invoke("x")
        assert "[llm/start]" in capsys.readouterr().out
    finally:
        set_debug(value=False)


class Tracer(EverythingHandler):
    """A tracer that an environment variable switches on."""

    made: ClassVar[list[Tracer]] = []

    def __init__(self) -> None:
        super().__init__()
        self.made.append(self)


def test_tracers_that_a_variable_of_the_environment_makes_are_kept_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(context, "_configure_hooks", [*context._configure_hooks])
    register_configure_hook(
        OWN, inheritable=True, handle_class=Tracer, env_var="OWN_TRACER"
    )
    monkeypatch.setenv("OWN_TRACER", "true")
    quiet_context().run(model().invoke, "x")
    assert Tracer.made == []
    model().invoke("x")
    assert len(Tracer.made) == 1
    assert OWN.get() is None


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
    log.open(log.manager(candidate, ANSWER_TAG), candidate, MESSAGES, {})
    assert ANSWER_TAG in handler.events[0].kwargs["tags"]


async def test_async_handlers_are_told_too() -> None:
    handler = AsyncEverythingHandler()
    log = AsyncRunLog(config={"callbacks": [handler]})
    candidate = Candidate(model=model())
    manager = log.manager(candidate, SAMPLE_TAG)
    await log.close(await log.open(manager, candidate, MESSAGES, {}), result("Paris"))
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
