"""How far a recording is: the bar, the lines, the summary."""

from __future__ import annotations

import io
from collections import Counter

import pytest
from rich.console import Console

from snne_guard.cli._recording import RecordingView, summary_lines
from snne_guard.evaluation import Tally
from snne_guard.types import Cost

COST = Cost(calls=14, prompt_tokens=12_345, completion_tokens=678, money=0.01234)
SPENT = "12,345 tokens read, 678 written, 0.0123 spent"


def told(*, total: int | None, steps: list[tuple[float, Tally]]) -> list[str]:
    """Return the lines that are told after steps at some seconds."""
    file = io.StringIO()
    seconds = [0.0]
    console = Console(file=file, width=40)
    with RecordingView(total, console=console, clock=lambda: seconds[-1]) as view:
        for now, tally in steps:
            seconds.append(now)
            view.update(tally)
    return file.getvalue().splitlines()


def test_a_line_now_and_then_where_there_is_no_terminal() -> None:
    steps = [
        (4.0, Tally(recorded=1)),
        (12.0, Tally(recorded=6, failed=1, cost=COST)),
        (21.0, Tally(recorded=7, failed=1)),
        (22.0, Tally(recorded=8, failed=2)),
    ]
    assert told(total=20, steps=steps) == [
        f"7 of 20 questions, 1 failed, {SPENT}, about 0:00:22 left",
        "10 of 20 questions, 2 failed, 0 tokens read, 0 written, about 0:00:22 left",
    ]


@pytest.mark.parametrize("tally", [Tally(recorded=3), Tally()])
def test_without_a_total_or_a_result_nobody_knows_how_long_it_takes(
    tally: Tally,
) -> None:
    [line] = told(total=None if tally.recorded else 9, steps=[(11.0, tally)])
    assert "left" not in line
    assert "spent" not in line


def test_a_bar_on_a_terminal() -> None:
    console = Console(force_terminal=True, width=100, record=True, file=io.StringIO())
    with RecordingView(4, console=console) as view:
        view.update(Tally(recorded=2, failed=1, cost=COST))
        task = view._progress.tasks[0]
        assert (task.completed, task.total) == (3, 4)
        assert task.description == f"3 of 4 questions, 1 failed, {SPENT}"


def test_the_summary_tells_what_there_is_to_tell() -> None:
    tally = Tally(
        recorded=7,
        failed=1,
        bad_lines=3,
        recorded_before=10,
        failed_before=2,
        reasons=Counter({"truncated_samples": 4, "empty_samples": 1}),
        cost=Cost(calls=14, prompt_tokens=5, lower_bound=True, money=0.5),
    )
    assert list(summary_lines(tally, total=12, seconds=3725.4)) == [
        "recorded     7",
        "before       10",
        "failed       3",
        "bad lines    3",
        "left         4",
        "took         1:02:05",
        "requests     14",
        "tokens       at least 5 read, 0 written",
        "money        at least 0.5000",
        "reasons      truncated_samples 4, empty_samples 1",
    ]
    assert "left" not in "".join(summary_lines(tally, total=None, seconds=0.0))
