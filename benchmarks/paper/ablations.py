"""What the paper varies: number of samples, temperature, tau and similarity.

Each value ranks the same questions, so that figures differ by the value alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmarks.paper.tables import compare, format_table
from snne_guard.errors import InputError
from snne_guard.evaluation import Recording
from snne_guard.evaluation.ranking import TITLES

__all__ = ["ABLATIONS", "ablate"]

SAMPLES = (2, 3, 5, 10, 20)
TAUS = (0.1, 1.0, 10.0, 100.0)

Rows = Sequence[Recording]
Values = dict[str, dict[str, Any]]
"""For each value of what is varied the arguments of ``compare``."""


def ablate(
    what: str,
    sets: Sequence[Rows],
    *,
    methods: Sequence[str] = ("snne", "wsnne"),
    similarities: Sequence[str] = ("rouge_l_paper",),
    grader: str | None = None,
) -> str:
    """Return a table of methods by the values of what is varied.

    It shows AUROC where answers are right or wrong, else PRR.

    Args:
        what: A key of ``ABLATIONS``. ``"temperature"`` takes several recordings of the
            same questions, whose settings say what their samples were drawn at; the
            others take one.
        sets: The recordings.
        methods: Names of methods, without similarities.
        similarities: What compares answers; all of them for ``"similarity"``, the first
            for the others.
        grader: As of ``compare``.

    Raises:
        InputError: There is nothing to vary, or the values share no question.
    """
    on = {one: [f"{method}[{one}]" for method in methods] for one in similarities}
    values = ABLATIONS[what](sets, on)
    whole = [compare(**given, grader=grader) for given in values.values()]
    shared = frozenset.intersection(*(frozenset(found.ids) for found in whole))
    if not shared:
        msg = f"expected questions that every {what} ranks, got none"
        raise InputError(msg)
    columns: dict[str, dict[str, float]] = {}
    for value, given in values.items():
        rows = [row for row in given["rows"] if row.id in shared]
        ranked = compare(**{**given, "rows": rows}, grader=grader).ranked
        metric = next(iter(ranked[0].metrics))
        figures = {
            row.name.partition("[")[0]: row.metrics[metric].value for row in ranked
        }
        columns[value] = {name: figures.get(name, math.nan) for name in methods}
    title = f"{TITLES[metric]} by {what}, {len(shared)} questions"
    return format_table(title, columns)


def _only(sets: Sequence[Rows]) -> Rows:
    if len(sets) != 1:
        msg = f"expected one recording to vary this on, got {len(sets)}"
        raise InputError(msg)
    return sets[0]


def _by_samples(sets: Sequence[Rows], on: Mapping[str, list[str]]) -> Values:
    rows = _only(sets)
    visible = [sum(bool(sample.strip()) for sample in row.samples) for row in rows]
    counts = [n for n in SAMPLES if n <= max(visible, default=0)]
    if not counts:
        msg = f"expected at least {SAMPLES[0]} samples of each question"
        raise InputError(msg)
    pairs = zip(rows, visible, strict=True)
    enough = [row for row, n in pairs if n >= counts[-1]]
    methods = next(iter(on.values()))
    return {str(n): {"rows": enough, "methods": methods, "samples": n} for n in counts}


def _by_tau(sets: Sequence[Rows], on: Mapping[str, list[str]]) -> Values:
    rows, methods = _only(sets), next(iter(on.values()))
    return {f"{tau:g}": {"rows": rows, "methods": methods, "tau": tau} for tau in TAUS}


def _by_similarity(sets: Sequence[Rows], on: Mapping[str, list[str]]) -> Values:
    rows = _only(sets)
    return {name: {"rows": rows, "methods": methods} for name, methods in on.items()}


def _by_temperature(sets: Sequence[Rows], on: Mapping[str, list[str]]) -> Values:
    methods = next(iter(on.values()))
    found: dict[float, Rows] = {}
    for rows in sets:
        temperatures = {(row.settings or {}).get("temperature") for row in rows}
        value = temperatures.pop()
        if temperatures or not isinstance(value, int | float) or value in found:
            msg = "expected recordings whose settings say another temperature each"
            raise InputError(msg)
        found[value] = rows
    return {
        f"{value:g}": {"rows": found[value], "methods": methods}
        for value in sorted(found)
    }


ABLATIONS: Mapping[str, Callable[[Sequence[Rows], Mapping[str, list[str]]], Values]] = {
    "samples": _by_samples,
    "temperature": _by_temperature,
    "tau": _by_tau,
    "similarity": _by_similarity,
}
"""What can be varied: n, T, tau and f of the paper."""
