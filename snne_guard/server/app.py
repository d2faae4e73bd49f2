"""The application: what it serves at which address."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Lifespan

from snne_guard.server.faults import fault_of
from snne_guard.server.gate import Gate
from snne_guard.server.live import live_routes
from snne_guard.server.metrics import Metrics
from snne_guard.server.policies import ServerConfig
from snne_guard.server.service import Service
from snne_guard.server.wire import json_response

__all__ = ["create_admin_app", "create_app"]

_EXPOSED = (
    *("x-request-id", "x-snne-guard", "x-snne-guard-id"),
    *("x-snne-guard-decision", "x-snne-guard-uncertainty", "retry-after"),
)


def create_app(config: ServerConfig, *, metrics: Metrics | None = None) -> Starlette:
    """Return the server as an ASGI application.

    Args:
        config: From ``load_config``.
        metrics: What counts calls; an own one unless ``create_admin_app`` shares it.

    Raises:
        ConfigurationError: A policy makes no sense, or a key of the upstream's is
            missing.
    """
    service = Service(config, metrics or Metrics())
    routes: list[BaseRoute] = [
        Route("/health", _health),
        Route("/ready", _health),
        *service.routes(),
    ]
    if not config.keys:
        routes += live_routes(service.metrics, show_texts=config.show_texts)
    middleware = [
        Middleware(
            Gate,
            local=not config.keys,
            limit=config.max_requests_at_once,
            origins=config.cors_origins,
        )
    ]
    if config.cors_origins:
        cors = Middleware(
            CORSMiddleware,
            allow_origins=config.cors_origins,
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["*"],
            expose_headers=_EXPOSED,
        )
        middleware.insert(0, cors)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        yield
        await service.close()

    return _application(routes, middleware, lifespan=lifespan)


def create_admin_app(config: ServerConfig, metrics: Metrics) -> Starlette:
    """Return the application of the admin port: the live page and metrics."""
    routes = live_routes(metrics, show_texts=config.show_texts)
    gate = Middleware(Gate, local=True, limit=config.max_requests_at_once)
    return _application([Route("/health", _health), *routes], [gate])


def _application(
    routes: list[BaseRoute],
    middleware: list[Middleware],
    *,
    lifespan: Lifespan[Starlette] | None = None,
) -> Starlette:
    app = Starlette(
        routes=routes,
        middleware=middleware,
        exception_handlers={HTTPException: _unserved},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    return app


async def _unserved(_: Request, error: Exception) -> Response:
    return fault_of(error).response()


async def _health(_: Request) -> Response:
    return json_response({"status": "ok"})
