"""What guards for the ``openai`` package share: whom they ask, what they judge by."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from typing import Any, Self, TypeVar

from snne_guard.assess.brief import Assessor, Brief
from snne_guard.assess.build import build_assessor
from snne_guard.assess.withhold import withholding_error
from snne_guard.decision import Policy, Verdict
from snne_guard.errors import GuardTimeoutError
from snne_guard.sampling.memory import Memory
from snne_guard.sampling.openai_calls import AsyncCall, Call
from snne_guard.sampling.openai_requests import Endpoint, split_request
from snne_guard.types import Assessment

__all__ = ["OpenAICore"]

C = TypeVar("C", Call, AsyncCall)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAICore:
    """The parts of a guard that its calls use, shared by all threads.

    Attributes:
        endpoint: Whom to ask.
        assessor: Sampling, scoring and decision.
        memories: What was learnt about other models, by the API and their names.
    """

    endpoint: Endpoint
    assessor: Assessor
    memories: dict[tuple[str, str], Memory] = field(
        default_factory=dict[tuple[str, str], Memory], repr=False
    )
    _others: dict[tuple[str, str], OpenAICore] = field(
        default_factory=dict[tuple[str, str], "OpenAICore"], repr=False
    )

    @classmethod
    def of(cls, endpoint: Endpoint, settings: Mapping[str, Any]) -> Self:
        """Return what asks an endpoint under the settings of a guard, all of them.

        Raises:
            ConfigurationError: If a setting makes no sense, alone or with another one,
                or differs from what the calibration was made for.
            InputError: If the file of the calibration holds none, or was changed.
        """
        # What no option of the guard's says, each call may say.
        options = endpoint.answer_settings(endpoint.own({}))
        said = {name: values - {None} for name, values in options.items()}
        model = endpoint.model or None
        assessor, _ = build_assessor(settings, model=model, answer_settings=said)
        return cls(endpoint=endpoint, assessor=assessor)

    def at(self, *, model: str | None, api: str | None) -> OpenAICore:
        """Return what asks another model, or by another API, under the same limits.

        What was learnt about one model says nothing about another one.

        Args:
            model: Name of the model, None for the one that is known.
            api: Name of the API, None for the one that is known.

        Raises:
            ConfigurationError: If there is no model, or no such API.
        """
        endpoint = self.endpoint.at(model=model, api=api)
        if endpoint is self.endpoint:
            return self
        key = (endpoint.api.name, endpoint.model)
        memory = self.memories.setdefault(key, Memory())
        assessor = self.assessor.on_models({endpoint.model})
        other = replace(
            self, endpoint=endpoint, assessor=replace(assessor, memory=memory)
        )
        return self._others.setdefault(key, other)

    def over(self, endpoint: Endpoint) -> OpenAICore:
        """Return what asks another client, under the same limits.

        Args:
            endpoint: The other client, with the same model and API.
        """
        ours, theirs = (_address(each.client) for each in (self.endpoint, endpoint))
        if ours == theirs:
            return replace(self, endpoint=endpoint, _others={})
        assessor = replace(self.assessor, memory=Memory())
        return OpenAICore(endpoint=endpoint, assessor=assessor)

    def opened(
        self, kind: type[C], api: str | None, request: Mapping[str, Any]
    ) -> tuple[OpenAICore, C]:
        """Return one call from what ``create`` is called with, and who makes it.

        Args:
            kind: Which of the twins.
            api: Which ``create``, None for the one that is known.
            request: Its arguments by name.
        """
        core = self.at(model=request.get("model"), api=api)
        messages, options, answers = split_request(request, core.endpoint.api)
        return core, core.call(kind, messages, options, answers=answers)

    def call(
        self,
        kind: type[C],
        messages: object,
        options: Mapping[str, Any],
        *,
        answers: int = 1,
    ) -> C:
        """Return one call, before anything is drawn.

        Args:
            kind: Which of the twins.
            messages: The conversation.
            options: Further options of the user's request.
            answers: How many of them the user asks for.
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
            answers=answers,
        )

    def assessor_of(self, call: Call | AsyncCall) -> Assessor:
        """Return what assesses a call, which may be drawn otherwise than the rest."""
        endpoint = self.endpoint
        return self.assessor.on_models(
            {endpoint.model}, endpoint.answer_settings(call.own)
        )

    def brief(self, call: Call | AsyncCall, question: object = None) -> Brief:
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

    @staticmethod
    def asked(policy: Policy, assessment: Assessment) -> Any:  # noqa: ANN401 - anyone's
        """Ask the user's ``on_uncertain``."""
        decide = policy.on_uncertain
        return decide(assessment) if callable(decide) else decide

    def chosen(self, result: object) -> Verdict:
        """Read what the user's ``on_uncertain`` returned.

        Raises:
            ConfigurationError: If it is none of the words.
        """
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
        policy: Policy,
        causes: tuple[BaseException, ...],
    ) -> Assessment | Exception:
        """Return the assessment, or the error in its place, which holds no text."""
        if verdict.action != "raise":
            return assessment
        return withholding_error(assessment, policy, causes=causes)


def _address(client: object) -> str:
    return str(getattr(client, "base_url", ""))
