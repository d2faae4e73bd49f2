"""Several methods as one probability of being wrong, by logistic regression."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.scorers.registry import METHODS
from snne_guard.types import FloatArray, MethodInputs

__all__ = ["COMBINED", "Combination", "fit_combination", "part_values"]

COMBINED = ("snne", "anchored_snne")
"""What is combined unless something else is named: how far all answers spread, and how
far the others lie from the delivered one."""

_ROUNDING = 1e-9
_FLOOR = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Combination:
    """A ``Method`` that reads P(wrong) from several others.

    Each part gives its ``u``, or its raw value where it has no limits, such as
    ``answer_length``. A part is kept within what was seen where the weights were
    learnt, so that nothing is read from where nothing was. The probability is that of
    the graded answers that it was learnt from, and no promise: a threshold on it is
    certified on other answers.

    Attributes:
        parts: Names in ``METHODS``, different ones.
        coefficients: For each part what one unit of it adds to the log-odds of being
            wrong.
        intercept: Log-odds where all parts are 0.
        ranges: For each part the smallest and largest value that was seen.
        n_labels: Graded answers that it was learnt from.

    Raises:
        ConfigurationError: A name is unknown or comes twice, or the numbers are not
            one finite one for each part.

    Example:
        >>> from snne_guard import score
        >>> combined = Combination(
        ...     parts=("snne", "anchored_snne"),
        ...     coefficients=(2.0, 2.0),
        ...     intercept=-2.0,
        ...     ranges=((0.0, 1.0), (0.0, 1.0)),
        ... )
        >>> round(score(["Paris", "Paris", "Paris"], method=combined).value, 3)
        0.119
    """

    parts: tuple[str, ...]
    coefficients: tuple[float, ...]
    intercept: float
    ranges: tuple[tuple[float, float], ...]
    n_labels: int = 0

    def __post_init__(self) -> None:
        """Check the parts."""
        _check_parts(self.parts)
        sizes = {len(self.parts), len(self.coefficients), len(self.ranges)}
        numbers = [self.intercept, *self.coefficients, *sum(self.ranges, ())]
        if len(sizes) > 1 or not all(map(math.isfinite, numbers)):
            msg = (
                f"expected a finite coefficient and range for each of {self.parts}, "
                f"got {self.coefficients} and {self.ranges}"
            )
            raise ConfigurationError(msg)

    @property
    def name(self) -> str:
        """``calibrated`` and the names of the parts."""
        return f"calibrated({','.join(self.parts)})"

    @property
    def source(self) -> str:
        """The sources of the parts."""
        sources = "; ".join(METHODS[part].source for part in self.parts)
        return f"logistic regression on: {sources}"

    @property
    def needs(self) -> frozenset[str]:
        """All that a part needs; the matrix always, for its size."""
        found = (METHODS[part].needs for part in self.parts)
        return frozenset({"similarity"}).union(*found)

    @property
    def white_box(self) -> bool:
        """Whether a part is."""
        return any(METHODS[part].white_box for part in self.parts)

    @property
    def anchors(self) -> bool:
        """Whether a part heeds the anchor."""
        return any(METHODS[part].anchors for part in self.parts)

    @property
    def default_similarity(self) -> str:
        """Name of the similarity that the first part takes where none is given."""
        return METHODS[self.parts[0]].default_similarity

    def compute(self, inputs: MethodInputs, /) -> float:
        """Return the probability of being wrong; 1 where a part has no ``u``.

        Raises:
            InputError: Something that a part needs is missing, or one returned NaN.
        """
        found = part_values(self.parts, inputs)
        if found is None:
            return 1.0
        kept = (
            min(max(value, low), high)
            for value, (low, high) in zip(found, self.ranges, strict=True)
        )
        terms = (c * value for c, value in zip(self.coefficients, kept, strict=True))
        odds = self.intercept + math.fsum(terms)
        return min(max(float(_probability(odds)), _FLOOR), 1 - _FLOOR)

    def bounds(self, n: int, /, *, tau: float = 1.0) -> tuple[float, float]:
        """Return 0 and 1."""
        del n, tau
        return 0.0, 1.0

    def uncertainty(self, value: float, n: int, /, *, tau: float = 1.0) -> float | None:
        """Return the probability as ``u``; None for one member.

        Raises:
            InputError: The value is outside [0, 1].
        """
        del tau
        if not -_ROUNDING <= value <= 1 + _ROUNDING:
            msg = f"expected {self.name} in [0, 1], got {value}"
            raise InputError(msg)
        return None if n < 2 else min(max(value, 0.0), 1.0)  # noqa: PLR2004 - a pair

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON has them.

        Example:
            >>> made = Combination(
            ...     parts=("snne",),
            ...     coefficients=(1.0,),
            ...     intercept=0.0,
            ...     ranges=((0.0, 1.0),),
            ... )
            >>> Combination.from_dict(made.to_dict()) == made
            True
        """
        return {
            "parts": list(self.parts),
            "coefficients": list(self.coefficients),
            "intercept": self.intercept,
            "ranges": [list(limits) for limits in self.ranges],
            "n_labels": self.n_labels,
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any], /) -> Combination:
        """Return what ``to_dict`` gave.

        Raises:
            InputError: A field is missing, unknown or of another kind.
            ConfigurationError: The parts contradict each other.
        """
        names = set(cls.__dataclass_fields__)
        if set(fields) != names:
            msg = (
                f"expected a combination's fields {sorted(names)}, got {sorted(fields)}"
            )
            raise InputError(msg)
        try:
            return cls(
                parts=tuple(map(str, fields["parts"])),
                coefficients=tuple(map(float, fields["coefficients"])),
                intercept=float(fields["intercept"]),
                ranges=tuple(
                    (float(low), float(high)) for low, high in fields["ranges"]
                ),
                n_labels=int(fields["n_labels"]),
            )
        except (TypeError, ValueError) as error:
            if isinstance(error, ConfigurationError):
                raise
            msg = f"expected a combination's numbers: {error}"
            raise InputError(msg) from error


def part_values(parts: Sequence[str], inputs: MethodInputs) -> list[float] | None:
    """Return what each part says of one set, None where one has no ``u``.

    It is the ``u`` of a method with limits, and the raw value of another.

    Raises:
        InputError: Something that a part needs is missing, or one returned NaN.
    """
    n = len(inputs.similarity)
    found: list[float] = []
    for part in parts:
        method = METHODS[part]
        value = method.compute(inputs)
        if math.isnan(value):
            msg = f"expected a number from method {part!r}, got NaN"
            raise InputError(msg)
        limited = method.limits is not None
        u = method.uncertainty(value, n, tau=inputs.tau) if limited else value
        if u is None:
            return None
        found.append(u)
    return found


def fit_combination(
    values: ArrayLike,
    correct: ArrayLike,
    /,
    *,
    parts: Sequence[str] = COMBINED,
    ridge: float = 1.0,
) -> Combination:
    """Learn from graded answers how to read P(wrong) from several methods.

    Logistic regression with a ridge penalty on the coefficients of the standardised
    parts (half of ``ridge`` times the sum of their squares; the intercept is free), by
    Newton's steps. What is found is a method; its promise must come from other answers.

    Args:
        values: ``(answers, parts)`` what ``part_values`` says of each set; finite.
        correct: ``(answers,)`` 1 where the delivered answer is right, else 0.
        parts: Names in ``METHODS``, one for each column.
        ridge: Weight of the penalty, above 0.

    Raises:
        InputError: The shapes do not fit, a value is not finite, or the answers are
            all right or all wrong.
        ConfigurationError: A name is unknown or comes twice, or the ridge is not above
            0.

    Example:
        >>> spread = [[0.1, 0.2], [0.2, 0.1], [0.3, 0.5], [0.8, 0.7], [0.9, 0.6]]
        >>> found = fit_combination(spread, [1, 1, 0, 0, 0])
        >>> found.name, found.n_labels, min(found.coefficients) > 0
        ('calibrated(snne,anchored_snne)', 5, True)
    """
    _check_parts(parts)
    if not 0 < ridge < math.inf:
        msg = f"expected a ridge above 0, got {ridge!r}"
        raise ConfigurationError(msg)
    table, wrong = _table(values, correct, columns=len(parts))
    centre, scale = table.mean(axis=0), table.std(axis=0)
    scale[scale == 0] = 1.0  # a constant part gets a coefficient of 0
    weights = _newton((table - centre) / scale, wrong, ridge)
    coefficients = weights[1:] / scale
    return Combination(
        parts=tuple(parts),
        coefficients=tuple(coefficients.tolist()),
        intercept=float(weights[0] - coefficients @ centre),
        ranges=tuple(
            zip(table.min(axis=0).tolist(), table.max(axis=0).tolist(), strict=True)
        ),
        n_labels=len(table),
    )


def _newton(features: FloatArray, wrong: FloatArray, ridge: float) -> FloatArray:
    """Return the intercept and the weights at which the penalised loss is least."""
    design: FloatArray = np.column_stack([np.ones(len(features)), features])
    size = int(design.shape[1])
    penalty = _floats([0.0] + [ridge] * (size - 1))

    def loss(weights: FloatArray) -> float:
        odds = design @ weights
        terms = np.logaddexp(0, odds) - wrong * odds
        return float(terms.sum() + 0.5 * penalty @ (weights * weights))

    share = float(wrong.mean())
    weights = _floats([math.log(share / (1 - share))] + [0.0] * (size - 1))
    step = penalty + 1
    while np.abs(step).max() > _ROUNDING:
        chances: FloatArray = _probability(design @ weights)
        slope = _floats(design.T @ (chances - wrong) + penalty * weights)
        curve = _floats((design.T * (chances * (1 - chances))) @ design)
        curve.flat[:: size + 1] += penalty
        step = _floats(np.linalg.solve(curve, slope))
        # Far from the least a whole step may go too far.
        while loss(weights - step) > loss(weights) and np.abs(step).max() > _ROUNDING:
            step = step / 2
        weights = weights - step
    return weights


def _floats(values: ArrayLike) -> FloatArray:
    return np.asarray(values, dtype=np.float64)


def _probability(odds: Any) -> Any:  # noqa: ANN401 - a number or an array
    # The hyperbolic tangent does not overflow.
    return 0.5 * (1 + np.tanh(0.5 * odds))


def _check_parts(parts: Sequence[str]) -> None:
    unknown = [part for part in parts if part not in METHODS]
    if unknown or not parts or len(set(parts)) < len(parts):
        msg = (
            f"expected different names of methods to combine, of {[*METHODS]}, "
            f"got {[*parts]}"
        )
        raise ConfigurationError(msg)


def _table(
    values: ArrayLike, correct: ArrayLike, *, columns: int
) -> tuple[FloatArray, FloatArray]:
    try:
        table: FloatArray = np.asarray(values, dtype=np.float64)
        right: FloatArray = np.asarray(correct, dtype=np.float64)
    except (TypeError, ValueError) as error:
        msg = "expected tables of numbers to learn a combination from"
        raise InputError(msg) from error
    if table.ndim != 2 or table.shape[1] != columns or right.shape != table.shape[:1]:  # noqa: PLR2004 - a table
        msg = (
            f"expected values of shape (answers, {columns}) and a label for each "
            f"answer, got {table.shape} and {right.shape}"
        )
        raise InputError(msg)
    if not np.isfinite(table).all():
        msg = "expected finite values to learn a combination from"
        raise InputError(msg)
    if not np.isin(right, (0, 1)).all() or len(np.unique(right)) < 2:  # noqa: PLR2004 - both classes
        msg = (
            "expected labels 0 and 1 with both among them to learn a combination from, "
            f"got {np.unique(right).tolist()}"
        )
        raise InputError(msg)
    return table, 1 - right
