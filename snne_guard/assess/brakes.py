"""What holds the samples of one guarded call back: its budget and the breaker."""

from __future__ import annotations

from dataclasses import replace

from snne_guard.assess.brief import Assessor, Brief
from snne_guard.sampling.breaker import ShedError
from snne_guard.sampling.budget import Tab
from snne_guard.sampling.collect import Collector
from snne_guard.sampling.retry import perhaps_billed
from snne_guard.types import Cost, Sample

__all__ = ["Brakes"]


class Brakes:
    """Decides how many samples a call may draw, and says so where they are fewer.

    Args:
        assessor: What is shared with other calls.
        brief: What this call is about.

    Attributes:
        skip: Why no samples are drawn, None where some are, or it is not settled.
    """

    def __init__(self, assessor: Assessor, brief: Brief) -> None:
        self.skip: str | None = None
        self._settled = False
        self._assessor, self._brief = assessor, brief
        self._tab: Tab | None = None
        self._reasons: tuple[str, ...] = ()

    def begin(self) -> None:
        """Note that the call begins."""
        assessor = self._assessor
        if assessor.ledger is not None:
            self._tab = assessor.ledger.open(
                characters=self._brief.characters,
                max_tokens=assessor.plan.sample_max_tokens,
            )

    def answered(
        self, answer: Sample | None, cost: Cost, error: BaseException | None
    ) -> None:
        """Note the answer, or why there is none, and what it took."""
        self._assessor.circuit.ended(error, answer=True)
        if self._tab is None:
            return
        if answer is not None:
            self._tab.answered(cost, characters=len(answer.text))
        elif error is not None and not perhaps_billed(error):
            self._tab.answered(None)

    def given(self, answer: Sample, cost: Cost) -> None:
        """Note an answer that was drawn elsewhere: it takes nothing of the budget."""
        if self._tab is not None:
            taken = replace(cost, calls=0, attempts=0)
            self._tab.answered(taken, characters=len(answer.text))

    def release(self, collector: Collector) -> bool:
        """Settle how many samples may be asked for, and return whether to begin now.

        Nothing is settled where a budget has to see the answer first; once it is,
        nothing begins again.
        """
        if self._settled:
            return False
        wanted = collector.n_samples
        allowed: int | None = wanted
        if self._tab is not None:
            policy, plan = self._assessor.judge.policy, self._assessor.plan
            least = max(1, policy.min_samples - plan.include_answer)
            allowed = self._tab.samples(wanted, batch=collector.batch, least=least)
        if allowed is None:
            return False
        self._settled = True
        if allowed == 0:
            self.skip = "over_budget"
        elif not self._assessor.circuit.admits(self._brief.id):
            self.skip = "samples_shed"
        elif allowed < wanted:
            self._reasons = ("over_budget",)
            collector.limit(allowed)
        return self.skip is None

    def reasons(self, errors: list[BaseException]) -> tuple[str, ...]:
        """Return what was held back, and how requests failed for good."""
        shed = [isinstance(error, ShedError) for error in errors]
        reasons = self._reasons
        if any(shed):
            reasons = (*reasons, "samples_shed")
        if not all(shed):
            reasons = (*reasons, "samples_failed")
        return reasons

    def close(self, collector: Collector, *, unfinished: bool) -> None:
        """Note what the samples took in the end; only the first time counts."""
        if self._tab is not None:
            self._tab.close(
                collector.cost,
                replies=len(collector.samples),
                batch=collector.batch,
                unfinished=unfinished,
            )
