"""The one way in which a scoring function becomes a ``Method``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from numpy.typing import ArrayLike

from snne_guard.errors import InputError
from snne_guard.types import Method, MethodInputs

__all__ = ["FunctionMethod", "Limits", "Mapping01", "check_found", "check_needs"]


class Limits(Protocol):
    """Smallest and largest value of a method for n members."""

    def __call__(self, n: int, /, *, tau: float = 1.0) -> tuple[float, float]:
        """Return both."""
        ...


class Mapping01(Protocol):
    """A method's value for n members to [0, 1]."""

    def __call__(self, value: float, n: int, /, *, tau: float = 1.0) -> float | None:
        """Return ``u``, None where it is not defined."""
        ...


def check_needs(method: Method, inputs: MethodInputs, /) -> None:
    """Raise InputError where something that the method needs is missing."""
    # Each method of each set passes here: a loop is half of a list of what is missing.
    for need in method.needs:
        if getattr(inputs, need, None) is None:
            raise _lacking(
                method, {need: getattr(inputs, need, None) for need in method.needs}
            )


def check_found(method: Method, found: Mapping[str, object], /) -> None:
    """Raise InputError where a need was met with None."""
    for value in found.values():
        if value is None:
            raise _lacking(method, found)


def _lacking(method: Method, found: Mapping[str, object]) -> InputError:
    missing = min(need for need, value in found.items() if value is None)
    msg = f"expected {missing} for method {method.name!r}, got none"
    return InputError(msg)


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionMethod:
    """A ``Method`` made of pure functions.

    Attributes:
        name: Key in ``METHODS`` or ``READINGS``.
        source: Paper and equation, or URL.
        function: Inputs to raw value, higher is more uncertain.
        limits: Smallest and largest value for n members, None where it has none.
        mapping: Value to [0, 1]; None takes the straight line between the limits, and
            no mapping at all where there are none.
        partial: Inputs and the number of missing members to the limits of the value
            while these join (see ``PartlyBounded``), None where it has none.
        needs: Fields of ``MethodInputs`` that must be there.
        white_box: Whether it needs what only the model's owner can see.
        default_similarity: Name of the similarity that it takes where none is given.
        with_question: Whether that must be one with the question before the answers.
        anchors: Whether it heeds ``MethodInputs.anchor``.

    Example:
        >>> import numpy as np
        >>> mean_distance = FunctionMethod(
        ...     name="mean_distance",
        ...     source="an example",
        ...     function=lambda inputs: float(1 - inputs.similarity.mean()),
        ...     limits=lambda n, tau=1.0: (0.0, 1 - 1 / n),
        ... )
        >>> mean_distance.compute(MethodInputs(similarity=np.eye(2)))
        0.5
        >>> mean_distance.uncertainty(0.5, 2)
        1.0
    """

    name: str
    source: str
    function: Callable[[MethodInputs], float]
    limits: Limits | None = None
    mapping: Mapping01 | None = None
    partial: Callable[[MethodInputs, int], ArrayLike] | None = None
    needs: frozenset[str] = frozenset({"similarity"})
    white_box: bool = False
    default_similarity: str = "rouge_l"
    with_question: bool = False
    anchors: bool = False

    def compute(self, inputs: MethodInputs, /) -> float:
        """Return the raw value.

        Raises:
            InputError: Something that the method needs is missing.
        """
        for need in self.needs:  # of its own: this is where every method passes
            if getattr(inputs, need, None) is None:
                check_needs(self, inputs)
        return self.function(inputs)

    def bounds(self, n: int, /, *, tau: float = 1.0) -> tuple[float, float] | None:
        """Return the smallest and largest value for ``n`` members, None if unknown."""
        return None if self.limits is None else self.limits(n, tau=tau)

    def partial_bounds(self, inputs: MethodInputs, missing: int, /) -> ArrayLike | None:
        """Return the limits of the value while ``missing`` members join.

        Returns:
            ``(missing + 1, 2)`` smallest and largest value, None if unknown.

        Raises:
            InputError: Something that the method needs is missing.
        """
        if self.partial is None:
            return None
        check_needs(self, inputs)
        return self.partial(inputs, missing)

    def uncertainty(self, value: float, n: int, /, *, tau: float = 1.0) -> float | None:
        """Map the raw value to [0, 1].

        Returns:
            ``u``; None for n < 2 and where the limits are missing or equal.

        Raises:
            InputError: The value lies outside the limits.
        """
        if n < 2 or self.limits is None:  # noqa: PLR2004 - one has nothing to differ from
            return None
        if self.mapping is not None:
            return self.mapping(value, n, tau=tau)
        low, high = self.limits(n, tau=tau)
        if high <= low:
            return None
        slack = 1e-9 * max(1.0, abs(low), abs(high))
        if not low - slack <= value <= high + slack:
            msg = f"expected {self.name} in [{low}, {high}] for n={n}, got {value}"
            raise InputError(msg)
        return min(max((value - low) / (high - low), 0.0), 1.0)
