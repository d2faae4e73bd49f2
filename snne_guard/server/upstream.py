"""The connections to the upstream."""

from __future__ import annotations

from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any

import httpx2

__all__ = ["UpstreamClient"]

_POOLS = 16
_AT_ONCE = 16
"""Requests that one pool takes before the next one is filled."""


class UpstreamClient(httpx2.AsyncClient):
    """Sends requests by several pools of connections.

    For each request a pool looks at all its connections, so that one pool for hundreds
    of them takes a third of the server's time. Few requests all use the first pool.
    """

    def __init__(self) -> None:
        options: dict[str, Any] = {
            "limits": httpx2.Limits(
                max_connections=None, max_keepalive_connections=1000 // _POOLS
            ),
            "timeout": httpx2.Timeout(600, connect=30),
            "verify": httpx2.create_ssl_context(),
        }
        # Cookies that came for one client must not go up with another's request.
        cookies = CookieJar(DefaultCookiePolicy(allowed_domains=()))
        super().__init__(**options)
        self._pools = [
            httpx2.AsyncClient(**options, cookies=cookies) for _ in range(_POOLS)
        ]
        self._opening = 0

    async def send(
        self,
        request: httpx2.Request,
        **options: Any,  # noqa: ANN401 - those of the class above
    ) -> httpx2.Response:
        """Send a request, as the class above does."""
        pool = self._pools[self._opening // _AT_ONCE % _POOLS]
        self._opening += 1
        try:
            return await pool.send(request, **options)
        finally:
            self._opening -= 1

    async def aclose(self) -> None:
        """Close all connections."""
        for pool in self._pools:
            await pool.aclose()
