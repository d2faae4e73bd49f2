"""Real clients of the openai package, of both kinds, called in the same way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from operator import attrgetter
from typing import Any

import openai

from tests.support.openai_server import CHAT, RESPONSES, Server

WAYS = ("threads", "tasks")


class Caller:
    """Calls a client of either kind in the same way.

    Attributes:
        own: The user's client.
        client: What was made of it.
    """

    def __init__(self, own: Any, client: Any, run: Callable[..., Any] | None) -> None:
        self.own, self.client, self._run = own, client, run

    def __call__(
        self,
        path: str = "chat.completions.create",
        /,
        *,
        on: Any = None,
        **request: Any,
    ) -> Any:
        """Call a method of the client with a request, and await it."""
        plain = RESPONSES if path.startswith("responses") else CHAT
        method = attrgetter(path)(on or self.client)
        found = method(**{**plain, **request})
        return found if self._run is None else self._run(found)

    def wait(self, awaitable: Any) -> Any:
        """Await something on the loop of the client where it has one."""
        return awaitable if self._run is None else self._run(awaitable)

    def parts(self, stream: Any) -> list[Any]:
        """Read a stream to its end."""
        if self._run is None:
            return list(stream)

        async def read() -> list[Any]:
            return [part async for part in stream]

        found: list[Any] = self._run(read())
        return found

    def stream(self, path: str = "chat.completions.create", **request: Any) -> Any:
        """Return the parts of a stream, and the stream."""
        stream = self(path, stream=True, **request)
        return self.parts(stream), stream

    def first(self, stream: Any) -> Any:
        """Return the next part of a stream."""
        return next(stream) if self._run is None else self._run(anext(stream))

    def helped(self, path: str, **request: Any) -> Any:
        """Return what the package's own ``stream`` helper makes of a stream."""
        chat = path.startswith("chat")
        final = "get_final_completion" if chat else "get_final_response"
        method = attrgetter(path)(self.client)
        asked = {**(CHAT if chat else RESPONSES), **request}
        if self._run is None:
            with method(**asked) as stream:
                return getattr(stream, final)()

        async def read() -> Any:
            async with method(**asked) as stream:
                return await getattr(stream, final)()

        return self._run(read())


@contextmanager
def clients(
    server: Server, way: str, wrap: Callable[[Any], Any], **options: Any
) -> Iterator[Caller]:
    """Give a caller of a client of one kind, pointed at a server."""
    given = {"base_url": server.url, "api_key": "test", "max_retries": 0, **options}
    # Certificates take longer to load than a test takes.
    if way == "threads":
        given["http_client"] = openai.DefaultHttpxClient(verify=False)
        with openai.OpenAI(**given) as own:
            yield Caller(own, wrap(own), None)
        return
    given["http_client"] = openai.DefaultAsyncHttpxClient(verify=False)
    with asyncio.Runner() as runner:
        other = openai.AsyncOpenAI(**given)
        yield Caller(other, wrap(other), runner.run)
        runner.run(other.close())


def content(parts: Sequence[Any]) -> str:
    """Return what chunks or events say."""
    texts = [
        choice.delta.content or ""
        for part in parts
        for choice in getattr(part, "choices", ())
        if choice.delta
    ]
    deltas = [
        part for part in parts if getattr(part, "type", "").endswith("text.delta")
    ]
    return "".join(texts) + "".join(part.delta for part in deltas)
