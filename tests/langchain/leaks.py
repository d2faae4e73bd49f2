"""A search for withheld text, and every way to listen to LangChain."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import Any, ClassVar

import pytest
from langchain_core.callbacks import (
    AsyncCallbackHandler,
    BaseCallbackHandler,
    get_usage_metadata_callback,
)
from langchain_core.globals import set_debug
from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_core.tracers.context import collect_runs, register_configure_hook
from pydantic import BaseModel

from snne_guard import SNNEGuard, SnneGuardError
from tests.langchain.support import ask
from tests.support.openai_server import Answer, Scripted, split

SECRET = "Xanadu-by-the-lake"  # noqa: S105 - no password
SAMPLES = (SECRET, "Lyon", "Nice", "Metz")  # one sample repeats the withheld answer

WITHHOLDING: dict[str, dict[str, Any]] = {
    "refuse": {"on_uncertain": "refuse"},
    "raise": {"on_uncertain": "raise"},
    "fallback": {
        "on_uncertain": "fallback",
        "fallback": RunnableLambda(lambda _messages: AIMessage("Ask a librarian.")),
    },
    "a function that refuses": {"on_uncertain": lambda _assessment: "refuse"},
    "a function that raises": {"on_uncertain": lambda _assessment: "raise"},
    "a function that breaks": {"on_uncertain": lambda _assessment: 1 // 0},
    "a function that answers": {"on_uncertain": lambda _assessment: AIMessage("Hm.")},
    "pair": {"threshold": (0.0, 0.01)},
    "on_error": {"on_error": "raise", "min_replies": 5},
}


def script(how: str) -> Scripted:
    if how != "on_error":
        return split(SECRET, *SAMPLES)
    return lambda asked: (
        Answer(status=403) if asked.is_sample else Answer(texts=[SECRET])
    )


def withholding(model: Runnable[Any, Any], how: str, **more: Any) -> SNNEGuard:
    return SNNEGuard(model, **{"threshold": 0.0, **WITHHOLDING[how], **more})


def places(value: Any, text: str = SECRET) -> list[str]:
    """Return what in a value holds a text: in containers, fields, causes and reprs."""
    return [each for each in _texts(value, set()) if text in each]


def _texts(value: Any, seen: set[int]) -> Iterator[str]:
    if isinstance(value, str | bytes):
        yield value if isinstance(value, str) else value.decode(errors="replace")
    elif id(value) not in seen:
        seen.add(id(value))
        yield f"{value!r} {value}" if isinstance(value, BaseException) else repr(value)
        for part in _parts(value):
            yield from _texts(part, seen)


def _parts(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return [*value, *value.values()]
    if isinstance(value, BaseException):
        return [value.args, vars(value), value.__cause__, value.__context__]
    if isinstance(value, BaseModel):
        return [vars(value)]
    if dataclasses.is_dataclass(value):
        return [getattr(value, field.name) for field in dataclasses.fields(value)]
    return [*value] if isinstance(value, list | tuple | set | frozenset) else []


class Recorder:
    """Keeps every event of a handler, as ``(event, arguments)``."""

    run_inline = True

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, Any]] = []

    @property
    def events(self) -> list[str]:
        return [name for name, _ in self.seen]


def _record(name: str) -> Callable[..., None]:
    return lambda self, *args, **kwargs: self.seen.append((name, (args, kwargs)))


def _arecord(name: str) -> Callable[..., Any]:
    async def record(self: Recorder, *args: Any, **kwargs: Any) -> None:
        self.seen.append((name, (args, kwargs)))

    return record


# From the base class, so that an event of a newer version is not missed.
EVENTS = [name for name in dir(BaseCallbackHandler) if name.startswith("on_")]
Handler: Any = type(
    "Handler",
    (Recorder, BaseCallbackHandler),
    {name: _record(name) for name in EVENTS},
)
AsyncHandler: Any = type(
    "AsyncHandler",
    (Recorder, AsyncCallbackHandler),
    {name: _arecord(name) for name in EVENTS},
)


class ByEnvironment(Handler):  # type: ignore[misc]  # a class made at run time
    """A tracer that an environment variable switches on."""

    born: ClassVar[list[ByEnvironment]] = []

    def __init__(self) -> None:
        super().__init__()
        self.born.append(self)


_tracer: ContextVar[ByEnvironment | None] = ContextVar("tracer", default=None)
register_configure_hook(
    _tracer, inheritable=True, handle_class=ByEnvironment, env_var="TEST_TRACING"
)


class Listeners:
    """Every way to listen to LangChain, switched on.

    Attributes:
        config: What the caller passes.
        inner: Handlers of the guarded model itself.
        outer: Handlers in that config.
    """

    def __init__(self, way: str, stack: ExitStack) -> None:
        kinds = [Handler, AsyncHandler] if way.startswith("a") else [Handler]
        self.outer = [kind() for kind in kinds]
        self.inner = [Handler(), Handler()]
        self.config = {"callbacks": list(self.outer)}
        self.usage = stack.enter_context(get_usage_metadata_callback())
        self.runs = stack.enter_context(collect_runs())
        ByEnvironment.born.clear()

    @property
    def heard(self) -> dict[str, Any]:
        hooked = [handler.seen for handler in ByEnvironment.born]
        assert hooked, "the hook was not called"
        return {
            "outer": [handler.seen for handler in self.outer],
            "inner": [handler.seen for handler in self.inner],
            "hooked": hooked,
            "runs": [run.model_dump() for run in self.runs.traced_runs],
            "usage": self.usage.usage_metadata,
        }


@contextmanager
def listening(way: str) -> Iterator[Listeners]:
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        patch.setenv("TEST_TRACING", "true")
        set_debug(True)
        try:
            yield Listeners(way, stack)
        finally:
            set_debug(False)


def outcome_of(guard: Runnable[Any, Any], way: str, config: Any = None) -> Any:
    try:
        return ask(guard, way, config)
    except (SnneGuardError, ZeroDivisionError) as error:
        return error
