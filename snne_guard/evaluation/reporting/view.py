"""What the report shows of a set: its charts and questions, and who stands out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from snne_guard.evaluation.reporting.ablations import ablation
from snne_guard.evaluation.reporting.charts import Chart, Style, histogram, lines
from snne_guard.evaluation.reporting.kinds import (
    CLUSTERS,
    RELIABILITY,
    RISK,
    ROC,
    SAMPLES,
    with_chance,
)
from snne_guard.evaluation.reporting.text import interval, number
from snne_guard.evaluation.results import (
    Curve,
    EvaluatedSet,
    HardQuestion,
    MethodResult,
    Metric,
)

__all__ = ["LENGTH", "SetView", "view"]

LENGTH = "answer_length"
"""The method that every other one has to beat."""
_BEST = 3
"""Methods that are drawn for their place alone."""
_KEPT = 0.05
"""Share of the answers below which the risk among them is noise."""

_LONE = "this third has no right or no wrong answers"
_UNLEARNT = "no probability was learnt"
_THIRDS = 3
_STATUS = {"formula_verified": "formula verified, not evaluated", "skipped": "skipped"}
_STANDING = {
    "snne": Style(ink=0, width=2.4),
    "wsnne": Style(ink=3, dash=(6, 2)),
    LENGTH: Style(ink=5, dash=(2, 2)),
}
_OTHERS = (
    Style(ink=1),
    Style(ink=2, dash=(8, 2, 2, 2)),
    Style(ink=4, dash=(4, 1)),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetView:
    """A set and what is shown of it.

    Attributes:
        found: The set.
        anchor: Of its section.
        size: Number of its ranked questions.
        why: Why a figure does not exist, where one does not.
        lone: The same within a third of the questions.
        missing: What is not known of some method, and why.
        styles: How the methods look that are drawn.
        evaluated: Its methods, best first.
        others: Those that were not, under what became of them and why.
        metric: What they are ranked by: AUROC, or PRR where there is no right or wrong.
        best: The first that is no baseline, None where none could be ranked.
        snne: The first SNNE, None where there is none.
        length: The length of the answer as a method, None where it did not run.
        against: The one that the others' AUROC is compared with, None for nobody.
        scale: Ends of the scale on which intervals of AUROC are drawn.
        charts: Its charts.
        ablations: Those of what was varied, under its name.
        hardest: Its hard questions, under what makes them hard.
    """

    found: EvaluatedSet
    anchor: str
    size: int
    why: str
    lone: str
    missing: tuple[str, ...]
    styles: Mapping[str, Style]
    evaluated: tuple[MethodResult, ...]
    others: Mapping[str, tuple[MethodResult, ...]]
    metric: str
    best: MethodResult | None
    snne: MethodResult | None
    length: MethodResult | None
    against: MethodResult | None
    scale: tuple[float, float]
    charts: tuple[Chart, ...]
    ablations: Mapping[str, Chart]
    hardest: Mapping[str, tuple[HardQuestion, ...]]


def view(found: EvaluatedSet, anchor: str) -> SetView:
    """Return what is shown of a set.

    Args:
        found: The set.
        anchor: Unique in the page; the ids of the charts begin with it.
    """
    evaluated = tuple(m for m in found.methods if m.status == "evaluated")
    styles = _styles(evaluated)
    ranked = [m for m in evaluated if _value(m.auroc) is not None]
    graded = not ranked and found.accuracy is None
    if graded:
        ranked = [m for m in evaluated if _value(m.prr) is not None]
    return SetView(
        found=found,
        anchor=anchor,
        size=len(found.ids),
        why=_why(found),
        lone=_why(found) if found.accuracy is None else _LONE,
        missing=tuple(_missing(found, evaluated)),
        styles=styles,
        evaluated=evaluated,
        others=_grouped(m for m in found.methods if m.status != "evaluated"),
        metric="PRR" if graded and ranked else "AUROC",
        best=next((m for m in ranked if m.method != LENGTH), None),
        snne=_first(evaluated, "snne"),
        length=_first(evaluated, LENGTH),
        against=_against(ranked),
        scale=_scale(ranked),
        charts=tuple(_charts(found, evaluated, styles, anchor)),
        ablations={
            name: chart
            for at, (name, curves) in enumerate(found.ablations.items())
            if (chart := ablation(name, curves, styles, f"{anchor}-a{at}"))
        },
        hardest={
            title: questions
            for title, correct in (
                ("Certain, but wrong", False),
                ("Uncertain, but right", True),
            )
            if (questions := tuple(q for q in found.hardest if q.correct is correct))
        },
    )


def _why(found: EvaluatedSet) -> str:
    if not found.ids:
        return "no question could be ranked"
    if found.accuracy is None and found.quality:
        return "the grader does not say which answers are right"
    if found.accuracy is None:
        return "no answer has a label"
    if found.accuracy in {0, 1}:
        return f"all answers are {'right' if found.accuracy else 'wrong'}"
    return "it is not known"


def _missing(found: EvaluatedSet, evaluated: Sequence[MethodResult]) -> Iterator[str]:
    """Yield what is shown as a dash, with the reason."""
    why = _why(found)
    lone, unlearnt = (why, why) if found.accuracy is None else (_LONE, _UNLEARNT)
    thirds = [[_value(third) for third in m.auroc_by_length] for m in evaluated]
    lacks = {
        f"AUROC: {why}": any(_value(m.auroc) is None for m in evaluated),
        f"By length: {lone}": any(
            len(each) < _THIRDS or None in each for each in thirds
        ),
        "ms: not measured": any(m.milliseconds is None for m in evaluated),
        "calls: not counted": any(m.calls is None for m in evaluated),
        f"ECE, Brier: {unlearnt}": any(m.ece is None for m in evaluated),
    }
    yield from (said for said, lacking in lacks.items() if lacking)


def _grouped(methods: Iterable[MethodResult]) -> dict[str, tuple[MethodResult, ...]]:
    found: dict[str, tuple[MethodResult, ...]] = {}
    for method in methods:
        said = _STATUS[method.status]
        if method.why:
            said += f": {method.why.removeprefix(said).removeprefix(': ')}"
        found[said] = (*found.get(said, ()), method)
    return found


def _against(ranked: Sequence[MethodResult]) -> MethodResult | None:
    """Return the method that has no difference, or one of 0, to what it is."""
    if all(_value(m.against_first) is None for m in ranked):
        return None
    return next((m for m in ranked if not _value(m.against_first)), None)


def _value(metric: Metric | None) -> float | None:
    value = None if metric is None else metric.value
    return None if value is None or not math.isfinite(value) else value


def _first(methods: tuple[MethodResult, ...], key: str) -> MethodResult | None:
    return next((m for m in methods if m.method == key), None)


def _styles(evaluated: tuple[MethodResult, ...]) -> dict[str, Style]:
    """Return how the methods look that are drawn, in the order of the table."""
    known = {
        m.name: style
        for key, style in _STANDING.items()
        if (m := _first(evaluated, key)) is not None
    }
    best = [m.name for m in evaluated if m.name not in known][:_BEST]
    known.update(zip(best, _OTHERS, strict=False))
    return {m.name: known[m.name] for m in evaluated if m.name in known}


def _scale(ranked: list[MethodResult]) -> tuple[float, float]:
    ends = [
        end
        for m in ranked
        if m.auroc is not None
        for end in (m.auroc.value, m.auroc.low, m.auroc.high)
        if end is not None and math.isfinite(end)
    ]
    low, high = min(ends, default=0.5), max(ends, default=1.0)
    # Chance is always in the picture.
    return math.floor(min(low, 0.5) * 10) / 10, math.ceil(max(high, 0.6) * 10) / 10


def _charts(
    found: EvaluatedSet,
    evaluated: tuple[MethodResult, ...],
    styles: Mapping[str, Style],
    anchor: str,
) -> Iterator[Chart]:
    """Yield the charts for which there is something to draw."""
    notes = {
        m.name: f"{m.name}: AUROC {number(m.auroc.value)} ({interval(m.auroc)})"
        for m in evaluated
        if m.auroc is not None
    }
    risk = RISK
    if found.accuracy is not None and math.isfinite(found.accuracy):
        wrong = 1 - found.accuracy
        risk = replace(risk, reference=((0, wrong), (1, wrong)))
    pair = _pair(evaluated)
    two = {
        name: style for name, style in styles.items() if name in {m.name for m in pair}
    }
    drawn = [
        lines(ROC, found.roc, styles, name=f"{anchor}-roc", notes=notes),
        lines(risk, _settled(found.risk_coverage), styles, name=f"{anchor}-risk"),
        *(
            histogram(m.name, m.uncertainty, found.correct, name=f"{anchor}-h{at}")
            for at, m in enumerate(pair)
        ),
        lines(
            with_chance(SAMPLES, found.auroc_by_samples),
            found.auroc_by_samples,
            styles,
            name=f"{anchor}-n",
        ),
        lines(
            with_chance(CLUSTERS, found.auroc_by_clusters),
            found.auroc_by_clusters,
            styles,
            name=f"{anchor}-m",
        ),
        lines(RELIABILITY, found.reliability, two, name=f"{anchor}-p"),
    ]
    yield from (chart for chart in drawn if chart is not None)


def _settled(curves: tuple[Curve, ...]) -> tuple[Curve, ...]:
    """Return the parts of curves that do not hang on two or three answers."""
    return tuple(
        Curve(
            label=curve.label,
            x=tuple(x for x in curve.x if x >= _KEPT),
            y=tuple(y for x, y in zip(curve.x, curve.y, strict=True) if x >= _KEPT),
        )
        for curve in curves
    )


def _pair(evaluated: tuple[MethodResult, ...]) -> tuple[MethodResult, ...]:
    """Return SNNE and the best of the others, as far as there are any."""
    snne = _first(evaluated, "snne")
    rest = [m for m in evaluated if m.method not in {"snne", LENGTH}]
    return tuple(([snne] if snne else []) + rest)[:2]
