"""What keeps some clients from a server on this machine: TLS, and a switch."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

from tests.providers.cases import google_version


@pytest.fixture(autouse=True)
def _plain_channels(monkeypatch: pytest.MonkeyPatch) -> None:
    if 0 < google_version() < 4:
        import grpc
        from google.ai.generativelanguage_v1beta.services.generative_service import (
            transports,
        )

        def plain(host: str, **options: Any) -> grpc.Channel:
            return grpc.insecure_channel(host, options=options.get("options"))

        def aplain(host: str, **options: Any) -> grpc.aio.Channel:
            return grpc.aio.insecure_channel(host, options=options.get("options"))

        one = transports.GenerativeServiceGrpcTransport
        two = transports.GenerativeServiceGrpcAsyncIOTransport
        monkeypatch.setattr(one, "create_channel", staticmethod(plain))
        monkeypatch.setattr(two, "create_channel", staticmethod(aplain))


@pytest.fixture(autouse=True)
def _online(monkeypatch: pytest.MonkeyPatch) -> None:
    # Nothing of the hub is asked for, but its client is also that of endpoints.
    if importlib.util.find_spec("huggingface_hub") is not None:
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
