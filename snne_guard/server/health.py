"""Whether the server is alive, and whether new calls should come to it."""

from __future__ import annotations

import time
from collections.abc import Callable

import httpx2
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from snne_guard.server.replies import JSON

SECONDS_KNOWN = 5.0
"""For how long it is known whether the upstream answers, and how long it may take."""

_SERVER_ERROR = 500


class Health:
    """Answers ``/health`` and ``/ready``.

    Args:
        stopping: Tells whether the server is about to stop.
        upstream: Tells the address that is asked; None: none is.
    """

    def __init__(
        self, stopping: Callable[[], bool], upstream: Callable[[], str] | None
    ) -> None:
        self._stopping, self._upstream = stopping, upstream
        self._asked_at = -SECONDS_KNOWN
        self._answers = False

    def routes(self) -> list[Route]:
        """Return the routes of both."""
        return [Route("/health", self._health), Route("/ready", self._ready)]

    async def _health(self, _: Request) -> Response:
        return JSON({"status": "ok"})

    async def _ready(self, _: Request) -> Response:
        if self._stopping():
            return JSON({"status": "the server is stopping"}, 503)
        if self._upstream is not None and not await self._upstream_answers():
            return JSON({"status": "the upstream does not answer"}, 503)
        return JSON({"status": "ok"})

    async def _upstream_answers(self) -> bool:
        """Ask for the upstream's models without a key; any answer but 5xx will do."""
        now = time.monotonic()
        if self._upstream is not None and now - self._asked_at >= SECONDS_KNOWN:
            self._asked_at = now  # whoever comes meanwhile gets what was known before
            try:
                async with httpx2.AsyncClient(timeout=SECONDS_KNOWN) as client:
                    reply = await client.get(f"{self._upstream()}/models")
                self._answers = reply.status_code < _SERVER_ERROR
            except (httpx2.HTTPError, httpx2.InvalidURL):
                self._answers = False
        return self._answers
