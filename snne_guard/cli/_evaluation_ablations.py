"""What ``--ablate`` found, as small tables on a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.markup import escape
from rich.table import Table

from snne_guard.cli._console import one_line
from snne_guard.evaluation.reporting.text import number
from snne_guard.evaluation.reporting.varied import metric_of, varied
from snne_guard.evaluation.results import EvaluatedSet

__all__ = ["ablation_tables"]

_BY = {
    "tau": "tau",
    "similarity": "similarity",
    "samples": "number of answers",
    "temperature": "temperature of the samples",
}


def ablation_tables(one: EvaluatedSet, /) -> Iterator[tuple[str, Table]]:
    """Yield each thing that was varied: a title, and methods by its values."""
    for name, curves in one.ablations.items():
        if name not in _BY:
            continue  # a chart of the report, which nobody has asked for
        columns, rows = varied(curves)
        table = Table(box=None, pad_edge=False)
        table.add_column("method", no_wrap=True)
        for column in columns:
            table.add_column(escape(one_line(column)), justify="right", no_wrap=True)
        for method, values in rows.items():
            shown = (number(value).replace("0.", ".", 1) for value in values)
            table.add_row(escape(one_line(method)), *shown)
        yield f"{metric_of(curves)} by {_BY[name]}", table
