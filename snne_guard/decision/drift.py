"""A test of whether uncertainties still come from where they came from before."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from snne_guard.errors import InputError

__all__ = ["BINS", "DriftTest", "kept", "shares_and_factors"]

BINS = 1024
"""Steps of ``u`` that are told apart; it bounds the memory."""

_WAIT = 300.0
"""Scores over which 4 tenths of the capital are laid out; the rest waits for changes
that come later."""

_MOST = 1e300
"""What a bet makes at most, so that it stays a number."""


class _Bet(NamedTuple):
    """A bet on p-values near one end of [0, 1], or on how far they are from 1/2."""

    share: float  # of the capital
    tilt: float  # above 0: on large ones
    ends: bool  # whether on the distance from 1/2
    words: str


_BETS = (
    _Bet(0.20, -1.5, ends=False, words="higher than before"),
    _Bet(0.25, -0.5, ends=False, words="higher than before"),
    _Bet(0.25, 0.5, ends=False, words="lower than before"),
    _Bet(0.20, 1.5, ends=False, words="lower than before"),
    _Bet(0.05, -1.5, ends=True, words="closer to the middle than before"),
    _Bet(0.05, 1.5, ends=True, words="further from the middle than before"),
)


@dataclass(slots=True, kw_only=True)
class DriftTest:
    """A conformal test martingale: it grows while scores are unlike the earlier ones.

    Each score gets a p-value by its rank among all scores so far, the reference and
    itself included, ties broken at random. As long as all of them are exchangeable
    these p-values are independent and uniform, so whoever bets on them cannot expect
    to gain, and ``value`` ever reaches ``1 / level`` with probability at most
    ``level``, however long it is watched (Ville's inequality). That needs a reference
    that grows: with one that stays as it was, p-values depend on each other and false
    alarms are too many.

    Capital is laid out little by little, so that a change which comes late is met with
    fresh capital: the delay grows with the logarithm of the time before it.

    The state has ``BINS`` counts and 6 capitals, whatever the number of scores, and a
    score takes the time of adding up the counts. Scores that differ by less than
    1 / ``BINS`` count as equal; the promise holds all the same.

    Source: Vovk, Gammerman, Shafer 2022, "Algorithmic Learning in a Random World",
    chapter 8; exponential bets; capital over starting times as in Shiryaev's rule.

    Attributes:
        counts: ``(BINS,)`` how many scores there are in each step of ``u``.
        n_reference: Scores that were there before any bet.
        n_scores: Scores that were bet on.
        capital: What each of the bets has made so far.

    Example:
        >>> import random
        >>> draw = random.Random(0)
        >>> test = DriftTest.after([draw.random() for _ in range(500)])
        >>> for _ in range(500):
        ...     test.add(draw.random(), draw.random())
        >>> test.value < 20
        True
        >>> for _ in range(200):
        ...     test.add(0.5 + draw.random() / 2, draw.random())
        >>> test.value > 20
        True
    """

    counts: list[int] = field(default_factory=lambda: [0] * BINS)
    n_reference: int = 0
    n_scores: int = 0
    capital: list[float] = field(default_factory=lambda: [0.0] * len(_BETS))

    @classmethod
    def after(cls, reference: Sequence[float]) -> DriftTest:
        """Begin with scores from before, such as those of the calibration.

        Args:
            reference: ``(n,)`` uncertainties in [0, 1], in any order.

        Raises:
            InputError: If one of them is no number in [0, 1].
        """
        test = cls(n_reference=len(reference))
        for uncertainty in reference:
            test.counts[_bin(uncertainty)] += 1
        return test

    @property
    def value(self) -> float:
        """What a capital of 1 has become: the evidence that scores have changed."""
        return math.fsum(self.capital) + kept(self.n_scores)

    def add(self, uncertainty: float, chance: float) -> None:
        """Bet on the next score.

        Args:
            uncertainty: ``u`` in [0, 1].
            chance: A uniform random number in [0, 1) that nothing else has seen.

        Raises:
            InputError: If the uncertainty is no number in [0, 1].
        """
        place = _bin(uncertainty)
        self.counts[place] += 1
        total = self.n_reference + self.n_scores + 1
        above = sum(self.counts[place + 1 :])
        p_value = (above + chance * self.counts[place]) / total
        fresh = kept(self.n_scores) - kept(self.n_scores + 1)
        self.capital = [
            min((before + share * fresh) * factor, _MOST)
            for before, share, factor in zip(
                self.capital, *shares_and_factors(p_value), strict=True
            )
        ]
        self.n_scores += 1

    @property
    def words(self) -> str:
        """How the last scores differ, by the bet that has made most."""
        best = max(range(len(_BETS)), key=self.capital.__getitem__)
        return _BETS[best].words


def kept(n_scores: int) -> float:
    """Return the share of the first capital that is left after so many scores."""
    return 1.0 / (1.0 + math.log1p(n_scores / _WAIT))


def shares_and_factors(p_value: float) -> tuple[list[float], list[float]]:
    """Return the bets' shares of the capital, and what each makes of 1."""
    return [bet.share for bet in _BETS], [_factor(bet, p_value) for bet in _BETS]


def _factor(bet: _Bet, p_value: float) -> float:
    """Return what a bet makes of a capital of 1: a density at the p-value."""
    at = abs(2.0 * p_value - 1.0) if bet.ends else p_value
    return bet.tilt * math.exp(bet.tilt * at) / math.expm1(bet.tilt)


def _bin(uncertainty: float) -> int:
    if not 0.0 <= uncertainty <= 1.0:
        msg = f"an uncertainty is a number in [0, 1]; got {uncertainty!r}"
        raise InputError(msg)
    return min(int(uncertainty * BINS), BINS - 1)
