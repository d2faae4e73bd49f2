"""Running ``snne-guard record`` in this process, and what its files hold."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from snne_guard.cli import build_app
from tests.support.chat_server import ChatServer

__all__ = ["TWO", "arguments_for", "ask_for", "run", "run_on"]

_runs = itertools.count()


def ask_for(name: str, **fields: Any) -> dict[str, Any]:
    return {"id": name, "question": f"What is {name}?", **fields}


TWO = (ask_for("a", answers=["A"], note={"x": 1}), ask_for("b", context="All."))
"""Two questions to record."""


def arguments_for(server: ChatServer) -> list[str]:
    """Return options for a server, at an address that no run has had before.

    langchain-openai keeps connections by address, and those of an event loop that has
    ended are of no use; a process of its own has one loop only.
    """
    base = server.url.removesuffix("/v1")
    return ["--model", "openai:small", "--base-url", f"{base}/{next(_runs)}/v1"]


def run(*arguments: str | Path, stdin: bytes | None = None) -> Result:
    command = ["record", *map(str, arguments)]
    return CliRunner().invoke(build_app(), command, input=stdin)


def run_on(
    server: ChatServer, source: Path, output: Path, *arguments: str | Path
) -> Result:
    return run(source, "--output", output, *arguments_for(server), *arguments)
