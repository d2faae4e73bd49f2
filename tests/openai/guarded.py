"""Guarded clients of both kinds on a scripted server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from snne_guard.openai import guard_client
from tests.support.openai_clients import Caller, clients
from tests.support.openai_server import Scripted, Server

__all__ = ["PATHS", "REFUSAL", "guarded", "text_of"]

PATHS = ("chat.completions.create", "responses.create")
REFUSAL = "I am not certain enough of the answer to give one."


def text_of(answer: Any) -> str:
    """Return the text of an answer of either API."""
    if hasattr(answer, "output_text"):
        return str(answer.output_text)
    return str(answer.choices[0].message.content)


@contextmanager
def guarded(
    script: Scripted, way: str, *, client_options: Any = None, **settings: Any
) -> Iterator[tuple[Server, Caller]]:
    """Give a server and a caller of a guarded client that asks it."""

    def wrap(client: Any) -> Any:
        return guard_client(client, **settings)

    with (
        Server(script) as server,
        clients(server, way, wrap, **(client_options or {})) as call,
    ):
        yield server, call
