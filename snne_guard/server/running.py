"""Run the server, and beside it the one of the admin port."""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from socket import socket
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from snne_guard.server.app import create_admin_app, create_app
from snne_guard.server.metrics import Metrics
from snne_guard.server.policies import ServerConfig

__all__ = ["run"]

GRACE = 60
"""Seconds that calls in flight have to end after SIGTERM."""


def run(config: ServerConfig, *, started: Callable[[str], None]) -> None:
    """Serve until SIGTERM or Ctrl-C; calls in flight end first, unless asked twice.

    Args:
        config: From ``load_config``.
        started: Is told of each address once it listens.

    Raises:
        ConfigurationError: See ``create_app``.
    """
    metrics = Metrics()
    app = create_app(config, metrics=metrics)
    servers = [_Server(app, metrics, config.host, config.port, started)]
    if config.keys and config.admin_port is not None:
        admin = create_admin_app(config, metrics)
        servers.append(_Server(admin, metrics, "127.0.0.1", config.admin_port, started))

    def stop(_: int, __: FrameType | None) -> None:
        for server in servers:
            server.force_exit = server.should_exit
            server.should_exit = True

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    gc.freeze()  # modules stay, so no collection has to look at them
    asyncio.run(_serve(servers))


async def _serve(servers: list[_Server]) -> None:
    await asyncio.gather(*(server.serve() for server in servers))


class _Server(uvicorn.Server):
    """A server that says where it listens, and leaves signals to ``run``."""

    def __init__(
        self,
        app: ASGIApp,
        metrics: Metrics,
        host: str,
        port: int,
        started: Callable[[str], None],
    ) -> None:
        self._metrics, self._told = metrics, started
        super().__init__(
            uvicorn.Config(
                app,
                host=host,
                port=port,
                http="h11",  # one parser, whatever is installed
                ws="none",
                log_level="warning",
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=75,  # longer than proxies keep a connection
                timeout_graceful_shutdown=GRACE,
            )
        )

    async def startup(self, sockets: list[socket] | None = None) -> None:
        """Listen, and say where."""
        await super().startup(sockets)
        for one in self.servers:
            for listening in one.sockets:
                host, port, *_ = listening.getsockname()
                self._told(f"listening on http://{host}:{port}")

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        """End the events of the live page, which never end, and wait for the rest."""
        self._metrics.close()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Leave signals as they are."""
        yield
