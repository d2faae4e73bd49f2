"""What guards for the ``openai`` package share: whom they ask, what they judge by."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import copy_context
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from snne_guard.assess.brief import Assessor, Brief
from snne_guard.assess.withhold import withholding_error
from snne_guard.decision import Verdict
from snne_guard.errors import ConfigurationError, GuardTimeoutError
from snne_guard.sampling.openai_calls import AsyncCall, Call
from snne_guard.sampling.openai_messages import Messages
from snne_guard.sampling.openai_requests import Endpoint
from snne_guard.types import Assessment

__all__ = ["OpenAICore"]

C = TypeVar("C", Call, AsyncCall)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAICore:
    """The parts of a guard that its calls use; immutable, shared by all threads.

    Attributes:
        endpoint: Whom to ask.
        assessor: Sampling, scoring and decision.
    """

    endpoint: Endpoint
    assessor: Assessor

    def call(self, kind: type[C], messages: Messages, options: Mapping[str, Any]) -> C:
        """Return one call, before anything is drawn.

        Args:
            kind: Which of the twins.
            messages: The conversation.
            options: Further options of the user's request.
        """
        assessor = self.assessor
        return kind.of(
            self.endpoint,
            messages,
            options,
            plan=assessor.plan,
            memory=assessor.memory,
            wants_logprobs=assessor.judge.wants_logprobs,
            skip=assessor.skip,
        )

    def brief(self, call: Call | AsyncCall, question: object) -> Brief:
        """Return what the assessing part is told of a call.

        Args:
            call: The call.
            question: What it says that the user asks, None if it says nothing.
        """
        asked, reasons = self.assessor.asked(call.items, call.question, said=question)
        return Brief(
            question=asked,
            characters=call.characters,
            batch=call.batch,
            context=copy_context(),
            skip=call.skip,
            reasons=(*call.reasons, *reasons),
            answer_first=call.answer_first,
            model=self.endpoint.model,
            provider=self.endpoint.provider,
        )

    def timed_out(self) -> GuardTimeoutError:
        """Return the error for an answer that did not come in time."""
        timeout = self.assessor.plan.timeout or 0.0
        return GuardTimeoutError(
            f"no answer within the guard's timeout of {timeout} s", timeout=timeout
        )

    def asked(self, assessment: Assessment) -> Any:  # noqa: ANN401 - anyone's function
        """Ask the user's ``on_uncertain``."""
        decide = self.assessor.judge.policy.on_uncertain
        return decide(assessment) if callable(decide) else decide

    def chosen(self, result: object) -> Verdict:
        """Read what the user's ``on_uncertain`` returned.

        Raises:
            ConfigurationError: If it is none of the words.
        """
        if result == "fallback":
            msg = "on_uncertain returned 'fallback', and there is none here"
            raise ConfigurationError(msg)
        return self.assessor.judge.policy.chosen(result)

    @staticmethod
    def undecided(assessment: Assessment) -> Assessment:
        """Return the record of a call whose ``on_uncertain`` raised."""
        reasons = (*assessment.reasons, "on_uncertain_failed")
        return replace(assessment, decision="unscored", reasons=reasons)

    def outcome(
        self,
        assessment: Assessment,
        verdict: Verdict,
        causes: tuple[BaseException, ...],
    ) -> Assessment | Exception:
        """Return the assessment, or the error in its place, which holds no text."""
        if verdict.action != "raise":
            return assessment
        return withholding_error(assessment, self.assessor.judge.policy, causes=causes)
