"""Guarded clients of the ``openai`` package, both twins behind one plain call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from operator import attrgetter
from typing import Any

from snne_guard_integrations.openai import guard_client
from tests.support.chat_server import ChatServer
from tests.support.openai_clients import async_client, client

__all__ = ["APART", "CHAT", "REQUEST", "Guarded", "content", "guarding"]

APART = ["Rome", "Lyon", "Bonn", "Oslo"]
CHAT = "chat.completions.create"
REQUEST: dict[str, Any] = {
    "model": "test-model",
    "messages": [{"role": "user", "content": "Capital of France?"}],
}


class Guarded:
    """A guarded client; its methods are called as those of the plain one.

    Attributes:
        own: The user's client.
        client: The guarded one.
    """

    def __init__(self, own: Any, client: Any, run: Callable[..., Any] | None) -> None:
        self.own, self.client, self._run = own, client, run

    def __call__(self, path: str = CHAT, /, *, on: Any = None, **request: Any) -> Any:
        """Call a method of the guarded client, or of another one, and await it."""
        method = attrgetter(path)(self.client if on is None else on)
        request = request or REQUEST
        return method(**request) if self._run is None else self._run(method(**request))

    def stream(self, path: str = CHAT, /, **request: Any) -> tuple[list[Any], Any]:
        """Return the parts of a stream, and the stream."""
        stream = self(path, **(request or REQUEST), stream=True)
        return self.parts(stream), stream

    def parts(self, stream: Any) -> list[Any]:
        """Read a stream to its end."""
        if self._run is None:
            return list(stream)

        async def read() -> list[Any]:
            return [part async for part in stream]

        found: list[Any] = self._run(read())
        return found

    def first(self, stream: Any) -> Any:
        """Return the next part of a stream."""
        return next(stream) if self._run is None else self._run(anext(stream))

    def close(self, stream: Any) -> None:
        """Close a stream early."""
        stream.close() if self._run is None else self._run(stream.close())

    def close_response(self, stream: Any) -> None:
        """Close the HTTP response of a stream, as the package's helpers do."""
        if self._run is None:
            stream.response.close()
        else:
            self._run(stream.response.aclose())

    def wait(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Wait for something, on the loop of the client where it has one."""
        (asyncio.run if self._run is None else self._run)(coroutine)

    def helped(self, path: str, /, **request: Any) -> Any:
        """Return what the package's own ``stream`` helper makes of a stream."""
        method = attrgetter(path)(self.client)
        final = {"chat": "get_final_completion", "resp": "get_final_response"}[path[:4]]
        if self._run is None:
            with method(**request) as stream:
                return getattr(stream, final)()

        async def read() -> Any:
            async with method(**request) as stream:
                return await getattr(stream, final)()

        return self._run(read())


@contextmanager
def guarding(
    server: ChatServer, way: str, *, client_options: Any = None, **settings: Any
) -> Iterator[Guarded]:
    """Give a guarded client of one of the kinds, pointed at the local server."""
    if way == "threads":
        with client(server, **(client_options or {})) as own:
            yield Guarded(own, guard_client(own, **settings), None)
        return
    with asyncio.Runner() as runner:
        other = async_client(server, **(client_options or {}))
        yield Guarded(other, guard_client(other, **settings), runner.run)
        runner.run(other.close())


def content(parts: list[Any]) -> str:
    """Return what the chunks of a stream say."""
    return "".join(
        choice.delta.content or "" for part in parts for choice in part.choices
    )
