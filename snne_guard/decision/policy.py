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
    """Maps an uncertainty to a verdict: accept if and only if ``u <= threshold``.

    Attributes:
        threshold: Largest ``u`` that is accepted, in [0, 1]; -1.0 accepts nothing,
            None decides nothing.
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
    refuse_above: float | None = None
    on_uncertain: OnUncertain | Callable[..., Any] = "flag"
    on_error: OnError = "uncertain"

    def __post_init__(self) -> None:
        if not callable(self.on_uncertain):
            check_choice(self.on_uncertain, get_args(OnUncertain), what="on_uncertain")
        check_choice(self.on_error, get_args(OnError), what="on_error")
        if self.threshold is None:
            if self.on_uncertain != "flag" or self.refuse_above is not None:
                msg = (
                    f"on_uncertain={self.on_uncertain!r} needs a threshold: without "
                    "one the guard only measures and no answer is ever uncertain"
                )
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
    def may_withhold(self) -> bool:
        """Whether an answer can fail to reach the application."""
        return (
            self.on_uncertain != "flag"
            or self.refuse_above is not None
            or self.on_error == "raise"
        )

    def scored(self, uncertainty: float | None, /, *, covered: bool = True) -> Verdict:
        """Return the verdict on an answer whose set was scored.

        Args:
            uncertainty: Its ``u``; None counts as uncertain.
            covered: Whether the threshold applies to this set. If not, the answer
                counts as uncertain whatever its ``u``.
        """
        if self.threshold is None:
            return Verdict(decision=None)
        if covered and uncertainty is not None and uncertainty <= self.threshold:
            return Verdict(decision="accept")
        return self._uncertain(uncertainty)

    def unscored(self) -> Verdict:
        """Return the verdict on an answer whose set could not be scored."""
        if self.on_error == "raise":
            return Verdict(decision="unscored", delivery="nothing")
        if self.threshold is None:
            return Verdict(decision=None)
        if self.on_error == "accept":
            return Verdict(decision="unscored")
        return self._uncertain(None)

    def skipped(self) -> Verdict:
        """Return the verdict on an answer that the user chose not to score."""
        return Verdict(decision=None if self.threshold is None else "unscored")

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
