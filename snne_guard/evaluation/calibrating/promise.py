"""What is to be promised, and the threshold that does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from snne_guard.decision import Cascade, Threshold, fit_cascade
from snne_guard.decision.graded import check_share
from snne_guard.decision.limits import threshold_pair
from snne_guard.errors import ConfigurationError
from snne_guard.types import FloatArray, IntArray

__all__ = ["Promise"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """What a user asks for, declared before the labels are looked at.

    Attributes:
        error_rate: Largest share of wrong answers among the accepted ones.
        joint_error: Largest share of all answers that is accepted and wrong.
        false_refusal: Largest share of the right answers that is not accepted; beside
            ``error_rate`` it makes a second threshold, above which is refused.
        coverage: Share of all answers that is to be accepted; says nothing of errors.
        delta: Probability that the error rate is higher all the same.

    Raises:
        ConfigurationError: None or several are asked for, or one is not in (0, 1).

    Example:
        >>> Promise(error_rate=0.1).named
        ('error_rate', 0.1)
    """

    error_rate: float | None = None
    joint_error: float | None = None
    false_refusal: float | None = None
    coverage: float | None = None
    delta: float = 0.1

    def __post_init__(self) -> None:
        given = self._given
        pair = set(given) == {"error_rate", "false_refusal"}
        if len(given) != 1 and not pair:
            msg = (
                "expected one of error_rate, joint_error, false_refusal and coverage, "
                "or error_rate and false_refusal together; got "
                f"{' and '.join(given) or 'none'}"
            )
            raise ConfigurationError(msg)
        for name, value in {**given, "delta": self.delta}.items():
            check_share(name, value)

    @property
    def _given(self) -> dict[str, float]:
        named = {
            "error_rate": self.error_rate,
            "joint_error": self.joint_error,
            "false_refusal": self.false_refusal,
            "coverage": self.coverage,
        }
        return {name: value for name, value in named.items() if value is not None}

    @property
    def named(self) -> tuple[str, float]:
        """What acceptance is to promise, and at which level."""
        return next(iter(self._given.items()))

    @property
    def needs_labels(self) -> bool:
        """Whether it is about errors."""
        return self.coverage is None

    def cascade(
        self,
        stages: Mapping[int, FloatArray],
        correct: IntArray,
        *,
        method: str,
        pilot: FloatArray | None = None,
    ) -> Cascade:
        """Return a plan of rounds, stops and thresholds that holds to an error rate.

        Args:
            stages: Members of the set after each round, to ``(n,)`` uncertainties.
            correct: ``(n,)`` the grades.
            method: Name of the method whose ``u`` it is.
            pilot: None; there is no use for one.

        Raises:
            InputError: As ``fit_cascade``.
            ConfigurationError: Something else is asked for, or there is a pilot.
        """
        if (
            self.error_rate is None
            or self.false_refusal is not None
            or pilot is not None
        ):
            msg = (
                "rounds are certified for error_rate alone, without a pilot; leave "
                "rounds off for anything else"
            )
            raise ConfigurationError(msg)
        return fit_cascade(
            np.column_stack([*stages.values()]),
            correct,
            rounds=tuple(stages),
            alpha=self.error_rate,
            delta=self.delta,
            method=method,
        )

    def thresholds(
        self,
        u: FloatArray,
        correct: IntArray,
        *,
        method: str,
        pilot: FloatArray | None = None,
    ) -> tuple[Threshold, Threshold | None]:
        """Return the threshold that accepts, and the one that refuses if there is one.

        Args:
            u: ``(n,)`` uncertainties of the graded answers; for a coverage, of all.
            correct: ``(n,)`` their grades; for a coverage they do not matter.
            method: Name of the method whose ``u`` it is.
            pilot: ``(m,)`` uncertainties of other answers, for an error rate.

        Raises:
            InputError: As ``Threshold.for_error_rate``.
            ConfigurationError: There is a pilot, and no error rate is asked for.
        """
        kind, level = self.named
        if pilot is not None and kind != "error_rate":
            msg = f"a pilot is for error_rate; {kind} has no use for one"
            raise ConfigurationError(msg)
        if self.error_rate is not None and self.false_refusal is not None:
            return threshold_pair(
                u,
                correct,
                alpha=self.error_rate,
                beta=self.false_refusal,
                delta=self.delta,
                pilot=pilot,
                method=method,
            )
        if kind == "error_rate":
            found = Threshold.for_error_rate(
                u, correct, alpha=level, delta=self.delta, pilot=pilot, method=method
            )
        elif kind == "joint_error":
            found = Threshold.for_joint_error(u, correct, alpha=level, method=method)
        elif kind == "false_refusal":
            found = Threshold.for_false_refusal(u, correct, beta=level, method=method)
        else:
            found = Threshold.for_coverage(u, accept=level, method=method)
        return found, None
