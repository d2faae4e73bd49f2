"""One run of ``snne-guard record``: what is counted, told, interrupted and returned."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, cast

import typer
from rich.console import Console

from snne_guard.cli._console import BY_SIGNAL, failure, note, system_error
from snne_guard.cli._questions import Questions
from snne_guard.cli._recording import RecordingView, summary_lines
from snne_guard.errors import InputError
from snne_guard.evaluation import (
    Draw,
    Question,
    Recorder,
    RecordingStore,
    Tally,
)

__all__ = ["RecordRun"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_SHOWN = 300


class RecordRun:
    """Draws what is missing, tells people how it goes, and ends where it is asked to.

    Args:
        store: The recording.
        draw: Draws one question.
        questions: What is asked.
        console: Standard error.
        **options: Options of ``Recorder``.
    """

    def __init__(
        self,
        store: RecordingStore,
        draw: Draw,
        *,
        questions: Questions,
        console: Console,
        strict: bool,
        **options: Any,  # noqa: ANN401 - passed on
    ) -> None:
        self._questions = questions
        self._console, self._strict = console, strict
        self._recorder = Recorder(
            store,
            draw,
            strict=strict,
            on_bad_line=self._on_bad_line,
            on_failure=self._on_failure,
            on_progress=self._on_progress,
            **options,
        )
        self._signal: int | None = None

    def go(self) -> int:
        """Run, print what it has come to, and return the exit status.

        Raises:
            typer.Exit: If nothing was drawn, or no more could be written.
        """
        total = self._count()
        self._view = RecordingView(total, console=self._console)
        began = time.monotonic()
        try:
            with self._view:
                asyncio.run(self._run())
        except (KeyboardInterrupt, asyncio.CancelledError):
            self._signal = self._signal or signal.SIGINT
        except OSError as error:
            told = f"{system_error(error)}; the same command goes on from here"
            raise failure(told, status=1) from error
        tally = self._recorder.tally
        seconds = time.monotonic() - began
        for line in summary_lines(tally, total=total, seconds=seconds):
            typer.echo(line)
        return self._status(tally)

    def _count(self) -> int | None:
        """Return how many questions there are to draw, None where nobody can know."""
        if not self._questions.counts:
            return None
        try:
            return sum(
                isinstance(row, Question) and self._recorder.wants(row)
                for _, row in self._questions.rows(strict=self._strict)
            )
        except InputError as error:
            raise failure(str(error), status=1) from error

    async def _run(self) -> None:
        with self._listening(asyncio.get_running_loop()):
            await self._recorder.run(self._questions.rows())

    @contextmanager
    def _listening(self, loop: asyncio.AbstractEventLoop) -> Generator[None]:
        task = cast("asyncio.Task[None]", asyncio.current_task())
        added: list[signal.Signals] = []
        try:
            for number in _SIGNALS:
                loop.add_signal_handler(number, self._on_signal, number, task)
                added.append(number)
        except (NotImplementedError, RuntimeError, ValueError):
            pass  # Windows, or not in the main thread: then it ends without goodbye
        try:
            yield
        finally:
            for number in added:
                loop.remove_signal_handler(number)

    def _on_signal(self, number: int, task: asyncio.Task[None]) -> None:
        if self._signal is not None:
            task.cancel()
            return
        self._signal = number
        self._recorder.stop()
        told = "finishing what is being drawn; interrupt once more to drop it"
        note(told, console=self._console)

    def _on_bad_line(self, number: int, message: str) -> None:
        note(f"line {number}: {message}", console=self._console)

    def _on_failure(self, question: Question, why: str) -> None:
        note(f"{question.id} failed: {_short(why)}", console=self._console)

    def _on_progress(self, tally: Tally) -> None:
        self._view.update(tally)

    def _status(self, tally: Tally) -> int:
        if tally.stopped == "outage":
            note(f"the provider is failing: {_short(tally.error or '')}")
        if tally.failed or tally.failed_before:
            note("--retry-failed draws again what failed")
        if self._signal is not None or tally.stopped == "outage":
            note("the same command goes on from here")
        if self._signal is not None:
            return BY_SIGNAL + self._signal
        return 0 if tally.complete else 1


def _short(told: str) -> str:
    """Return the beginning of a provider's words, on one line."""
    line = " ".join(told.split())
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…"
