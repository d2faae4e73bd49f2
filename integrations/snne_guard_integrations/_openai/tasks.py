"""A guarded client in tasks: its requests, its streams."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self, cast

import openai

from snne_guard import AsyncOpenAIGuard
from snne_guard_integrations._openai.answers import stripped
from snne_guard_integrations._openai.closing import AsyncClosing
from snne_guard_integrations._openai.parts import Whole, ends
from snne_guard_integrations._openai.requests import RAW, Post, unguarded
from snne_guard_integrations._openai.shared import Delivery, Settled, is_stream, marked

__all__ = ["AsyncGuardedStream", "AsyncGuarding"]


@dataclass(frozen=True, kw_only=True)
class AsyncGuarding:
    """The twin of ``Guarding``.

    Attributes:
        inner: The user's own client.
        guard: Draws the samples and decides.
        delivery: How decisions are carried out.
    """

    inner: openai.AsyncOpenAI
    guard: AsyncOpenAIGuard
    delivery: Delivery

    def over(self, options: Mapping[str, Any]) -> AsyncGuarding:
        """Return the same over the user's client with other options."""
        inner = self.inner.copy(**options)
        return replace(self, inner=inner, guard=self.guard.with_client(inner))

    async def deliver(self, post: Post) -> Any:  # noqa: ANN401 - what the API gives
        """Return what the application gets."""
        if post.stream:
            return await AsyncGuardedStream.open(self, post)
        settled = await self._settle(post)
        if settled.error is not None:
            raise settled.error
        if settled.parts is not None:
            return settled.parts[-1]
        given = await self.instead(post)
        return self.delivery.tagged(post, given, settled.record)[-1]

    async def instead(self, post: Post) -> Any:  # noqa: ANN401 - what the API gives
        """Return what the fallback says: a text, an object of the API, a stream."""
        given = self.delivery.asked(post)
        if given is None:
            return await post.send(self.inner, model=self.delivery.fallback)
        return await given if inspect.isawaitable(given) else given

    async def _settle(self, post: Post) -> Settled:
        turn = self.guard.begin(api=post.api, **post.request)
        if post.raw and turn.holds:
            raise unguarded(RAW)
        strip = bool(turn.added)
        async with turn:
            try:
                result = await turn.ask(partial(post.send, self.inner))
                answer = result.parse() if post.raw else result
                turn.answered(answer)
            except Exception as failed:
                if self.delivery.fallback is None or post.raw:
                    raise
                return Settled(record=(await turn.hand_over(failed)).to_metadata())
            assessment, error = await turn.settle()
        settled = self.delivery.settled(post, assessment, error, [answer], strip=strip)
        # The parsed object, which is kept with it, is the one that was marked.
        return replace(settled, parts=[result]) if post.raw else settled


class AsyncGuardedStream(openai.AsyncStream[Any]):
    """The twin of ``GuardedStream``; ``open`` makes it.

    Args:
        run: What comes in it.
        parts: Its parts.
        response: What the HTTP client gave.
    """

    def __init__(self, run: _Run, parts: AsyncGenerator[Any], response: Any) -> None:  # noqa: ANN401 - of the HTTP client
        # They refer to nothing that refers to it: one that is dropped ends at once.
        self._run, self._iterator = run, parts
        self.response = cast("Any", AsyncClosing(response, parts.aclose))

    @classmethod
    async def open(cls, guarding: AsyncGuarding, post: Post) -> Self:
        """Return a stream that is open.

        Args:
            guarding: Whom it asks.
            post: What is asked.
        """
        run = _Run(guarding, post)
        parts = run.parts()
        response = await anext(parts)  # it is open now, or it has failed
        return cls(run, parts, response)

    @property
    def snne_guard(self) -> dict[str, Any] | None:
        """The assessment, None before the stream has ended."""
        return self._run.record


class _Run:
    """The parts of one stream, and what is found at its end."""

    def __init__(self, guarding: AsyncGuarding, post: Post) -> None:
        self._guarding, self._post = guarding, post
        self._opened = False
        self._settled = Settled()
        self.record: dict[str, Any] | None = None

    async def parts(self) -> AsyncGenerator[Any]:
        """Yield the HTTP response, and then what the application gets."""
        async with aclosing(self._drawn()) as drawn:
            async for part in drawn:
                yield part
        settled = self._settled
        if settled.error is not None:
            raise settled.error
        if settled.parts is not None:
            self.record = settled.record
            for part in settled.parts:
                yield part
            return
        async with aclosing(self._instead(settled.record)) as instead:
            async for part in instead:
                yield part

    async def _drawn(self) -> AsyncGenerator[Any]:
        post, delivery = self._post, self._guarding.delivery
        turn = self._guarding.guard.begin(api=post.api, **post.request)
        strip, whole = bool(turn.added), Whole()
        held: list[Any] = []
        shown = False
        async with turn:
            try:
                asking = turn.ask(partial(post.send, self._guarding.inner))
                async with await asking as stream:
                    self._opened = True
                    yield stream.response
                    parts = aiter(stream)
                    while (part := await turn.next(parts)) is not None:
                        whole.add(part)
                        if turn.holds or held or ends(part):
                            held.append(part)
                            continue
                        shown = True
                        yield stripped(part) if strip else part
                turn.answered(whole.answer)
            except Exception as failed:
                if delivery.fallback is None or shown:
                    raise
                handed = await turn.hand_over(failed)
                self._settled = Settled(record=handed.to_metadata())
                return
            assessment, error = await turn.settle()
        self._settled = delivery.settled(post, assessment, error, held, strip=strip)

    async def _instead(self, record: dict[str, Any]) -> AsyncGenerator[Any]:
        given = await self._guarding.instead(self._post)
        if not is_stream(given):
            if not self._opened:
                yield None
            self.record = record
            for part in self._guarding.delivery.tagged(self._post, given, record):
                yield part
            return
        held: list[Any] = []
        async with given as stream:
            if not self._opened:
                yield stream.response
            async for part in stream:
                if held or ends(part):
                    held.append(part)
                else:
                    yield part
        self.record = record
        for part in marked(held, record):
            yield part
