"""The ASGI applications and their routes."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Any, NoReturn

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Lifespan

from snne_guard._version import __version__
from snne_guard.errors import ConfigurationError
from snne_guard.evaluation.decision_log import DecisionLog
from snne_guard.server.config import ServerConfig, requires_keys
from snne_guard.server.endpoints import Service, Shared, guarded_routes
from snne_guard.server.health import Health
from snne_guard.server.metrics import Metrics, live_routes
from snne_guard.server.middleware import Gate
from snne_guard.server.records import Records
from snne_guard.server.replies import JSON

_RELOADED = ("policies", "keys", "upstream")
"""What of the configuration can change while the server runs."""


class GuardServer:
    """The applications of one process: the API, and the admin port's."""

    def __init__(self, config: ServerConfig) -> None:
        host = config.admin_host
        if config.show_texts and host is not None and requires_keys(host):
            msg = f"{host} would show texts: leave out --show-texts, or --admin-host"
            raise ConfigurationError(msg)
        self.config, self.health = config, Health()
        self.metrics = Metrics(show_texts=config.show_texts)
        log, texts = config.decision_log, config.log_texts
        self.decisions = None if log is None else DecisionLog(log, texts=texts)
        self._records = Records(self.metrics, self.decisions)
        self._shared = Shared(self._records)
        self._use(config)

    def reload(self, config: ServerConfig) -> None:
        """Serve new requests under another configuration, unless that is an error."""
        for name in ServerConfig.model_fields.keys() - {*_RELOADED}:
            old, new = getattr(self.config, name), getattr(config, name)
            if old != new:
                msg = f"{name} was {old!r} and would be {new!r}, which needs a restart"
                raise ConfigurationError(msg)
        if bool(self.config.keys) != bool(config.keys):
            msg = "the first key, or no key any more, needs a restart"
            raise ConfigurationError(msg)
        self._use(config)

    def _use(self, config: ServerConfig) -> None:
        service = Service(config, self._shared)
        self._service, self.config = service, config
        self.metrics.thresholds = service.thresholds
        self.health.upstream = service.upstream if config.ready_upstream else None

    def api(self) -> Starlette:
        """Return the application that clients call."""

        @asynccontextmanager
        async def lifespan(_: Starlette) -> AsyncGenerator[None]:
            yield
            await self._shared.http.aclose()

        config = self.config
        cors = Middleware(
            CORSMiddleware,
            allow_origins=config.cors_origins,
            allow_methods=["*"],
            allow_headers=["*"],
            expose_headers=["*"],
        )
        gate = Middleware(
            Gate,
            records=self._records,
            local=not config.keys,
            limit=config.max_requests_at_once,
            origins=config.cors_origins,
        )
        shown = not config.keys and config.admin_port is None
        routes = [
            Route("/", _about),
            Route("/openapi.json", _openapi),
            *guarded_routes(lambda: self._service),
            *(live_routes(self.metrics) if shown else []),
        ]
        return self._application(routes, cors, gate, lifespan=lifespan)

    def admin(self) -> Starlette:
        """Return the application of the admin port."""
        local = not requires_keys(self.config.admin_host or "127.0.0.1")
        gate = Middleware(Gate, records=self._records, local=local)
        return self._application(live_routes(self.metrics), gate)

    def _application(
        self,
        routes: Sequence[BaseRoute],
        *middleware: Middleware,
        lifespan: Lifespan[Starlette] | None = None,
    ) -> Starlette:
        app = Starlette(
            routes=[*self.health.routes(), *routes],
            middleware=middleware,
            exception_handlers={HTTPException: _raise},
            lifespan=lifespan,
        )
        app.router.redirect_slashes = False
        return app


def create_app(config: ServerConfig) -> Starlette:
    """Return the server as an ASGI application.

    Args:
        config: From ``load_config``.

    Raises:
        ConfigurationError: A policy makes no sense, a key for the upstream is missing,
            the decision log cannot be written, or texts would be shown to others.
    """
    return GuardServer(config).api()


async def _about(_: Request) -> Response:
    page = "/snne/live and /metrics, or the admin port where there is one"
    return JSON(
        {
            "name": "snne-guard",
            "version": __version__,
            "what": "a guard that speaks OpenAI's API; its base URL ends in /v1",
            "description": "/openapi.json",
            "live page and metrics": page,
        }
    )


async def _raise(_: Request, error: Exception) -> NoReturn:
    raise error  # the gate answers


async def _openapi(_: Request) -> Response:
    text = files("snne_guard.server").joinpath("openapi.json").read_text("utf-8")
    described: dict[str, Any] = json.loads(text)
    described["info"]["version"] = __version__
    return JSON(described)
