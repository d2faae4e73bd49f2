"""A method: a function of arrays, its inputs, its limits and its mapping to ``u``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.types import Similarity

_Limit = float | Callable[[int], float]

_LOGPROBS = {"mean_logprobs", "token_logprobs", "main_logprobs"}
_WHITE_BOX = {*_LOGPROBS, "hidden_states", "p_true_logprob"}
_COMPARISON = {"similarity", "graph", "cluster_ids", "entailment"}

_ROUNDING = 1e-9

ANCHORS = {"content_f1": 0.7}
"""Weight that SNNE and WSNNE put on a delivered answer, by similarity; chosen by
measurement. On other similarities it is 0, as in the paper."""


@dataclass(frozen=True, slots=True)
class Method:
    """An uncertainty method; higher values are more uncertain.

    Attributes:
        name: Key in ``METHODS``, or a name of your own.
        source: Paper and equation, or URL.
        function: Called with ``arguments`` by position and ``options`` by keyword,
            returns the raw value.
        arguments: Properties of ``Inputs`` that it requires, in order.
        options: Those of ``"tau"`` and ``"anchor"`` that it takes.
        limits: Smallest and largest value, each a number or a function of the number
            of answers; or a function of ``(n, *, tau)`` that returns both. None if
            unbounded.
        mapping: ``(value, n, *, tau)`` to ``u``; None maps the limits linearly to
            [0, 1].
        default_similarity: Name of the similarity it runs on if none is given.
        without_logprobs: The method on the same scale that runs instead where
            log-probabilities are missing, None if there is none.

    Example:
        >>> from snne_guard import score
        >>> mean_distance = Method(
        ...     "mean_distance",
        ...     "an example",
        ...     lambda similarity: float(1 - similarity.mean()),
        ...     limits=(0.0, lambda n: 1 - 1 / n),
        ... )
        >>> result = score(["Paris", "Lyon"], method=mean_distance)
        >>> result.value, result.uncertainty
        (0.5, 1.0)
    """

    name: str
    source: str
    function: Callable[..., float]
    arguments: tuple[str, ...] = ("similarity",)
    _: KW_ONLY
    options: tuple[str, ...] = ()
    limits: tuple[_Limit, _Limit] | Callable[..., tuple[float, float]] | None = None
    mapping: Callable[..., float | None] | None = None
    default_similarity: str = "rouge_l"
    without_logprobs: Method | None = None

    @property
    def needs(self) -> frozenset[str]:
        """The properties of ``Inputs`` that it requires."""
        return frozenset(self.arguments)

    @property
    def needs_logprobs(self) -> bool:
        """Whether it needs token log-probabilities."""
        return not _LOGPROBS.isdisjoint(self.arguments)

    @property
    def white_box(self) -> bool:
        """Whether it needs more than the texts of replies."""
        return not _WHITE_BOX.isdisjoint(self.arguments)

    @property
    def compares_answers(self) -> bool:
        """Whether it compares the answers with one another."""
        return not _COMPARISON.isdisjoint(self.arguments)

    def anchor(self, similarity: str, /) -> float:
        """Return the share of weight on the delivered answer, if it is scored."""
        return ANCHORS.get(similarity, 0.0) if "anchor" in self.options else 0.0

    def check_similarity(self, similarity: Similarity, /, *, name: str) -> None:
        """Check that a similarity can give what the method needs.

        Raises:
            ConfigurationError: It lacks ``equivalent`` or ``probabilities``.
        """
        for needs, attribute, example in (
            ("cluster_ids", "equivalent", "exact"),
            ("entailment", "probabilities", "nli"),
        ):
            has = callable(getattr(similarity, attribute, None))
            if needs in self.arguments and not has:
                msg = (
                    f"method {self.name!r} needs a similarity with a method "
                    f"{attribute!r}, such as {example!r}, got {name!r}"
                )
                raise ConfigurationError(msg)

    def compute(self, inputs: object, /) -> float:
        """Return the raw value of ``Inputs``, or of any object with its attributes.

        Raises:
            InputError: Something that the method needs is missing.
        """
        arguments = [getattr(inputs, need) for need in self.arguments]
        for need, value in zip(self.arguments, arguments, strict=True):
            if value is None:
                msg = f"expected {need} for method {self.name!r}, got none"
                raise InputError(msg)
        options = {option: getattr(inputs, option) for option in self.options}
        return float(self.function(*arguments, **options))

    def bounds(self, n: int, /, *, tau: float = 1.0) -> tuple[float, float] | None:
        """Return the smallest and largest value for ``n`` answers, None if unknown."""
        if self.limits is None:
            return None
        if callable(self.limits):
            return self.limits(n, tau=tau)
        low, high = (limit(n) if callable(limit) else limit for limit in self.limits)
        return float(low), float(high)

    def uncertainty(self, value: float, n: int, /, *, tau: float = 1.0) -> float | None:
        """Map a raw value to [0, 1]; None for one answer, or a method without limits.

        Raises:
            InputError: The value lies outside the limits.
        """
        if n < 2:  # noqa: PLR2004 - one answer cannot differ
            return None
        if self.mapping is not None:
            return self.mapping(value, n, tau=tau)
        limits = self.bounds(n, tau=tau)
        if limits is None:
            return None
        low, high = limits
        slack = _ROUNDING * max(1.0, abs(low), abs(high))
        if not low - slack <= value <= high + slack:
            msg = f"expected {self.name} in [{low}, {high}] for n={n}, got {value}"
            raise InputError(msg)
        return min(max((value - low) / (high - low), 0.0), 1.0)
