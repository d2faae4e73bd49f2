"""What the paper varies: number of samples, temperature, tau and similarity.

Each value ranks the same questions, so that figures differ by the value alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.paper.tables import compare, format_table
from snne_guard.errors import InputError
from snne_guard.evaluation import Evaluation, Recording
from snne_guard.evaluation.results import TITLES

__all__ = ["ABLATIONS", "SAMPLES", "TAUS", "ablate"]

SAMPLES = (2, 3, 5, 10, 20)
TAUS = (0.1, 1.0, 10.0, 100.0)
_ON_WORDS = "rouge_l_paper"

Rows = Sequence[Recording]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One value of what is varied.

    Attributes:
        rows: The recordings that are ranked.
        methods: On which methods.
        options: Of ``compare``.
    """

    rows: Rows
    methods: Sequence[str]
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def evaluate(self, ids: frozenset[str] | None = None, **options: Any) -> Evaluation:  # noqa: ANN401 - those of compare
        """Rank the recordings, or those with these ids."""
        rows = [row for row in self.rows if ids is None or row.id in ids]
        return compare(rows, methods=self.methods, **{**options, **self.options})


def ablate(
    what: str,
    sets: Sequence[Rows],
    *,
    methods: Sequence[str] = ("snne", "wsnne"),
    similarities: Sequence[str] = (_ON_WORDS,),
    metric: str | None = None,
    **options: Any,  # noqa: ANN401 - those of compare
) -> str:
    """Return a table of methods by the values of what is varied.

    Args:
        what: A key of ``ABLATIONS``. ``"temperature"`` takes several recordings of the
            same questions, whose settings say what their samples were drawn at; the
            others take one.
        sets: The recordings.
        methods: Names of methods, without similarities.
        similarities: What compares answers; all of them for ``"similarity"``, the first
            for the others.
        metric: What the table shows; None: AUROC where answers are right or wrong,
            else PRR.
        **options: Further ones of ``compare``.

    Raises:
        InputError: There is nothing to vary, or the values share no question.
    """
    vary = ABLATIONS[what]
    settings = vary(sets, methods=methods, similarities=similarities)
    whole = {value: setting.evaluate(**options) for value, setting in settings.items()}
    shared = frozenset.intersection(
        *(frozenset(ranking.ids) for ranking in whole.values())
    )
    if not shared:
        msg = f"expected questions that every {what} ranks, got none"
        raise InputError(msg)
    rankings = {
        value: setting.evaluate(shared, **options)
        for value, setting in settings.items()
    }
    metric = metric or next(iter(next(iter(rankings.values())).ranked[0].metrics))
    columns = {
        value: {_bare(row.name): row.metrics[metric].value for row in ranking.ranked}
        for value, ranking in rankings.items()
    }
    ordered = {
        value: {name: column.get(name, math.nan) for name in methods}
        for value, column in columns.items()
    }
    title = f"{TITLES[metric]} by {what}, {len(shared)} questions"
    return format_table(title, ordered)


def _bare(name: str) -> str:
    return name.partition("[")[0]


def _on(similarity: str, methods: Sequence[str]) -> list[str]:
    return [f"{method}[{similarity}]" for method in methods]


def _only(sets: Sequence[Rows], what: str) -> Rows:
    if len(sets) != 1:
        msg = f"expected one recording to vary {what} on, got {len(sets)}"
        raise InputError(msg)
    return sets[0]


def _by_samples(
    sets: Sequence[Rows], *, methods: Sequence[str], similarities: Sequence[str]
) -> dict[str, Setting]:
    rows = _only(sets, "samples")
    most = max((len(row.samples) for row in rows), default=0)
    counts = [n for n in SAMPLES if n <= most]
    if not counts:
        msg = f"expected at least {SAMPLES[0]} samples of each question, got {most}"
        raise InputError(msg)
    enough = [row for row in rows if _visible(row) >= counts[-1]]
    on = _on(similarities[0], methods)
    return {
        str(n): Setting(rows=enough, methods=on, options={"samples": n}) for n in counts
    }


def _visible(row: Recording) -> int:
    return sum(bool(sample.strip()) for sample in row.samples)


def _by_tau(
    sets: Sequence[Rows], *, methods: Sequence[str], similarities: Sequence[str]
) -> dict[str, Setting]:
    rows, on = _only(sets, "tau"), _on(similarities[0], methods)
    return {
        f"{tau:g}": Setting(rows=rows, methods=on, options={"tau": tau}) for tau in TAUS
    }


def _by_similarity(
    sets: Sequence[Rows], *, methods: Sequence[str], similarities: Sequence[str]
) -> dict[str, Setting]:
    rows = _only(sets, "similarity")
    return {
        name: Setting(rows=rows, methods=_on(name, methods)) for name in similarities
    }


def _by_temperature(
    sets: Sequence[Rows], *, methods: Sequence[str], similarities: Sequence[str]
) -> dict[str, Setting]:
    on = _on(similarities[0], methods)
    by: dict[float, Setting] = {}
    for rows in sets:
        values = {(row.settings or {}).get("temperature") for row in rows}
        if len(values) != 1 or not isinstance(value := values.pop(), int | float):
            msg = "expected recordings whose settings say one temperature each"
            raise InputError(msg)
        if value in by:
            msg = f"expected recordings of different temperatures, got {value:g} twice"
            raise InputError(msg)
        by[value] = Setting(rows=rows, methods=on)
    return {f"{value:g}": by[value] for value in sorted(by)}


ABLATIONS: Mapping[str, Callable[..., dict[str, Setting]]] = {
    "samples": _by_samples,
    "temperature": _by_temperature,
    "tau": _by_tau,
    "similarity": _by_similarity,
}
"""What can be varied: n, T, tau and f of the paper."""
