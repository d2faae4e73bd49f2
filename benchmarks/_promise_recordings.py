"""Thresholds with a promise on the recorded answers of real models."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks import certificate, scores
from benchmarks._promise_truths import BoolArray, FloatArray
from snne_guard import score
from snne_guard.decision.risk_control import by_ranks
from snne_guard.evaluation import Recording

ALPHAS = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3)
DELTA = 0.1
SPLITS = 200
LEAST = 130
"""Questions that a set must have, half of which calibrate."""


def uncertainty(one: Recording) -> float:
    """Return the default's ``u`` of the answer and its samples."""
    found = score(scores.answers(one), question=one.question).uncertainty
    return np.inf if found is None else found


def report_recordings() -> None:
    """Print what random halves of real recordings certify, and what the others show."""
    print("## Recordings of real models\n")
    sets = {name: rows for name, rows in scores.shared().items() if len(rows) >= LEAST}
    if not sets:
        print(f"No recordings in {certificate.SHARED / 'data'} (SNNE_GUARD_SHARED).")
        return
    print(
        f"{SPLITS} times half of the questions certifies an error rate at delta "
        f"{DELTA:g}, and the other half shows what is accepted of it and how much of "
        "that is wrong. The last column is the share of halves whose finite other half "
        "lies above alpha: no violation in itself, since the promise is about all "
        "questions like these, and a half is a draw of them.\n"
    )
    print(
        "| set (questions, wrong) | alpha | certified | accepted | error among "
        "accepted | other half above alpha |"
    )
    print("|---" * 6 + "|")
    for name, rows in sets.items():
        u = np.array([uncertainty(one) for one in rows])
        wrong = np.array([not one.label for one in rows])
        label = f"{name} ({len(rows)}, {100 * wrong.mean():.0f} %)"
        for line in lines(u, wrong):
            print(f"| {label} | {line} |")
    print()


def lines(u: FloatArray, wrong: BoolArray) -> Sequence[str]:
    """Return a line for each alpha."""
    found = np.array(
        [
            [outcome(u, wrong, alpha=alpha, seed=seed) for alpha in ALPHAS]
            for seed in range(SPLITS)
        ]
    )
    return [_line(alpha, found[:, place]) for place, alpha in enumerate(ALPHAS)]


def outcome(
    u: FloatArray, wrong: BoolArray, *, alpha: float, seed: int
) -> tuple[float, float]:
    """Return which share of the other half is accepted, and accepted and wrong."""
    order = np.random.default_rng(seed).permutation(len(u))
    learn, test = order[: len(u) // 2], order[len(u) // 2 :]
    learn = learn[np.argsort(u[learn], kind="stable")]
    found = by_ranks(u[learn], wrong[learn], alpha=alpha, delta=DELTA)
    accepted = u[test] <= found.value
    return float(accepted.mean()), float((accepted & wrong[test]).mean())


def _line(alpha: float, found: FloatArray) -> str:
    accepted, wrong = found.T
    some = accepted > 0
    above = float((wrong > alpha * accepted + 1e-12).mean())
    error = f"{wrong[some].sum() / accepted[some].sum():.3f}" if some.any() else ""
    return (
        f"{alpha:g} | {100 * some.mean():.0f} % | {accepted.mean():.2f} | {error} | "
        f"{100 * above:.0f} %"
    )
