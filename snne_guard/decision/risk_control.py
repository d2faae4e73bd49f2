"""Learn-then-Test: which ``u`` may be accepted so that few accepted answers are wrong.

The search only counts; ``Threshold`` says what the counts mean. It needs scipy.
"""

from __future__ import annotations

import math
import zlib
from types import ModuleType

import numpy as np

from snne_guard.errors import MissingExtraError
from snne_guard.types import BoolArray, FloatArray

_START = 3
"""The first test uses this many times the smallest number of answers that can pass."""


def least_labels(alpha: float, delta: float) -> int:
    """Return the least number of accepted answers that certifies alpha, none wrong."""
    return math.ceil(math.log(delta) / math.log1p(-alpha))


def search(u: FloatArray, wrong: BoolArray, *, alpha: float, delta: float) -> float:
    """Test thresholds upwards until one fails, and return the last that passed.

    Each test is the exact binomial one of "the error among accepted answers is above
    alpha" (Angelopoulos et al. 2021, "Learn then Test", arXiv 2110.01052, fixed
    sequence testing). The rank at which testing starts depends on the number of labels
    alone. The guarantee fails with a probability of at most delta:

    Let s be the ``u`` above that rank, and R(t) the error of all answers with ``u`` <=
    t, continuous since ties are broken at random. Call t bad where R(t) > alpha.

    1. s is bad. Given s, the answers below it are independent draws of all such
       answers, so their errors are binomial with a rate above alpha. The first test
       passes with a probability of at most delta.
    2. s is good. Let a be the upper end of the good stretch around s, so R(a) = alpha.
       The guarantee fails only if the test at a passes. At the lower end b of the
       stretch the error is alpha too, or nothing lies below. Given how many answers lie
       below b and between b and a, the errors of both parts are binomial with rate
       alpha, and so is their sum. The test at a passes with a probability of at most
       delta.

    Only one of the two can happen. Answers with the same ``u`` are accepted together or
    not at all; only the first test splits them.

    Args:
        u: ``(n,)`` uncertainties, ascending.
        wrong: ``(n,)`` whether each answer is wrong.
        alpha: Largest error among accepted answers, in (0, 1).
        delta: Probability that the guarantee fails, in (0, 1).

    Returns:
        The largest ``u`` that may be accepted, -1.0 where none may.
    """
    stats = scipy_stats()
    n, least = len(u), least_labels(alpha, delta)
    start = min(_START * least, max(least, 2 * n // 3))
    if start >= n or np.isinf(u[start]):
        return -1.0
    if u[start] > u[0]:
        errors = int(_random_ties(u, wrong)[:start].sum())
        if stats.binom.cdf(errors, start, alpha) > delta:
            return -1.0
    # The last answer of each distinct ``u``; those up to it are accepted together.
    last = np.flatnonzero(np.append(u[1:] != u[:-1], [True]) & np.isfinite(u))
    last = last[last >= start]
    errors_at = np.cumsum(wrong, dtype=np.intp)[last]
    failed = stats.binom.cdf(errors_at, last + 1, alpha) > delta
    passed = last[: failed.argmax()] if failed.any() else last
    return float(u[passed[-1]]) if passed.size else -1.0


def _random_ties(u: FloatArray, wrong: BoolArray) -> BoolArray:
    """Return ``wrong`` with answers of equal ``u`` in random order.

    The seed comes from ``u`` alone: it cannot favour a label, and nobody can draw again
    until the result pleases.
    """
    random = np.random.default_rng(zlib.crc32(u.tobytes()))
    ordered: BoolArray = wrong[np.lexsort((random.permutation(len(u)), u))]
    return ordered


def scipy_stats() -> ModuleType:
    """Return ``scipy.stats``, or raise MissingExtraError."""
    try:
        from scipy import stats
    except ImportError as error:
        needed = "scipy"
        raise MissingExtraError(needed, extra="eval") from error
    module: ModuleType = stats
    return module
