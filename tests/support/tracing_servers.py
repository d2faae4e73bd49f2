"""MLflow and Phoenix as processes of their own on this machine, and one that fails."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.ports import free_port

__all__ = [
    "Faulty",
    "TracingServer",
    "faulty",
    "mlflow_server",
    "phoenix_command",
    "phoenix_server",
]

READY_SECONDS = 300.0
"""How long a server may take on a busy machine; it is used as soon as it answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TracingServer:
    """A server that runs.

    Attributes:
        url: Where it is.
        folder: Where it keeps all of its data.
    """

    url: str
    folder: Path

    def stored(self) -> bytes:
        """Return every byte of every file that the server has written."""
        paths = sorted(path for path in self.folder.rglob("*") if path.is_file())
        return b"".join(path.read_bytes() for path in paths)


@contextmanager
def mlflow_server(folder: Path) -> Iterator[TracingServer]:
    """Run an MLflow server that keeps its data in a folder."""
    port = free_port()
    command = [
        *(sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1"),
        *("--port", str(port), "--workers", "1"),
        *("--backend-store-uri", f"sqlite:///{folder / 'mlflow.db'}"),
        *("--artifacts-destination", str(folder / "artifacts")),
    ]
    env = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "DO_NOT_TRACK": "true"}
    url = f"http://127.0.0.1:{port}"
    with _process(command, env, log=folder / "log.txt", ready=f"{url}/health"):
        yield TracingServer(url=url, folder=folder)


def phoenix_command() -> str | None:
    """Return the program that runs Phoenix, None where there is none.

    Phoenix and MLflow cannot share an environment, so that ``SNNE_GUARD_PHOENIX`` may
    name it.
    """
    beside = shutil.which("phoenix", path=str(Path(sys.executable).parent))
    return os.environ.get("SNNE_GUARD_PHOENIX") or beside


@contextmanager
def phoenix_server(folder: Path, command: str) -> Iterator[TracingServer]:
    """Run a Phoenix server that keeps its data in a folder."""
    port = free_port()
    env = {
        "PHOENIX_WORKING_DIR": str(folder),
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": str(port),
        "PHOENIX_GRPC_PORT": str(free_port()),
        "PHOENIX_TELEMETRY_ENABLED": "false",
    }
    url = f"http://127.0.0.1:{port}"
    log, ready = folder / "log.txt", f"{url}/healthz"
    with _process([command, "serve"], env, log=log, ready=ready):
        yield TracingServer(url=url, folder=folder)


@contextmanager
def _process(
    command: Sequence[str], env: Mapping[str, str], *, log: Path, ready: str
) -> Iterator[None]:
    """Run a program, and end it with all that it started."""
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603 - a server that the tests install
            command,
            env={**os.environ, **env},
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=log.parent,
            start_new_session=True,
        )
    try:
        _await(process, ready, log)
        yield
    finally:
        _end(process)


def _await(process: subprocess.Popen[bytes], ready: str, log: Path) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(ready, timeout=5):  # noqa: S310 - this machine
                return
        except (urllib.error.URLError, OSError):
            if process.poll() is not None:
                break
            time.sleep(0.2)
    said = log.read_text(encoding="utf-8", errors="replace")[-2000:]
    message = f"{ready} does not answer (exit {process.poll()}):\n{said}"
    raise RuntimeError(message)


def _end(process: subprocess.Popen[bytes]) -> None:
    # It began a session, so its group is all that it started and nothing else.
    for each in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, each)
            process.wait(timeout=60)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue


class Faulty:
    """What a server that fails knows of itself.

    Attributes:
        url: Where it is.
        requests: How many it was sent.
    """

    def __init__(self, listener: socket.socket, status: int | None) -> None:
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        self.requests = 0
        self._status = status
        self._held: list[socket.socket] = []

    def serve(self, listener: socket.socket) -> None:
        """Take requests until the listener is shut."""
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            self._held.append(connection)
            self.requests += 1
            if self._status is not None:
                connection.recv(65536)
                head = f"HTTP/1.1 {self._status} Made up\r\nContent-Length: 0\r\n"
                connection.sendall(f"{head}Connection: close\r\n\r\n".encode())
                connection.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Let go of everybody who still waits."""
        for connection in self._held:
            connection.close()


@contextmanager
def faulty(status: int | None) -> Iterator[Faulty]:
    """Answer every request with a status and nothing else; None: never answer."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = Faulty(listener, status)
        thread = threading.Thread(target=server.serve, args=(listener,))
        thread.start()
        try:
            yield server
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
            server.close()
