"""Kinds of questions of which it is known how often accepted answers are wrong."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import NormalDist
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
Draw = tuple[FloatArray, BoolArray]
"""``u`` of questions, and whether the answer is wrong."""
_NORMAL = NormalDist()


class Truth(Protocol):
    """Where questions come from."""

    @property
    def name(self) -> str:
        """What a table calls it."""
        ...

    def draw(self, rng: np.random.Generator, n: int) -> Draw:
        """Return ``u`` and whether the answer is wrong, of so many questions."""
        ...

    def shares(self, value: float) -> tuple[float, float]:
        """Return the share of right and of wrong answers with ``u`` up to a value."""
        ...


@dataclass(frozen=True, kw_only=True)
class Binormal:
    """Normal scores of right and wrong answers, apart by what gives an AUROC.

    Attributes:
        auroc: Probability that a wrong answer has the larger score.
        base: Share of wrong answers.
        values: Distinct values that ``u`` has; None for continuous ones.
    """

    auroc: float
    base: float
    values: int | None = None

    @property
    def name(self) -> str:
        ties = "" if self.values is None else f", {self.values} values of u"
        return f"AUROC {self.auroc:.2f}, {100 * self.base:g} % wrong{ties}"

    @property
    def _apart(self) -> float:
        return math.sqrt(2) * _NORMAL.inv_cdf(self.auroc)

    def draw(self, rng: np.random.Generator, n: int) -> Draw:
        wrong = rng.random(n) < self.base
        scores = rng.normal(size=n) + self._apart * wrong
        u = 1 / (1 + np.exp(-1.2 * (scores - self._apart / 2)))
        if self.values is not None:
            u = np.round(u * (self.values - 1)) / (self.values - 1)
        return u, wrong

    def shares(self, value: float) -> tuple[float, float]:
        if self.values is not None:
            value += 0.5 / (self.values - 1)  # what is rounded down to it
        if value >= 1:
            return 1 - self.base, self.base
        if value <= 0:
            return 0.0, 0.0
        score = math.log(value / (1 - value)) / 1.2 + self._apart / 2
        right = (1 - self.base) * _NORMAL.cdf(score)
        return right, self.base * _NORMAL.cdf(score - self._apart)


@dataclass(frozen=True, kw_only=True)
class Steps:
    """Evenly spread scores, with an error rate for each stretch, rising or not.

    Attributes:
        edges: Where the stretches end, the last at 1.
        rates: Share of wrong answers in each.
        atoms: Whether all scores of a stretch are tied, at its end.
    """

    edges: tuple[float, ...]
    rates: tuple[float, ...]
    atoms: bool = False

    @property
    def name(self) -> str:
        parts = zip((0.0, *self.edges), self.edges, self.rates, strict=False)
        told = ", ".join(f"{100 * r:g} % to {b:g}" for _, b, r in parts)
        return f"errors {told}{', tied' if self.atoms else ''}"

    def draw(self, rng: np.random.Generator, n: int) -> Draw:
        u = rng.random(n)
        place = np.searchsorted(self.edges, u)
        wrong = rng.random(n) < np.array(self.rates)[place]
        return np.array(self.edges)[place] if self.atoms else u, wrong

    def shares(self, value: float) -> tuple[float, float]:
        right = wrong = start = 0.0
        for end, rate in zip(self.edges, self.rates, strict=True):
            width = max(0.0, min(value, end) - start)
            right, wrong = right + width * (1 - rate), wrong + width * rate
            start = end
        return right, wrong


def calibrations(truth: Truth, n: int, *, draws: int, seed: int) -> Iterator[Draw]:
    """Return so many calibrations of n questions, each by rising ``u``."""
    rng = np.random.default_rng(seed)
    for _ in range(draws):
        u, wrong = truth.draw(rng, n)
        order = np.argsort(u, kind="stable")
        yield u[order], wrong[order]


def seed_of(truth: Truth, n: int) -> int:
    """Return a seed of its own for each kind of questions and count of labels."""
    return zlib.crc32(f"{truth.name}, {n}".encode())


def error(values: FloatArray) -> float:
    """Return the standard error of a mean."""
    return float(values.std() / math.sqrt(len(values)))


def spread(share: float, draws: int) -> float:
    """Return the standard error of how often something with this share is seen."""
    return math.sqrt(share * (1 - share) / draws)
