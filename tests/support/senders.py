"""A sender that answers by a script, for the engine and its drivers."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncGenerator, Callable, Generator, Sequence

from snne_guard.call import Draws, Outcome, Request, Work
from snne_guard.engine import guarded_call
from snne_guard.sampling.replies import Draw, Failure, Reply
from snne_guard.types import Cost, Sample

Said = str | BaseException | Sample
Script = Callable[[Draw, int], Said]
"""A draw and the number of draws of its role before it, to what is said."""


def reply(*said: str | Sample) -> Reply:
    """Return a reply with some texts, each of which took a token."""
    samples = tuple(
        one if isinstance(one, Sample) else Sample(text=one, finish_reason="stop")
        for one in said
    )
    cost = Cost(prompt_tokens=10, completion_tokens=len(samples))
    return Reply(samples=samples, cost=cost, raw=samples[0].text if samples else "")


def feed(request: Request, script: Script, *, per_request: int = 100) -> Outcome:
    """Run a guarded call by hand; each request brings at most so many replies."""
    call = guarded_call(request)
    counts = {"answer": 0, "sample": 0}

    def come_of(draw: Draw) -> Reply | Failure | None:
        said = []
        for _ in range(min(draw.n, per_request)):
            said.append(script(draw, counts[draw.role]))
            counts[draw.role] += 1
        errors = [one for one in said if isinstance(one, BaseException)]
        if any(isinstance(error, TimeoutError) for error in errors):
            return None
        if errors:
            return Failure(error=errors[0])
        return reply(*(one for one in said if not isinstance(one, BaseException)))

    try:
        wanted: Draws | Work = next(call)
        while True:
            if isinstance(wanted, Draws):
                wanted = call.send([come_of(draw) for draw in wanted.draws])
            else:
                try:
                    result = wanted.function()
                except Exception as error:  # noqa: BLE001 - as a driver does
                    result = Failure(error=error)
                wanted = call.send(result)
    except StopIteration as end:
        outcome: Outcome = end.value
        return outcome


class ScriptedSender:
    """Says what a script says, after some seconds for each request.

    Attributes:
        sent: Every draw that was sent.
        open: Requests that are in flight now.
        most_open: The most that ever were.
        cancelled: Requests that were cancelled in flight.
    """

    def __init__(self, script: Script, *, seconds: float = 0.0) -> None:
        self.sent: list[Draw] = []
        self.open = self.most_open = self.cancelled = 0
        self._script, self._seconds = script, seconds
        self._lock = threading.Lock()
        self._streamed = ""

    def _begin(self, draw: Draw) -> list[Said]:
        with self._lock:
            before = sum(one.n for one in self.sent if one.role == draw.role)
            self.sent.append(draw)
            self.open += 1
            self.most_open = max(self.most_open, self.open)
        return [self._script(draw, before + place) for place in range(draw.n)]

    def _end(self, said: Sequence[Said]) -> Reply:
        for one in said:
            if isinstance(one, BaseException):
                raise one
        return reply(*(one for one in said if not isinstance(one, BaseException)))

    def send(self, draw: Draw) -> Reply:
        said = self._begin(draw)
        try:
            time.sleep(self._seconds)
            return self._end(said)
        finally:
            with self._lock:
                self.open -= 1

    async def asend(self, draw: Draw) -> Reply:
        said = self._begin(draw)
        try:
            await asyncio.sleep(self._seconds)
            return self._end(said)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            with self._lock:
                self.open -= 1

    def stream(self) -> Generator[str]:
        self._streamed = self.send(Draw(role="answer")).raw
        for word in self._streamed.split():
            time.sleep(self._seconds)
            yield word

    async def astream(self) -> AsyncGenerator[str]:
        self._streamed = (await self.asend(Draw(role="answer"))).raw
        for word in self._streamed.split():
            await asyncio.sleep(self._seconds)
            yield word

    def streamed(self) -> Reply:
        return reply(self._streamed)
