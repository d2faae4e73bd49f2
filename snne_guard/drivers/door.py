"""What a driver needs of a door: how requests are sent."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Sequence
from typing import Any, Protocol

from snne_guard.sampling.replies import Draw, Reply

__all__ = ["Door", "StreamingDoor"]


class Door(Protocol):
    """Sends the requests of one guarded call."""

    def send(self, draw: Draw, /) -> Reply:
        """Send one request and wait for its reply."""
        ...

    async def asend(self, draw: Draw, /) -> Reply:
        """Do the same without blocking the event loop."""
        ...


class StreamingDoor(Door, Protocol):
    """Can also pass on the answer's chunks as they come."""

    def stream(self) -> Generator[Any]:
        """Send the request for the answer and return its chunks."""
        ...

    def astream(self) -> AsyncGenerator[Any]:
        """Do the same without blocking the event loop."""
        ...

    def join(self, chunks: Sequence[Any], /) -> Reply:
        """Return the answer that all of its chunks make up."""
        ...
