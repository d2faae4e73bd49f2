"""The same methods under other settings: tau, similarity, number of answers."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Literal, get_args

import numpy as np

from snne_guard.errors import ConfigurationError
from snne_guard.evaluation.comparison.measure import Columns
from snne_guard.evaluation.comparison.members import WHOLE
from snne_guard.evaluation.comparison.pictures import difference
from snne_guard.evaluation.comparison.plan import Planned, Tools, plan_methods
from snne_guard.evaluation.comparison.scan import Scan, Strip
from snne_guard.evaluation.comparison.standing import Standing
from snne_guard.evaluation.comparison.yardstick import Yardstick
from snne_guard.evaluation.results import Curve
from snne_guard.scorers.relation import Relation
from snne_guard.types import BoolArray

__all__ = [
    "ABLATIONS",
    "Ablation",
    "ablations",
    "check_ablations",
    "missing",
    "strips",
]

Ablation = Literal["tau", "similarity", "samples", "temperature"]
"""What can be varied."""

ABLATIONS: tuple[str, ...] = get_args(Ablation)

_TAUS = (0.1, 1.0, 10.0, 100.0)
_HEADLINE = ("snne", "wsnne", "dse", "lex_sim")
_SIZES = 4


def check_ablations(names: Sequence[str], /) -> frozenset[str]:
    """Return the names, all of them for "all", or raise ConfigurationError."""
    if [*names] == ["all"]:
        return frozenset(ABLATIONS)
    for name in names:
        if name not in ABLATIONS:
            msg = f"expected ablations among {[*ABLATIONS]} or all, got {name!r}"
            raise ConfigurationError(msg)
    return frozenset(names)


def strips(
    plan: Sequence[Planned],
    *,
    n: int,
    members: int,
    tau: float,
    wanted: frozenset[str],
    similarities: Sequence[Relation],
) -> Iterator[Strip]:
    """Yield what is to be run beside the methods themselves.

    A few methods are run with fewer answers at any rate; that costs little, since
    nothing is compared again.

    Args:
        plan: The methods.
        n: Questions.
        members: Answers of each.
        tau: Temperature of the similarity's softmax.
        wanted: What is to be varied.
        similarities: What else there is to compare answers with.
    """
    running = [one for one in plan if one.status == "evaluated"]
    every = "samples" in wanted
    # What is known of all samples together says nothing of fewer.
    able = [one for one in running if not one.method.needs & WHOLE]
    fewer = able if every else _headline(able)
    for size in _sizes(members, every=every) if fewer else ():
        columns = Columns.of(fewer, n)
        yield Strip(columns=columns, tau=tau, n=size, of="samples")
    soft = [one for one in running if _has_tau(one, members)]
    for other in _TAUS if "tau" in wanted and soft else ():
        yield Strip(columns=Columns.of(soft, n), tau=other, of="tau")
    if "similarity" in wanted:
        rows = _other_similarities(running, similarities)
        yield Strip(columns=Columns.of(rows, n), tau=tau, of="similarity")


def _headline(running: Sequence[Planned]) -> list[Planned]:
    first: dict[str, Planned] = {}
    for one in running:
        if one.method.name in _HEADLINE:
            first.setdefault(one.method.name, one)
    return [*first.values()]


def _sizes(members: int, *, every: bool) -> list[int]:
    sizes = range(2, members)
    if every or len(sizes) <= _SIZES:
        return [*sizes]
    return sorted({round(float(one)) for one in np.geomspace(2, members - 1, _SIZES)})


def _has_tau(planned: Planned, members: int) -> bool:
    bounds = planned.method.bounds
    return bounds(members, tau=_TAUS[0]) != bounds(members, tau=_TAUS[-1])


def _other_similarities(
    running: Sequence[Planned], similarities: Sequence[Relation]
) -> Sequence[Planned]:
    """Return each method that works on a matrix, over each similarity."""
    tools = Tools(graded=tuple(similarities), equal=())
    methods = {
        one.method.name: one.method
        for one in running
        if "similarity" in one.method.needs
    }
    rows = plan_methods([*methods.values()], tools)
    return [one for one in rows if one.relation and one.status == "evaluated"]


def ablations(
    scan: Scan, standing: Standing, kept: BoolArray, wanted: frozenset[str], /
) -> tuple[dict[str, tuple[Curve, ...]], tuple[Curve, ...]]:
    """Return what came of varying things, and the AUROC by number of answers.

    Where the grader draws no line between right and wrong, the paper's PRR is what
    varies, and each curve says so. Similarities have no order: each is a curve of one
    point, at its place.

    Args:
        scan: What was run.
        standing: The ranked questions.
        kept: ``(questions,)`` which of those that were run these are.
        wanted: What was to be varied.
    """
    by = Yardstick.of(standing)
    by_samples = _by_setting(scan, standing, kept, "samples", by)
    found = {
        "tau": _by_setting(scan, standing, kept, "tau", by),
        "similarity": _by_similarity(scan, standing, kept, by),
        "samples": by_samples,
        "temperature": _by_temperature(standing, by),
    }
    varied = {
        what: curves
        for what, curves in found.items()
        if what in wanted and any(y is not None for curve in curves for y in curve.y)
    }
    if by.metric == "prr":
        return varied, ()
    if curves := _minus_by_clusters(standing, by):
        varied["snne_minus_se_by_clusters"] = curves
    return varied, by_samples


def missing(
    scan: Scan, varied: Collection[str], wanted: frozenset[str], /
) -> Iterator[str]:
    """Yield what was to be varied and could not be, with the reason.

    Temperature is left out: files beside this one may have another.

    Args:
        scan: What was run.
        varied: What of it has curves.
        wanted: What was to be varied.
    """
    run = {strip.of for strip in scan.strips if strip.columns.plan}
    reasons = {
        "tau": "no ranked method has a tau",
        "similarity": "no method that was run works on a matrix of similarities",
        "samples": f"there are only {scan.members} answers a question",
    }
    for what, reason in reasons.items():
        if what in wanted and what not in varied:
            told = "there is no AUROC or PRR" if what in run else reason
            yield f"nothing came of --ablate {what}: {told}"


def _by_similarity(
    scan: Scan, standing: Standing, kept: BoolArray, by: Yardstick
) -> tuple[Curve, ...]:
    return tuple(
        Curve(
            label=planned.name,
            x=(float(place),),
            y=(by.value(strip.columns.values[place, kept]),),
            counts=(len(standing.rows),),
            metric=by.metric,
        )
        for strip in scan.strips
        if strip.of == "similarity"
        for place, planned in enumerate(strip.columns.plan)
    )


def _by_temperature(standing: Standing, by: Yardstick) -> tuple[Curve, ...]:
    """Return the metric of each method by temperature, nothing where there is one."""
    drawn = np.array(
        [
            np.nan if row.temperature is None else row.temperature
            for row in standing.rows
        ]
    )
    if np.isnan(drawn).any() or len(np.unique(drawn)) <= 1:
        return ()
    return tuple(
        by.within(name, one, drawn) for name, one in standing.uncertainties.items()
    )


def _minus_by_clusters(standing: Standing, by: Yardstick) -> tuple[Curve, ...]:
    """Return by how much SNNE's AUROC exceeds that of SE or DSE, by clusters."""
    named, groups = standing.uncertainties, standing.n_clusters
    first = next((name for name in named if name.startswith("snne[")), None)
    if first is None or groups is None:
        return ()
    snne = by.within(first, named[first], groups)
    return tuple(
        difference(f"{first} - {name}", snne, by.within(name, one, groups))
        for name, one in named.items()
        if name.startswith(("se[", "dse["))
    )


def _by_setting(
    scan: Scan, standing: Standing, kept: BoolArray, what: str, by: Yardstick
) -> tuple[Curve, ...]:
    points: dict[str, list[tuple[float, float | None]]] = {}
    for strip in scan.strips:
        if strip.of != what:
            continue
        x = strip.tau if what == "tau" else float(strip.n or 0)
        for place, planned in enumerate(strip.columns.plan):
            y = by.value(strip.columns.values[place, kept])
            points.setdefault(planned.name, []).append((x, y))
    if what == "samples":
        for name, line in points.items():
            if name in standing.uncertainties:
                whole = by.value(standing.uncertainties[name])
                line.append((float(scan.members), whole))
    return tuple(
        Curve(
            label=name,
            x=tuple(x for x, _ in line),
            y=tuple(y for _, y in line),
            counts=(len(standing.rows),) * len(line),
            metric=by.metric,
        )
        for name, line in points.items()
        if name in standing.uncertainties
    )
