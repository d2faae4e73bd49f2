"""Callback handlers that record everything, and the search for a withheld text."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from pydantic import BaseModel

__all__ = ["AsyncEverythingHandler", "Event", "EverythingHandler", "find_text"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One call of a handler: its name, the run and all that it was given."""

    name: str
    run_id: UUID | None
    parent_run_id: UUID | None
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


class Recording:
    """What both handlers share: the events so far and the search in them."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._events: list[Event] = []

    @property
    def events(self) -> list[Event]:
        """Every event so far, in the order of arrival."""
        with self._lock:
            return list(self._events)

    @property
    def names(self) -> list[str]:
        """The names of the events, in the order of arrival."""
        return [event.name for event in self.events]

    def leaks(self, text: str) -> list[str]:
        """Return where a text was received, empty if it was nowhere.

        Looks into messages, results, exceptions with their causes, and the reprs of
        all else; tokens are put together first, for each run.
        """
        found: list[str] = []
        tokens: dict[UUID | None, str] = {}
        for position, event in enumerate(self.events):
            where = f"{position}:{event.name}"
            found += find_text(text, event.args, where)
            found += find_text(text, event.kwargs, where)
            tokens[event.run_id] = tokens.get(event.run_id, "") + _token(event)
        found += [
            f"tokens of run {run}" for run, said in tokens.items() if text in said
        ]
        return found

    def _record(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        event = Event(
            name=name,
            run_id=kwargs.get("run_id"),
            parent_run_id=kwargs.get("parent_run_id"),
            args=args,
            kwargs=kwargs,
        )
        with self._lock:
            self._events.append(event)


class EverythingHandler(Recording, BaseCallbackHandler):
    """Records every event with all its arguments, in the caller's thread."""

    run_inline = True


class AsyncEverythingHandler(Recording, AsyncCallbackHandler):
    """Records every event with all its arguments, on the event loop."""

    run_inline = True


def _recorder(name: str) -> Callable[..., None]:
    def record(self: Recording, *args: Any, **kwargs: Any) -> None:
        self._record(name, args, kwargs)

    return record


def _async_recorder(name: str) -> Callable[..., Any]:
    async def record(self: Recording, *args: Any, **kwargs: Any) -> None:
        self._record(name, args, kwargs)

    return record


# Taken from the base class, so that an event of a newer version is not missed.
for _name in dir(BaseCallbackHandler):
    if _name.startswith("on_"):
        setattr(EverythingHandler, _name, _recorder(_name))
        setattr(AsyncEverythingHandler, _name, _async_recorder(_name))


def _token(event: Event) -> str:
    if event.name == "on_llm_new_token":
        return str(event.args[0] if event.args else event.kwargs.get("token", ""))
    return ""


def find_text(text: str, value: Any, where: str = "value") -> list[str]:
    """Return the innermost places in a value at which a text is found.

    Looks at strings, bytes, containers, the fields of pydantic models and
    dataclasses, exceptions (arguments, notes, attributes, causes, contexts), and the
    repr of anything else. Not at the local variables in tracebacks.
    """
    return list(dict.fromkeys(_search(text, value, where, set())))


def _search(text: str, value: Any, where: str, seen: set[int]) -> Iterator[str]:
    if isinstance(value, str):
        if text in value:
            yield where
        return
    if isinstance(value, bytes | bytearray):
        if text.encode() in value:
            yield where
        return
    if id(value) in seen:
        return
    seen.add(id(value))
    inside = [
        place
        for name, part in _parts(value)
        for place in _search(text, part, f"{where}.{name}", seen)
    ]
    yield from inside
    if not inside and text in f"{value!r} {_as_str(value)}":
        yield where


def _as_str(value: Any) -> str:
    return str(value) if isinstance(value, BaseException) else ""


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, item in list(value.items()):
            yield "key", key
            yield str(key), item
    elif isinstance(value, BaseException):
        yield "args", value.args
        yield "attributes", vars(value)
        yield "cause", value.__cause__
        yield "context", value.__context__
    elif isinstance(value, BaseModel):
        yield "fields", vars(value)
        yield "extra", value.__pydantic_extra__
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield field.name, getattr(value, field.name, None)
    elif isinstance(value, list | tuple | set | frozenset):
        for position, item in enumerate(value):
            yield str(position), item
