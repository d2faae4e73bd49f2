"""ASGI applications that listen on 127.0.0.1 while a test runs."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

__all__ = ["free_port", "listening"]


def free_port() -> int:
    """Return a port on which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


class _Quick(uvicorn.Server):
    """A server that notices within milliseconds that it is to end."""

    async def main_loop(self) -> None:
        while not await self.on_tick(0):  # noqa: ASYNC110 - as its own
            await asyncio.sleep(0.01)


@contextmanager
def listening(app: ASGIApp, *, port: int = 0) -> Iterator[int]:
    """Run an application in a thread and give its port."""
    config = uvicorn.Config(app, port=port, http="h11", log_level="warning", ws="none")
    server = _Quick(config)
    work = threading.Thread(target=server.run, daemon=True)
    work.start()
    until = time.monotonic() + 60
    while not server.started:
        assert time.monotonic() < until, "the server did not start"
        time.sleep(0.002)
    yield int(server.servers[0].sockets[0].getsockname()[1])
    server.should_exit = True
    work.join(60)
    assert not work.is_alive()
