"""One guarded call of a LangChain model, in tasks; the twin of ``call``."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import Context
from dataclasses import replace
from typing import Any, TypeVar, cast

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.utils import message_chunk_to_message

from snne_guard.assess import AsyncSession
from snne_guard.decision import Verdict
from snne_guard.langchain.core import Request, Settled
from snne_guard.langchain.messages import (
    as_chunk,
    as_piece,
    as_result,
    message_of,
    metadata_chunk,
)
from snne_guard.sampling.langchain import AsyncSamples
from snne_guard.sampling.langchain_direct import ais_direct, asend
from snne_guard.sampling.langchain_messages import (
    cost_of,
    read_answer,
    read_message,
)
from snne_guard.sampling.langchain_models import Candidate
from snne_guard.sampling.langchain_runs import ANSWER_TAG, NOSTREAM_TAG, AsyncRunLog
from snne_guard.sampling.within import OutOfTimeError, awithin, cancelled_by_caller_only
from snne_guard.types import Assessment, Cost

__all__ = ["AsyncGuardedCall"]

T = TypeVar("T")


class AsyncGuardedCall:
    """Draws an answer and its samples, and carries out what is decided.

    ``GuardedCall`` is its twin.

    Args:
        request: What the application asked.
    """

    def __init__(self, request: Request) -> None:
        self._request, self._core = request, request.core
        self._message: BaseMessage | None = None
        self._log = AsyncRunLog(**request.log_options())
        samples = AsyncSamples(**request.sample_options()).listen(self._log)
        self._manager = samples.managers[0]
        self._session = AsyncSession(request.assessor, request.brief(), samples.send)

    async def assess(self, answer: AIMessage | str | None = None) -> Assessment:
        """Draw what is not given, score and decide; deliver nothing."""
        async with self._released(), self._session:
            if answer is None:
                await self._answer()
            else:
                self._sample, cost = read_answer(answer)
                self._session.answer_given(self._sample, cost=cost)
            return (await self._decide())[0]

    async def run(self) -> AIMessage:
        """Return the message that the application gets.

        Raises:
            UncertainAnswerError: If the answer is withheld by an error.
            SamplingError: If it could not be scored and ``on_error="raise"``.
            ModelCancelledError: If a model cancelled its own request.
            GuardTimeoutError: If the answer did not come in time.
        """
        settled = await self._settle()
        if settled.error is not None:
            raise settled.error
        if settled.message is not None:
            return settled.message
        return await self._instead(settled)

    async def stream(self) -> AsyncIterator[AIMessageChunk]:
        """Yield the answer as it comes, the assessment in the last chunk.

        Where the answer may be withheld it is one chunk, after the decision.
        """
        if self._request.hold:
            yield as_chunk(await self.run())
            return
        failed: Settled | None = None
        async with self._released(), self._session:
            whole: AIMessageChunk | None = None
            try:
                async for given in self._answer_chunks():
                    chunk = as_piece(given)
                    whole = chunk if whole is None else whole + chunk
                    yield self._request.shown(chunk)
            except Exception as error:
                if whole is not None or self._core.fallback is None:
                    raise
                failed = await self._answer_failed(error)
            else:
                yield await self._last_chunk(whole or AIMessageChunk(content=""))
        if failed is not None:
            yield as_chunk(await self._instead(failed))

    async def _settle(self) -> Settled:
        """Draw, score and decide; return what comes of it."""
        async with self._released(), self._session:
            try:
                answer = await self._answer()
            except Exception as error:
                if self._core.fallback is None:
                    raise
                return await self._answer_failed(error)
            decided = await self._decide()
            return self._request.settled(
                answer,
                *decided,
                policy=self._session.policy,
                samples=self._session.samples_cost,
                causes=self._session.errors,
            )

    async def _instead(self, settled: Settled) -> AIMessage:
        """Return what the fallback answers."""
        fallback, request = self._core.required_fallback, self._request
        asking = fallback.ainvoke(request.value, request.config)
        return settled.instead(await awithin(asking, None))

    async def _last_chunk(self, whole: AIMessageChunk) -> AIMessageChunk:
        message = message_chunk_to_message(whole)
        self._answered(message)
        assessment, _, _ = await self._decide()
        usage = self._request.usage(message, self._session.samples_cost)
        return metadata_chunk(message.id, assessment, usage=usage)

    async def _answer(self) -> BaseMessage:
        self._session.answer_started()
        try:
            message = await self._within(self._ask_in_place())
        except Exception as error:
            self._session.answer_ended(None, cost=Cost(), error=error)
            raise
        return self._answered(message)

    def _answered(self, message: BaseMessage) -> BaseMessage:
        self._message = message
        self._sample = sample = read_message(message)
        self._session.answer_ended(sample, cost=cost_of(message, (sample,)))
        return message

    async def _ask_in_place(self) -> BaseMessage:
        async with self._core.assessor.limiter.ahold():
            return await self._ask_answer()

    async def _ask_answer(self) -> BaseMessage:
        options = self._request.answer_options()
        try:
            return await self._invoke(options)
        except Exception as error:
            if not self._request.is_about_logprobs(error, options):
                raise
        self._session.answer_repeated()
        return await self._invoke({})

    async def _invoke(self, options: dict[str, Any]) -> BaseMessage:
        request = self._request
        candidate = request.route.candidates[0]
        options = {**request.kwargs, **options}
        if not request.quiet:
            return await self._invoke_openly(candidate, options)
        run = await self._log.open(
            self._manager, ANSWER_TAG, candidate, request.messages, options
        )
        try:
            message = await asyncio.create_task(
                self._invoke_quietly(options), context=request.context.copy()
            )
        except BaseException as error:
            await self._log.fail(run, error)
            raise
        await self._log.close(run, as_result(message))
        return message

    async def _invoke_openly(
        self, candidate: Candidate, options: dict[str, Any]
    ) -> BaseMessage:
        request, message = self._request, None
        if not (self._manager.handlers or candidate.model.verbose):  # nobody to tell
            message = await self._invoke_directly(candidate, options, ANSWER_TAG)
        if message is None:
            message = await request.model.ainvoke(
                request.value, request.answer_config, **options
            )
        return message

    async def _invoke_quietly(self, options: dict[str, Any]) -> BaseMessage:
        request = self._request
        message = await self._invoke_directly(
            request.quiet_candidate, options, ANSWER_TAG, NOSTREAM_TAG
        )
        if message is None:
            message = await request.quiet_model.ainvoke(
                request.value, request.quiet_config, **options
            )
        return message

    async def _invoke_directly(
        self, candidate: Candidate, options: dict[str, Any], *tags: str
    ) -> BaseMessage | None:
        """Ask a model past LangChain's callbacks; None where that is not the same."""
        request, model = self._request, candidate.model
        options = {**candidate.kwargs, **options}
        if not (request.route.bare and ais_direct(model, options)):
            return None
        run = self._log.unheard(self._manager, *tags)
        return message_of(await asend(model, request.messages, options, run))

    async def _answer_chunks(self) -> AsyncIterator[AIMessageChunk]:
        self._session.answer_started()
        options = self._request.answer_options()
        try:
            async with self._place():
                try:
                    async for chunk in self._open_stream(options):
                        yield chunk
                except Exception as error:
                    if not self._request.is_about_logprobs(error, options):
                        raise
                else:
                    return
                self._session.answer_repeated()
                async for chunk in self._open_stream({}):
                    yield chunk
        except Exception as error:
            self._session.answer_ended(None, cost=Cost(), error=error)
            raise

    async def _open_stream(
        self, options: dict[str, Any]
    ) -> AsyncIterator[AIMessageChunk]:
        request = self._request
        options = {**request.kwargs, **options}
        if request.quiet:
            chunks = request.quiet_model.astream(
                request.value, request.quiet_config, **options
            )
            chunks = _inside(request.context.copy(), chunks)
        else:
            chunks = request.model.astream(
                request.value, request.answer_config, **options
            )
        while (chunk := await self._within(anext(chunks, None))) is not None:
            yield cast("AIMessageChunk", chunk)

    async def _decide(self) -> tuple[Assessment, Verdict, AIMessage | None]:
        assessment, verdict = await self._session.finish(self._sample)
        replacement: AIMessage | None = None
        if verdict.action == "ask":
            try:
                verdict, replacement = await self._ask_user(assessment)
            except Exception:
                await self._session.report(self._core.undecided(assessment))
                raise
            assessment = replace(assessment, decision=verdict.decision)
        withheld = verdict.action != "deliver" or replacement is not None
        await self._log.release(withheld=withheld)
        await self._session.report(assessment)
        return assessment, verdict, replacement

    async def _ask_user(
        self, assessment: Assessment
    ) -> tuple[Verdict, AIMessage | None]:
        answer = None if self._message is None else self._request.own(self._message)
        with cancelled_by_caller_only("on_uncertain cancelled itself"):
            result = self._core.on_uncertain(self._session.policy, assessment, answer)
            if inspect.isawaitable(result):
                result = await result
        return self._core.chosen(result)

    async def _answer_failed(self, error: Exception) -> Settled:
        await self._session.stop()
        broken = replace(self._session.broken_off(error), decision="fallback")
        await self._log.release(withheld=True)
        await self._session.report(broken)
        verdict = Verdict(decision="fallback", action="fallback")
        return self._request.settled(
            None,
            broken,
            verdict,
            None,
            policy=self._session.policy,
            samples=self._session.samples_cost,
        )

    async def _within(self, asking: Awaitable[T]) -> T:
        """Await within the time limit, if there is one."""
        try:
            return await awithin(asking, self._session.remaining)
        except OutOfTimeError:
            raise self._request.timed_out() from None

    @asynccontextmanager
    async def _place(self) -> AsyncGenerator[None]:
        """Hold one of the places that this guard's requests may take."""
        limiter = self._core.assessor.limiter
        async with AsyncExitStack() as stack:
            await self._within(stack.enter_async_context(limiter.ahold()))
            yield

    @asynccontextmanager
    async def _released(self) -> AsyncGenerator[None]:
        """Close the runs that are still held, whatever ended the call."""
        try:
            yield
        finally:
            await self._log.release(withheld=True)


async def _inside(context: Context, chunks: AsyncIterator[T]) -> AsyncIterator[T]:
    """Draw from an iterator inside a context."""

    async def step() -> T:
        return await anext(chunks)

    while True:
        try:
            chunk = await asyncio.create_task(step(), context=context)
        except StopAsyncIteration:
            return
        yield chunk
