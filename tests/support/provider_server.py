"""The local chat server in the language of another provider than OpenAI.

Scripts stay as they are: they see each request as the Chat Completions request that
asks for the same, and what they answer is written down as that provider would.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tests.support.chat_payload import usage_of
from tests.support.chat_protocol import Reply, Request, Script, Usage
from tests.support.chat_server import ChatServer

__all__ = ["Protocol", "ProviderServer"]

JSON = dict[str, Any]
Written = JSON | list[JSON] | str | None
"""A body, None for the one that Chat Completions has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """How one provider writes requests and replies.

    Attributes:
        paths: How the paths of its endpoint end.
        read: Returns what a body asks for, as a body of Chat Completions.
        write: Returns the body of a reply, given that request.
        stream: Returns the whole event stream of a reply that is streamed.
        fault: Returns the body of an error, given status and message.
        counted: Returns the headers that tell what was counted.
    """

    paths: tuple[str, ...] = ("/chat/completions",)
    read: Callable[[Request], JSON] = lambda request: dict(request.body)
    write: Callable[[Request, Reply, Usage], Written] = lambda _q, _r, _u: None
    stream: Callable[[Request, Reply, Usage], Written] = lambda _q, _r, _u: None
    fault: Callable[[int, str], JSON] = lambda _status, text: {
        "error": {"message": text, "type": "error", "param": None, "code": None}
    }
    counted: Callable[[Usage], dict[str, str]] = lambda _usage: {}


class ProviderServer(ChatServer):
    """Serves what a script decides, in the language of one provider.

    Args:
        protocol: The language.
        script: As for ``ChatServer``; it sees requests of Chat Completions.
    """

    def __init__(self, protocol: Protocol, script: Script) -> None:
        super().__init__(self._speak)
        self.paths = protocol.paths
        self._protocol, self.told = protocol, script

    @property
    def root(self) -> str:
        """The base URL without ``/v1``."""
        return self.url.removesuffix("/v1")

    @property
    def address(self) -> str:
        """Host and port of a further protocol, where it speaks one."""
        raise NotImplementedError

    @property
    def asked(self) -> list[Request]:
        """Every request so far, as the one of Chat Completions that asks the same."""
        return [self._understood(request) for request in self.requests]

    def _understood(self, request: Request) -> Request:
        return replace(request, body=self._protocol.read(request))

    def _speak(self, request: Request) -> Reply:
        asked = self._understood(request)
        reply = self.told(asked)
        if reply.status >= 400:
            text = str((reply.body or {}).get("error", {}).get("message", ""))
            return replace(reply, body=self._protocol.fault(reply.status, text))
        usage = usage_of(asked, reply)
        write = self._protocol.stream if asked.stream else self._protocol.write
        headers = {**reply.headers, **self._protocol.counted(usage)}
        if asked.stream:
            headers["Content-Type"] = "text/event-stream"
        body = write(asked, reply, usage)
        if body is None:
            return reply
        if isinstance(body, list):
            headers["Content-Type"] = "application/json"
        return replace(reply, body=body, usage=usage, headers=headers)
