"""A calibration in lines for people: counts, settings, and what other rates cost."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from snne_guard.decision import Calibration
from snne_guard.decision.risk_control import ends_of
from snne_guard.decision.wording import percent
from snne_guard.evaluation.calibrating.results import CalibrationRun
from snne_guard.evaluation.results import Curve

__all__ = [
    "CHOSEN",
    "EXPLORED",
    "asked",
    "chosen_point",
    "costs",
    "curve",
    "facts",
    "readings",
    "tried",
]

CHOSEN = "chosen threshold"
EXPLORED = (
    "To explore, and not to choose from afterwards: all of them are tested at once, "
    "each under a share of delta, so that all hold together, and so each accepts less "
    "than the same rate declared alone."
)


def facts(run: CalibrationRun) -> Iterator[tuple[str, str]]:
    """Yield what it was made of, as names and values."""
    made = run.calibration
    if len(run.correct):
        wrong = len(run.correct) - int(run.correct.sum())
        tested = "" if not run.n_fitted else f", besides {run.n_fitted} to learn from"
        yield "graded", f"{len(run.correct)} answers, {wrong} of them wrong{tested}"
        yield "graded by", _counted(run.graders)
    else:
        yield "scored", f"{len(run.uncertainty)} answers; no labels are needed"
    if run.ungraded and len(run.correct):
        skipped = f", {run.skipped} of them skipped by hand" if run.skipped else ""
        yield "left out", f"{run.ungraded} of {run.n_read} without a grade{skipped}"
    if made.cascade is not None:
        plan = made.cascade
        parts = f"learnt from {plan.n_fit} of them, tested on {plan.promise.n_labels}"
        members = f"{plan.mean_members or 0:.1f} of {plan.n} members on average"
        yield "plan", f"{parts}; {members}"
    if run.n_pilot:
        yield "pilot", f"{run.n_pilot} answers, of which no grade was looked at"
    lost = int(np.isinf(run.uncertainty).sum())
    if lost:
        yield "never accepted", f"{lost} ({_counted(run.unacceptable)})"
    for name, value in made.settings.items():
        if value not in (None, []):
            yield name.replace("_", " "), _shown(name, value)


def _shown(name: str, value: Any) -> str:  # noqa: ANN401 - it is from JSON
    if name == "reply_models":
        return ", ".join(value)
    return value if isinstance(value, str) else json.dumps(value)


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {n}" for name, n in counts.most_common())


def tried(run: CalibrationRun, *, previous: Calibration | None) -> str | None:
    """Say how often the same labels were used, as far as anybody can know.

    Args:
        run: What was done.
        previous: The calibration in whose place this one comes, None for none.
    """
    tries = run.calibration.tries
    if run.calibration.labels is None:
        return None
    if tries > 1:
        return (
            f"these labels were used {tries} times, in different ways: the promise is "
            "that of one declared beforehand, and the best of several has none"
        )
    if previous is None:
        return (
            "nothing is known of other tries on these labels: they are counted in the "
            "file that a calibration replaces, and here there was none. If you tried "
            "several and keep the best, it has no promise"
        )
    if previous.labels not in {None, run.calibration.labels}:
        return (
            "the calibration that this one replaces was made of other labels: to grade "
            "more answers until a promise holds makes it weaker than it says"
        )
    return None


def asked(run: CalibrationRun) -> float | None:
    """Return the error rate that was asked for, None where it was something else."""
    threshold = run.calibration.threshold
    return threshold.level if threshold.kind == "error_rate" else None


def curve(run: CalibrationRun) -> Curve | None:
    """Return the error among accepted answers by the share that is accepted.

    One point for each distinct ``u``; None where there are no labels.
    """
    n = len(run.correct)
    if not n:
        return None
    order = np.argsort(run.uncertainty, kind="stable")
    u, wrong = run.uncertainty[order], run.correct[order] == 0
    _, counts, errors = ends_of(u, wrong)
    return Curve(
        label="error among accepted",
        x=tuple((counts / n).tolist()),
        y=tuple((errors / counts).tolist()),
    )


def chosen_point(run: CalibrationRun) -> tuple[float, float] | None:
    """Return share accepted and error there, None where nothing is."""
    one = run.calibration.threshold
    if not len(run.correct) or not one.n_accepted:
        return None
    return one.n_accepted / one.n_labels, one.n_wrong / one.n_accepted


def costs(run: CalibrationRun) -> list[tuple[str, str, str, str]]:
    """Return error rate, ``u``, share accepted and share refused, as words."""
    rows: list[tuple[str, str, str, str]] = []
    for one in run.exploration:
        if one.value < 0:
            rows.append((percent(one.alpha), "none", percent(0), percent(1)))
            continue
        shares = (percent(one.acceptance), percent(1 - one.acceptance))
        rows.append((percent(one.alpha), f"{one.value:.3f}", *shares))
    return rows


def readings(run: CalibrationRun) -> list[tuple[float, float, float, float]]:
    """Return ``u`` with the probability of being wrong and its band there.

    Empty where fewer than 50 graded answers could be scored.
    """
    [*maps] = run.calibration.probability.values()
    if not maps:
        return []
    at = {0.0, 0.25, 0.5, 0.75, 1.0, run.calibration.threshold.value}
    return [(u, *maps[0](u)) for u in sorted(at) if u >= 0 and math.isfinite(u)]
