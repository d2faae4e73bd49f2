"""The ASGI application, its routes, and the process that runs it."""

from __future__ import annotations

import signal
import threading
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from socket import socket
from typing import NoReturn

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Lifespan

from snne_guard.server.config import ServerConfig
from snne_guard.server.endpoints import Service
from snne_guard.server.metrics import Metrics, live_routes
from snne_guard.server.middleware import Gate
from snne_guard.server.replies import JSON


def create_app(config: ServerConfig) -> Starlette:
    """Return the server as an ASGI application; ``state.metrics`` counts its calls.

    Args:
        config: From ``load_config``.

    Raises:
        ConfigurationError: A policy makes no sense, or a key for the upstream is
            missing.
    """
    metrics = Metrics(show_texts=config.show_texts)
    service = Service(config, metrics)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        yield
        await service.close()

    cors = Middleware(
        CORSMiddleware,
        allow_origins=config.cors_origins,
        allow_methods=["*"],
        allow_headers=["*"],
        expose_headers=["*"],
    )
    gate = Middleware(
        Gate,
        local=not config.keys,
        limit=config.max_requests_at_once,
        origins=config.cors_origins,
    )
    live = [] if config.keys else live_routes(metrics)
    app = _application([*service.routes(), *live], [cors, gate], lifespan=lifespan)
    app.state.metrics = metrics
    return app


def run(config: ServerConfig) -> None:
    """Serve until SIGTERM or Ctrl-C; calls in flight end first, unless asked twice.

    Args:
        config: From ``load_config``.

    Raises:
        ConfigurationError: See ``create_app``.
    """
    app = create_app(config)
    metrics: Metrics = app.state.metrics
    if config.keys and config.admin_port is not None:
        page = _application(live_routes(metrics), [Middleware(Gate, local=True)])
        admin = _Server(page, "127.0.0.1", config.admin_port, metrics)
        threading.Thread(target=admin.run, daemon=True).start()
    server = _Server(app, config.host, config.port, metrics)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # uvicorn raises it again at its end
    server.run()


class _Server(uvicorn.Server):
    """A server that ends the live page's event streams when it shuts down."""

    def __init__(self, app: Starlette, host: str, port: int, metrics: Metrics) -> None:
        self._metrics = metrics
        super().__init__(
            uvicorn.Config(
                app,
                host=host,
                port=port,
                http="h11",  # one parser, whatever is installed
                ws="none",
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=75,  # longer than proxies keep a connection
                timeout_graceful_shutdown=60,  # for calls in flight
            )
        )

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        """Wait for calls in flight."""
        self._metrics.closed = True
        await super().shutdown(sockets)


def _application(
    routes: Sequence[BaseRoute],
    middleware: list[Middleware],
    *,
    lifespan: Lifespan[Starlette] | None = None,
) -> Starlette:
    health = [Route("/health", _health), Route("/ready", _health)]
    app = Starlette(
        routes=[*health, *routes],
        middleware=middleware,
        exception_handlers={HTTPException: _raise},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    return app


async def _raise(_: Request, error: Exception) -> NoReturn:
    raise error  # the gate answers


async def _health(_: Request) -> Response:
    return JSON({"status": "ok"})
