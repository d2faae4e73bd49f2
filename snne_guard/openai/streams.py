"""Streams of a guarded client."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from contextlib import suppress
from itertools import chain, islice
from types import SimpleNamespace
from typing import Any, Self

import openai

from snne_guard.call import Outcome
from snne_guard.openai.answers import attach

__all__ = ["AsyncGuardedStream", "GuardedStream", "StreamEnd"]


class GuardedStream(openai.Stream[Any]):
    """A stream of a guarded client.

    If the answer may be withheld, nothing comes before the decision. Closing the stream
    ends the samples too. Of its HTTP ``response`` only ``close`` is there, and of what
    ``with_streaming_response`` gives only ``parse``.

    Args:
        parts: What it yields. The first part is waited for, so that a request that
            fails raises where it is sent.
    """

    def __init__(self, parts: Generator[Any]) -> None:
        # Neither refers to the stream, so that one that is dropped ends its requests.
        def close() -> None:
            with suppress(ValueError):  # another thread is reading it
                parts.close()

        self._iterator = chain(list(islice(parts, 1)), parts)
        self.response: Any = SimpleNamespace(close=close)

    def parse(self) -> Self:
        """Return the stream itself, as what ``with_streaming_response`` gives does."""
        return self


class AsyncGuardedStream(openai.AsyncStream[Any]):
    """A stream of a guarded client for tasks, as ``GuardedStream``.

    Args:
        first: The first part, None if there is none.
        parts: What comes after it.
    """

    def __init__(self, first: object, parts: AsyncGenerator[Any]) -> None:
        # Neither refers to the stream, so that one that is dropped ends its requests.
        async def close() -> None:
            with suppress(RuntimeError):  # another task is reading it
                await parts.aclose()

        self._iterator = _chained(first, parts)
        self.response: Any = SimpleNamespace(aclose=close)

    async def parse(self) -> Self:
        """Return the stream itself, as what ``with_streaming_response`` gives does."""
        return self


async def _chained(first: object, parts: AsyncGenerator[Any]) -> AsyncGenerator[Any]:
    if first is not None:
        yield first
    async for part in parts:
        yield part


class StreamEnd:
    """Holds the last part of an answer's stream until the answer is assessed.

    Which one is the last shows only at the end, so each part is passed on with the
    next.
    """

    def __init__(self) -> None:
        self._held: list[Any] = []

    def pass_on(self, item: object) -> list[Any]:
        """Return what the application gets for an item of the driver's stream.

        Args:
            item: A part of the answer, or the outcome, which comes last.

        Raises:
            BaseException: What the answer failed with.
        """
        if isinstance(item, Outcome):
            if item.error is not None:
                raise item.error
            return [attach(last, item.assessment.to_metadata()) for last in self._held]
        before, self._held = self._held, [item]
        return before
