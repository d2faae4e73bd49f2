"""Keeps every client off the network and shows what it would have sent."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from typing import Any

import pytest

Respond = Callable[[dict[str, Any]], Any]


class SentError(BaseException):
    """Carries the body of a request; no client catches or repeats it."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__("a request")
        self.body = body


class Wire:
    """What clients send, and what answers them: nobody, unless ``respond`` is set."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.respond: Respond | None = None

    def take(self, body: dict[str, Any]) -> Any:
        self.bodies.append(body)
        if self.respond is None:
            raise SentError(body)
        return self.respond(body)


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Wire:
    """Replace the sending of every HTTP client that the providers' packages use."""
    found = Wire()
    for name in ("httpx", "httpx2"):
        try:
            module: Any = importlib.import_module(name)
        except ImportError:
            continue

        def send(_self: Any, request: Any, module: Any = module, **_: Any) -> Any:
            answer = found.take(json.loads(request.read()))
            return module.Response(200, json=answer, request=request)

        async def asend(
            _self: Any, request: Any, module: Any = module, **_: Any
        ) -> Any:
            answer = found.take(json.loads(await request.aread()))
            return module.Response(200, json=answer, request=request)

        monkeypatch.setattr(module.Client, "send", send)
        monkeypatch.setattr(module.AsyncClient, "send", asend)
    botocore = pytest.importorskip("botocore.client")

    def call(_self: Any, _operation: str, body: dict[str, Any]) -> Any:
        return found.take(json.loads(body["body"]) if "body" in body else body)

    monkeypatch.setattr(botocore.BaseClient, "_make_api_call", call)
    return found
