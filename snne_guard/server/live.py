"""The routes of the live page, of its events, and of ``/metrics``."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import math
from collections.abc import AsyncIterator
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Route

from snne_guard.server.metrics import Metrics

__all__ = ["live_routes"]

LOOK_SECONDS = 0.25
QUIET_SECONDS = 10.0
_HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def live_routes(metrics: Metrics, *, show_texts: bool = False) -> list[Route]:
    """Return the routes ``/metrics``, ``/snne/live`` and ``/snne/events``.

    Whoever reaches them sees the figures of every policy, and with ``show_texts`` what
    was asked and answered: they ask for no key.

    The events are server-sent. Each is one JSON object of ``Metrics.since``: first
    everything that is kept, then at most four times a second what is new, and at least
    one in ten seconds. All readers share the calls that are kept, so a reader that is
    slower than these hundred loses some of them, and is sent everything once more.
    The streams end by ``Metrics.close``.

    Args:
        metrics: What is shown.
        show_texts: Whether calls are shown with question and answer, withheld answers
            included.
    """
    metrics.show_texts = show_texts
    page = files("snne_guard.server").joinpath("page.html").read_text("utf-8")
    page_headers = {**_HEADERS, "Content-Security-Policy": _content_policy(page)}

    async def text(_: Request) -> Response:
        return Response(metrics.text(), media_type="text/plain; version=0.0.4")

    async def live(_: Request) -> Response:
        return HTMLResponse(page, headers=page_headers)

    async def events(_: Request) -> Response:
        # The last header asks nginx not to hold events back.
        headers = {**_HEADERS, "X-Accel-Buffering": "no"}
        return StreamingResponse(
            _events(metrics), media_type="text/event-stream", headers=headers
        )

    return [
        Route("/metrics", text),
        Route("/snne/live", live),
        Route("/snne/events", events),
    ]


async def _events(metrics: Metrics) -> AsyncIterator[str]:
    """Yield what is new until the reader goes away or the metrics are closed."""
    clock = asyncio.get_running_loop().time
    number, sent = 0, -math.inf
    yield "retry: 1000\n\n"
    while not metrics.closed:
        if metrics.number != number or clock() - sent >= QUIET_SECONDS:
            state = metrics.since(number)
            number, sent = state["number"], clock()
            yield f"data: {json.dumps(state)}\n\n"
        await asyncio.sleep(LOOK_SECONDS)


def _content_policy(page: str) -> str:
    """Allow the page's own script and style, by their hashes, and nothing else."""
    script, style = (
        _hash(page.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0])
        for tag in ("script", "style")
    )
    return (
        f"default-src 'none'; script-src {script}; style-src {style}; "
        "connect-src 'self'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
