"""A sender that replies by a script, for the engine and its drivers."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Sequence

from snne_guard.cost import Cost
from snne_guard.engine import Draw, Failure, Outcome, Request, Response, replay_call
from snne_guard.types import Reply

Scripted = str | BaseException | Reply | Response
"""One scripted response: a text, a sample, the whole, or the exception in its place."""

Script = Callable[[Draw, int], Scripted]
"""Takes a draw and the number of draws of its role before it."""


def response(*scripted: str | Reply) -> Response:
    """Return a response with some texts, each of which took a token."""
    samples = tuple(
        item if isinstance(item, Reply) else Reply(text=item, finish_reason="stop")
        for item in scripted
    )
    cost = Cost(calls=1, attempts=1, prompt_tokens=10, completion_tokens=len(samples))
    return Response(replies=samples, cost=cost, raw=samples[0].text if samples else "")


def feed(request: Request, script: Script, *, per_request: int = 100) -> Outcome:
    """Run a guarded call by hand; each request brings at most so many replies.

    A ``TimeoutError`` in the script leaves its request open at the deadline.
    """
    counts = {"answer": 0, "sample": 0, "self_check": 0, "judge": 0}

    def result_of(draw: Draw) -> Response | Failure | None:
        scripted = []
        for _ in range(min(draw.n, per_request)):
            scripted.append(script(draw, counts[draw.role]))
            counts[draw.role] += 1
        try:
            return _whole(scripted)
        except TimeoutError:
            return None
        except BaseException as error:  # noqa: BLE001 - as a driver does
            return Failure(error=error)

    return replay_call(request, lambda draws: [*map(result_of, draws)])


def _whole(scripted: Iterable[Scripted]) -> Response:
    """Return the whole response, or raise the first exception of the script."""
    parts: list[str | Reply] = []
    for item in scripted:
        if isinstance(item, BaseException):
            raise item
        if isinstance(item, Response):
            return item
        parts.append(item)
    return response(*parts)


class ScriptedSender:
    """Replies by a script, after some seconds for each request.

    Attributes:
        sent: Every draw that was sent.
        open: Requests that are in flight now.
        most_open: The most that ever were.
    """

    def __init__(
        self, script: Script, *, seconds: float | Callable[[Draw], float] = 0.0
    ) -> None:
        self.sent: list[Draw] = []
        self.open = self.most_open = 0
        self._script, self._seconds = script, seconds
        self._lock = threading.Lock()
        self._streamed = ""

    def send(self, draw: Draw) -> Response:
        scripted = self._begin(draw)
        try:
            time.sleep(self._delay(draw))
            return _whole(scripted)
        finally:
            self._end()

    async def asend(self, draw: Draw) -> Response:
        scripted = self._begin(draw)
        try:
            await asyncio.sleep(self._delay(draw))
            return _whole(scripted)
        finally:
            self._end()

    def stream(self, draw: Draw) -> Generator[str]:
        self._streamed = self.send(draw).raw
        yield from self._streamed.split()

    async def astream(self, draw: Draw) -> AsyncGenerator[str]:
        self._streamed = (await self.asend(draw)).raw
        for word in self._streamed.split():
            yield word

    def streamed_answer(self) -> Response:
        return response(self._streamed)

    def _begin(self, draw: Draw) -> Sequence[Scripted]:
        with self._lock:
            before = sum(other.n for other in self.sent if other.role == draw.role)
            self.sent.append(draw)
            self.open += 1
            self.most_open = max(self.most_open, self.open)
        return [self._script(draw, before + place) for place in range(draw.n)]

    def _end(self) -> None:
        with self._lock:
            self.open -= 1

    def _delay(self, draw: Draw) -> float:
        return self._seconds(draw) if callable(self._seconds) else self._seconds
