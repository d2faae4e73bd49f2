"""What a monitor of a calibration promises and finds, simulated with fixed seeds.

False alarms and delays of both tests, beside a simple jumper whose reference stays as
it was, and beside what was measured before. The exit status is 1 if false alarms are
more than promised, or changes are found more rarely or later, by more than two standard
errors.

    python -m benchmarks.monitor
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.certificate import MissedTargets
from snne_guard.decision.audit import audit_evidence
from snne_guard.decision.drift import BINS, kept, shares_and_factors
from snne_guard.types import FloatArray, IntArray

RUNS = 1000
REFERENCE, BEFORE, AFTER = 500, 500, 2000
LATE, LATE_RUNS = 10_000, 100
LEVEL = 0.05
JUMPER_ALARM = 100.0
ALPHA = 0.10
AUDITS = 2000
RUNS_THEN = 60  # of the figures that were measured before

Draw = Callable[[np.random.Generator, tuple[int, ...]], FloatArray]


@dataclass(frozen=True, kw_only=True)
class Shift:
    """A change of the scores' mean, with what was found of it before.

    Attributes:
        mean: By how much the mean of u rises.
        found: Share of runs in which the jumper on a fixed reference found it.
        delay: After how many scores.
    """

    mean: float
    found: float
    delay: int


SHIFTS = (
    Shift(mean=0.05, found=0.92, delay=430),
    Shift(mean=0.11, found=1.00, delay=120),
    Shift(mean=0.19, found=0.93, delay=55),
)
AUDITED = ((0.15, 0.99, 231), (0.20, 1.00, 64), (0.30, 1.00, 25))
"""True error, share of runs with an alarm, and after how many audits, before."""


def pool(seed: int = 0) -> FloatArray:
    """Return u of many questions, some of them with answers that are all alike."""
    rng = np.random.default_rng(seed)
    scores = rng.beta(1.35, 1.35, 20_000)
    scores[rng.random(len(scores)) < LEVEL] = 0.0
    return scores


def tilted(scores: FloatArray, shift: float) -> FloatArray:
    """Return weights of the questions under which the mean rises by ``shift``."""
    low, high = 0.0, 50.0
    for _ in range(60):
        middle = (low + high) / 2
        weights = np.exp(middle * scores)
        risen = np.average(scores, weights=weights) - scores.mean()
        low, high = (middle, high) if risen < shift else (low, middle)
    weights = np.exp(low * scores)
    return np.asarray(weights / weights.sum())


class Ranks:
    """The p-values of many runs at once: counts of the steps of u, in Fenwick trees."""

    def __init__(self, reference: FloatArray) -> None:
        self.runs = np.arange(len(reference))
        self.below = np.zeros((len(reference), BINS + 1), dtype=np.int64)
        self.equal = np.zeros((len(reference), BINS), dtype=np.int64)
        self.total = 0
        for scores in reference.T:
            self.add(scores)

    def add(self, scores: FloatArray) -> None:
        """Count one score of each run."""
        steps = self._steps(scores)
        self.equal[self.runs, steps] += 1
        self.total += 1
        place = steps + 1
        while (place <= BINS).any():
            inside = place <= BINS
            self.below[self.runs[inside], place[inside]] += 1
            place += place & -place

    def p_values(self, scores: FloatArray, chances: FloatArray) -> FloatArray:
        """Return the share of scores above each, with a random part of the ties."""
        steps = self._steps(scores)
        place, up_to = steps + 1, np.zeros(len(self.runs), dtype=np.int64)
        while (place > 0).any():
            up_to += self.below[self.runs, place]
            place -= place & -place
        ties = self.equal[self.runs, steps]
        return np.asarray((self.total - up_to + chances * ties) / self.total)

    @staticmethod
    def _steps(scores: FloatArray) -> IntArray:
        return np.minimum((scores * BINS).astype(np.int64), BINS - 1)


def martingales(
    scores: FloatArray, chances: FloatArray, *, reference: int
) -> FloatArray:
    """Return what ``DriftTest`` comes to after each score, for many runs at once.

    Args:
        scores: ``(runs, scores)``, the reference first.
        chances: Of the same shape, for ties.
        reference: Length of the reference.
    """
    ranks = Ranks(scores[:, :reference])
    shares, _ = shares_and_factors(0.5)
    capital = np.zeros((len(scores), len(shares)))
    values = []
    for number, column in enumerate(range(reference, scores.shape[1])):
        ranks.add(scores[:, column])
        p_values = ranks.p_values(scores[:, column], chances[:, column])
        fresh = kept(number) - kept(number + 1)
        capital += fresh * np.array(shares)
        capital = np.minimum(capital * factors(p_values), 1e300)
        values.append(capital.sum(axis=1) + kept(number + 1))
    return np.array(values).T


_GRID = 4096
_FACTORS = np.array([shares_and_factors(step / _GRID)[1] for step in range(_GRID + 1)])


def factors(p_values: FloatArray) -> FloatArray:
    """Return what each bet makes of 1, read between the points of a fine grid."""
    at = p_values * _GRID
    step = np.minimum(at.astype(np.int64), _GRID - 1)
    part = (at - step)[:, None]
    return np.asarray(_FACTORS[step] * (1 - part) + _FACTORS[step + 1] * part)


def fixed_jumper(
    scores: FloatArray, chances: FloatArray, *, reference: int
) -> FloatArray:
    """Return the simple jumper on p-values against a reference that stays."""
    runs = len(scores)
    known = np.sort(scores[:, :reference], axis=1)
    later = scores[:, reference:]
    above = np.empty(later.shape)
    ties = np.empty(later.shape)
    for run in range(runs):
        high = np.searchsorted(known[run], later[run], side="right")
        low = np.searchsorted(known[run], later[run], side="left")
        above[run], ties[run] = reference - high, high - low + 1
    p_values = (above + chances[:, reference:] * ties) / (reference + 1)
    capital, values = np.full((runs, 3), 1 / 3), []
    for column in p_values.T:
        capital = 0.99 * capital + 0.01 * capital.sum(axis=1, keepdims=True) / 3
        capital = capital * (1 + np.array([-1, 0, 1]) * (column[:, None] - 0.5))
        values.append(capital.sum(axis=1))
    return np.array(values).T


@dataclass(frozen=True, kw_only=True)
class Found:
    """When alarms came, counted from the change.

    Attributes:
        early: Share of runs with a false alarm before it.
        share: Share of runs with an alarm after it, of those without one before.
        delays: After how many scores.
    """

    early: float
    share: float
    delays: IntArray

    @classmethod
    def of(cls, alarms: np.ndarray, *, before: int) -> Found:
        """Return it from ``(runs, scores)`` whether there is an alarm."""
        ever, first = alarms.any(axis=1), alarms.argmax(axis=1)
        early = ever & (first < before)
        after = ever & ~early
        return cls(
            early=float(early.mean()),
            share=float(after.sum() / max((~early).sum(), 1)),
            delays=np.sort(first[after] - before + 1),
        )

    @property
    def median(self) -> float:
        return float(np.median(self.delays)) if len(self.delays) else math.nan

    def error(self, runs: int) -> float:
        """Return the standard error of a median delay over so many runs."""
        if not len(self.delays):
            return 0.0
        return 1.2533 * float(self.delays.std()) / math.sqrt(runs)


def spread(share: float, runs: int) -> float:
    """Return the standard error of a share over so many runs."""
    return math.sqrt(share * (1 - share) / runs)


def runs_of(
    shift: float, *, runs: int, before: int, after: int, seed: int, steps: int = 0
) -> tuple[FloatArray, FloatArray]:
    """Return scores and chances, ``(runs, REFERENCE + before + after)`` each.

    Args:
        shift: By how much the mean rises.
        runs: How many.
        before: Scores between the reference and the change.
        after: Scores after it.
        seed: Of the draws.
        steps: Into so many different values u is rounded, 0 for none.
    """
    rng = np.random.default_rng(seed)
    known = pool()
    if steps:
        known = np.round(known * (steps - 1)) / (steps - 1)
    weights = tilted(known, shift) if shift else None
    scores = np.hstack(
        [
            rng.choice(known, (runs, REFERENCE + before)),
            rng.choice(known, (runs, after), p=weights),
        ]
    )
    return scores, rng.random(scores.shape)


def false_alarm_rows(
    missed: MissedTargets, *, name: str, steps: int, runs: int = RUNS
) -> None:
    """Print how often there is an alarm where nothing has changed."""
    scores, chances = runs_of(
        0.0, runs=runs, before=BEFORE, after=AFTER, seed=1, steps=steps
    )
    most = martingales(scores, chances, reference=REFERENCE).max(axis=1)
    rival = fixed_jumper(scores, chances, reference=REFERENCE).max(axis=1)
    for level in (0.01, 0.05, 0.10):
        share = float((most * level >= 1).mean())
        mark = missed.expect(
            holds=share <= level + 2 * spread(level, runs),
            what=f"false alarms at {level}, {name}: {share:.3f}",
        )
        theirs = float((rival * level >= 1).mean())
        print(f"| {name} | {level:.2f} | {share:.1%} | {theirs:.1%} |{mark}")


def report_false_alarms(missed: MissedTargets) -> None:
    print("| scores | level | false alarms | reference that stays |")
    print("|---|---|---|---|")
    false_alarm_rows(missed, name="as drawn", steps=0)
    false_alarm_rows(missed, name="ten values", steps=10)
    print()


def shift_row(
    missed: MissedTargets, shift: Shift, *, before: int, runs: int = RUNS
) -> None:
    """Print how soon a change is found; both tests see the same scores."""
    scores, chances = runs_of(shift.mean, runs=runs, before=before, after=AFTER, seed=2)
    values = martingales(scores, chances, reference=REFERENCE)
    found = Found.of(values * LEVEL >= 1, before=before)
    rival = fixed_jumper(scores, chances, reference=REFERENCE)
    theirs = Found.of(rival >= JUMPER_ALARM, before=before)
    middle = float(np.median(pool()))
    accepted = float((scores[:, -AFTER:] <= middle).mean())
    then, mark = "", ""
    if before == BEFORE:
        then = f"{shift.found:.0%}, {shift.delay}"
        noise = math.hypot(found.error(runs), found.error(RUNS_THEN))
        least = shift.found - 2 * spread(shift.found, RUNS_THEN)
        late = found.median > shift.delay + 2 * noise
        mark = missed.expect(
            holds=found.share >= least and not late,
            what=f"shift of {shift.mean}: {found.share:.2f}, {found.median}",
        )
    print(
        f"| +{shift.mean:.2f} | {before} | {accepted:.2f} | {found.share:.0%}, "
        f"{found.median:.0f} | {theirs.share:.0%}, {theirs.median:.0f} "
        f"({theirs.early:.0%} false) | {then} |{mark}"
    )


def report_shifts(missed: MissedTargets) -> None:
    print(
        "| mean of u | change after | accepted | found, delay "
        "| reference that stays | measured before |"
    )
    print("|---|---|---|---|---|---|")
    for shift in SHIFTS:
        shift_row(missed, shift, before=BEFORE)
        shift_row(missed, shift, before=LATE, runs=LATE_RUNS)
    print()


def alarm_limits(alpha: float) -> IntArray:
    """Return for 1 to ``AUDITS`` reports how many wrong ones make an alarm."""
    limits, wrong = [], 0
    for reported in range(1, AUDITS + 1):
        while wrong <= reported and (
            audit_evidence(reported, min(wrong, reported), alpha=alpha) * LEVEL < 1
        ):
            wrong += 1  # the limit only rises
        limits.append(wrong)
    return np.array(limits)


def audits(error: float, *, alpha: float, runs: int, seed: int) -> Found:
    """Return when alarms came in runs of audited answers."""
    rng = np.random.default_rng(seed)
    wrong = (rng.random((runs, AUDITS)) < error).cumsum(axis=1)
    return Found.of(wrong >= alarm_limits(alpha), before=0)


def report_audits(missed: MissedTargets, *, runs: int = RUNS) -> None:
    print("| promised | true error | alarms | delay | measured before |")
    print("|---|---|---|---|---|")
    for alpha in (0.02, 0.10, 0.20):
        found = audits(alpha, alpha=alpha, runs=runs, seed=3)
        mark = missed.expect(
            holds=found.share <= LEVEL + 2 * spread(LEVEL, runs),
            what=f"false alarms of audits at {alpha}: {found.share:.3f}",
        )
        then = "3%" if alpha == ALPHA else ""
        print(f"| {alpha:.2f} | {alpha:.2f} | {found.share:.1%} | | {then} |{mark}")
    for error, share, delay in AUDITED:
        found = audits(error, alpha=ALPHA, runs=runs, seed=4)
        noise = math.hypot(found.error(runs), found.error(RUNS_THEN))
        mark = missed.expect(
            holds=found.share >= share - 2 * spread(share, RUNS_THEN)
            and found.median <= delay + 2 * noise,
            what=f"error of {error}: {found.share:.2f} after {found.median}",
        )
        print(
            f"| {ALPHA:.2f} | {error:.2f} | {found.share:.1%} | {found.median:.0f} "
            f"| {share:.0%}, {delay} |{mark}"
        )
    print()


def main() -> int:
    missed = MissedTargets()
    report_false_alarms(missed)
    report_shifts(missed)
    report_audits(missed)
    return missed.status()


if __name__ == "__main__":
    sys.exit(main())
