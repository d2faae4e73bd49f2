"""Guards for the ``openai`` package: a question in, an assessment out."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self, Unpack

from snne_guard.assess.brief import Brief
from snne_guard.assess.build import build_assessor
from snne_guard.assess.openai_core import OpenAICore
from snne_guard.assess.openai_preflight import apreflight, preflight
from snne_guard.assess.preflight import Preflight
from snne_guard.assess.session import AsyncSession, Session
from snne_guard.assess.settings import PAPER, GuardSettings, complete
from snne_guard.decision import Verdict
from snne_guard.errors import ConfigurationError
from snne_guard.sampling.collect import Reply
from snne_guard.sampling.openai import ApiName
from snne_guard.sampling.openai_calls import AsyncCall, Call
from snne_guard.sampling.openai_messages import Messages
from snne_guard.sampling.openai_requests import Endpoint
from snne_guard.sampling.within import OutOfTimeError, aask_in_place, ask_in_place
from snne_guard.types import Assessment, Cost, Sample

if TYPE_CHECKING:
    import openai

__all__ = ["AsyncOpenAIGuard", "OpenAIGuard"]


class _Guard:
    """What both twins share: they are made and shown alike."""

    def __init__(self, endpoint: Endpoint, settings: Mapping[str, Any]) -> None:
        assessor, _ = build_assessor(complete(settings, owner=type(self).__name__))
        self._core = OpenAICore(endpoint=endpoint, assessor=assessor)
        self._settings = settings

    @property
    def observer_failures(self) -> int:
        """Events that an observer raised on, or that were dropped for it."""
        return self._core.assessor.observers.failures

    def __repr__(self) -> str:
        """Show whom it asks and the settings that are plain, and no secret."""
        endpoint = self._core.endpoint
        shown = [
            f", {name}={value!r}"
            for name, value in self._settings.items()
            if isinstance(value, str | int | float)
        ]
        asked = f"{type(endpoint.client).__name__}, model={endpoint.model!r}"
        return f"{type(self).__name__}({asked}{''.join(shown)})"


class OpenAIGuard(_Guard):
    """Asks a model of the OpenAI API, and measures how sure it is of its answer.

    The question is asked once as you would ask it, and ``n - 1`` times more at
    ``temperature`` 1; how much the answers differ in meaning is the uncertainty
    ``u``. It delivers nothing: what is done with the answer is your decision, and
    the assessment says what it should be.

    Args:
        client: ``openai.OpenAI``, ``openai.AzureOpenAI``, or a client like them. It is
            never changed; samples go out without its retries, for they have their own.
        model: Name of the model; at Azure, of the deployment.
        api: ``"chat"`` for Chat Completions, ``"responses"`` for the Responses API.
        options: What your own requests carry, under the names of ``create``:
            ``temperature``, ``max_tokens``, ``seed``, ``tools``, and so on.
        **settings: How it samples, scores and decides, see ``GuardSettings``; the most
            important are ``n`` and ``threshold``.

    Raises:
        ConfigurationError: If an option makes no sense, alone or with another one.

    Example::

        guard = OpenAIGuard(OpenAI(), model="gpt-4.1-mini", n=5, threshold=0.4)
        assessment = guard.assess("Who won the 1907 village chess cup of Ebnat?")
        if assessment.decision == "accept":
            print(assessment.answer.text)
    """

    def __init__(
        self,
        client: openai.OpenAI,
        *,
        model: str,
        api: ApiName = "chat",
        options: Mapping[str, Any] | None = None,
        **settings: Unpack[GuardSettings],
    ) -> None:
        endpoint = Endpoint.of(
            client, model=model, api=api, options=options, asynchronous=False
        )
        super().__init__(endpoint, settings)

    @classmethod
    def paper(
        cls,
        client: openai.OpenAI,
        *,
        model: str,
        api: ApiName = "chat",
        options: Mapping[str, Any] | None = None,
        **settings: Unpack[GuardSettings],
    ) -> Self:
        """Return a guard that does exactly what the paper does.

        Ten samples without the answer, SNNE with tau = 1, rouge-score's tokens
        (arXiv 2506.00245, section 4).
        """
        merged: Any = {**PAPER, **settings}
        return cls(client, model=model, api=api, options=options, **merged)

    def assess(
        self,
        messages: Messages,
        /,
        *,
        question: str | None = None,
        **options: Any,  # noqa: ANN401 - the API's own
    ) -> Assessment:
        """Draw the answer and its samples, score and decide.

        Args:
            messages: A question, or a list of messages as the API takes them.
            question: What the user asks in them, for similarities that use it. None:
                what the guard's own ``question`` says, or all of the last message.
            **options: Further options of your request, for this call.

        Raises:
            openai.OpenAIError: What the answer itself fails with, unchanged.
            UncertainAnswerError: If the answer is withheld and ``"raise"`` was chosen.
            SamplingError: If it could not be scored and ``on_error="raise"``, or if the
                provider gave no answer and no error.
            GuardTimeoutError: If it did not come within ``timeout``.
            InputError: If the messages are none.
            ConfigurationError: If an option is one that the guard sets itself.
        """
        call = self._core.call(Call, messages, options)
        outcome = self._run(call, self._core.brief(call, question))
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def preflight(self, *, timeout: float = 40.0) -> Preflight:
        """Find out by asking whether this model's samples can be trusted.

        It takes about nine short requests, through the very code that draws samples,
        and this guard's later calls know what was found.

        Args:
            timeout: Seconds after which the report is made from what has come.

        Raises:
            openai.OpenAIError: What the model fails with if it does not answer at all.
            GuardTimeoutError: If not even the first reply came in time.
            ConfigurationError: If this model is never sampled.
        """
        return preflight(self._core, timeout=timeout)

    def _run(self, call: Call, brief: Brief) -> Assessment | Exception:
        with Session(self._core.assessor, brief, call.send) as session:
            call.repeated = session.answer_repeated
            assessment, verdict = session.finish(self._answer(session, call))
            assessment = replace(assessment, raw=call.raw)
            if verdict.action == "ask":
                try:
                    verdict = self._decided_by_user(assessment)
                except Exception:
                    session.report(self._core.undecided(assessment))
                    raise
                assessment = replace(assessment, decision=verdict.decision)
            session.report(assessment)
            return self._core.outcome(assessment, verdict, session.errors)

    def _answer(self, session: Session, call: Call) -> Sample:
        session.answer_started()
        try:
            reply = self._in_time(session, call)
        except Exception as error:
            session.answer_ended(None, cost=Cost(), error=error)
            raise
        session.answer_ended(reply.samples[0], cost=reply.cost)
        return reply.samples[0]

    def _in_time(self, session: Session, call: Call) -> Reply:
        limiter = self._core.assessor.limiter
        try:
            return ask_in_place(call.ask, limiter, lambda: session.remaining)
        except OutOfTimeError:
            raise self._core.timed_out() from None

    def _decided_by_user(self, assessment: Assessment) -> Verdict:
        result = self._core.asked(assessment)
        if inspect.iscoroutine(result):
            result.close()
            msg = "an async on_uncertain needs AsyncOpenAIGuard"
            raise ConfigurationError(msg)
        return self._core.chosen(result)


class AsyncOpenAIGuard(_Guard):
    """The twin of ``OpenAIGuard`` for ``openai.AsyncOpenAI``.

    Args:
        client: ``openai.AsyncOpenAI``, ``openai.AsyncAzureOpenAI``, or one like them.
        model: Name of the model; at Azure, of the deployment.
        api: ``"chat"`` or ``"responses"``.
        options: What your own requests carry, under the names of ``create``.
        **settings: How it samples, scores and decides, see ``GuardSettings``; an
            ``on_uncertain`` function may be async.

    Raises:
        ConfigurationError: If an option makes no sense, alone or with another one.
    """

    def __init__(
        self,
        client: openai.AsyncOpenAI,
        *,
        model: str,
        api: ApiName = "chat",
        options: Mapping[str, Any] | None = None,
        **settings: Unpack[GuardSettings],
    ) -> None:
        endpoint = Endpoint.of(
            client, model=model, api=api, options=options, asynchronous=True
        )
        super().__init__(endpoint, settings)

    @classmethod
    def paper(
        cls,
        client: openai.AsyncOpenAI,
        *,
        model: str,
        api: ApiName = "chat",
        options: Mapping[str, Any] | None = None,
        **settings: Unpack[GuardSettings],
    ) -> Self:
        """Return a guard that does exactly what the paper does."""
        merged: Any = {**PAPER, **settings}
        return cls(client, model=model, api=api, options=options, **merged)

    async def assess(
        self,
        messages: Messages,
        /,
        *,
        question: str | None = None,
        **options: Any,  # noqa: ANN401 - the API's own
    ) -> Assessment:
        """Draw the answer and its samples, score and decide; block no event loop.

        Args:
            messages: A question, or a list of messages as the API takes them.
            question: What the user asks in them, for similarities that use it. None:
                what the guard's own ``question`` says, or all of the last message.
            **options: Further options of your request, for this call.

        Raises:
            openai.OpenAIError: What the answer itself fails with, unchanged.
            UncertainAnswerError: If the answer is withheld and ``"raise"`` was chosen.
            SamplingError: If it could not be scored and ``on_error="raise"``, or if the
                provider gave no answer and no error.
            GuardTimeoutError: If it did not come within ``timeout``.
            InputError: If the messages are none.
            ConfigurationError: If an option is one that the guard sets itself.
        """
        call = self._core.call(AsyncCall, messages, options)
        outcome = await self._run(call, self._core.brief(call, question))
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def preflight(
        self,
        *,
        timeout: float = 40.0,  # noqa: ASYNC109 - mirrors the thread twin
    ) -> Preflight:
        """Find out by asking whether this model's samples can be trusted.

        Args:
            timeout: Seconds after which the report is made from what has come.

        Raises:
            openai.OpenAIError: What the model fails with if it does not answer at all.
            GuardTimeoutError: If not even the first reply came in time.
            ConfigurationError: If this model is never sampled.
        """
        return await apreflight(self._core, timeout=timeout)

    async def _run(self, call: AsyncCall, brief: Brief) -> Assessment | Exception:
        async with AsyncSession(self._core.assessor, brief, call.send) as session:
            call.repeated = session.answer_repeated
            answer = await self._answer(session, call)
            assessment, verdict = await session.finish(answer)
            assessment = replace(assessment, raw=call.raw)
            if verdict.action == "ask":
                try:
                    verdict = await self._decided_by_user(assessment)
                except Exception:
                    await session.report(self._core.undecided(assessment))
                    raise
                assessment = replace(assessment, decision=verdict.decision)
            await session.report(assessment)
            return self._core.outcome(assessment, verdict, session.errors)

    async def _answer(self, session: AsyncSession, call: AsyncCall) -> Sample:
        session.answer_started()
        try:
            reply = await self._in_time(session, call)
        except Exception as error:
            session.answer_ended(None, cost=Cost(), error=error)
            raise
        session.answer_ended(reply.samples[0], cost=reply.cost)
        return reply.samples[0]

    async def _in_time(self, session: AsyncSession, call: AsyncCall) -> Reply:
        limiter = self._core.assessor.limiter
        try:
            return await aask_in_place(call.ask, limiter, lambda: session.remaining)
        except OutOfTimeError:
            raise self._core.timed_out() from None

    async def _decided_by_user(self, assessment: Assessment) -> Verdict:
        result = self._core.asked(assessment)
        if inspect.isawaitable(result):
            result = await result
        return self._core.chosen(result)
