"""The largest uncertainty that is accepted, and what is promised about it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, Self, get_args

from numpy.typing import ArrayLike

from snne_guard.decision import promises
from snne_guard.decision.stored import read_fields
from snne_guard.decision.wording import statement
from snne_guard.errors import ConfigurationError

__all__ = [
    "Kind",
    "Sequence",
    "Status",
    "Threshold",
]

Kind = Literal["fixed", "error_rate", "joint_error", "false_refusal", "coverage"]
"""What is promised."""

Status = Literal["fixed", "certified", "infeasible", "too_few_labels"]
"""Whether it holds; all but the first two accept nothing."""

Sequence = Literal["ranks", "pilot", "calibration"]
"""What the tested thresholds were fixed from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """The largest uncertainty ``u`` that is accepted, and the promise that it carries.

    Attributes:
        value: Largest accepted ``u`` in [0, 1], or -1.0 where nothing may be accepted.
        kind: What is promised; ``"fixed"`` is nothing.
        status: ``"certified"`` where the promise holds. ``"infeasible"`` and
            ``"too_few_labels"`` accept nothing: these labels do not allow it.
        level: The error rate or the share that is promised.
        delta: Probability, over the draw of the labels, that the promise fails. None:
            it holds in expectation over that draw, or there is none.
        sequence: What the tested thresholds were fixed from: ranks or a pilot, both
            exact, or the labelled scores themselves (``"calibration"``), which is
            approximate.
        n_labels: Graded answers that it was tested on; scores, for a coverage.
        n_accepted: Those of them that it accepts.
        n_wrong: Those of these that are wrong.
        upper_bound: Clopper-Pearson bound on the error among accepted answers, which
            fails with probability ``delta``.
        acceptance: Share of answers that is expected to be accepted.
        acceptance_interval: 90 % interval of that share.
        labels_needed: About how many labels it would take.
        best_level: The lowest level that these labels would have allowed, where they
            do not allow the one that was asked for; to learn from, it promises nothing.
        method: Name of the method whose ``u`` it was certified for, None for any.

    Raises:
        ConfigurationError: If the value is neither in [0, 1] nor -1.0, or the parts
            contradict each other.

    Example:
        >>> Threshold.fixed(0.4).value
        0.4
    """

    value: float
    kind: Kind = "fixed"
    status: Status = "fixed"
    level: float | None = None
    delta: float | None = None
    sequence: Sequence | None = None
    n_labels: int = 0
    n_accepted: int = 0
    n_wrong: int = 0
    upper_bound: float | None = None
    acceptance: float | None = None
    acceptance_interval: tuple[float, float] | None = None
    labels_needed: int | None = None
    best_level: float | None = None
    method: str | None = None

    def __post_init__(self) -> None:
        value = self.value
        if value != -1.0 and not (math.isfinite(value) and 0.0 <= value <= 1.0):
            msg = (
                "a threshold is an uncertainty in [0, 1], or -1.0 to accept nothing; "
                f"got {value!r}"
            )
            raise ConfigurationError(msg)
        _check_choice("kind", self.kind, get_args(Kind))
        _check_choice("status", self.status, get_args(Status))
        if (self.kind == "fixed") != (self.status == "fixed"):
            msg = (
                'a threshold of kind "fixed" has the status "fixed", and no other one '
                f"has; got kind={self.kind!r}, status={self.status!r}"
            )
            raise ConfigurationError(msg)
        if self.kind != "fixed" and not (self.level and 0 < self.level < 1):
            msg = (
                f"a promise of kind {self.kind!r} needs a level above 0 and below 1; "
                f"got {self.level!r}"
            )
            raise ConfigurationError(msg)
        if self.status in {"infeasible", "too_few_labels"} and value != -1.0:
            msg = f"a threshold that is {self.status} accepts nothing; got {value!r}"
            raise ConfigurationError(msg)

    @property
    def certified(self) -> bool:
        """Whether it carries a promise."""
        return self.status == "certified"

    @property
    def approximate(self) -> bool:
        """Whether the promise holds nearly, not exactly."""
        return self.sequence == "calibration"

    @property
    def statement(self) -> str:
        """The promise, or why there is none, in plain words."""
        return statement(self)

    def to_dict(self) -> dict[str, Any]:
        """Return it as what JSON can hold.

        Example:
            >>> Threshold.fixed(0.4).to_dict()["kind"]
            'fixed'
        """
        content = asdict(self)
        if self.acceptance_interval is not None:
            content["acceptance_interval"] = list(self.acceptance_interval)
        return content

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], /) -> Self:
        """Return what ``to_dict`` wrote.

        Raises:
            InputError: A field is missing, unknown, of the wrong type or contradicts
                another one.

        Example:
            >>> threshold = Threshold.fixed(0.4)
            >>> Threshold.from_dict(threshold.to_dict()) == threshold
            True
        """
        return read_fields(cls, content)

    @classmethod
    def fixed(cls, value: float, /) -> Self:
        """Return a threshold that someone chose; it promises nothing."""
        return cls(value=float(value))

    @classmethod
    def for_error_rate(
        cls,
        uncertainty: ArrayLike,
        correct: ArrayLike,
        *,
        alpha: float,
        delta: float = 0.1,
        pilot: ArrayLike | None = None,
        approximate: bool = False,
        method: str | None = None,
    ) -> Self:
        """Return the threshold below which few accepted answers are wrong.

        The promise, for questions drawn like the graded ones: with probability at
        least 1 - ``delta`` over their draw, at most the share ``alpha`` of the
        answers with ``u <= value`` is wrong. Thresholds are tested one after the
        other, upwards, by the exact binomial test, until one fails ("Learn then
        Test", Angelopoulos and others 2021, arXiv 2110.01052, sections 2 and 3). Where
        the tests start is fixed without the labels: by a rank of the scores, or by a
        quantile of ``pilot``.

        Declare ``alpha`` before you look at the labels. To try several on the same
        labels and keep the best voids the promise.

        Args:
            uncertainty: ``(n,)`` ``u`` of the graded answers, in [0, 1]; ``inf`` for
                an answer that cannot be accepted, such as an unscored one.
            correct: ``(n,)`` 1 or True where the answer is correct, else 0 or False.
            alpha: Largest share of wrong answers among the accepted ones, in (0, 1).
            delta: Probability that the promise fails, in (0, 1).
            pilot: ``(m,)`` ``u`` of other answers, which need no grade. None starts
                by a rank of the graded scores, which is as exact.
            approximate: Test quantiles of the graded scores. With many labels it
                accepts a little more, and promises it only nearly.
            method: Name of the method whose ``u`` it is for, None for any.

        Returns:
            The threshold; ``status`` says whether the labels allow it.

        Raises:
            InputError: There are no labels; all are right or all are wrong; one is
                neither 0 nor 1; a score is NaN or outside [0, 1]; the lengths differ.
            ConfigurationError: alpha or delta are not in (0, 1), or a pilot is given
                for the approximate one.

        Example:
            >>> u = [step / 200 for step in range(200)]
            >>> correct = [score < 0.5 for score in u]
            >>> threshold = Threshold.for_error_rate(u, correct, alpha=0.1)
            >>> threshold.value, threshold.status, threshold.n_wrong
            (0.525, 'certified', 6)
        """
        found = promises.error_rate(
            uncertainty,
            correct,
            alpha=alpha,
            delta=delta,
            pilot=pilot,
            approximate=approximate,
        )
        return cls(**found, method=method)

    @classmethod
    def for_joint_error(
        cls,
        uncertainty: ArrayLike,
        correct: ArrayLike,
        *,
        alpha: float,
        method: str | None = None,
    ) -> Self:
        """Return the threshold at which few of all answers are accepted and wrong.

        The promise, for questions drawn like the graded ones: on average over their
        draw, at most the share ``alpha`` of all answers is accepted and wrong
        (conformal risk control, Angelopoulos and others 2022, arXiv 2208.02814). That
        is less than a bound on the error among the accepted answers, which is
        ``alpha`` divided by the share accepted; but it needs few labels.

        Args:
            uncertainty: ``(n,)`` as for ``for_error_rate``.
            correct: ``(n,)`` likewise.
            alpha: Largest share of all answers that is accepted and wrong, in (0, 1).
            method: Name of the method whose ``u`` it is for, None for any.

        Returns:
            The threshold; ``status`` says whether the labels allow it.

        Raises:
            InputError: As for ``for_error_rate``.
            ConfigurationError: alpha is not in (0, 1).

        Example:
            >>> u = [step / 50 for step in range(50)]
            >>> correct = [score < 0.7 for score in u]
            >>> Threshold.for_joint_error(u, correct, alpha=0.1).value
            0.76
        """
        found = promises.joint_error(uncertainty, correct, alpha=alpha)
        return cls(**found, method=method)

    @classmethod
    def for_false_refusal(
        cls,
        uncertainty: ArrayLike,
        correct: ArrayLike,
        *,
        beta: float,
        method: str | None = None,
    ) -> Self:
        """Return the threshold above which few correct answers lie.

        The promise, for questions drawn like the graded ones: on average over their
        draw, at most the share ``beta`` of the correct answers has a larger ``u``
        (split conformal prediction: the score of a rank among the correct answers).
        It says nothing of the wrong ones, so it is made for the second of two
        thresholds, above which an answer is refused.

        Args:
            uncertainty: ``(n,)`` as for ``for_error_rate``.
            correct: ``(n,)`` likewise.
            beta: Largest share of the correct answers that is refused, in (0, 1).
            method: Name of the method whose ``u`` it is for, None for any.

        Returns:
            The threshold; ``status`` says whether the labels allow it.

        Raises:
            InputError: As for ``for_error_rate``.
            ConfigurationError: beta is not in (0, 1).

        Example:
            >>> u = [step / 50 for step in range(50)]
            >>> correct = [score < 0.7 for score in u]
            >>> Threshold.for_false_refusal(u, correct, beta=0.1).value
            0.64
        """
        found = promises.false_refusal(uncertainty, correct, beta=beta)
        return cls(**found, method=method)

    @classmethod
    def for_coverage(
        cls, uncertainty: ArrayLike, *, accept: float, method: str | None = None
    ) -> Self:
        """Return the threshold that accepts a share of answers; it needs no labels.

        The promise, for questions drawn like those scored: on average over their
        draw, at least the share ``accept`` of answers has ``u <= value``. It says
        nothing of errors.

        Args:
            uncertainty: ``(n,)`` as for ``for_error_rate``.
            accept: Share of the answers to accept, in (0, 1).
            method: Name of the method whose ``u`` it is for, None for any.

        Returns:
            The threshold; ``status`` says whether the scores allow it.

        Raises:
            InputError: There are no scores, or one is NaN or outside [0, 1].
            ConfigurationError: ``accept`` is not in (0, 1).

        Example:
            >>> found = Threshold.for_coverage([s / 99 for s in range(100)], accept=0.8)
            >>> round(found.value, 2), found.n_accepted
            (0.81, 81)
        """
        return cls(**promises.coverage(uncertainty, accept=accept), method=method)


def _check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        expected = ", ".join(repr(choice) for choice in choices)
        msg = f"{name} must be one of {expected}; got {value!r}"
        raise ConfigurationError(msg)
