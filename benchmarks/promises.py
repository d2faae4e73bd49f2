"""Whether promises are kept: thousands of calibrations of which the truth is known.

Each promise is tried by its own criterion, at several error rates, label counts and
kinds of questions, ties and errors that fall with u among them: a certified threshold
may accept too many wrong answers in at most delta of the calibrations; the joint error,
false refusals and the share accepted hold on average. The naive rule, the largest
threshold with an empirical error of at most alpha, is tried beside it. Then the
recordings of real models, where there are some: 200 times half of the questions
calibrates and the other half is looked at.

    python -m benchmarks.promises [--draws 2000]

The exit status is 1 where a promise is broken by more than two standard errors, or
where fewer answers are accepted than were measured before, by more than two.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks._promise_cascade import report_cascade
from benchmarks._promise_means import report_exploring, report_means
from benchmarks._promise_recordings import report_recordings
from benchmarks._promise_truths import (
    Binormal,
    BoolArray,
    Draw,
    FloatArray,
    Steps,
    Truth,
    calibrations,
    error,
    seed_of,
    spread,
)
from benchmarks.certificate import MissedTargets
from snne_guard.decision.risk_control import (
    Accepted,
    by_approximate_grid,
    by_pilot,
    by_ranks,
    ends_of,
)

DRAWS = 2000
BEFORE = 150  # draws behind the coverage that was measured before
PILOT = 1000
DELTA = 0.1
COUNTS = (100, 200, 300, 500, 1000, 2000)

Search = Callable[[FloatArray, BoolArray], Accepted]

EASY = Binormal(auroc=0.8, base=0.3)
FEWER = Binormal(auroc=0.8, base=0.15)
SHARP = Binormal(auroc=0.9, base=0.3)
# Truth, alpha, the share that could be accepted if the truth were known, and the share
# that was accepted before for each of COUNTS.
MEASURED: Sequence[tuple[Binormal, float, float, tuple[float | None, ...]]] = (
    (EASY, 0.20, 0.78, (0.41, 0.49, 0.62, 0.67, 0.71, 0.73)),
    (EASY, 0.10, 0.42, (0.00, 0.05, 0.12, 0.18, 0.25, 0.32)),
    (EASY, 0.05, 0.18, (None, None, 0.00, 0.00, 0.04, 0.04)),
    (FEWER, 0.10, 0.87, (0.21, 0.49, 0.62, 0.71, 0.78, 0.81)),
    (FEWER, 0.05, 0.55, (0.00, 0.02, 0.09, 0.20, 0.25, 0.39)),
    (SHARP, 0.20, 0.85, (0.69, 0.77, None, None, None, None)),
)
TRUTHS: Sequence[Truth] = (
    EASY,
    Binormal(auroc=0.6, base=0.5),
    Binormal(auroc=0.9, base=0.1),
    Binormal(auroc=0.8, base=0.3, values=11),
    Binormal(auroc=0.8, base=0.3, values=3),
    Steps(edges=(0.4, 0.6, 0.8, 1.0), rates=(0.04, 0.1, 0.25, 0.6), atoms=True),
    Steps(edges=(0.1, 0.4, 1.0), rates=(0.5, 0.0, 0.3)),
    Steps(edges=(0.1, 0.4, 1.0), rates=(0.5, 0.0, 0.3), atoms=True),
)
ALPHAS, DELTAS, LABELS = (0.05, 0.1, 0.2, 0.3), (0.05, 0.1, 0.2), (50, 200, 500)


@dataclass(frozen=True)
class Tried:
    """What came of a promise in many calibrations.

    Attributes:
        accepted: Share of answers that each accepts.
        wrong: Share of answers that each accepts and that is wrong.
        alpha: The error rate that was promised.
    """

    accepted: FloatArray
    wrong: FloatArray
    alpha: float

    @property
    def broken(self) -> float:
        """Share of calibrations that accept too many wrong answers."""
        return float((self.wrong > self.alpha * self.accepted + 1e-12).mean())

    @property
    def none(self) -> float:
        """Share of calibrations that accept nothing."""
        return float((self.accepted == 0).mean())


def tried(
    truth: Truth, draws: Iterable[Draw], searches: Mapping[str, Search], alpha: float
) -> dict[str, Tried]:
    """Run each search on each calibration."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in searches}
    for u, wrong in draws:
        for name, search in searches.items():
            one = search(u, wrong)
            found[name].append(truth.shares(one.value) if one.n else (0.0, 0.0))
    tables = {name: np.array(pairs) for name, pairs in found.items()}
    return {
        name: Tried(table.sum(axis=1), table[:, 1], alpha)
        for name, table in tables.items()
    }


def naive(u: FloatArray, wrong: BoolArray, *, alpha: float) -> Accepted:
    """Take the largest threshold with an empirical error of at most alpha."""
    ends, counts, errors = ends_of(u, wrong)
    kept = np.flatnonzero(errors <= alpha * counts)
    if not kept.size:
        return Accepted()
    last = kept[-1]
    return Accepted(
        value=float(ends[last]), n=int(counts[last]), wrong=int(errors[last])
    )


def from_pilot(truth: Truth, *, alpha: float, delta: float) -> Search:
    """Return the search that starts by a pilot, which is drawn for each calibration."""
    rng = np.random.default_rng(7)

    def search(u: FloatArray, wrong: BoolArray) -> Accepted:
        pilot = np.sort(truth.draw(rng, PILOT)[0])
        return by_pilot(u, wrong, pilot=pilot, alpha=alpha, delta=delta)

    return search


def noise(accepted: FloatArray, before: float) -> float:
    """Return the standard error of the difference to a mean that was measured before.

    Draws with that mean would spread as these do, but for accepting more often; and
    it was rounded to two digits, which is spread over a hundredth.
    """
    square = float((accepted**2).mean() / max(float(accepted.mean()), 1e-12))
    spread_before = max(float(accepted.var()), before * square - before**2)
    return math.sqrt(spread_before / BEFORE + error(accepted) ** 2 + 0.01**2 / 12)


def measured_row(
    truth: Binormal,
    alpha: float,
    n: int,
    before: float | None,
    *,
    draws: int,
    missed: MissedTargets,
) -> str:
    """Return the line of a table for one count of labels."""
    searches: dict[str, Search] = {
        "ranks": partial(by_ranks, alpha=alpha, delta=DELTA),
        "pilot": from_pilot(truth, alpha=alpha, delta=DELTA),
        "approximate": partial(by_approximate_grid, alpha=alpha, delta=DELTA),
        "naive": partial(naive, alpha=alpha),
    }
    drawn = calibrations(truth, n, draws=draws, seed=seed_of(truth, n))
    found = tried(truth, drawn, searches, alpha)
    cells, mark = [], ""
    for name in ("ranks", "pilot", "approximate"):
        one = found[name]
        cells += [f"{one.accepted.mean():.2f}", f"{100 * one.broken:.1f} %"]
        holds = one.broken <= DELTA + 2 * spread(DELTA, draws)
        if before is not None and name == "ranks":
            holds &= one.accepted.mean() >= before - 2 * noise(one.accepted, before)
        mark = mark or missed.expect(holds=holds, what=f"{truth.name}, {n}: {name}")
    cells += [
        f"{found['naive'].accepted.mean():.2f}",
        f"{100 * found['naive'].broken:.0f} %",
    ]
    told = "" if before is None else f"{before:.2f}"
    nothing = f"{100 * found['ranks'].none:.0f} %"
    return f"| {n} | {told} | {nothing} | {' | '.join(cells)} |{mark}"


def report_measured(missed: MissedTargets, *, draws: int) -> None:
    """Print how much is accepted, beside what was measured before."""
    print("## The error rate among accepted answers: how much is accepted\n")
    for truth, alpha, oracle, befores in MEASURED:
        print(
            f"{truth.name}, alpha {alpha:g}, accepted if the truth were known "
            f"{oracle:.2f}:\n"
        )
        print(
            "| labels | before | nothing accepted | accepted | broken | with a pilot | "
            "broken | approximate | broken | naive rule | broken |"
        )
        print("|---" * 11 + "|")
        for n, before in zip(COUNTS, befores, strict=True):
            print(measured_row(truth, alpha, n, before, draws=draws, missed=missed))
        print()


def broken_row(truth: Truth, *, draws: int, missed: MissedTargets) -> str:
    """Return how often promises are broken at worst, for one kind of questions."""
    worst, worst_naive = dict.fromkeys(DELTAS, 0.0), 0.0
    for n in LABELS:
        seed = seed_of(truth, n)
        drawn = list(calibrations(truth, n, draws=draws, seed=seed))
        for alpha in ALPHAS:
            searches: dict[str, Search] = {
                str(delta): partial(by_ranks, alpha=alpha, delta=delta)
                for delta in DELTAS
            }
            searches["naive"] = partial(naive, alpha=alpha)
            found = tried(truth, drawn, searches, alpha)
            worst_naive = max(worst_naive, found["naive"].broken)
            for delta in DELTAS:
                worst[delta] = max(worst[delta], found[str(delta)].broken)
    mark = ""
    for delta, broken in worst.items():
        holds = broken <= delta + 2 * spread(delta, draws)
        mark = mark or missed.expect(holds=holds, what=f"{truth.name}: delta {delta}")
    cells = " | ".join(f"{100 * broken:.1f} %" for broken in worst.values())
    return f"| {truth.name} | {cells} | {100 * worst_naive:.0f} % |{mark}"


def report_broken(missed: MissedTargets, *, draws: int) -> None:
    """Print how often the promise is broken where that is most often."""
    print("## The error rate among accepted answers: how often the promise is broken\n")
    print(f"The worst of alpha {_listed(ALPHAS)} with {_listed(LABELS)} labels.\n")
    heads = " | ".join(f"delta {delta:g}" for delta in DELTAS)
    print(f"| questions | {heads} | naive rule |")
    print("|---" * (len(DELTAS) + 2) + "|")
    for truth in TRUTHS:
        print(broken_row(truth, draws=draws, missed=missed))
    print()


def _listed(values: Sequence[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)


def main() -> int:
    """Print all tables; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=DRAWS)
    draws = parser.parse_args().draws
    missed = MissedTargets()
    report_measured(missed, draws=draws)
    report_broken(missed, draws=draws)
    report_means(missed, draws=draws)
    report_exploring(missed, draws=draws)
    report_cascade(missed, draws=draws // 10)
    report_recordings()
    return missed.status()


if __name__ == "__main__":
    sys.exit(main())
