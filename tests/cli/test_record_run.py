"""One run of ``snne-guard record`` without a model: interrupts, limits, statuses.

Without an HTTP client too: on Python 3.11 its connections make coverage lose the
frames around an event loop.
"""

from __future__ import annotations

import asyncio
import io
import os
import signal
from pathlib import Path
from typing import Any

import pytest
import typer
from rich.console import Console

from snne_guard.cli._questions import StreamedQuestions
from snne_guard.cli._record_run import RecordRun
from snne_guard.evaluation import Draw, Drawn, Question, RecordingStore
from tests.cli.lines import read, write
from tests.cli.record_command import ask_for
from tests.support.recording import SETTINGS, Scripted, drawn_for, recorded

NAMES = "abcdefgh"


class Outcome:
    """What a run came to.

    Attributes:
        status: The exit status.
        told: What was written to standard error.
    """

    def __init__(self, source: Path, draw: Draw, **options: Any) -> None:
        given = {"strict": False, "max_concurrency": 1, **options}
        limit = given.pop("limit", None)
        err = io.StringIO()
        output = source.with_name("out.jsonl")
        with (
            source.open("rb") as stream,
            RecordingStore(output, settings=SETTINGS) as store,
        ):
            run = RecordRun(
                store,
                draw,
                questions=StreamedQuestions(stream, rewinds=True, limit=limit),
                console=Console(file=err, width=200),
                n_samples=2,
                **given,
            )
            try:
                self.status = run.go()
            except typer.Exit as error:
                self.status = error.exit_code
        self.told = err.getvalue()
        self.recorded = "".join(recorded(output))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write(tmp_path / "in.jsonl", *map(ask_for, NAMES))


class Interrupted:
    """Draws; where it comes to one question, signals arrive, one after the other."""

    def __init__(self, name: str, *signals: signal.Signals) -> None:
        self._name, self._signals = name, signals

    async def __call__(
        self, question: Question, /, *, n_samples: int, tries: int
    ) -> Drawn:
        if question.id == self._name:
            for number in self._signals:
                os.kill(os.getpid(), number)
                for _ in range(20):  # the loop sees to it in one of its next rounds
                    await asyncio.sleep(0)
        return drawn_for(question.id, n_samples=n_samples, tries=tries)


@pytest.mark.parametrize(
    ("signals", "finished"),
    [
        ([signal.SIGINT], "abc"),
        ([signal.SIGTERM], "abc"),
        ([signal.SIGINT, signal.SIGINT], "ab"),
        ([signal.SIGINT, signal.SIGTERM], "ab"),
    ],
)
def test_an_interrupt_finishes_what_is_being_drawn_and_a_second_drops_it(
    source: Path,
    signals: list[signal.Signals],
    finished: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = signal.getsignal(signals[0])
    found = Outcome(source, Interrupted("c", *signals))
    assert found.status == 128 + signals[0]
    assert found.recorded == finished
    assert "interrupt once more to drop it" in found.told
    said = capsys.readouterr()
    assert f"left         {8 - len(finished)}" in said.out
    assert "the same command goes on from here" in said.err
    assert signal.getsignal(signals[0]) is before

    assert Outcome(source, Scripted()).status == 0
    assert Outcome(source, Scripted()).recorded == NAMES


def test_where_the_loop_takes_no_handlers_an_interrupt_drops_at_once(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on Windows."""

    def no_handlers(*_: object) -> None:
        raise NotImplementedError

    monkeypatch.setattr(
        "asyncio.unix_events._UnixSelectorEventLoop.add_signal_handler", no_handlers
    )
    found = Outcome(source, Interrupted("c", signal.SIGINT))
    assert (found.status, found.recorded) == (130, "ab")


@pytest.mark.parametrize(("limit", "expected"), [(0, ""), (1, "a"), (3, "abc")])
def test_a_limit_counts_questions(source: Path, limit: int, expected: str) -> None:
    source.write_bytes(b"nonsense\n" + source.read_bytes())
    found = Outcome(source, Scripted(), limit=limit)
    assert found.recorded == expected
    assert found.status == (1 if limit else 0)
    assert found.told.count("line 1: expected a JSON object") == int(limit > 0)
    # With another limit the same command goes on.
    assert Outcome(source, Scripted(), limit=5).recorded == "abcde"


def test_a_full_disk_ends_it_with_a_message(
    source: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(RecordingStore, "record", full)
    assert Outcome(source, Scripted()).status == 1
    told = capsys.readouterr().err
    assert "No space left on device; the same command goes on from here" in told


def test_a_provider_that_is_gone_is_named(
    source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gone: dict[str, list[Any]] = {name: [ConnectionError("gone")] for name in "defgh"}
    found = Outcome(source, Scripted(outcomes=gone))
    assert (found.status, found.recorded) == (1, "abc")
    told = capsys.readouterr().err
    assert "the provider is failing: ConnectionError: gone" in told
    assert "the same command goes on from here" in told
    assert "--retry-failed" not in told


def test_what_a_provider_says_at_length_is_told_in_short(source: Path) -> None:
    said = "context:\n too long " + "x" * 500
    draw = Scripted(outcomes={"b": [ValueError(said)]})
    found = Outcome(source, draw)
    assert found.recorded == "acdefgh"
    [line] = found.told.splitlines()
    assert line.startswith("snne-guard: b failed: ValueError: context: too long xxx")
    assert line.endswith("x…")
    assert len(line) < 350
    [kept] = read(source.with_name("out.failed.jsonl"))
    assert kept["failed"]["error"] == f"ValueError: {said}"
