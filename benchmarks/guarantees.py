"""Whether the guarantee of a threshold is kept: calibrations whose truth is known.

Each row makes many calibrations from draws of one kind of questions; some kinds have
ties, and some have errors that fall as u rises. At most delta of the calibrations may
accept more wrong answers than guaranteed. The last column is the naive rule: the
largest threshold whose empirical error is at most alpha.

    python -m benchmarks.guarantees [--calibrations 1000]

The exit status is 1 where a guarantee is broken by more than three standard errors.
"""

from __future__ import annotations

import argparse
import math
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from snne_guard.decision.risk_control import search
from snne_guard.types import BoolArray, FloatArray

DELTA = 0.1
ALPHAS = (0.1, 0.2)
LABELS = (100, 200, 500, 1000)
POPULATION = 100_000


@dataclass(frozen=True, kw_only=True)
class Questions:
    """A population of questions.

    Attributes:
        name: What a table calls it.
        u: ``(m,)`` uncertainties, ascending.
        p_wrong: ``(m,)`` probability that each answer is wrong.
    """

    name: str
    u: FloatArray
    p_wrong: FloatArray

    def draw(self, random: np.random.Generator, n: int) -> tuple[FloatArray, BoolArray]:
        """Return ``u`` of so many questions, ascending, and which answers are wrong."""
        places = np.sort(random.integers(len(self.u), size=n))
        return self.u[places], random.random(n) < self.p_wrong[places]

    def accepted(self, threshold: float) -> tuple[float, float]:
        """Return the share of all answers that is accepted, and the error in it."""
        n = int(np.searchsorted(self.u, threshold, side="right"))
        return n / len(self.u), float(self.p_wrong[:n].mean()) if n else 0.0


def binormal(auroc: float, base: float, *, values: int | None = None) -> Questions:
    """Return questions whose right and wrong answers have normal scores.

    Args:
        auroc: Probability that a wrong answer has the larger score.
        base: Share of wrong answers.
        values: Distinct values of ``u``; None: they are continuous.
    """
    apart = math.sqrt(2) * NormalDist().inv_cdf(auroc)
    random = np.random.default_rng(0)
    scores = random.normal(size=POPULATION)
    scores = np.sort(scores + apart * (random.random(POPULATION) < base))
    odds = base / (1 - base) * np.exp(apart * (scores - apart / 2))
    u = 1 / (1 + np.exp(-1.2 * (scores - apart / 2)))
    ties = ""
    if values is not None:
        u = np.round(u * (values - 1)) / (values - 1)
        ties = f", {values} values of u"
    name = f"AUROC {auroc:.2f}, {base:.0%} wrong{ties}"
    return Questions(name=name, u=u, p_wrong=odds / (1 + odds))


def steps(edges: tuple[float, ...], rates: tuple[float, ...]) -> Questions:
    """Return questions with an error rate for each stretch of evenly spread ``u``."""
    u = (np.arange(POPULATION) + 0.5) / POPULATION
    p_wrong = np.array(rates)[np.searchsorted(edges, u)]
    parts = ", ".join(
        f"{rate:.0%} to {edge:g}" for edge, rate in zip(edges, rates, strict=True)
    )
    return Questions(name=f"errors {parts}", u=u, p_wrong=p_wrong)


def kinds() -> Iterator[Questions]:
    """Yield the kinds of questions that guarantees are tried on."""
    yield binormal(0.8, 0.3)
    yield binormal(0.8, 0.15)
    yield binormal(0.9, 0.3)
    yield binormal(0.6, 0.5)
    yield binormal(0.8, 0.3, values=3)
    yield binormal(0.8, 0.3, values=11)
    yield steps((0.4, 0.6, 0.8, 1.0), (0.04, 0.1, 0.25, 0.6))
    yield steps((0.1, 0.4, 1.0), (0.5, 0.0, 0.3))


def naive(u: FloatArray, wrong: BoolArray, alpha: float) -> float:
    """Return the largest threshold with an empirical error of at most alpha."""
    last_of_ties = np.append(u[1:] != u[:-1], [True])
    errors = np.cumsum(wrong) / np.arange(1, len(u) + 1)
    kept = np.flatnonzero((errors <= alpha) & last_of_ties)
    return float(u[kept[-1]]) if kept.size else -1.0


def outcome(
    questions: Questions, *, n: int, alpha: float, calibrations: int
) -> list[float]:
    """Make so many calibrations from ``n`` labels each, and compare with the truth.

    Returns:
        The share of them that accept anything; the mean share of all answers that is
        accepted; the share of them that accept more wrong answers than guaranteed, and
        the same for the naive rule.
    """
    random = np.random.default_rng(zlib.crc32(f"{questions.name} {n}".encode()))
    rows = []
    for _ in range(calibrations):
        u, wrong = questions.draw(random, n)
        share, error = questions.accepted(search(u, wrong, alpha=alpha, delta=DELTA))
        _, naive_error = questions.accepted(naive(u, wrong, alpha))
        rows.append((share > 0, share, error > alpha, naive_error > alpha))
    means: list[float] = np.array(rows, dtype=float).mean(axis=0).tolist()
    return means


def main(arguments: list[str] | None = None) -> int:
    """Print the table; return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--calibrations", type=int, default=1000)
    calibrations = parser.parse_args(arguments).calibrations
    allowed = DELTA + 3 * math.sqrt(DELTA * (1 - DELTA) / calibrations)
    print(f"{calibrations} calibrations a row, delta {DELTA:g}\n")
    print("| questions | alpha | labels | certified | accepted | broken | naive rule |")
    print("|---" * 7 + "|")
    status = 0
    for questions in kinds():
        for alpha in ALPHAS:
            for n in LABELS:
                certified, accepted, broken, by_naive = outcome(
                    questions, n=n, alpha=alpha, calibrations=calibrations
                )
                mark = " BROKEN" if broken > allowed else ""
                status = status or int(bool(mark))
                print(
                    f"| {questions.name} | {alpha:g} | {n} | {certified:.0%} | "
                    f"{accepted:.2f} | {broken:.1%} | {by_naive:.0%} |{mark}"
                )
    return status


if __name__ == "__main__":
    sys.exit(main())
