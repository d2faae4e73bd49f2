"""What every test shares: no network, no tracing, fixed randomness, a real model."""

from __future__ import annotations

import os
import random
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import settings
from langchain_openai import ChatOpenAI

from snne_guard.assess import observe
from snne_guard.decision import monitor
from snne_guard.errors import MissingExtraError
from snne_guard.langchain.embedded import embedded_model
from snne_guard.sampling import probes

_TRACING = ("LANGSMITH_", "LANGCHAIN_")

# The same examples in every run; HYPOTHESIS_PROFILE=explore looks for new ones.
settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

# Before anything of LangChain reads and remembers them.
for _name in [name for name in os.environ if name.startswith(_TRACING)]:
    del os.environ[_name]


# What is said about a terminal, or by a CI system, that there is not in a test: pages
# would be coloured, or as wide as that one is. Before rich and typer read them.
for _name in (
    "COLORTERM",
    "COLUMNS",
    "FORCE_COLOR",
    "GITHUB_ACTIONS",
    "LINES",
    "NO_COLOR",
    "PY_COLORS",
    "TERM",
    "TERMINAL_WIDTH",
    "TTY_COMPATIBLE",
    "TTY_INTERACTIVE",
    "SNNE_GUARD_DISABLED",
):
    os.environ.pop(_name, None)

# Before anything of Hugging Face reads them: no look-up, no progress bars, no models
# but those that a test puts there.
_HUB = tempfile.TemporaryDirectory(prefix="snne-guard-hub-")
os.environ |= {
    "HF_HUB_CACHE": _HUB.name,
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "HF_HUB_OFFLINE": "1",
}

# Before torch loads OpenMP, whose threads then spin while they wait for one another.
# Beside other processes of tests, the embedded model takes up to 20 times as long.
os.environ.setdefault("OMP_THREAD_LIMIT", "1")


class NetworkRefusedError(RuntimeError):
    """A test tried to leave this machine."""


def _is_local(address: Any) -> bool:
    if not isinstance(address, tuple):
        return True  # a Unix socket
    return address[0] in {"127.0.0.1", "::1", "localhost"}


@pytest.fixture(scope="session", autouse=True)
def _same_chances() -> Iterator[None]:
    """Give monitors without a seed the same one in every run.

    Their tests for drift raise a false alarm now and then, as they are allowed to.
    """
    with pytest.MonkeyPatch.context() as patch:
        drawn = SimpleNamespace(token_hex=lambda size: "5eed" * (size // 2))
        patch.setattr(monitor, "secrets", drawn)
        yield


@pytest.fixture(scope="session", autouse=True)
def _no_network() -> Iterator[None]:
    connect, connect_ex = socket.socket.connect, socket.socket.connect_ex

    def refuse(address: Any) -> None:
        if not _is_local(address):
            msg = f"tests stay on this machine; refused to connect to {address!r}"
            raise NetworkRefusedError(msg)

    def checked_connect(self: socket.socket, address: Any) -> None:
        refuse(address)
        connect(self, address)

    def checked_connect_ex(self: socket.socket, address: Any) -> int:
        refuse(address)
        return connect_ex(self, address)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", checked_connect)
        patch.setattr(socket.socket, "connect_ex", checked_connect_ex)
        yield


@pytest.fixture(scope="session", autouse=True)
def _patient_calls() -> Iterator[None]:
    """Let calls wait for their observers however slow this machine is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(observe, "_FLUSH_SECONDS", 60.0)
        yield


@pytest.fixture
def same_prompts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have models examined by the same prompts in every run, so that none is odd."""
    draws = random.Random(0)  # noqa: S311 - no secret here
    monkeypatch.setattr(probes, "secrets", SimpleNamespace(randbelow=draws.randrange))


@pytest.fixture(scope="session")
def embedded() -> ChatOpenAI:
    """The embedded model, started once; skips where its file is not installed.

    ``SNNE_GUARD_REQUIRE_EMBEDDED=1``, which ``make test`` sets, fails instead.
    """
    try:
        return embedded_model(max_tokens=32, seed=7)
    except MissingExtraError as error:
        if os.environ.get("SNNE_GUARD_REQUIRE_EMBEDDED") == "1":
            raise
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def hub() -> str:
    """A tiny Llama that is found under a real name; its replies are random letters."""
    from tests.support.tiny_llama import make_model, make_tokenizer

    name, commit = "meta-llama/Llama-3.1-8B-Instruct", "0" * 40
    entry = Path(_HUB.name) / f"models--{name.replace('/', '--')}"
    (entry / "refs").mkdir(parents=True)
    (entry / "refs" / "main").write_text(commit, encoding="ascii")
    make_model().save_pretrained(entry / "snapshots" / commit)
    make_tokenizer().save_pretrained(entry / "snapshots" / commit)
    return name
