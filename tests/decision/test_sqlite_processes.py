"""The file that keeps what monitors know, under several processes at once."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from snne_guard import Monitor, SqliteStore

_NOTE = """
import sys
from snne_guard.decision import Monitor, SqliteStore

monitor = Monitor(alpha=0.1, audit_rate=1.0, store=SqliteStore(sys.argv[1], timeout=60))
sys.stdin.readline()  # until all are there
for number in range(25):
    name = f"{sys.argv[2]}-{number}"
    monitor.note(name, uncertainty=0.5, accepted=True)
    monitor.report(name, correct=True)
"""

_KILLED = """
import os, signal, sqlite3, sys

connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA cache_size = 1")  # so that it writes before it commits
connection.execute("BEGIN IMMEDIATE")
connection.execute("UPDATE monitors SET state = ?", ("lost" * 100_000,))
os.kill(os.getpid(), signal.SIGKILL)
"""


def _python(code: str, *args: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 - our own code
        [sys.executable, "-c", code, *args], stdin=subprocess.PIPE
    )


def test_processes_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "monitor.db"
    processes = [_python(_NOTE, str(path), str(number)) for number in range(2)]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(b"\n")
        process.stdin.flush()
    for process in processes:
        process.communicate()
        assert process.returncode == 0
    status = Monitor(alpha=0.1, store=SqliteStore(path)).status()
    assert (status.n_scores, status.n_accepted, status.n_reported) == (50, 50, 50)
    assert (status.n_pending, status.n_wrong) == (0, 0)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="Windows has no SIGKILL")
def test_who_is_killed_in_the_midst_of_writing_leaves_the_old_state(
    tmp_path: Path,
) -> None:
    path = tmp_path / "monitor.db"
    monitor = Monitor(audit_rate=1.0, store=SqliteStore(path))
    monitor.note("a1", uncertainty=0.5, accepted=True)
    process = _python(_KILLED, str(path))
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert Path(f"{path}-journal").exists()  # it was killed in the midst indeed
    assert monitor.pending() == ("a1",)
    assert monitor.note("a2", uncertainty=0.5, accepted=True).n_scores == 2


@pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows does not fork")
def test_a_fork_waits_for_what_is_being_written(tmp_path: Path) -> None:
    path = tmp_path / "monitor.db"
    store = SqliteStore(path, timeout=60)
    inside, done = threading.Event(), threading.Event()

    def slow(_: str | None) -> str:
        inside.set()
        assert done.wait(60)
        return "slow"

    writer = threading.Thread(target=store.update, args=("a", slow))
    writer.start()
    assert inside.wait(60)
    threading.Timer(0.05, done.set).start()
    child = os.fork()
    if child == 0:  # pragma: no cover - in the child
        store.update("a", lambda before: f"{before}, and the child")
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    writer.join()
    store.update("a", lambda before: f"{before}, and the parent")
    with closing(sqlite3.connect(path)) as connection:
        [(text,)] = connection.execute("SELECT state FROM monitors")
    assert text == "slow, and the child, and the parent"
