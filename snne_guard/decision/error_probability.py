"""Maps ``u`` to the probability that an answer is wrong, learnt from graded answers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from snne_guard.checks import check_number, check_whole
from snne_guard.decision.labels import graded_answers
from snne_guard.errors import MissingExtraError
from snne_guard.files import STRICT

_FEWEST_LABELS = 50

_EDGE = 0.02
"""``u`` is clipped this far from 0 and 1, where the logarithms diverge. On recorded
questions this predicted better than a smaller edge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorProbability:
    """The probability that an answer is wrong, as a function of its ``u``.

    Beta calibration (Kull, Silva Filho and Flach 2017): the log-odds of an error are
    ``a ln(u) - b ln(1 - u) + c`` with ``a, b >= 0``, so that the probability never
    falls as ``u`` rises. It is an estimate; only a ``Threshold`` carries a guarantee.

    Attributes:
        a: Weight of ``ln(u)``.
        b: Weight of ``-ln(1 - u)``.
        c: Intercept of the log-odds of an error.
        n_labels: Graded answers that it was learnt from.

    Raises:
        ConfigurationError: If a weight or the number of answers is negative.

    Example:
        >>> u = [step / 100 for step in range(100)]
        >>> p_wrong = ErrorProbability.fit(u, [score < 0.6 for score in u])
        >>> p_wrong(0.1) < 0.05 < 0.9 < p_wrong(0.9)
        True
    """

    __pydantic_config__: ClassVar = STRICT

    a: float
    b: float
    c: float
    n_labels: int

    def __post_init__(self) -> None:
        check_number(self.a, what="a", least=0)
        check_number(self.b, what="b", least=0)
        check_whole(self.n_labels, what="n_labels", least=0)

    def __call__(self, u: float, /) -> float:
        """Return the probability, no closer to 0 or 1 than ``1 / (n_labels + 2)``."""
        inner = min(max(u, _EDGE), 1 - _EDGE)
        odds = self.a * math.log(inner) - self.b * math.log1p(-inner) + self.c
        least = 1 / (self.n_labels + 2)
        # The logistic function, written with tanh so that it cannot overflow.
        return min(max(0.5 * (1 + math.tanh(0.5 * odds)), least), 1 - least)

    @classmethod
    def fit(cls, uncertainty: ArrayLike, correct: ArrayLike, /) -> Self | None:
        """Learn it from graded answers, by logistic regression with an L2 penalty.

        Args:
            uncertainty: ``(n,)`` ``u`` of the answers, all from sets of one size;
                ``inf`` for one without a score, which is left out.
            correct: ``(n,)`` 1 or True where the answer is correct, else 0 or False.

        Returns:
            None if fewer than 50 answers have a score, or if those are all right or
            all wrong.

        Raises:
            InputError: If labels are all alike or neither 0 nor 1, or a score is NaN or
                outside [0, 1].
            MissingExtraError: If scikit-learn is not installed.
        """
        u, wrong = graded_answers(uncertainty, correct)
        u, wrong = u[np.isfinite(u)], wrong[np.isfinite(u)]
        if len(u) < _FEWEST_LABELS or wrong.all() or not wrong.any():
            return None
        try:
            from sklearn.linear_model import LogisticRegression
        except ImportError as error:
            needed = "scikit-learn"
            raise MissingExtraError(needed, extra="eval") from error
        inner = u.clip(_EDGE, 1 - _EDGE)
        features = np.column_stack([np.log(inner), -np.log1p(-inner)])
        weights = np.zeros(2)
        free = [0, 1]
        # A weight that comes out negative is held at 0, and the rest fitted again.
        while free:
            model: Any = LogisticRegression(solver="newton-cholesky")
            model.fit(features[:, free], wrong)
            if (model.coef_[0] >= 0).all():
                weights[free] = model.coef_[0]
                c = float(model.intercept_[0])
                break
            free = [free[i] for i in np.flatnonzero(model.coef_[0] >= 0)]
        else:
            c = math.log(wrong.sum() / (~wrong).sum())
        a, b = weights.tolist()
        return cls(a=a, b=b, c=c, n_labels=len(u))
