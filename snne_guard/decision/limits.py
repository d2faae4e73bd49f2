"""The one or two limits on ``u`` that a guard goes by."""

from __future__ import annotations

from dataclasses import replace

from numpy.typing import ArrayLike

from snne_guard.decision.threshold import Threshold
from snne_guard.errors import ConfigurationError

__all__ = ["Limit", "accept_threshold", "threshold_pair"]

Limit = float | Threshold
"""A threshold, or the number of one that promises nothing."""


def threshold_pair(
    uncertainty: ArrayLike,
    correct: ArrayLike,
    *,
    alpha: float,
    beta: float,
    delta: float = 0.1,
    pilot: ArrayLike | None = None,
    method: str | None = None,
) -> tuple[Threshold, Threshold]:
    """Return the thresholds below which answers are accepted and above it refused.

    The first is ``for_error_rate``, the second ``for_false_refusal``; a guard takes
    the pair as its ``threshold``. Each promise holds on its own: the one with
    probability 1 - ``delta``, the other on average. The second is never below the
    first: there it is raised, which refuses fewer.

    Args:
        uncertainty: ``(n,)`` as for ``Threshold.for_error_rate``.
        correct: ``(n,)`` likewise.
        alpha: Largest share of wrong answers among the accepted ones, in (0, 1).
        beta: Largest share of the correct answers that is refused, in (0, 1).
        delta: Probability that the first promise fails, in (0, 1).
        pilot: ``(m,)`` as for ``Threshold.for_error_rate``.
        method: Name of the method whose ``u`` they are for, None for any.

    Returns:
        The threshold for acceptance and that for refusal. Where a second one that
        carries no promise is given to a guard, it refuses nothing for its ``u`` alone.

    Raises:
        InputError: As for ``Threshold.for_error_rate``.
        ConfigurationError: An option is not in (0, 1).

    Example:
        >>> u = [step / 200 for step in range(200)]
        >>> correct = [score < 0.6 for score in u]
        >>> accept, refuse = threshold_pair(u, correct, alpha=0.1, beta=0.02)
        >>> accept.value, refuse.value
        (0.635, 0.635)
    """
    accept = Threshold.for_error_rate(
        uncertainty, correct, alpha=alpha, delta=delta, pilot=pilot, method=method
    )
    refuse = Threshold.for_false_refusal(uncertainty, correct, beta=beta, method=method)
    if refuse.certified and refuse.value < accept.value:
        refuse = replace(
            refuse,
            value=accept.value,
            n_accepted=accept.n_accepted,
            n_wrong=accept.n_wrong,
            acceptance=accept.acceptance,
            acceptance_interval=accept.acceptance_interval,
        )
    return accept, refuse


def accept_threshold(
    threshold: Limit | tuple[Limit, Limit] | None,
) -> tuple[Threshold | None, float | None]:
    """Split what a user gives as ``threshold`` into the two limits on ``u``.

    Returns:
        The threshold for acceptance, None if none was given; and the ``u`` above which
        an answer is always refused, None if there is no such limit.

    Raises:
        ConfigurationError: If it is no threshold, or the pair is out of order. A
            second one that could not be certified is no limit.

    Example:
        >>> accept_threshold((0.3, 0.7))[1]
        0.7
    """
    if threshold is None or isinstance(threshold, Threshold):
        return threshold, None
    if isinstance(threshold, tuple | list):
        return _pair(threshold)
    return _one(threshold), None


def _one(limit: object) -> Threshold:
    return limit if isinstance(limit, Threshold) else Threshold.fixed(_number(limit))


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        msg = (
            "threshold must be a number in [0, 1], a Threshold, an (accept, refuse) "
            f"pair or None; got {value!r}"
        )
        raise ConfigurationError(msg)
    return float(value)


def _pair(
    values: tuple[Limit, ...] | list[Limit],
) -> tuple[Threshold, float | None]:
    if len(values) != 2:  # noqa: PLR2004 - a pair
        msg = f"threshold as a pair is (accept, refuse); got {len(values)} values"
        raise ConfigurationError(msg)
    accept, refuse = map(_one, values)
    if refuse.status in {"infeasible", "too_few_labels"}:
        return accept, None
    if accept.value > refuse.value:
        msg = (
            "threshold as a pair is (accept, refuse) with accept <= refuse; "
            f"got ({accept.value!r}, {refuse.value!r})"
        )
        raise ConfigurationError(msg)
    return accept, refuse.value
