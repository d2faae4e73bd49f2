"""The promise on the error rate, computed: every outcome of a small calibration."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from snne_guard.decision.risk_control import Accepted, by_pilot, by_ranks

Search = Callable[..., Accepted]

ALPHA, DELTA, N = 0.4, 0.24, 12
VALUES = np.array([0.2, 0.5, 0.8])
"""Three scores, so that nearly all answers are tied."""


def naive(u: Any, wrong: Any, *, alpha: float, delta: float) -> Accepted:
    """The largest threshold with an empirical error of at most alpha."""
    del delta
    shares = np.cumsum(wrong) / np.arange(1, len(u) + 1)
    ends = np.append(u[1:] != u[:-1], [True])
    kept = np.flatnonzero((shares <= alpha) & ends)
    return Accepted(value=float(u[kept[-1]]), n=1) if kept.size else Accepted()


def outcomes() -> Iterator[tuple[int, ...]]:
    """Every way to share N answers among right and wrong ones at each score."""
    cells = 2 * len(VALUES)
    for bars in itertools.combinations(range(N + cells - 1), cells - 1):
        edges = (-1, *bars, N + cells - 1)
        yield tuple(two - one - 1 for one, two in itertools.pairwise(edges))


def worst(search: Search) -> float:
    """Return the largest probability, over many truths, that the promise fails."""
    counts = np.array(list(outcomes()))
    value = np.array([accepted(search, one) for one in counts])
    log_ways = math.lgamma(N + 1) - np.array(
        [sum(math.lgamma(count + 1) for count in one) for one in counts]
    )
    rng = np.random.default_rng(0)
    found = 0.0
    for _ in range(400):
        cells, rates = truth(rng)
        chance = np.exp(log_ways + counts @ np.log(cells))
        place = np.searchsorted(VALUES, value).clip(max=len(VALUES) - 1)
        broken = (value > 0) & (rates[place] > ALPHA + 1e-12)
        found = max(found, float(chance[broken].sum()))
    return found


def accepted(search: Search, one: NDArray[np.int64]) -> float:
    pairs = one.reshape(-1, 2)
    u = np.repeat(VALUES, pairs.sum(axis=1))
    wrong = np.concatenate([np.repeat([False, True], pair) for pair in pairs])
    return search(u, wrong, alpha=ALPHA, delta=DELTA).value


def truth(rng: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any]]:
    """Shares of right and wrong answers at each score, and the error up to each.

    Errors may fall where u rises; one of the three rates lies just above alpha, which
    is where a promise is broken most easily.
    """
    shares = rng.dirichlet(np.full(len(VALUES), rng.choice([0.5, 1.0, 3.0])))
    errors = rng.random(len(VALUES))
    place = rng.integers(len(VALUES))
    needed = 1.0001 * ALPHA * shares[: place + 1].sum()
    last = (needed - shares[:place] @ errors[:place]) / shares[place]
    errors[place] = np.clip(last, 0, 1)
    errors = errors.clip(1e-9, 1 - 1e-9)
    cells = np.stack([shares * (1 - errors), shares * errors], axis=1)
    rates = np.cumsum(cells[:, 1]) / np.cumsum(shares)
    return cells.ravel().clip(1e-300), rates


def from_pilot(u: Any, wrong: Any, *, alpha: float, delta: float) -> Accepted:
    pilot = np.array([0.2, 0.5, 0.5, 0.5, 0.8])
    return by_pilot(u, wrong, pilot=pilot, alpha=alpha, delta=delta)


@pytest.mark.parametrize("search", [by_ranks, from_pilot])
def test_the_promise_holds_whatever_the_truth(search: Search) -> None:
    found = worst(search)
    assert found <= DELTA
    assert found > DELTA / 2  # so the truths were hard


def test_the_naive_rule_breaks_it() -> None:
    assert worst(naive) > 0.5
