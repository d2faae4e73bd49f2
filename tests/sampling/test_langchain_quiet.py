"""Contexts and configurations in which no handler hears of the samples."""

from __future__ import annotations

import contextvars
from contextlib import contextmanager
from typing import Any, ClassVar
from uuid import uuid4

import pytest
from langchain_core.callbacks import (
    CallbackManager,
    get_usage_metadata_callback,
)
from langchain_core.globals import set_debug
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

from snne_guard.sampling.langchain_quiet import quiet_config, quiet_context, silent
from tests.sampling.runs import PARENT, model, under
from tests.support.chat_server import ChatServer, always, chat_openai
from tests.support.handlers import EverythingHandler

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
