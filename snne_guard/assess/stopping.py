"""Whether the samples that are there settle what is done with an answer."""

from __future__ import annotations

import logging
import math
from asyncio import CancelledError
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from snne_guard.assess.judge import Judge
from snne_guard.decision import CalibratedStop, Cascade, Verdict
from snne_guard.sampling.agreement import suspect
from snne_guard.scorers import resolve_method, uncertainty_range
from snne_guard.scorers.registry import without_logprobs
from snne_guard.similarity.growth import Growth
from snne_guard.types import Method, MethodInputs, ResponseSet, Sample, Score

__all__ = ["StopRule", "Stopping"]

logger = logging.getLogger(__name__)

_PAIR = 2
"""Members without which nothing can differ."""
_ANY = (0.0, math.inf)
"""Between which values ``u`` lies where nothing is known of it, even whether it is."""

StopRule = Callable[[Score, int], bool]
"""A rule that gets the score of the members so far and how many samples are still to
come, and returns whether that is enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopping:
    """Decides after a round whether the next one is needed; holds no state.

    Attributes:
        judge: Scores and decides.
        certificate: Whether it is enough that no outcome of the missing samples could
            change the decision.
        rule: A further rule on the score, None for none.
    """

    judge: Judge
    certificate: bool = True
    rule: StopRule | None = None

    @property
    def light(self) -> bool:
        """Whether it runs no code but the library's own."""
        return self.rule is None or isinstance(self.rule, CalibratedStop | Cascade)

    def under(self, judge: Judge) -> Stopping | None:
        """Return the same for an answer with another judge, None where none can be."""
        if judge.policy.threshold is None:
            return None  # nothing is decided, so nothing can be settled
        if judge.policy == self.judge.policy or not self.light:
            return replace(self, judge=judge)
        # What recordings showed holds for the threshold that it was learnt for.
        return replace(self, judge=judge, certificate=True, rule=None)

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
        samples = used[int(responses.include_answer) :]
        if len(used) < _PAIR or suspect(samples, temperature=self.judge.temperature):
            return False
        score = self.judge.score(used, responses, settle_logprobs, growth)
        if score is None:
            return False
        try:
            if self.certificate and self._is_certain(used, samples, score, missing):
                return True
            return self.rule is not None and bool(self.rule(score, missing))
        except (Exception, CancelledError) as error:  # noqa: BLE001 - anyone's code
            # More samples than needed are the lesser evil; no text is logged.
            logger.warning("a stopping rule failed with %s", type(error).__name__)
            return False

    def _is_certain(
        self,
        members: Sequence[Sample],
        samples: Sequence[Sample],
        score: Score,
        missing: int,
    ) -> bool:
        """Return whether every outcome of the missing samples leads to one verdict."""
        if len(members) < self.judge.policy.min_samples:
            return False  # too few may be left in the end
        verdicts = self._verdicts(members, score, missing)
        # What a user's function says may depend on everything.
        same = len(verdicts) == 1 and all(v.action != "ask" for v in verdicts)
        return same and not self._may_be_suspect(samples, missing)

    def _verdicts(
        self, members: Sequence[Sample], score: Score, missing: int
    ) -> set[Verdict]:
        """Return every verdict that the missing samples could lead to."""
        means = [member.mean_logprob for member in members]
        known = [mean for mean in means if mean is not None]
        matrix = score.matrix
        if matrix is None:
            matrix = np.full((score.n, score.n), np.nan)
        inputs = MethodInputs(
            similarity=matrix,
            tau=score.tau,
            mean_logprobs=np.array(known) if len(known) == len(means) else None,
            metric=self.judge.relation_for(members).metric,
            anchor=score.anchor,
        )
        return {
            self.judge.policy.scored(u, method=method.name)
            for method in self._possible(score)
            for u in uncertainty_range(method, inputs, missing) or _ANY
        }

    def _possible(self, score: Score) -> list[Method]:
        """Return the methods that may score the whole set."""
        own = self.judge.method
        if not isinstance(own, str) and own.name == score.method:
            ran = own
        else:
            ran = resolve_method(score.method, logprobs=True)
        # A sample without log-probabilities would have another one take its place.
        other = without_logprobs(ran)
        return [ran] if other is None else [ran, other]

    def _may_be_suspect(self, samples: Sequence[Sample], missing: int) -> bool:
        """Return whether agreement could turn out to be no chance.

        Where a cache answers, more of the same is what gives it away.
        """
        temperature = self.judge.temperature
        return any(
            suspect([*samples, *[sample] * missing], temperature=temperature)
            for sample in samples
        )
