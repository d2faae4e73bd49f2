"""Keeps every client off the network and shows what it would have sent."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterator
from functools import cache
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


@cache
def bedrock() -> Any:
    """Return a client of AWS's Bedrock with the credentials of nobody."""
    boto3 = pytest.importorskip("boto3")
    session = boto3.Session(
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",  # noqa: S106 - of nobody
    )
    return session.client("bedrock-runtime")


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Iterator[Wire]:
    """Replace the sending of every HTTP client that the providers' packages use."""
    wire = Wire()
    for name in ("httpx", "httpx2"):
        try:
            module: Any = importlib.import_module(name)
        except ImportError:
            continue

        def send(_self: Any, request: Any, module: Any = module, **_: Any) -> Any:
            answer = wire.take(json.loads(request.read()))
            return module.Response(200, json=answer, request=request)

        async def asend(
            _self: Any, request: Any, module: Any = module, **_: Any
        ) -> Any:
            answer = wire.take(json.loads(await request.aread()))
            return module.Response(200, json=answer, request=request)

        monkeypatch.setattr(module.Client, "send", send)
        monkeypatch.setattr(module.AsyncClient, "send", asend)

    def send_to_bedrock(request: Any, **_: Any) -> Any:
        return wire.take(json.loads(request.body))

    events = bedrock().meta.events
    events.register("before-send", send_to_bedrock)
    yield wire
    events.unregister("before-send", send_to_bedrock)
