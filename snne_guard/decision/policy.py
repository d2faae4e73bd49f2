"""What happens to an answer, given its uncertainty or the lack of one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

from snne_guard.checks import check_choice, check_number
from snne_guard.errors import ConfigurationError
from snne_guard.types import Decision, OnError, OnUncertain

Delivery = Literal["answer", "refusal", "fallback", "replacement", "nothing"]
"""What the application gets: the answer, the refusal's text, what the fallback says,
what the user's ``on_uncertain`` returns, or nothing but an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A decision and what follows from it.

    Attributes:
        decision: What the assessment and the message report.
        delivery: What the application gets.
    """

    decision: Decision | None
    delivery: Delivery = "answer"


_VERDICTS: dict[OnUncertain, Verdict] = {
    "flag": Verdict(decision="flag"),
    "refuse": Verdict(decision="refuse", delivery="refusal"),
    "fallback": Verdict(decision="fallback", delivery="fallback"),
    "raise": Verdict(decision="refuse", delivery="nothing"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Maps an uncertainty, and how far an answer is grounded, to a verdict.

    Accept if and only if ``u <= threshold`` and ``grounded >= min_grounded``, as far as
    these are set.

    Attributes:
        threshold: Largest ``u`` that is accepted, in [0, 1]; -1.0 accepts nothing,
            None limits no ``u``.
        min_grounded: Least ``grounded`` that is accepted, in [0, 1]; None sets no such
            limit. Without either limit nothing is decided.
        refuse_above: Largest ``u`` that may still be delivered. Above it an answer is
            refused whatever ``on_uncertain`` says; None for no such limit.
        on_uncertain: What happens to an answer that is not accepted, or a callable
            that decides.
        on_error: What happens to an answer that could not be scored.

    Raises:
        ConfigurationError: If an option is out of range or contradicts another one.

    Example:
        >>> policy = Policy(threshold=0.4, on_uncertain="refuse")
        >>> policy.scored(0.4).decision, policy.scored(0.5).decision
        ('accept', 'refuse')
    """

    threshold: float | None = None
    min_grounded: float | None = None
    refuse_above: float | None = None
    on_uncertain: OnUncertain | Callable[..., Any] = "flag"
    on_error: OnError = "uncertain"

    def __post_init__(self) -> None:
        if not callable(self.on_uncertain):
            check_choice(self.on_uncertain, get_args(OnUncertain), what="on_uncertain")
        check_choice(self.on_error, get_args(OnError), what="on_error")
        if self.min_grounded is not None:
            check_number(self.min_grounded, what="min_grounded", least=0, most=1)
        if not self.decides and self.on_uncertain != "flag":
            msg = (
                f"on_uncertain={self.on_uncertain!r} needs a threshold, or "
                "min_grounded: without one the guard only measures and no answer is "
                "ever uncertain"
            )
            raise ConfigurationError(msg)
        if self.threshold is None:
            if self.refuse_above is not None:
                msg = "the pair (accept, refuse) needs both; got no threshold to accept"
                raise ConfigurationError(msg)
            return
        if self.threshold != -1.0:
            what = "threshold (-1.0 accepts nothing)"
            check_number(self.threshold, what=what, least=0, most=1)
        if self.refuse_above is None:
            return
        check_number(self.refuse_above, what="refuse_above", least=0, most=1)
        if self.refuse_above < self.threshold:
            msg = (
                "expected the pair (accept, refuse) in ascending order, got "
                f"({self.threshold!r}, {self.refuse_above!r})"
            )
            raise ConfigurationError(msg)

    @property
    def decides(self) -> bool:
        """Whether anything is decided: whether one of the two limits is set."""
        return self.threshold is not None or self.min_grounded is not None

    @property
    def may_withhold(self) -> bool:
        """Whether an answer can fail to reach the application."""
        return (
            self.on_uncertain != "flag"
            or self.refuse_above is not None
            or self.on_error == "raise"
        )

    def is_grounded(self, grounded: float | None, /) -> bool:
        """Compare an answer's support with the least; unknown support is not enough."""
        least = self.min_grounded
        return least is None or (grounded is not None and grounded >= least)

    def scored(
        self,
        uncertainty: float | None,
        /,
        *,
        grounded: float | None = None,
        covered: bool = True,
    ) -> Verdict:
        """Return the verdict on a scored answer; a ``u`` of None counts as uncertain.

        ``covered`` says whether the threshold applies to this set. If not, the answer
        counts as uncertain whatever its ``u``.
        """
        if not self.decides:
            return Verdict(decision=None)
        limit, u = self.threshold, uncertainty
        agreed = limit is None or (covered and u is not None and u <= limit)
        if agreed and self.is_grounded(grounded):
            return Verdict(decision="accept")
        return self._uncertain(uncertainty)

    def unscored(self, *, grounded: float | None = None) -> Verdict:
        """Return the verdict on an answer whose set could not be scored.

        ``on_error="accept"`` speaks of ``u`` alone: the answer must be grounded still.
        """
        if self.on_error == "raise":
            return Verdict(decision="unscored", delivery="nothing")
        if not self.decides:
            return Verdict(decision=None)
        if self.on_error == "accept" and self.is_grounded(grounded):
            return Verdict(decision="unscored")
        return self._uncertain(None)

    def skipped(self) -> Verdict:
        """Return the verdict on an answer that the user chose not to score."""
        return Verdict(decision="unscored" if self.decides else None)

    def chosen(self, word: object, /) -> Verdict:
        """Return the verdict for what the user's ``on_uncertain`` returned.

        Raises:
            ConfigurationError: If it is none of the four words.
        """
        words = get_args(OnUncertain)
        if not isinstance(word, str) or word not in words:
            # Only the type is named: the value may be the answer's text.
            msg = (
                f"on_uncertain must return one of {', '.join(map(repr, words))}; got "
                f"another {type(word).__name__}"
            )
            raise ConfigurationError(msg)
        return _VERDICTS[cast("OnUncertain", word)]

    def _uncertain(self, u: float | None) -> Verdict:
        # "not <=" so that NaN is refused as well.
        if self.refuse_above is not None and (u is None or not u <= self.refuse_above):
            return _VERDICTS["raise" if self.on_uncertain == "raise" else "refuse"]
        if callable(self.on_uncertain):
            return Verdict(decision="flag", delivery="replacement")
        return _VERDICTS[self.on_uncertain]
