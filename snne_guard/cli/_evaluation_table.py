"""How the sets of an evaluation look on a terminal."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from snne_guard.cli._console import one_line
from snne_guard.cli._evaluation_ablations import ablation_tables
from snne_guard.evaluation.comparison.means import (
    Kind,
    Mean,
    comparable,
    method_means,
)
from snne_guard.evaluation.results import EvaluatedSet, Evaluation, MethodResult, Metric

__all__ = ["print_evaluation", "print_means"]

_WIDE = 140


def print_evaluation(evaluation: Evaluation, console: Console | None = None) -> None:
    """Print a table for each set, and below it what a reader must know."""
    console = Console() if console is None else console
    if not console.is_terminal:
        # A file or a pipe has no width: nothing is cut off there.
        console.width = max(console.width, _WIDE)
    wide = console.width >= _WIDE
    for one in evaluation.sets:
        _say(console, _title(one), style="bold")
        for line in _facts(one):
            _say(console, line)
        ranked = [row for row in one.methods if row.status == "evaluated"]
        if ranked:
            console.print(_table(ranked, wide=wide))
        for line in _unranked(one):
            _say(console, line)
        for title, table in ablation_tables(one):
            _say(console, title, style="bold")
            console.print(table)
        console.print()


def print_means(evaluation: Evaluation, console: Console | None = None) -> None:
    """Print what each method reaches over the sets that may be compared."""
    console = Console() if console is None else console
    if not console.is_terminal:
        console.width = max(console.width, _WIDE)
    groups = comparable(evaluation.sets) or {Kind(): []}
    for kind, sets in groups.items():
        title = f"mean of {len(sets)} sets ± standard deviation between them"
        if len(groups) > 1 or kind.graded:
            told = f", answers: {kind.protocol}" if kind.protocol else ""
            how = "graded" if kind.graded else "right"
            title = f"{title}{told}, {how} by {kind.grader}"
        _say(console, title, style="bold")
        console.print(_means_table(sets))


def _means_table(sets: Sequence[EvaluatedSet]) -> Table:
    table = Table(box=None, pad_edge=False)
    for title in ("method", "box"):
        table.add_column(title, no_wrap=True)
    for title in ("sets", "AUROC", "AUARC", "PRR", "normalised"):
        table.add_column(title, justify="right", no_wrap=True)
    for row in method_means(sets):
        means = (row.auroc, row.auarc, row.prr, row.prr_normalised)
        box = "white" if row.white_box else "black"
        name = escape(one_line(row.name))
        table.add_row(name, box, str(row.n_sets), *map(_with_spread, means))
    return table


def _say(console: Console, text: str, *, style: str | None = None) -> None:
    """Print a line, whatever a recording or a file's name has put into it."""
    line = one_line(text)
    console.print(line, style=style, markup=False, highlight=False, soft_wrap=True)


def _with_spread(mean: Mean) -> str:
    if math.isnan(mean.value):
        return "-"
    spread = "" if mean.deviation is None else f" ± {_short(mean.deviation)}"
    return f"{_short(mean.value)}{spread}"


def _title(one: EvaluatedSet) -> str:
    protocol = f", answers: {one.protocol}" if one.protocol else ""
    return f"{one.name}{protocol}"


def _facts(one: EvaluatedSet) -> Iterator[str]:
    right = "" if one.accuracy is None else f", {one.accuracy:.1%} right"
    answer = "with" if one.include_answer else "without"
    yield (
        f"{len(one.ids)} of {one.n_read} questions{right} by {one.grader}; "
        f"{one.n_samples} samples {answer} the delivered answer"
    )
    if one.left_out:
        told = ", ".join(f"{reason}: {n}" for reason, n in one.left_out.items())
        yield f"left out: {told}"
    if one.agreement is not None:
        agreed = one.agreement
        kappa = "" if agreed.kappa is None else f", kappa {agreed.kappa:.2f}"
        yield (
            f"{agreed.first} and {agreed.second} agree on {agreed.share:.1%} of "
            f"{agreed.n} answers{kappa}"
        )
    for warning in one.warnings:
        yield f"beware: {warning}"


def _table(rows: list[MethodResult], *, wide: bool) -> Table:
    interval = _with_interval if wide else _without
    columns: list[tuple[str, Callable[[MethodResult], str]]] = [
        ("AUROC", lambda row: _with_interval(row.auroc)),
        ("AUARC", lambda row: interval(row.auarc)),
        ("PRR", lambda row: interval(row.prr)),
        ("normalised", lambda row: interval(row.prr_normalised)),
        ("by length", lambda row: " ".join(map(_without, row.auroc_by_length))),
        ("ms", lambda row: f"{row.milliseconds or 0:.2f}"),
        ("calls", lambda row: f"{row.calls or 0:g}"),
    ]
    table = Table(box=None, pad_edge=False)
    table.add_column("method", no_wrap=True)
    table.add_column("box", no_wrap=True)
    for title, _ in columns:
        table.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        box = "white" if row.white_box else "black"
        table.add_row(
            escape(one_line(row.name)), box, *(tell(row) for _, tell in columns)
        )
    return table


def _unranked(one: EvaluatedSet) -> Iterator[str]:
    reasons: dict[str, list[str]] = {}
    for row in one.methods:
        if row.status != "evaluated":
            reasons.setdefault(row.why or row.status, []).append(row.name)
    for why, names in reasons.items():
        yield f"not ranked: {', '.join(names)}: {why}"


def _with_interval(metric: Metric | None) -> str:
    if metric is None or metric.value is None:
        return "-"
    if metric.low is None or metric.high is None:
        return _short(metric.value)
    return f"{_short(metric.value)} ({_short(metric.low)}-{_short(metric.high)})"


def _without(metric: Metric | None) -> str:
    return _short(None if metric is None else metric.value)


def _short(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}".replace("0.", ".", 1) if abs(value) < 1 else f"{value:.3f}"
