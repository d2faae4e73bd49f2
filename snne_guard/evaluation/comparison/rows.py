"""The rows of a set's table, best method first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from snne_guard.evaluation.comparison.figures import Figures, figures
from snne_guard.evaluation.comparison.members import WHOLE
from snne_guard.evaluation.comparison.plan import Planned
from snne_guard.evaluation.comparison.prepare import Options
from snne_guard.evaluation.comparison.ranking import Ranked
from snne_guard.evaluation.comparison.scan import Scan
from snne_guard.evaluation.comparison.standing import Standing
from snne_guard.evaluation.metrics.calibration_error import brier, ece
from snne_guard.evaluation.results import MethodResult
from snne_guard.scorers.needs import MAIN_NEEDS
from snne_guard.types import FloatArray, IntArray

__all__ = ["results"]

_MILLI = 1e3
_WITH_ANSWER = MAIN_NEEDS | WHOLE


def results(
    scan: Scan, found: Ranked, standing: Standing, options: Options, /
) -> tuple[MethodResult, ...]:
    """Return what came of every planned method: best AUROC first, the skipped last.

    Args:
        scan: What was run.
        found: What of it is ranked.
        standing: The ranked questions.
        options: How intervals are made.
    """
    worth = figures(
        standing.uncertainties,
        quality=standing.quality,
        correct=standing.correct,
        answer_length=standing.answer_length,
        options=options.draws,
    )
    rows = [_row(planned) for planned in scan.plan]
    for place, planned in enumerate(scan.plan):
        if not found.methods[place]:
            status = planned.status if planned.why else "skipped"
            rows[place] = replace(rows[place], status=status, why=found.why[place])
            continue
        columns = scan.strips[0].columns
        seconds = columns.seconds[place] / columns.scored[place]
        rows[place] = replace(
            _with_figures(rows[place], worth[planned.name]),
            ece=_calibration(ece, standing, planned.name),
            brier=_calibration(brier, standing, planned.name),
            calls=_calls(planned, scan, options),
            milliseconds=float(seconds * _MILLI),
            uncertainty=tuple(standing.uncertainties[planned.name].tolist()),
        )
    return tuple(sorted(rows, key=_best_first))


def _row(planned: Planned) -> MethodResult:
    relation = planned.relation
    return MethodResult(
        name=planned.name,
        method=planned.method.name,
        similarity=None if relation is None else relation.name,
        white_box=planned.method.white_box,
        source=planned.method.source,
        status=planned.status,
        why=planned.why,
    )


def _with_figures(row: MethodResult, worth: Figures) -> MethodResult:
    return replace(
        row,
        auroc=worth.metrics.get("auroc"),
        auarc=worth.metrics.get("auarc"),
        prr=worth.metrics.get("prr"),
        prr_normalised=worth.metrics.get("prr_normalised"),
        aupr=worth.metrics.get("aupr"),
        e_aurc=worth.metrics.get("e_aurc"),
        auroc_by_length=worth.by_length,
        against_first=worth.against_first,
    )


def _calibration(
    measure: Callable[[FloatArray, IntArray], float], standing: Standing, name: str
) -> float | None:
    """Return what a probability is worth, None where there is nothing to learn from."""
    correct = standing.correct
    if correct is None or len(correct) <= 1:
        return None
    return measure(standing.probability_wrong(name), correct)


def _calls(planned: Planned, scan: Scan, options: Options) -> float:
    """Return the calls of a model for one question: what the method looks at."""
    needs = planned.method.needs
    if needs <= MAIN_NEEDS - {"main_similarity", "main_entailment"}:
        return 1.0
    drawn = scan.n_samples + (options.include_answer or bool(needs & _WITH_ANSWER))
    drawn += len(needs & WHOLE)  # the model is asked about all of them
    judge = "" if planned.relation is None else planned.relation.name
    return drawn + scan.verdicts.get(judge, 0) / len(scan.rows)


def _best_first(row: MethodResult) -> tuple[bool, float]:
    value = None if row.auroc is None else row.auroc.value
    if value is None:
        value = None if row.prr is None else row.prr.value
    return row.status != "evaluated", 0.0 if value is None else -value
