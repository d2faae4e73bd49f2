"""Promises that hold on average, and one that holds for several error rates."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from benchmarks._promise_truths import (
    Binormal,
    Draw,
    Steps,
    Truth,
    calibrations,
    error,
    seed_of,
    spread,
)
from benchmarks.certificate import MissedTargets
from snne_guard.decision import exploratory
from snne_guard.decision.risk_control import by_joint_error, score_of_share

EASY = Binormal(auroc=0.8, base=0.3)
TRUTHS: Sequence[Truth] = (
    EASY,
    Binormal(auroc=0.8, base=0.15),
    Binormal(auroc=0.8, base=0.3, values=11),
    Binormal(auroc=0.8, base=0.3, values=3),
    Steps(edges=(0.1, 0.4, 1.0), rates=(0.5, 0.0, 0.3), atoms=True),
)
LABELS = (50, 200, 1000)
JOINT, REFUSED, ACCEPTED = (0.05, 0.1), (0.1, 0.2), (0.5, 0.8)
# Accepted before, by the promised joint error and for each of LABELS.
BEFORE = {0.1: (0.60, 0.63, 0.64), 0.05: (0.36, 0.45, 0.46)}
BEFORE_DRAWS = 4000
ALPHAS = (0.05, 0.1, 0.2, 0.3)
DELTA = 0.1


def report_means(missed: MissedTargets, *, draws: int) -> None:
    """Print the means that are promised, for each kind of questions."""
    print("## Promises that hold on average\n")
    heads = [f"joint error {alpha:g}" for alpha in JOINT]
    heads += [f"false refusals {beta:g}" for beta in REFUSED]
    heads += [f"accepted {share:g}" for share in ACCEPTED]
    print(f"| questions | labels | {' | '.join(heads)} |")
    print("|---" * (2 + len(heads)) + "|")
    for truth in TRUTHS:
        for place, n in enumerate(LABELS):
            print(means_row(truth, n, place, draws=draws, missed=missed))
    print()


def means_row(
    truth: Truth, n: int, place: int, *, draws: int, missed: MissedTargets
) -> str:
    """Return the means for one count of labels."""
    drawn = list(calibrations(truth, n, draws=draws, seed=seed_of(truth, n)))
    cells, marks = [], []

    def expect(*, holds: bool, what: str) -> None:
        marks.append(missed.expect(holds=holds, what=f"{truth.name}, {n}: {what}"))

    for alpha in JOINT:
        shares = np.array([_joint(truth, draw, alpha) for draw in drawn])
        accepted, wrong = shares.sum(axis=1), shares[:, 1]
        cells.append(f"{wrong.mean():.3f}, accepts {accepted.mean():.2f}")
        expect(holds=wrong.mean() <= alpha + 2 * error(wrong), what=f"joint {alpha}")
        if truth == EASY:
            noise = math.hypot(error(accepted), accepted.std() / BEFORE_DRAWS**0.5)
            least = BEFORE[alpha][place] - 0.005 - 2 * noise
            expect(holds=accepted.mean() >= least, what=f"accepted at {alpha}")
    for beta in REFUSED:
        refused = np.array([_refused(truth, draw, beta) for draw in drawn])
        cells.append(f"{refused.mean():.3f}")
        expect(holds=refused.mean() <= beta + 2 * error(refused), what=f"beta {beta}")
    for share in ACCEPTED:
        got = np.array([_accepted(truth, draw, share) for draw in drawn])
        cells.append(f"{got.mean():.3f}")
        expect(holds=got.mean() >= share - 2 * error(got), what=f"share {share}")
    return f"| {truth.name} | {n} | {' | '.join(cells)} |{max(marks)}"


def _joint(truth: Truth, draw: Draw, alpha: float) -> tuple[float, float]:
    found = by_joint_error(*draw, alpha=alpha)
    return truth.shares(found.value) if found.n else (0.0, 0.0)


def _refused(truth: Truth, draw: Draw, beta: float) -> float:
    u, wrong = draw
    kept, _ = truth.shares(score_of_share(u[~wrong], 1 - beta))
    right, _ = truth.shares(1.0)
    return 1 - kept / right


def _accepted(truth: Truth, draw: Draw, share: float) -> float:
    return sum(truth.shares(score_of_share(draw[0], share)))


def report_exploring(missed: MissedTargets, *, draws: int) -> None:
    """Print how often any of several error rates that were explored is exceeded."""
    print("## Several error rates at once\n")
    told = ", ".join(f"{alpha:g}" for alpha in ALPHAS)
    print(f"`exploratory` at {told}, delta {DELTA:g}, 300 labels.\n")
    print("| questions | one of them is broken | accepted at each |")
    print("|---|---|---|")
    for truth in TRUTHS:
        drawn = calibrations(truth, 300, draws=draws, seed=seed_of(truth, 300))
        shares = np.array([_explored(truth, draw) for draw in drawn])
        accepted, wrong = shares.sum(axis=2), shares[:, :, 1]
        broken = float((wrong > np.array(ALPHAS) * accepted + 1e-12).any(axis=1).mean())
        mark = missed.expect(
            holds=broken <= DELTA + 2 * spread(DELTA, draws),
            what=f"{truth.name}: several at once",
        )
        means = ", ".join(f"{mean:.2f}" for mean in accepted.mean(axis=0))
        print(f"| {truth.name} | {100 * broken:.1f} % | {means} |{mark}")
    print()


def _explored(truth: Truth, draw: Draw) -> list[tuple[float, float]]:
    u, wrong = draw
    found = exploratory(u, ~wrong, delta=DELTA, alphas=ALPHAS)
    return [truth.shares(one.value) if one.n_accepted else (0.0, 0.0) for one in found]
