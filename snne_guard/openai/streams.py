"""Streams of a guarded client; their last part carries the assessment."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, Self

import openai

__all__ = ["AsyncGuardedStream", "GuardedStream"]


class GuardedStream(openai.Stream[Any]):
    """A stream of a guarded client.

    Nothing of it comes before the decision where the answer may be withheld. Closing it
    ends the samples too. Of its HTTP ``response`` only ``close`` is there.

    Args:
        parts: What it yields. The first part is waited for, so that a request that
            fails raises where it is sent.
    """

    def __init__(self, parts: Generator[Any]) -> None:
        first = [part for part in (next(parts, None),) if part is not None]
        rest = _resumed(first, parts)

        def close() -> None:
            with suppress(ValueError):  # another thread is reading it
                rest.close()
                parts.close()

        self._iterator = rest
        self.response: Any = SimpleNamespace(close=close)


class AsyncGuardedStream(openai.AsyncStream[Any]):
    """A stream of a guarded client for tasks, as ``GuardedStream``.

    Args:
        first: The first part, if there is one.
        parts: What comes after it.
    """

    def __init__(self, first: list[Any], parts: AsyncGenerator[Any]) -> None:
        rest = _aresumed(first, parts)

        async def close() -> None:
            with suppress(RuntimeError):  # another task is reading it
                await rest.aclose()
                await parts.aclose()

        self._iterator = rest
        self.response: Any = SimpleNamespace(aclose=close)

    @classmethod
    async def open(cls, parts: AsyncGenerator[Any]) -> Self:
        """Return a stream whose first part has come."""
        first = [part for part in (await anext(parts, None),) if part is not None]
        return cls(first, parts)


# These refer to no stream, so that one that is dropped ends its requests at once.
def _resumed(first: list[Any], parts: Generator[Any]) -> Generator[Any]:
    yield from first
    yield from parts


async def _aresumed(
    first: list[Any], parts: AsyncGenerator[Any]
) -> AsyncGenerator[Any]:
    for part in first:
        yield part
    async for part in parts:
        yield part
