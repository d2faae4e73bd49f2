"""A guarded client in threads: its requests, its streams."""

from __future__ import annotations

import inspect
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import openai

from snne_guard import ConfigurationError, OpenAIGuard
from snne_guard_integrations._openai.answers import stripped
from snne_guard_integrations._openai.closing import Closing
from snne_guard_integrations._openai.parts import Whole, ends
from snne_guard_integrations._openai.requests import RAW, Post, unguarded
from snne_guard_integrations._openai.shared import Delivery, Settled, is_stream, marked

__all__ = ["GuardedStream", "Guarding"]


@dataclass(frozen=True, kw_only=True)
class Guarding:
    """Whom a guarded client asks, and what becomes of the answers.

    Attributes:
        inner: The user's own client.
        guard: Draws the samples and decides.
        delivery: How decisions are carried out.
    """

    inner: openai.OpenAI
    guard: OpenAIGuard
    delivery: Delivery

    def over(self, options: Mapping[str, Any]) -> Guarding:
        """Return the same over the user's client with other options."""
        inner = self.inner.copy(**options)
        return replace(self, inner=inner, guard=self.guard.with_client(inner))

    def deliver(self, post: Post) -> Any:  # noqa: ANN401 - what the API gives
        """Return what the application gets."""
        if post.stream:
            return GuardedStream(self, post)
        settled = self._settle(post)
        if settled.error is not None:
            raise settled.error
        if settled.parts is not None:
            return settled.parts[-1]
        given = self.instead(post)
        return self.delivery.tagged(post, given, settled.record)[-1]

    def instead(self, post: Post) -> Any:  # noqa: ANN401 - what the API gives
        """Return what the fallback says: a text, an object of the API, a stream.

        Raises:
            ConfigurationError: If it must be awaited.
        """
        given = self.delivery.asked(post)
        if given is None:
            return post.send(self.inner, model=self.delivery.fallback)
        if inspect.iscoroutine(given):
            given.close()
            msg = "an async fallback needs AsyncOpenAI"
            raise ConfigurationError(msg)
        return given

    def _settle(self, post: Post) -> Settled:
        turn = self.guard.begin(api=post.api, **post.request)
        if post.raw and turn.holds:
            raise unguarded(RAW)
        strip = bool(turn.added)
        with turn:
            try:
                result = turn.ask(partial(post.send, self.inner))
                answer = result.parse() if post.raw else result
                turn.answered(answer)
            except Exception as failed:
                if self.delivery.fallback is None or post.raw:
                    raise
                return Settled(record=turn.hand_over(failed).to_metadata())
            assessment, error = turn.settle()
        settled = self.delivery.settled(post, assessment, error, [answer], strip=strip)
        # The parsed object, which is kept with it, is the one that was marked.
        return replace(settled, parts=[result]) if post.raw else settled


class GuardedStream(openai.Stream[Any]):
    """A stream whose end carries the assessment; it holds back what may be withheld.

    Args:
        guarding: Whom it asks.
        post: What is asked.
    """

    def __init__(self, guarding: Guarding, post: Post) -> None:
        self._run = _Run(guarding, post)
        # They refer to nothing that refers to it: one that is dropped ends at once.
        self._iterator = parts = self._run.parts()
        response = next(parts)  # it is open now, or it has failed
        self.response = cast("Any", Closing(response, parts.close))

    @property
    def snne_guard(self) -> dict[str, Any] | None:
        """The assessment, None before the stream has ended."""
        return self._run.record


class _Run:
    """The parts of one stream, and what is found at its end."""

    def __init__(self, guarding: Guarding, post: Post) -> None:
        self._guarding, self._post = guarding, post
        self._opened = False
        self.record: dict[str, Any] | None = None

    def parts(self) -> Generator[Any]:
        """Yield the HTTP response, and then what the application gets."""
        settled = yield from self._drawn()
        if settled.error is not None:
            raise settled.error
        if settled.parts is not None:
            self.record = settled.record
            yield from settled.parts
        else:
            yield from self._instead(settled.record)

    def _drawn(self) -> Generator[Any, None, Settled]:
        post, delivery = self._post, self._guarding.delivery
        turn = self._guarding.guard.begin(api=post.api, **post.request)
        strip, whole = bool(turn.added), Whole()
        held: list[Any] = []
        shown = False
        with turn:
            try:
                with turn.ask(partial(post.send, self._guarding.inner)) as stream:
                    self._opened = True
                    yield stream.response
                    parts = iter(stream)
                    while (part := turn.next(parts)) is not None:
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
                return Settled(record=turn.hand_over(failed).to_metadata())
            assessment, error = turn.settle()
        return delivery.settled(post, assessment, error, held, strip=strip)

    def _instead(self, record: dict[str, Any]) -> Iterator[Any]:
        given = self._guarding.instead(self._post)
        if not is_stream(given):
            if not self._opened:
                yield None
            self.record = record
            yield from self._guarding.delivery.tagged(self._post, given, record)
            return
        held: list[Any] = []
        with given as stream:
            if not self._opened:
                yield stream.response
            for part in stream:
                if held or ends(part):
                    held.append(part)
                else:
                    yield part
        self.record = record
        yield from marked(held, record)
