"""What is done with an answer, given its score or the lack of one."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

from snne_guard.decision.threshold import Threshold
from snne_guard.errors import ConfigurationError
from snne_guard.types import Decision, OnError, OnUncertain

__all__ = ["REFUSAL", "Action", "Policy", "Verdict"]

REFUSAL = "I am not certain enough of the answer to give one."
"""What an application shows instead of a withheld answer, unless told otherwise."""

Action = Literal["deliver", "refuse", "fallback", "raise", "ask"]
"""How a decision is carried out; ``ask`` leaves it to the user's callable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A decision and how to carry it out.

    Attributes:
        decision: The word that the assessment and the message carry.
        action: What happens to the answer.
    """

    decision: Decision | None
    action: Action = "deliver"


_VERDICTS: dict[OnUncertain, Verdict] = {
    "flag": Verdict(decision="flag"),
    "refuse": Verdict(decision="refuse", action="refuse"),
    "fallback": Verdict(decision="fallback", action="fallback"),
    "raise": Verdict(decision="refuse", action="raise"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Maps an uncertainty to a verdict; accept if and only if ``u <= threshold``.

    Attributes:
        threshold: The limit for acceptance. None only measures.
        refuse_above: ``u`` above which an answer is always refused.
        on_uncertain: What is done between the two, or a callable that decides.
        on_error: What is done with an answer that could not be scored.
        min_samples: Members that a scored set must have.

    Raises:
        ConfigurationError: If the options contradict each other.

    Example:
        >>> policy = Policy(threshold=Threshold.fixed(0.4), on_uncertain="refuse")
        >>> policy.scored(0.4).decision, policy.scored(0.5).decision
        ('accept', 'refuse')
    """

    threshold: Threshold | None = None
    refuse_above: float | None = None
    on_uncertain: OnUncertain | Callable[..., Any] = "flag"
    on_error: OnError = "uncertain"
    min_samples: int = 2

    def __post_init__(self) -> None:
        if not callable(self.on_uncertain):
            _check_choice("on_uncertain", self.on_uncertain, get_args(OnUncertain))
        _check_choice("on_error", self.on_error, get_args(OnError))
        if self.threshold is None and self.on_uncertain != "flag":
            msg = (
                f"on_uncertain={self.on_uncertain!r} needs a threshold: without one "
                "the guard measures only and no answer is ever uncertain"
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

    def scored(
        self,
        uncertainty: float | None,
        *,
        method: str = "",
        covered: bool = True,
        threshold: Threshold | None = None,
    ) -> Verdict:
        """Return the verdict on an answer whose set was scored.

        Args:
            uncertainty: Its ``u``, None where it has none.
            method: Name of the method that ran.
            covered: Whether the threshold was made for such a set; if not, the answer
                counts as uncertain whatever its ``u``.
            threshold: The one for a set of as many members, None for the policy's own.
        """
        if self.threshold is None:
            return Verdict(decision=None)
        limit = self.threshold if threshold is None else threshold
        u = math.inf if uncertainty is None else uncertainty
        if not covered or limit.method not in {None, method}:
            # The threshold is for other sets: this u may not be accepted by it.
            u = max(u, math.nextafter(limit.value, math.inf))
        if u <= limit.value:
            return Verdict(decision="accept")
        return self._uncertain(u)

    def unscored(self) -> Verdict:
        """Return the verdict on an answer whose set could not be scored."""
        if self.on_error == "raise":
            return Verdict(decision="unscored", action="raise")
        if self.threshold is None:
            return Verdict(decision=None)
        if self.on_error == "accept":
            return Verdict(decision="unscored")
        return self._uncertain(math.inf)

    def skipped(self) -> Verdict:
        """Return the verdict on an answer that is not scored by the user's choice."""
        return Verdict(decision=None if self.threshold is None else "unscored")

    def chosen(self, action: object) -> Verdict:
        """Return the verdict for the word that a user's callable returned.

        Raises:
            ConfigurationError: If it is not one of the four words.
        """
        words = get_args(OnUncertain)
        if action not in words:
            # What it returned is only named by its type: it may be the answer's text.
            expected = ", ".join(map(repr, words))
            msg = (
                f"on_uncertain's result must be one of {expected}, or where messages "
                f"are delivered a message; got another {type(action).__name__}"
            )
            raise ConfigurationError(msg)
        return _VERDICTS[cast("OnUncertain", action)]

    def _uncertain(self, u: float) -> Verdict:
        if self.refuse_above is not None and u > self.refuse_above:
            return _VERDICTS["raise" if self.on_uncertain == "raise" else "refuse"]
        if callable(self.on_uncertain):
            return Verdict(decision="flag", action="ask")
        return _VERDICTS[self.on_uncertain]


def _check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        expected = ", ".join(repr(choice) for choice in choices)
        msg = f"{name} must be one of {expected}; got {value!r}"
        raise ConfigurationError(msg)
