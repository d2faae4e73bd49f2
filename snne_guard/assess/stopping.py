"""Whether the samples that are there settle what is done with an answer."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from snne_guard.assess.judge import Judge
from snne_guard.similarity.growth import Growth
from snne_guard.types import ResponseSet, Score

__all__ = ["StopRule", "Stopping"]

logger = logging.getLogger(__name__)

StopRule = Callable[[Score, int], bool]
"""A rule that gets the score of the members so far and how many samples are still to
come, and returns whether that is enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopping:
    """Decides after a round whether the next one is needed; holds no state.

    Attributes:
        judge: Scores and decides.
        rule: A rule on the score, None for none.
    """

    judge: Judge
    rule: StopRule | None = None

    @property
    def light(self) -> bool:
        """Whether it runs no code but the library's own."""
        return self.rule is None

    def enough(
        self,
        responses: ResponseSet,
        *,
        missing: int,
        growth: Growth,
        settle_logprobs: Callable[[bool], bool] = bool,
    ) -> bool:
        """Return whether the samples so far are enough.

        Args:
            responses: The answer and the samples so far.
            missing: Samples still to come.
            growth: What was compared already in this call.
            settle_logprobs: As for ``Judge.judge``; it must not settle anything yet.
        """
        used, _ = self.judge.members(responses)
        if used is None:  # no sample changes that the answer itself cannot be scored
            return True
        if len(used) < 2:  # noqa: PLR2004 - one has nothing to differ from
            return False
        score = self.judge.score(used, responses, settle_logprobs, growth)
        return score is not None and self._follows(score, missing)

    def _follows(self, score: Score, missing: int) -> bool:
        if self.rule is None:
            return False
        try:
            return bool(self.rule(score, missing))
        except Exception as error:  # noqa: BLE001 - a rule may be anyone's code
            # More samples than needed are the lesser evil; no text is logged.
            logger.warning("a stopping rule failed with %s", type(error).__name__)
            return False
