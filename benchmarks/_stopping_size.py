"""What the number of recordings does to the calibrated stop, by simulation.

Data sets of any size are made from recorded questions: questions are drawn with
replacement, each copy with one of several orders of its samples. No question is on
both sides of the split into the half that a rule is learnt from and the half that it
is tested on, so that a copy is never recognised.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from snne_guard.decision import CalibratedStop, fit_stop
from snne_guard.decision.isotonic import binomial_cdf
from snne_guard.types import FloatArray

CONFIDENCE = 0.9
DATA_SETS = 60
SPLITS = 8  # of one data set


@dataclass(frozen=True, kw_only=True)
class Simulated:
    """What rules learnt from simulated data sets did on the halves they were tested on.

    Attributes:
        members: ``(data sets, splits)`` mean members.
        never: Share of the rules that never stop.
    """

    members: FloatArray
    never: float

    @property
    def mean(self) -> float:
        return float(self.members.mean())

    def of_one_rule(self) -> tuple[float, float]:
        """Return 95 % limits of the mean members of one rule."""
        return _limits(self.members)

    def of_a_data_set(self) -> tuple[float, float]:
        """Return 95 % limits of what data sets have on average over their splits."""
        return _limits(self.members.mean(axis=1))


def _limits(values: FloatArray) -> tuple[float, float]:
    low, high = np.quantile(values, (0.025, 0.975))
    return float(low), float(high)


def allowed(questions: int, epsilon: float) -> int:
    """Return how many other decisions the test on half of the questions allows.

    Those are as many as have a probability of 1 - confidence at most if the share of
    other decisions were epsilon; -1 where not even none has.
    """
    half, count = questions - questions // 2, -1
    while binomial_cdf(count + 1, half, epsilon) <= 1 - CONFIDENCE:
        count += 1
    return count


def simulated(
    paths: FloatArray,
    *,
    questions: int,
    rounds: Sequence[int],
    accept: float,
    epsilon: float,
) -> Simulated:
    """Learn rules from data sets of another size than that of the recorded one.

    Args:
        paths: ``(orders, recorded questions, rounds)`` ``u`` after each round.
        questions: Of each simulated data set.
        rounds: Members after each round.
        accept: Share of questions that all n accept.
        epsilon: Share of other decisions that is allowed.
    """
    recorded = paths.shape[1]
    rules: list[CalibratedStop] = []
    for data_set in range(DATA_SETS):
        rng = np.random.default_rng(data_set)
        copies = rng.multinomial(recorded, np.full(recorded, 1 / recorded))
        for _ in range(SPLITS):
            table = split(paths, copies / recorded, questions, rng)
            rules.append(
                fit_stop(
                    table,
                    rounds=rounds,
                    threshold=float(np.quantile(table[:, -1], accept)),
                    epsilon=epsilon,
                    confidence=CONFIDENCE,
                )
            )
    members = np.array([rule.mean_members for rule in rules], dtype=np.float64)
    return Simulated(
        members=members.reshape(DATA_SETS, SPLITS),
        never=sum(rule.eta is None for rule in rules) / len(rules),
    )


def split(
    paths: FloatArray, weights: FloatArray, questions: int, rng: np.random.Generator
) -> FloatArray:
    """Return ``(questions, rounds)`` ``u``, copies of one question in one half."""
    # fit_stop shuffles the questions with its seed, 0, and halves them.
    order = np.random.default_rng(0).permutation(questions)
    places = order[: questions // 2], order[questions // 2 :]
    table = np.empty((questions, paths.shape[2]))
    for half, place in zip(
        np.array_split(rng.permutation(paths.shape[1]), 2), places, strict=True
    ):
        share = weights[half] / weights[half].sum()
        chosen = rng.choice(half, size=len(place), p=share)
        table[place] = paths[rng.integers(len(paths), size=len(place)), chosen]
    return table
