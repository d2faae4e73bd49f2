"""The search for a threshold: a slow oracle, and every outcome."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import binom

from snne_guard.decision.risk_control import search

Draw = tuple[NDArray[np.float64], NDArray[np.bool_]]


@st.composite
def draws(draw: st.DrawFn) -> Draw:
    """Sorted answers of which the wrong ones have larger u, some tied or unscored."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(15, 200))
    wrong = rng.random(n) < draw(st.sampled_from([0.02, 0.1, 0.3, 0.6]))
    u = np.clip(rng.normal(0.4 + 0.25 * wrong, 0.2), 0, 1)
    u = np.round(u, draw(st.sampled_from([0, 1, 2, 9])))
    u[rng.random(n) < draw(st.sampled_from([0.0, 0.2]))] = np.inf
    order = np.lexsort((wrong, u))
    return u[order], wrong[order]


def climb(draw: Draw, *, start: int, alpha: float, delta: float) -> float:
    """Test every u from that of a rank on, one by one, until one fails."""
    u, wrong = draw
    found = -1.0
    for value in sorted({x for x in u.tolist() if u[start] <= x <= 1}):
        n = sum(x <= value for x in u.tolist())
        errors = int(sum(wrong[:n]))
        if binom.cdf(errors, n, alpha) > delta:
            break
        found = value
    return found


@settings(max_examples=60, deadline=None)
@given(
    draw=draws(),
    alpha=st.sampled_from([0.1, 0.2, 0.35]),
    delta=st.sampled_from([0.05, 0.1, 0.3]),
)
def test_it_climbs_from_a_fixed_rank(draw: Draw, alpha: float, delta: float) -> None:
    u, wrong = draw
    n, least = len(u), math.ceil(math.log(delta) / math.log(1 - alpha))
    start = min(3 * least, max(least, 2 * n // 3))
    found = search(u, wrong, alpha=alpha, delta=delta)
    if start >= n or math.isinf(u[start]):
        assert found == -1.0
        return
    climbed = climb(draw, start=start, alpha=alpha, delta=delta)
    first_errors = int(wrong[:start].sum())
    if u[0] == u[start]:  # all tied: the first test is of the whole group
        assert found == climbed
    elif u[start - 1] < u[start]:  # no tie is cut in two
        first_passes = binom.cdf(first_errors, start, alpha) <= delta
        assert found == (climbed if first_passes else -1.0)
    else:
        assert found in (climbed, -1.0)


# --- every outcome of a small calibration ---------------------------------------------

ALPHA, DELTA, N = 0.4, 0.24, 12
VALUES = np.array([0.2, 0.5, 0.8])


def outcomes() -> Iterator[tuple[int, ...]]:
    """Every way to share N answers among right and wrong ones at each score."""
    cells = 2 * len(VALUES)
    for bars in itertools.combinations(range(N + cells - 1), cells - 1):
        edges = (-1, *bars, N + cells - 1)
        yield tuple(two - one - 1 for one, two in itertools.pairwise(edges))


def truth(rng: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any]]:
    """Shares of right and wrong answers at each score, and the error up to each.

    One of the three errors lies just above alpha, where a guarantee breaks most easily.
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


def worst() -> float:
    """Return the largest probability, over many truths, that the guarantee fails."""
    counts = np.array(list(outcomes()))
    values = []
    for one in counts:
        pairs = one.reshape(-1, 2)
        u = np.repeat(VALUES, pairs.sum(axis=1))
        wrong = np.concatenate([np.repeat([False, True], pair) for pair in pairs])
        values.append(search(u, wrong, alpha=ALPHA, delta=DELTA))
    value = np.array(values)
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


def test_the_guarantee_holds_exactly_whatever_the_truth() -> None:
    assert DELTA / 2 < worst() <= DELTA  # above the half: the truths were hard
