"""Where what watches a guard sees each verdict, before anybody else is told of it."""

from __future__ import annotations

import logging
from asyncio import CancelledError
from dataclasses import replace
from typing import Literal, Protocol

from snne_guard.decision import Policy, Verdict
from snne_guard.types import Assessment, OnUncertain

__all__ = ["Doubt", "Watch", "unwatched", "watched"]

logger = logging.getLogger(__name__)

Doubt = OnUncertain | Literal["uncertain"]
"""What becomes of an answer that would be accepted: what the policy says of uncertain
ones, or one of its words."""


class Watch(Protocol):
    """Sees the assessment of every guarded call that has come to a verdict.

    Attributes:
        may_withhold: Whether ``see`` may ever return a doubt under which the answer
            does not reach the application: then it is held back until the decision.
        light: Whether ``see`` returns at once, so that it may run on an event loop.
    """

    @property
    def may_withhold(self) -> bool: ...  # noqa: D102 - said above

    @property
    def light(self) -> bool: ...  # noqa: D102 - said above

    def see(self, assessment: Assessment, /) -> tuple[Assessment, Doubt | None]:
        """Look at an assessment; it must be safe to call from several threads.

        Args:
            assessment: As it was decided, before a function of the user's is asked and
                before observers are told.

        Returns:
            The assessment, with ``audit`` and further reasons where there are any; and
            what becomes of the answer if it would be accepted, None to let it pass.
        """
        ...

    def missed(self, assessment: Assessment, /) -> tuple[Assessment, Doubt | None]:
        """Return the same for one that ``see`` failed on, or was too slow for."""
        ...


def watched(
    watch: Watch, assessment: Assessment, verdict: Verdict, *, policy: Policy
) -> tuple[Assessment, Verdict]:
    """Return an assessment and its verdict after ``watch`` has seen it.

    Args:
        watch: Who looks.
        assessment: What was found.
        verdict: What was decided.
        policy: What was decided by.
    """
    try:
        seen, doubt = watch.see(assessment)
    except (Exception, CancelledError) as error:  # noqa: BLE001 - anyone's store
        # An answer that was paid for is not lost to it. Nothing is awaited here, so a
        # cancellation is its own and never the caller's.
        logger.warning("the monitor failed with %s", type(error).__name__)
        return unwatched(watch, assessment, verdict, policy=policy)
    return _doubted(seen, verdict, doubt, policy)


def unwatched(
    watch: Watch, assessment: Assessment, verdict: Verdict, *, policy: Policy
) -> tuple[Assessment, Verdict]:
    """Return the same where ``watch`` could not see it."""
    missed, doubt = watch.missed(assessment)
    return _doubted(missed, verdict, doubt, policy)


def _doubted(
    seen: Assessment, verdict: Verdict, doubt: Doubt | None, policy: Policy
) -> tuple[Assessment, Verdict]:
    if doubt is None or verdict.decision != "accept":
        return seen, verdict
    if doubt == "uncertain":
        verdict = policy.scored(seen.uncertainty, covered=False)
    else:
        verdict = policy.chosen(doubt)
    return replace(seen, decision=verdict.decision, certified=False), verdict
