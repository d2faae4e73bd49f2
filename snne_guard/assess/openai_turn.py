"""One guarded call of the OpenAI API whose answer the caller draws."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from snne_guard.assess.brief import CHOSEN_SKIPS
from snne_guard.assess.openai_core import OpenAICore
from snne_guard.assess.session import AsyncSession, Session
from snne_guard.decision import Verdict
from snne_guard.errors import ConfigurationError, GuardTimeoutError, SnneGuardError
from snne_guard.sampling.limiter import NoPlaceError
from snne_guard.sampling.openai_calls import AsyncCall, Call
from snne_guard.sampling.within import (
    OutOfTimeError,
    awithin,
    cancelled_by_caller_only,
    within,
)
from snne_guard.types import Assessment, Cost

__all__ = ["AsyncOpenAITurn", "OpenAITurn"]

T = TypeVar("T")
C = TypeVar("C", Call, AsyncCall)
S = TypeVar("S", Session, AsyncSession)
Settled = tuple[Assessment, SnneGuardError | None]


class _Turn(Generic[C, S]):
    """What both twins share: the call, its session, what they come to."""

    def __init__(self, core: OpenAICore, call: C, session: S) -> None:
        self._core = core
        self._call: C = call
        self._session: S = session
        call.repeated = session.answer_repeated

    @property
    def holds(self) -> bool:
        """Whether the answer may be withheld: then show nothing before the decision."""
        withholds = self._core.assessor.may_withhold
        return withholds and self._call.skip not in CHOSEN_SKIPS

    @property
    def added(self) -> dict[str, Any]:
        """What the answer is asked for besides: log-probabilities, or nothing.

        Take them off the answer again before you show it.
        """
        return self._call.added

    @property
    def plainly(self) -> Any:  # noqa: ANN401 - one twin's function is awaited
        """Sends the request as the client's ``create`` does, for ``ask``."""
        return self._call.plainly

    def answered(self, result: object) -> None:
        """Read the answer; after it only ``settle`` is to come.

        Args:
            result: The answer: a ``ChatCompletion``, a ``Response``, or its fields.

        Raises:
            SamplingError: If there is no answer in it.
        """
        try:
            reply = self._call.answered(result)
        except Exception as error:
            self._lost(error)
            raise
        self._sample = reply.samples[0]
        self._session.answer_ended(self._sample, cost=reply.cost)

    def _lost(self, error: Exception) -> None:
        self._session.answer_ended(None, cost=Cost(), error=error)

    def _late(self) -> GuardTimeoutError:
        error = self._core.timed_out()
        self._lost(error)
        return error

    def _settled(self, assessment: Assessment, verdict: Verdict) -> Settled:
        outcome = self._core.outcome(
            assessment, verdict, self._session.policy, self._session.errors
        )
        return assessment, outcome if isinstance(outcome, SnneGuardError) else None

    def _handed_over(self, error: Exception) -> Assessment:
        return replace(self._session.broken_off(error), decision="fallback")


class OpenAITurn(_Turn[Call, Session]):
    """Draws samples beside an answer that you draw; ``OpenAIGuard.begin`` gives it.

    Enter it, have it ask for the answer in your own way, and give it what came. Leaving
    it ends what is still in flight, and tells observers of a call that broke off.

    Example::

        request = {"model": "gpt-4.1-mini", "messages": messages}
        with guard.begin(**request) as turn:
            stream = turn.ask(partial(create, **request, stream=True))
            while (chunk := turn.next(stream)) is not None:
                ...
            assessment = turn.finish(completion)
    """

    def __init__(self, core: OpenAICore, call: Call, question: object = None) -> None:
        session = Session(core.assessor_of(call), core.brief(call, question), call.send)
        super().__init__(core, call, session)
        self._stack, self._place = ExitStack(), ExitStack()

    def __enter__(self) -> Self:
        """Begin; samples are drawn from now on, unless they wait for the answer."""
        self._stack.enter_context(self._session)
        self._stack.push(self._place)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End what is in flight."""
        self._stack.__exit__(kind, error, trace)

    def ask(self, send: Callable[..., T]) -> T:
        """Send the request for the answer, in one of the places for requests.

        Args:
            send: Sends it; it is given ``added`` by name, and called once more without
                where the provider refuses that.

        Raises:
            GuardTimeoutError: If nothing came within the guard's ``timeout``.
            Exception: What ``send`` raises.
        """
        limiter = self._core.assessor.limiter
        self._session.answer_started()
        try:
            place = limiter.hold(timeout=self._session.remaining)
            self._place.enter_context(place)
            return within(partial(self._call.ask_with, send), self._session.remaining)
        except (NoPlaceError, OutOfTimeError):
            raise self._late() from None
        except Exception as error:
            self._lost(error)
            raise

    def next(self, parts: Iterator[T]) -> T | None:
        """Return the next part of a streamed answer, None at its end.

        Raises:
            GuardTimeoutError: If it did not come within the guard's ``timeout``.
            Exception: What the stream raises.
        """
        try:
            return within(lambda: next(parts, None), self._session.remaining)
        except OutOfTimeError:
            raise self._late() from None
        except Exception as error:
            self._lost(error)
            raise

    def finish(self, result: object) -> Assessment:
        """Wait for the samples, score, decide, and tell the observers.

        Args:
            result: The answer: a ``ChatCompletion``, a ``Response``, or its fields.

        Raises:
            UncertainAnswerError: If the answer is withheld and ``"raise"`` was chosen.
            SamplingError: If it could not be scored and ``on_error="raise"``, or if
                there is no answer in it.
            ConfigurationError: If ``on_uncertain`` returned a word that is none.
        """
        self.answered(result)
        assessment, error = self.settle()
        if error is not None:
            raise error
        return assessment

    def settle(self) -> Settled:
        """Do what ``finish`` does with an answer that was read already.

        Returns:
            The assessment, and the error that stands in the place of the answer, or
            None. A frame that holds the answer is best left before it is raised.
        """
        self._place.close()
        assessment, verdict = self._session.finish(self._sample)
        assessment = replace(assessment, raw=self._call.raw)
        if verdict.action == "ask":
            try:
                verdict = self._decided_by_user(assessment)
            except Exception:
                self._session.report(self._core.undecided(assessment))
                raise
            assessment = replace(assessment, decision=verdict.decision)
        self._session.report(assessment)
        return self._settled(assessment, verdict)

    def hand_over(self, error: Exception) -> Assessment:
        """Record that the answer failed and somebody else is to give one.

        Args:
            error: What it failed with.
        """
        self._session.stop()
        assessment = self._handed_over(error)
        self._session.report(assessment)
        return assessment

    def _decided_by_user(self, assessment: Assessment) -> Verdict:
        with cancelled_by_caller_only("on_uncertain cancelled itself"):
            result = self._core.asked(self._session.policy, assessment)
        if inspect.iscoroutine(result):
            result.close()
            msg = "an async on_uncertain needs AsyncOpenAIGuard"
            raise ConfigurationError(msg)
        return self._core.chosen(result)


class AsyncOpenAITurn(_Turn[AsyncCall, AsyncSession]):
    """The twin of ``OpenAITurn``; ``AsyncOpenAIGuard.begin`` gives it."""

    def __init__(
        self, core: OpenAICore, call: AsyncCall, question: object = None
    ) -> None:
        session = AsyncSession(
            core.assessor_of(call), core.brief(call, question), call.send
        )
        super().__init__(core, call, session)
        self._stack, self._place = AsyncExitStack(), AsyncExitStack()

    async def __aenter__(self) -> Self:
        """Begin; samples are drawn from now on, unless they wait for the answer."""
        await self._stack.enter_async_context(self._session)
        self._stack.push_async_exit(self._place)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End what is in flight, and wait until it has ended."""
        await self._stack.__aexit__(kind, error, trace)

    async def ask(self, send: Callable[..., Awaitable[T]]) -> T:
        """Send the request for the answer, in one of the places for requests.

        Args:
            send: Sends it; it is given ``added`` by name, and called once more without
                where the provider refuses that.

        Raises:
            GuardTimeoutError: If nothing came within the guard's ``timeout``.
            Exception: What ``send`` raises.
        """
        self._session.answer_started()
        try:
            return await awithin(self._in_place(send), self._session.remaining)
        except OutOfTimeError:
            raise self._late() from None
        except Exception as error:
            self._lost(error)
            raise

    async def _in_place(self, send: Callable[..., Awaitable[T]]) -> T:
        await self._place.enter_async_context(self._core.assessor.limiter.ahold())
        return await self._call.ask_with(send)

    async def next(self, parts: AsyncIterator[T]) -> T | None:
        """Return the next part of a streamed answer, None at its end.

        Raises:
            GuardTimeoutError: If it did not come within the guard's ``timeout``.
            Exception: What the stream raises.
        """
        try:
            return await awithin(anext(parts, None), self._session.remaining)
        except OutOfTimeError:
            raise self._late() from None
        except Exception as error:
            self._lost(error)
            raise

    async def finish(self, result: object) -> Assessment:
        """Wait for the samples, score, decide, and tell the observers.

        Args:
            result: The answer: a ``ChatCompletion``, a ``Response``, or its fields.

        Raises:
            UncertainAnswerError: If the answer is withheld and ``"raise"`` was chosen.
            SamplingError: If it could not be scored and ``on_error="raise"``, or if
                there is no answer in it.
            ConfigurationError: If ``on_uncertain`` returned a word that is none.
        """
        self.answered(result)
        assessment, error = await self.settle()
        if error is not None:
            raise error
        return assessment

    async def settle(self) -> Settled:
        """Do what ``finish`` does with an answer that was read already.

        Returns:
            The assessment, and the error that stands in the place of the answer, or
            None.
        """
        await self._place.aclose()
        assessment, verdict = await self._session.finish(self._sample)
        assessment = replace(assessment, raw=self._call.raw)
        if verdict.action == "ask":
            try:
                verdict = await self._decided_by_user(assessment)
            except Exception:
                await self._session.report(self._core.undecided(assessment))
                raise
            assessment = replace(assessment, decision=verdict.decision)
        await self._session.report(assessment)
        return self._settled(assessment, verdict)

    async def hand_over(self, error: Exception) -> Assessment:
        """Record that the answer failed and somebody else is to give one.

        Args:
            error: What it failed with.
        """
        await self._session.stop()
        assessment = self._handed_over(error)
        await self._session.report(assessment)
        return assessment

    async def _decided_by_user(self, assessment: Assessment) -> Verdict:
        with cancelled_by_caller_only("on_uncertain cancelled itself"):
            result = self._core.asked(self._session.policy, assessment)
            if inspect.isawaitable(result):
                result = await result
        return self._core.chosen(result)
