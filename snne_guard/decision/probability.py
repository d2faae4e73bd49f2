"""From ``u`` to the probability that an answer is wrong, learnt from graded answers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from snne_guard.decision.beta_fit import EDGE, beta_features, fit_beta, probabilities
from snne_guard.decision.graded import graded_answers
from snne_guard.decision.stored import read_fields
from snne_guard.errors import ConfigurationError, InputError

__all__ = ["FEWEST_LABELS", "ProbabilityMap", "fit_probability", "probability_maps"]

FEWEST_LABELS = 50
"""Graded answers without which no probability is read off ``u``."""

_STEPS = 50
"""The band is kept at this many steps of ``u`` and at 0; the edge is one of them."""
_DRAWS = 200
_BAND = (5.0, 95.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbabilityMap:
    """Reads from ``u`` how probable it is that an answer is wrong.

    Beta calibration (Kull, Silva Filho and Flach 2017, section 3: "Beta calibration"):
    the log-odds of being wrong are ``a ln(u) - b ln(1 - u) + c`` with ``a, b >= 0``, so
    that the probability never falls as ``u`` rises. It is a reading, and no promise:
    that is a ``Threshold``'s.

    ``u`` of exactly 0 or 1, where the logarithms end, is common: all answers alike, or
    none. Below 0.02 and above 0.98 it counts as 0.02 and 0.98; on recorded questions
    that predicted better than cutting off closer to the ends.

    Attributes:
        a: How much the log-odds rise with ``ln(u)``, 0 or more.
        b: How much they rise with ``-ln(1 - u)``, 0 or more.
        c: The log-odds, apart from these.
        n_labels: Graded answers that it was learnt from.
        n_wrong: Those of them that were wrong.
        low: Lower end of the 90 % band at ``u`` = 0, 0.02, …, 1.
        high: Its upper end there.

    Raises:
        ConfigurationError: If the parts contradict each other.

    Example:
        >>> u = [step / 100 for step in range(100)]
        >>> reads = fit_probability(u, [score < 0.6 for score in u])
        >>> p, low, high = reads(0.1)
        >>> 0 < low <= p <= high < 0.2
        True
    """

    a: float
    b: float
    c: float
    n_labels: int
    n_wrong: int
    low: tuple[float, ...]
    high: tuple[float, ...]

    def __post_init__(self) -> None:
        if not (
            self.a >= 0 and self.b >= 0 and math.isfinite(self.a + self.b + self.c)
        ):
            msg = (
                "expected a and b of 0 or more, and c, all finite; "
                f"got {self.a!r}, {self.b!r} and {self.c!r}"
            )
            raise ConfigurationError(msg)
        if not 0 < self.n_wrong < self.n_labels:
            msg = (
                "expected right and wrong ones among the labels, "
                f"got {self.n_wrong} wrong of {self.n_labels}"
            )
            raise ConfigurationError(msg)
        lengths = {len(self.low), len(self.high)}
        inside = all(
            0 < low <= high < 1 for low, high in zip(self.low, self.high, strict=False)
        )
        if lengths != {_STEPS + 1} or not inside:
            msg = (
                f"expected a band of {_STEPS + 1} steps, each above 0 and below 1 and "
                "the lower end first"
            )
            raise ConfigurationError(msg)

    def __call__(self, uncertainty: float, /) -> tuple[float, float, float]:
        """Return the probability that an answer is wrong, and its 90 % band.

        The probability is never nearer to 0 or 1 than ``1 / (n_labels + 2)``.

        Args:
            uncertainty: ``u`` in [0, 1].

        Returns:
            The probability, the band's lower and its upper end, all in (0, 1).

        Raises:
            InputError: ``u`` is outside [0, 1] or NaN.
        """
        if not 0 <= uncertainty <= 1:
            msg = f"expected u in [0, 1], got {uncertainty!r}"
            raise InputError(msg)
        u = min(max(uncertainty, EDGE), 1 - EDGE)
        odds = self.a * math.log(u) - self.b * math.log1p(-u) + self.c
        least = 1 / (self.n_labels + 2)
        # The hyperbolic tangent does not overflow.
        p = min(max(0.5 * (1 + math.tanh(0.5 * odds)), least), 1 - least)
        place = uncertainty * _STEPS
        step = min(int(place), _STEPS - 1)
        part = place - step
        low, high = self.low, self.high
        return (
            p,
            min(low[step] + part * (low[step + 1] - low[step]), p),
            max(high[step] + part * (high[step + 1] - high[step]), p),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return it as what JSON can hold."""
        return {**asdict(self), "low": list(self.low), "high": list(self.high)}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], /) -> Self:
        """Return what ``to_dict`` wrote.

        Raises:
            InputError: A field is missing, unknown, of the wrong type or contradicts
                another one.
        """
        return read_fields(cls, content)


def fit_probability(
    uncertainty: ArrayLike, correct: ArrayLike, /, *, seed: int = 0
) -> ProbabilityMap:
    """Learn from graded answers how probable it is that an answer is wrong.

    Logistic regression on ``ln(u)`` and ``-ln(1 - u)`` with a ridge penalty of 1/2 of
    the sum of their squared coefficients, neither below 0. The band is that of 200
    bootstrap draws of the labels.

    Args:
        uncertainty: ``(n,)`` ``u`` of the answers, all from sets of one size; ``inf``
            for an answer without a score, which is left out.
        correct: ``(n,)`` 1 or True where the answer is correct, else 0 or False.
        seed: Fixes the draws.

    Raises:
        InputError: There are fewer than 50 scored answers; all are right or all are
            wrong; a label is neither 0 nor 1; a score is NaN or outside [0, 1].
    """
    u, wrong = graded_answers(uncertainty, correct)
    u, wrong = u[np.isfinite(u)], wrong[np.isfinite(u)]
    if len(u) < FEWEST_LABELS:
        msg = (
            f"expected at least {FEWEST_LABELS} graded answers with a score to read "
            f"a probability from, got {len(u)}"
        )
        raise InputError(msg)
    if wrong.all() or not wrong.any():
        msg = (
            "expected right and wrong answers to read a probability from, "
            f"got {len(u)} that are all {'wrong' if wrong.any() else 'right'}"
        )
        raise InputError(msg)
    values, places = np.unique(u.clip(EDGE, 1 - EDGE), return_inverse=True)
    counts = np.zeros((2, len(values)))
    np.add.at(counts, (wrong.astype(int), places), 1)
    n = len(u)
    random = np.random.default_rng(seed)
    draws = random.multinomial(n, counts.ravel() / n, size=_DRAWS).astype(np.float64)
    tables = np.concatenate([counts.reshape(1, 2, -1), draws.reshape(_DRAWS, 2, -1)])
    found = fit_beta(beta_features(values), wrong=tables[:, 1], right=tables[:, 0])
    grid = beta_features(np.linspace(0, 1, _STEPS + 1))
    chances = probabilities(found[1:] @ grid.T)
    band = np.percentile(chances, _BAND, axis=0).clip(1 / (n + 2), 1 - 1 / (n + 2))
    a, b, c = found[0].tolist()
    low, high = (tuple(end.tolist()) for end in band)
    return ProbabilityMap(
        a=a, b=b, c=c, n_labels=n, n_wrong=int(wrong.sum()), low=low, high=high
    )


def probability_maps(
    stages: Mapping[int, tuple[ArrayLike, ArrayLike]], /, *, seed: int = 0
) -> dict[int, ProbabilityMap]:
    """Return the map of each stage of a plan that has labels enough for one.

    ``u`` of few members is weaker evidence than the same ``u`` of many, so each stage
    has a map of its own.

    Args:
        stages: Members of the set, to ``u`` and labels as for ``fit_probability``.
        seed: Fixes the draws of the bands.

    Returns:
        The maps by members; without the stages that have fewer than 50 scored answers,
        or right or wrong ones alone.

    Raises:
        InputError: As ``fit_probability`` for what are no scores or no labels.

    Example:
        >>> u = [step / 100 for step in range(100)]
        >>> correct = [score < 0.6 for score in u]
        >>> [*probability_maps({3: (u, correct), 5: (u[:20], correct[:20])})]
        [3]
    """
    found: dict[int, ProbabilityMap] = {}
    for members, (uncertainty, correct) in stages.items():
        u, wrong = graded_answers(uncertainty, correct)
        scored = wrong[np.isfinite(u)]
        if len(scored) >= FEWEST_LABELS and scored.any() and not scored.all():
            found[members] = fit_probability(uncertainty, correct, seed=seed)
    return found
