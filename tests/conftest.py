"""What every test shares: no network, no tracing, fixed randomness, a real model."""

from __future__ import annotations

import gc
import os
import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from snne_guard.errors import MissingExtraError

if TYPE_CHECKING:
    from langchain_openai import ChatOpenAI

# Few and the same examples in every run; HYPOTHESIS_PROFILE=ci tries more of them, and
# explore looks for new ones.
settings.register_profile("local", derandomize=True, deadline=None, max_examples=20)
settings.register_profile("ci", derandomize=True, deadline=None, max_examples=100)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "local"))

# What is collected stays: a fifth of the time went into looking for garbage in it.
gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


# Before LangChain, rich, Hugging Face and OpenMP read and remember them.
for _name in [
    name for name in os.environ if name.startswith(("LANGSMITH_", "LANGCHAIN_"))
]:
    del os.environ[_name]
for _name in ("COLUMNS", "FORCE_COLOR", "GITHUB_ACTIONS", "SNNE_GUARD_DISABLED"):
    os.environ.pop(_name, None)
os.environ |= {"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
os.environ.setdefault("OMP_THREAD_LIMIT", "1")
# Tests speak no TLS, and every HTTP client would read all certificates for 20 ms.
os.environ.pop("SSL_CERT_FILE", None)
os.environ["SSL_CERT_DIR"] = os.devnull


class NetworkRefusedError(RuntimeError):
    """A test tried to leave this machine."""


@pytest.fixture(scope="session", autouse=True)
def _no_network() -> Iterator[None]:
    connect = socket.socket.connect

    def checked(self: socket.socket, address: Any) -> None:
        local = {"127.0.0.1", "::1", "localhost"}
        if isinstance(address, tuple) and address[0] not in local:
            msg = f"tests stay on this machine; refused to connect to {address!r}"
            raise NetworkRefusedError(msg)
        connect(self, address)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", checked)
        yield


@pytest.fixture(scope="session")
def embedded() -> ChatOpenAI:
    """The embedded model, started once; skips where its file is not installed.

    ``SNNE_GUARD_REQUIRE_EMBEDDED=1``, which ``make test`` sets, fails instead.
    """
    from snne_guard.langchain import embedded_model

    try:
        return embedded_model(max_tokens=32, seed=7)
    except MissingExtraError as error:
        if os.environ.get("SNNE_GUARD_REQUIRE_EMBEDDED") == "1":
            raise
        pytest.skip(str(error))
