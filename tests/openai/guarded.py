"""Guarded clients of both kinds on a scripted server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from snne_guard.openai import guard_client
from snne_guard.types import Assessment
from tests.openai.support import Caller, Scripted, Server, clients

__all__ = ["Collector", "guarded"]


class Collector:
    """An observer that keeps what it is told."""

    def __init__(self) -> None:
        self.assessments: list[Assessment] = []

    def on_assessment(self, assessment: Assessment, /) -> None:
        self.assessments.append(assessment)

    @property
    def only(self) -> Assessment:
        (assessment,) = self.assessments
        return assessment


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
