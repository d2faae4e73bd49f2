"""Running ``snne-guard record`` in this process, and what its files hold."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from snne_guard.cli import build_app
from tests.support.chat_server import ChatServer

__all__ = ["arguments_for", "ask_for", "questions", "read", "run", "run_on"]

_runs = itertools.count()


def ask_for(name: str, **fields: Any) -> dict[str, Any]:
    return {"id": name, "question": f"What is {name}?", **fields}


def questions(path: Path, *rows: Mapping[str, Any] | bytes) -> Path:
    lines = [
        row if isinstance(row, bytes) else json.dumps(row).encode() for row in rows
    ]
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


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


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]
