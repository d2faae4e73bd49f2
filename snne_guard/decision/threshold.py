"""The largest uncertainty that is accepted, and what is guaranteed about it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from snne_guard.checks import check_number, check_whole
from snne_guard.decision import risk_control
from snne_guard.decision.labels import graded_answers, uncertainties
from snne_guard.errors import ConfigurationError, InputError
from snne_guard.files import STRICT

Status = Literal["fixed", "coverage", "certified", "infeasible", "too_few_labels"]
"""Where a threshold comes from. Only ``"certified"`` carries a guarantee; the last two
accept nothing."""

_FEWEST_LABELS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """The largest uncertainty ``u`` that is accepted, and the guarantee with it.

    Attributes:
        value: Largest accepted ``u`` in [0, 1]; -1.0 if nothing may be accepted.
        status: Where the value comes from, and whether a guarantee holds.
        alpha: The guaranteed error rate among accepted answers; None without a
            guarantee.
        delta: Probability, over the draw of the labels, that the guarantee fails.
        n_labels: Number of answers that it was made from; all graded, but for a
            coverage.
        n_accepted: How many of them it accepts.
        n_wrong: How many of the accepted ones are wrong.
        labels_needed: If there are too few labels, the smallest number that could be
            enough.
        best_alpha: If alpha cannot be guaranteed, the lowest error rate, in whole
            percent, that these labels would have allowed. It is not a guarantee: to get
            one, declare this rate and grade new answers.

    Raises:
        ConfigurationError: If the value is neither in [0, 1] nor -1.0, or does not fit
            the status, or the numbers of answers make no sense.
    """

    __pydantic_config__: ClassVar = STRICT

    value: float
    status: Status = "fixed"
    alpha: float | None = None
    delta: float | None = None
    n_labels: int = 0
    n_accepted: int = 0
    n_wrong: int = 0
    labels_needed: int | None = None
    best_alpha: float | None = None

    def __post_init__(self) -> None:
        value = -1.0
        if self.value != -1.0:
            what = "the threshold (-1.0 accepts nothing)"
            value = check_number(self.value, what=what, least=0, most=1)
        object.__setattr__(self, "value", value)
        if self.status in {"infeasible", "too_few_labels"} and value != -1.0:
            msg = f"a threshold that is {self.status} accepts nothing; got {value!r}"
            raise ConfigurationError(msg)
        most = 2**53  # whole numbers that a float can hold
        for name in ("n_labels", "n_accepted", "n_wrong"):  # each is some of the last
            check_whole(getattr(self, name), what=name, least=0, most=most)
            most = getattr(self, name)
        if self.certified:
            _share("alpha", self.alpha)
            _share("delta", self.delta)

    @property
    def certified(self) -> bool:
        """Whether it guarantees an error rate."""
        return self.status == "certified"

    @property
    def statement(self) -> str:
        """The guarantee, or why there is none and what to do, in plain words."""
        limit = f"Answers with u <= {self.value:.4g} are accepted"
        accepted = _percent(self.n_accepted / max(self.n_labels, 1))
        alpha = _percent(self.alpha or 0)
        if self.status == "fixed":
            return f"{limit}: a limit that someone chose, which guarantees nothing."
        if self.status == "coverage":
            return (
                f"{limit}, {accepted} of the {self.n_labels} given. Nothing is "
                "guaranteed about errors."
            )
        if self.status == "certified":
            return (
                f"With {_percent(1 - (self.delta or 0))} confidence, at most {alpha} "
                f"of the accepted answers are wrong. {limit}: {self.n_accepted} of the "
                f"{self.n_labels} graded ones ({accepted}), of which {self.n_wrong} "
                "were wrong."
            )
        if self.status == "too_few_labels":
            return (
                f"Nothing is accepted: {self.n_labels} labels are too few to guarantee "
                f"an error rate of {alpha}. Grade at least {self.labels_needed} "
                "answers."
            )
        best = ""
        if self.best_alpha is not None:
            allowed = _percent(self.best_alpha)
            best = f" They would have allowed {allowed}; for that, grade new answers."
        return (
            f"Nothing is accepted: these {self.n_labels} labels do not allow an error "
            f"rate of {alpha}.{best}"
        )

    @classmethod
    def fixed(cls, u: float, /) -> Self:
        """Return a threshold that someone chose; it guarantees nothing."""
        return cls(value=u)

    @classmethod
    def for_coverage(cls, uncertainty: ArrayLike, share: float) -> Self:
        """Return the smallest threshold that accepts a share of answers.

        It needs no labels, and guarantees nothing about errors.

        Args:
            uncertainty: ``(n,)`` ``u`` of answers, in [0, 1]; ``inf`` for one without a
                score.
            share: Share of them to accept, in (0, 1).

        Raises:
            InputError: If one is NaN or outside [0, 1], or too few have a score.
            ConfigurationError: If ``share`` is not in (0, 1).

        Example:
            >>> Threshold.for_coverage([0.1, 0.2, 0.3, 0.4], 0.75).value
            0.3
        """
        u, share = uncertainties(uncertainty), _share("share", share)
        value = float(np.quantile(u, share, method="inverted_cdf"))
        if math.isinf(value):
            scored = float(np.isfinite(u).mean())
            msg = f"expected scores for {share:.1%} of the answers, got {scored:.1%}"
            raise InputError(msg)
        n = int((u <= value).sum())
        return cls(value=value, status="coverage", n_labels=len(u), n_accepted=n)

    @classmethod
    def for_error_rate(
        cls,
        uncertainty: ArrayLike,
        correct: ArrayLike,
        *,
        alpha: float,
        delta: float = 0.1,
    ) -> Self:
        """Return the largest threshold at which few accepted answers are wrong.

        The guarantee, for questions drawn like the graded ones: with probability at
        least 1 - ``delta`` over their draw, at most the share ``alpha`` of the answers
        with ``u <= value`` is wrong (Learn then Test, arXiv 2110.01052).

        Choose ``alpha`` before you look at the labels. Trying several on the same
        labels and keeping the best voids the guarantee.

        Args:
            uncertainty: ``(n,)`` ``u`` of the graded answers, in [0, 1]; ``inf`` for
                one without a score, which is never accepted.
            correct: ``(n,)`` 1 or True where the answer is correct, else 0 or False.
            alpha: Largest share of wrong answers among accepted ones, in (0, 1).
            delta: Probability that the guarantee fails, in (0, 1).

        Returns:
            The threshold; ``status`` says whether the labels allow it.

        Raises:
            InputError: If there are no labels, all are the same, one is neither 0 nor
                1, a score is NaN or outside [0, 1], or the lengths differ.
            ConfigurationError: If alpha or delta are not in (0, 1).
            MissingExtraError: If scipy is not installed.

        Example:
            >>> u = [step / 200 for step in range(200)]
            >>> correct = [score < 0.5 for score in u]
            >>> threshold = Threshold.for_error_rate(u, correct, alpha=0.1)
            >>> threshold.value, threshold.status, threshold.n_wrong
            (0.525, 'certified', 6)
        """
        alpha, delta = _share("alpha", alpha), _share("delta", delta)
        u, wrong = graded_answers(uncertainty, correct)
        guarantee: dict[str, Any] = {"alpha": alpha, "delta": delta, "n_labels": len(u)}
        # One more than the first test counts: the u of the next label is its limit.
        least = max(_FEWEST_LABELS, risk_control.least_labels(alpha, delta) + 1)
        if len(u) < least:
            guarantee["labels_needed"] = least
            return cls(value=-1.0, status="too_few_labels", **guarantee)
        value = risk_control.search(u, wrong, alpha=alpha, delta=delta)
        if value >= 0:
            guarantee["n_accepted"] = int((u <= value).sum())
            guarantee["n_wrong"] = int(wrong[u <= value].sum())
            return cls(value=value, status="certified", **guarantee)
        for percent in range(math.floor(100 * alpha) + 1, 100):
            level = percent / 100
            if risk_control.search(u, wrong, alpha=level, delta=delta) >= 0:
                guarantee["best_alpha"] = level
                break
        return cls(value=-1.0, status="infeasible", **guarantee)


def _share(name: str, value: object) -> float:
    return check_number(value, what=name, above=0, below=1)


def _percent(share: float) -> str:
    return f"{100 * share:.3g}%"
