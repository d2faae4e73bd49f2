"""How a calibration looks on a terminal: the sentence, the counts and the curve."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType
from rich.table import Table
from rich.text import Text

from snne_guard.cli._console import one_line
from snne_guard.decision.wording import percent
from snne_guard.evaluation.calibrating import told
from snne_guard.evaluation.calibrating.results import CalibrationRun

__all__ = ["CalibrationView", "RiskPicture"]

_COLUMNS, _ROWS = 56, 11
_LEFT, _RIGHT = 8, 9  # of the axis' numbers, and of its name
_TOPS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8)
"""How far the axis of errors may reach, or else to 1; half of it is as round."""

_STATUS = {
    "certified": ("CERTIFIED", "green"),
    "infeasible": ("NOT POSSIBLE", "red"),
    "too_few_labels": ("TOO FEW LABELS", "red"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskPicture:
    """The error among accepted answers by the share accepted, in characters.

    Attributes:
        curve: Points of share accepted and error, shares rising.
        chosen: The chosen threshold's point, None where nothing is accepted.
        level: The error rate that was asked for, None where it was something else.
    """

    curve: Sequence[tuple[float, float]]
    chosen: tuple[float, float] | None
    level: float | None

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        dot, mark, limit = ("*", "O", "-") if options.ascii_only else ("•", "◆", "┄")
        largest = max(self.level or 0, *(error for _, error in self.curve))
        top = next((one for one in _TOPS if largest <= one), 1.0)
        columns = max(12, min(_COLUMNS, options.max_width - _LEFT - _RIGHT))
        grid = [[(" ", "")] * columns for _ in range(_ROWS)]

        def place(share: float, error: float) -> tuple[int, int]:
            row = round((1 - error / top) * (_ROWS - 1))
            return row, round(share * (columns - 1))

        if self.level is not None:
            row, _ = place(0, self.level)
            grid[row] = [(limit, "yellow")] * columns
        for share, error in self.curve:
            row, column = place(share, error)
            grid[row][column] = (dot, "cyan")
        if self.chosen is not None:
            row, column = place(*self.chosen)
            grid[row][column] = (mark, "bold red")
        text = Text("errors among accepted\n", style="dim")
        for number, line in enumerate(grid):
            error = top * (1 - number / (_ROWS - 1))
            shown = percent(round(error, 3)) if number % 5 == 0 else ""
            text.append(f"{shown:>7} ", style="not dim")
            for character, style in line:
                text.append(character, style=f"not dim {style}".strip())
            text.append("\n")
        text.append(" " * _LEFT + f"{'0 %':<{columns - 5}}100 %", style="not dim")
        text.append(" accepted")
        told: list[tuple[str, str, str]] = []
        if self.chosen is not None:
            told.append((mark, "bold red", " chosen"))
        if self.level is not None:
            asked_for = f" asked for: {percent(self.level)}"
            told.append((limit * 2, "yellow", asked_for))
        for number, (sign, style, words) in enumerate(told):
            text.append("   " if number else f"\n{' ' * _LEFT}")
            text.append(sign, style=f"not dim {style}")
            text.append(words)
        yield text


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationView:
    """A calibration that rich can print.

    Attributes:
        run: What was made, and of what.
    """

    run: CalibrationRun

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        made = self.run.calibration
        word, colour = _STATUS[made.threshold.status]
        yield Text.assemble((word, f"bold {colour}"), f"  {made.statement}")
        if made.refuse is not None:
            yield Text(
                f"Refused above u = {made.refuse.value:.4g}. {made.refuse.statement}"
            )
        yield Text()
        yield _grid(told.facts(self.run))
        curve = told.curve(self.run)
        if curve is not None:
            points = [
                (x, y) for x, y in zip(curve.x, curve.y, strict=True) if y is not None
            ]
            yield Text()
            yield RiskPicture(
                curve=points,
                chosen=told.chosen_point(self.run),
                level=told.asked(self.run),
            )
        if self.run.exploration:
            yield Text()
            yield Text("What other error rates would cost", style="dim")
            yield Text(told.EXPLORED, style="dim")
            yield _costs(self.run)
        if readings := told.readings(self.run):
            yield Text()
            yield Text("P(wrong) by u, with a 90 % band; a reading, and no promise")
            yield _grid(
                (f"u = {u:.2f}", f"{_tenths(p)} ({_tenths(low)} to {_tenths(high)})")
                for u, p, low, high in readings
            )


def _tenths(share: float) -> str:
    return f"{100 * share:.1f} %"


def _grid(rows: Iterator[tuple[str, str]]) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, Text(one_line(value)))
    return table


def _costs(run: CalibrationRun) -> Table:
    table = Table(box=None, pad_edge=False)
    for title in ("error rate", "u up to", "accepted", "not accepted"):
        table.add_column(title, justify="right", overflow="fold")
    for row in told.costs(run):
        table.add_row(*row)
    return table
