"""Whether the server is alive, and whether new calls should come to it."""

from __future__ import annotations

import time

import httpx2
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from snne_guard.server.errors import SERVER_ERROR
from snne_guard.server.replies import JSON

SECONDS_KNOWN = 5.0
"""For how long it is known whether the upstream answers."""

_TIMEOUT = 5.0  # for its answer


class Health:
    """Answers ``/health`` and ``/ready``, on every port.

    Attributes:
        stopping: Whether new calls are turned away.
        upstream: Address that is asked; None: none is.
    """

    def __init__(self) -> None:
        self.stopping = self._answers = False
        self.upstream: str | None = None
        self._asked_at = -SECONDS_KNOWN

    def routes(self) -> list[Route]:
        """Return the routes of both."""
        return [Route("/health", self._health), Route("/ready", self._ready)]

    async def _health(self, _: Request) -> Response:
        return JSON({"status": "ok"})

    async def _ready(self, _: Request) -> Response:
        if self.stopping:
            return JSON({"status": "the server is stopping"}, 503)
        if self.upstream is not None and not await self._upstream_answers():
            return JSON({"status": "the upstream does not answer"}, 503)
        return JSON({"status": "ok"})

    async def _upstream_answers(self) -> bool:
        """Ask for the upstream's models without a key; any answer but 5xx will do."""
        now = time.monotonic()
        if now - self._asked_at >= SECONDS_KNOWN:
            self._asked_at = now  # whoever comes meanwhile gets what was known before
            try:
                async with httpx2.AsyncClient(timeout=_TIMEOUT) as client:
                    reply = await client.get(f"{self.upstream}/models")
                self._answers = reply.status_code < SERVER_ERROR
            except (httpx2.HTTPError, httpx2.InvalidURL):
                self._answers = False
        return self._answers
