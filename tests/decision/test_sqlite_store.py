"""The file that keeps what monitors know: its threads, its faults, its errors."""

from __future__ import annotations

import pickle
import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from snne_guard import ConfigurationError, Monitor, MonitorStoreError, SqliteStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "monitor.db"


def text(store: SqliteStore, key: str = "a") -> str | None:
    found: list[str | None] = []

    def look(before: str | None) -> str:
        found.append(before)
        return before or ""

    store.update(key, look)
    return found[0]


def kept(path: Path) -> str:
    return text(SqliteStore(path)) or ""


def test_it_keeps_texts_by_name_for_whoever_opens_the_file(path: Path) -> None:
    store = SqliteStore(path)
    store.update("b", lambda before: f"{before}!")
    store.update("a", lambda _: "x" * 100_000)
    again = SqliteStore(str(path))
    assert (again.keys(), text(again, "b")) == (("a", "b"), "None!")
    assert len(text(again) or "") == 100_000
    assert repr(again) == f"SqliteStore({str(path)!r})"
    assert pickle.loads(pickle.dumps(again)).path == path  # noqa: S301 - our own bytes


def test_a_change_that_raises_leaves_what_was_there(path: Path) -> None:
    store = SqliteStore(path)
    store.update("a", lambda _: "good")

    def fails(_: str | None) -> str:
        raise LookupError

    with pytest.raises(LookupError):
        store.update("a", fails)
    assert text(store) == "good"


def test_threads_lose_nothing(path: Path) -> None:
    stores = [SqliteStore(path), SqliteStore(path)]
    with ThreadPoolExecutor(4) as threads:
        for number in range(60):
            threads.submit(
                stores[number % 2].update, "a", lambda before: (before or "") + "."
            )
    assert text(stores[0]) == "." * 60


def test_the_path_is_kept_when_the_folder_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = SqliteStore("monitor.db")
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    store.update("a", lambda _: "x")
    assert kept(tmp_path / "monitor.db") == "x"


def test_names_of_files_may_hold_anything(tmp_path: Path) -> None:
    odd = tmp_path / "what? 100%#.db"
    SqliteStore(odd).update("a", lambda _: "x")
    assert odd.exists()
    assert kept(odd) == "x"


@pytest.fixture
def held(path: Path) -> Iterator[SqliteStore]:
    """A store whose file another connection is writing."""
    store = SqliteStore(path, timeout=0.05)
    store.update("a", lambda _: "good")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield store
    assert text(store) == "good"


def test_a_file_that_others_hold_is_an_error_after_the_timeout(
    held: SqliteStore,
) -> None:
    with pytest.raises(
        MonitorStoreError, match=r"monitor\.db cannot be used: .*locked"
    ):
        held.update("a", lambda _: "lost")


def test_threads_of_the_same_process_are_not_waited_for_for_ever(path: Path) -> None:
    store = SqliteStore(path, timeout=0.05)
    inside, done = threading.Event(), threading.Event()

    def slow(_: str | None) -> str:
        inside.set()
        assert done.wait(60)
        return "slow"

    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(store.update, "a", slow)
        assert inside.wait(60)
        try:
            with pytest.raises(MonitorStoreError, match="held by other threads"):
                store.update("a", lambda _: "lost")
        finally:
            done.set()
        first.result()
    assert text(store) == "slow"


def _garbage(path: Path) -> None:
    path.write_bytes(b"this is no database, and it is long enough to tell" * 40)


def _foreign(path: Path) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE theirs (x)")
        other.commit()


def _newer(path: Path) -> None:
    SqliteStore(path).update("a", lambda _: "good")
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA user_version = 9")


def _broken(path: Path) -> None:
    SqliteStore(path).update("a", lambda _: "x" * 50_000)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])


def _folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (_garbage, "file is not a database"),
        (_foreign, "it is not a file of this library"),
        (_newer, "its format is 9, and this version reads format 1"),
        (_broken, "malformed"),
        (_folder, "unable to open database file"),
    ],
)
def test_a_file_that_is_not_ours_is_an_error_and_stays_as_it_is(
    path: Path, make: Any, why: str
) -> None:
    make(path)
    before = path.read_bytes() if path.is_file() else b""
    with pytest.raises(MonitorStoreError, match=why):
        SqliteStore(path).update("a", lambda _: "new")
    assert (path.read_bytes() if path.is_file() else b"") == before


def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(MonitorStoreError, match=r"missing.monitor\.db cannot be used"):
        SqliteStore(tmp_path / "missing" / "monitor.db")


def test_a_file_that_vanishes_is_an_error_not_a_new_beginning(path: Path) -> None:
    store = SqliteStore(path)
    path.unlink()
    with pytest.raises(MonitorStoreError, match="unable to open"):
        store.update("a", lambda _: "x")
    assert not path.exists()
    path.touch()  # empty: as much as nothing
    with pytest.raises(MonitorStoreError, match="not a file of this library"):
        store.keys()
    SqliteStore(path).update("a", lambda _: "x")


@pytest.mark.parametrize("timeout", [0, -1.0, True, float("nan"), float("inf")])
def test_a_timeout_that_makes_no_sense_is_refused(path: Path, timeout: float) -> None:
    with pytest.raises(ConfigurationError, match="timeout must be"):
        SqliteStore(path, timeout=timeout)
    assert not path.exists()


def test_a_restarted_monitor_goes_on_where_it_was(path: Path) -> None:
    def opened() -> Monitor:
        return Monitor(
            reference=[0.1, 0.2], alpha=0.1, audit_rate=1.0, store=SqliteStore(path)
        )

    opened().note("a1", uncertainty=0.1, accepted=True)
    assert opened().report("a1", correct=False).n_wrong == 1
    first = opened().note("a2", uncertainty=0.1, accepted=True)
    assert (first.n_scores, first.n_accepted, first.n_pending) == (2, 2, 1)
    assert len(SqliteStore(path).keys()) == 1
