"""How far a recording is: a bar or lines while it grows, a summary at the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import (
    BarColumn,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from snne_guard.cli._console import Bar
from snne_guard.evaluation import Tally
from snne_guard.types import Cost

__all__ = ["RecordingView", "summary_lines"]

_LINE_SECONDS = 10.0
"""Where nobody is looking at a bar, a line at most this often."""


class RecordingView(Bar):
    """Shows how far a run is, as long as it is entered: a bar, or lines.

    Args:
        total: Questions to draw, None where nobody knows.
        console: Where to show it: standard error, so that output stays clean.
        clock: Seconds that only ever grow.
    """

    def __init__(
        self,
        total: int | None,
        *,
        console: Console,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.console = console
        self._total, self._clock = total, clock
        self._began = self._told = clock()
        super().__init__(
            SpinnerColumn(),
            BarColumn(bar_width=24),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("left"),
            console=console,
        )
        self._task = self._progress.add_task(self._text(Tally()), total=total)

    def update(self, tally: Tally) -> None:
        """Show where a run has got to."""
        done = tally.recorded + tally.failed
        self._progress.update(self._task, completed=done, description=self._text(tally))
        now = self._clock()
        if not self.console.is_terminal and now - self._told >= _LINE_SECONDS:
            self._told = now
            told = f"{self._text(tally)}{self._left(done, now - self._began)}"
            self.console.print(told, highlight=False, soft_wrap=True)

    def _text(self, tally: Tally) -> str:
        done = tally.recorded + tally.failed
        of = "" if self._total is None else f" of {self._total}"
        parts = [f"{done}{of} questions"]
        if tally.failed:
            parts.append(f"{tally.failed} failed")
        parts.append(_tokens(tally.cost, word=" tokens"))
        if (money := _money(tally.cost)) is not None:
            parts.append(f"{money} spent")
        return ", ".join(parts)

    def _left(self, done: int, seconds: float) -> str:
        if self._total is None or not done:
            return ""
        return f", about {_duration((self._total - done) * seconds / done)} left"


def summary_lines(tally: Tally, *, total: int | None, seconds: float) -> Iterator[str]:
    """Yield what a run has come to, in lines of a name and a value."""
    yield f"recorded     {tally.recorded}"
    if tally.recorded_before:
        yield f"before       {tally.recorded_before}"
    yield f"failed       {tally.failed + tally.failed_before}"
    if tally.bad_lines:
        yield f"bad lines    {tally.bad_lines}"
    if total is not None and (left := total - tally.recorded - tally.failed):
        yield f"left         {left}"
    yield f"took         {_duration(seconds)}"
    yield f"requests     {tally.cost.calls:,}"
    yield f"tokens       {_tokens(tally.cost)}"
    if (money := _money(tally.cost)) is not None:
        yield f"money        {money}"
    if tally.reasons:
        counts = tally.reasons.most_common()
        yield f"reasons      {', '.join(f'{code} {n}' for code, n in counts)}"


def _tokens(cost: Cost, *, word: str = "") -> str:
    read, written = f"{cost.prompt_tokens:,}", f"{cost.completion_tokens:,}"
    return f"{_least(cost)}{read}{word} read, {written} written"


def _money(cost: Cost) -> str | None:
    return None if cost.money is None else f"{_least(cost)}{cost.money:.4f}"


def _least(cost: Cost) -> str:
    return "at least " if cost.lower_bound else ""


def _duration(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}"
