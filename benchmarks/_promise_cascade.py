"""Whether a certified cascade keeps its promise, and what it saves."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from benchmarks._promise_truths import BoolArray, FloatArray, spread
from benchmarks.certificate import MissedTargets
from snne_guard.decision.fit_cascade import fit_cascade
from snne_guard.decision.risk_control import by_ranks

ROUNDS = (3, 5, 10)
ALPHAS = (0.1, 0.2)
LABELS = (500, 1500)
DELTA = 0.1
DRAWS = 200
KNOWN = 50_000
"""Questions that stand for all: what is accepted of them counts as the truth."""


@dataclass(frozen=True, kw_only=True)
class Rounds:
    """Questions whose ``u`` is noisier, the fewer members it is of.

    Attributes:
        base: Share of wrong answers.
        noise: Standard deviation of one member's share in the noise.
        values: Distinct values of ``u``; None for continuous ones.
    """

    base: float = 0.3
    noise: float = 1.5
    values: int | None = None

    @property
    def name(self) -> str:
        ties = "" if self.values is None else f", {self.values} values of u"
        return f"{100 * self.base:g} % wrong{ties}"

    def draw(self, rng: np.random.Generator, n: int) -> tuple[FloatArray, BoolArray]:
        """Return ``u`` after each round, and whether the answer is wrong."""
        wrong = rng.random(n) < self.base
        hidden = rng.normal(size=n) + 1.6 * wrong
        members = np.cumsum(rng.normal(size=(n, ROUNDS[-1])) * self.noise, axis=1)
        means = members[:, np.array(ROUNDS) - 1] / ROUNDS
        u = 1 / (1 + np.exp(-(hidden[:, None] - 0.8 + means)))
        if self.values is not None:
            u = np.round(u * (self.values - 1)) / (self.values - 1)
        return u, wrong

    @cached_property
    def known(self) -> tuple[FloatArray, BoolArray]:
        """Questions enough to tell the truth by."""
        return self.draw(np.random.default_rng(99), KNOWN)


TRUTHS = (Rounds(), Rounds(base=0.15), Rounds(values=11))


def report_cascade(missed: MissedTargets, *, draws: int = DRAWS) -> None:
    """Print how often the promise is broken, and how many members it takes."""
    print("## The cascade\n")
    print(
        f"Rounds of {', '.join(map(str, ROUNDS))} members, {draws} calibrations each; "
        f"beside it the error rate certified on all {ROUNDS[-1]} members of the "
        "same questions.\n"
    )
    print(
        "| questions | alpha | labels | accepted | members | broken | accepted by all "
        f"{ROUNDS[-1]} | broken |"
    )
    print("|---" * 8 + "|")
    for truth in TRUTHS:
        for alpha in ALPHAS:
            for n in LABELS:
                print(cascade_row(truth, alpha, n, draws=draws, missed=missed))
    print()


def cascade_row(
    truth: Rounds, alpha: float, n: int, *, draws: int, missed: MissedTargets
) -> str:
    """Return the line for one count of labels."""
    rng = np.random.default_rng(n)
    found = np.array([_outcome(truth, rng, alpha, n) for _ in range(draws)])
    broken, other = found[:, 1].mean(), found[:, 4].mean()
    some = found[:, 0] > 0
    members = f"{found[some, 2].mean():.1f}" if some.any() else ""
    mark = missed.expect(
        holds=broken <= DELTA + 2 * spread(DELTA, draws),
        what=f"cascade, {truth.name}, alpha {alpha}, {n}",
    )
    return (
        f"| {truth.name} | {alpha:g} | {n} | {found[:, 0].mean():.2f} | {members} | "
        f"{100 * broken:.1f} % | {found[:, 3].mean():.2f} | {100 * other:.1f} % |{mark}"
    )


def _outcome(
    truth: Rounds, rng: np.random.Generator, alpha: float, n: int
) -> tuple[float, bool, float, float, bool]:
    paths, wrong = truth.draw(rng, n)
    all_paths, all_wrong = truth.known
    plan = fit_cascade(paths, ~wrong, rounds=ROUNDS, alpha=alpha, delta=DELTA)
    ends, accepted = plan.replay(all_paths)
    order = np.argsort(paths[:, -1])
    single = by_ranks(paths[order, -1], wrong[order], alpha=alpha, delta=DELTA)
    below = all_paths[:, -1] <= single.value
    return (
        float(accepted.mean()),
        _broken(accepted, all_wrong, alpha),
        float(np.array(ROUNDS)[ends].mean()),
        float(below.mean()),
        _broken(below, all_wrong, alpha),
    )


def _broken(accepted: BoolArray, wrong: BoolArray, alpha: float) -> bool:
    return bool(accepted.any()) and bool(wrong[accepted].mean() > alpha)
