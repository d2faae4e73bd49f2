"""``snne-guard label`` on a real terminal: one key each, and what a kill leaves."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from snne_guard.evaluation.labelling.labels import Labels
from tests.cli.lines import write

pty = pytest.importorskip("pty", reason="there are no such terminals on Windows")
termios = pytest.importorskip("termios", reason="likewise")

_PATIENCE = 100.0
"""Seconds after which something is broken."""
NAMES = [f"q{number}" for number in range(30)]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    rows = [
        {"id": name, "question": "?", "main_answer": "a", "samples": ["a"]}
        for name in NAMES
    ]
    return write(tmp_path / "r.jsonl", *rows)


def _command(source: Path, ignored: signal.Signals | None) -> list[str]:
    """Return a command that ignores one signal, or none: tests may run by nohup."""
    listed = "[signal.SIGTERM, signal.SIGHUP]"
    begin = (
        "import os, signal, sys; "
        f"[signal.signal(each, signal.SIG_IGN if each == {int(ignored or 0)} "
        f"else signal.SIG_DFL) for each in {listed}]; "
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    label = [sys.executable, "-m", "snne_guard", "label", str(source)]
    return [sys.executable, "-c", begin, *label]


class Sitting:
    """The command on a terminal of its own."""

    def __init__(self, source: Path, ignored: signal.Signals | None) -> None:
        self.screen, own = pty.openpty()
        self.process = subprocess.Popen(  # noqa: S603 - our own code
            _command(source, ignored),
            stdin=own,
            stdout=own,
            stderr=own,
            start_new_session=True,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "80"},
        )
        self._own = own
        self.seen = b""

    def terminal(self) -> list[object]:
        """Return how its terminal is set up: whether keys are shown, among others."""
        return list(termios.tcgetattr(self._own))

    def until(self, text: bytes, times: int) -> None:
        """Read what is on the screen until a text has come so often."""
        while self.seen.count(text) < times:
            self._read()

    def end(self) -> int:
        """Wait for its end, and return the exit status."""
        status = self.process.wait(timeout=_PATIENCE)
        os.close(self._own)
        with suppress(OSError):  # nobody else has the terminal open
            while True:
                self._read()
        return status

    def hang_up(self) -> None:
        """Take its terminal away, and wait for its end."""
        os.close(self._own)
        os.close(self.screen)
        self.process.wait(timeout=_PATIENCE)

    def close(self) -> None:
        """End it if it has not ended."""
        self.process.kill()
        self.process.wait()
        for descriptor in (self._own, self.screen):
            with suppress(OSError):
                os.close(descriptor)

    def _read(self) -> None:
        ready, _, _ = select.select([self.screen], [], [], _PATIENCE)
        assert ready, self.seen
        self.seen += os.read(self.screen, 4096)

    def press(self, keys: str) -> None:
        os.write(self.screen, keys.encode())


@contextmanager
def sitting(
    source: Path, *, ignored: signal.Signals | None = None
) -> Generator[Sitting]:
    one = Sitting(source, ignored)
    try:
        yield one
    finally:
        one.close()


def labelled(source: Path) -> list[int | None]:
    labels = Labels.read(source.with_name("r.labels.jsonl"))
    return [one.label for one in labels.by_id.values()]


PROMPT = b"q quit"


def test_a_key_counts_as_soon_as_it_is_pressed(source: Path) -> None:
    with sitting(source) as one:
        one.until(PROMPT, 1)
        one.press("r")
        one.until(PROMPT, 2)
        assert labelled(source) == [1]
        one.press("ws")
        one.until(PROMPT, 4)
        one.press("q")
        assert one.end() == 0
    assert labelled(source) == [1, 0, None]
    assert b"left         27" in one.seen
    # The keys are not on the screen: a terminal that shows them would have a line "r".
    assert b"\r\nr\r\n" not in one.seen


def test_ctrl_c_ends_it_and_keeps_all(source: Path) -> None:
    with sitting(source) as one:
        one.until(PROMPT, 1)
        one.press("rr")
        one.until(PROMPT, 3)
        one.press("\x03")
        assert one.end() == 130
    assert labelled(source) == [1, 1]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_the_terminal_as_it_was(
    source: Path, number: signal.Signals
) -> None:
    with sitting(source) as one:
        before = one.terminal()
        one.until(PROMPT, 1)
        assert one.terminal() != before  # keys are not shown
        one.press("r")
        one.until(PROMPT, 2)
        one.process.send_signal(number)
        assert one.process.wait(timeout=_PATIENCE) == 128 + number
        assert one.terminal() == before
    assert labelled(source) == [1]


def test_a_signal_that_is_ignored_stays_so(source: Path) -> None:
    with sitting(source, ignored=signal.SIGHUP) as one:
        one.until(PROMPT, 1)
        one.process.send_signal(signal.SIGHUP)
        one.press("r")
        one.until(PROMPT, 2)
        one.press("q")
        assert one.end() == 0
    assert labelled(source) == [1]


def test_a_kill_loses_no_label(source: Path) -> None:
    with sitting(source) as one:
        for number in range(1, 11):
            one.until(PROMPT, number)
            one.press("rw"[number % 2])
        one.until(PROMPT, 11)
        one.process.send_signal(signal.SIGKILL)
        assert one.end() == -signal.SIGKILL
    assert labelled(source) == [0, 1] * 5
    with sitting(source) as one:
        one.until(b"5 right, 5 wrong, 0 skipped, 20 left", 1)
        one.press("q")
        assert one.end() == 0


def test_a_terminal_that_goes_away_is_the_end(source: Path) -> None:
    with sitting(source) as one:
        one.until(PROMPT, 1)
        one.press("r")
        one.until(PROMPT, 2)
        one.hang_up()
    assert labelled(source) == [1]
