"""One guarded call of a LangChain model, in threads."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from contextvars import Context
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar, cast

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.utils import message_chunk_to_message

from snne_guard.assess import Session
from snne_guard.decision import Verdict
from snne_guard.errors import ConfigurationError
from snne_guard.langchain.core import Request, Settled
from snne_guard.langchain.messages import (
    as_chunk,
    as_piece,
    as_result,
    message_of,
    metadata_chunk,
)
from snne_guard.sampling.langchain import Samples
from snne_guard.sampling.langchain_direct import is_direct, send
from snne_guard.sampling.langchain_messages import (
    cost_of,
    read_answer,
    read_message,
)
from snne_guard.sampling.langchain_models import Candidate
from snne_guard.sampling.langchain_runs import ANSWER_TAG, NOSTREAM_TAG, RunLog
from snne_guard.sampling.limiter import NoPlaceError
from snne_guard.sampling.within import OutOfTimeError, cancelled_by_caller_only, within
from snne_guard.types import Assessment, Cost

__all__ = ["GuardedCall"]

T = TypeVar("T")


class GuardedCall:
    """Draws an answer and its samples, and carries out what is decided.

    ``AsyncGuardedCall`` is its twin.

    Args:
        request: What the application asked.
    """

    def __init__(self, request: Request) -> None:
        self._request, self._core = request, request.core
        self._message: BaseMessage | None = None
        self._log = RunLog(**request.log_options())
        samples = Samples(**request.sample_options()).listen(self._log)
        self._manager = samples.managers[0]
        self._session = Session(request.assessor, request.brief(), samples.send)

    def assess(self, answer: AIMessage | str | None = None) -> Assessment:
        """Draw what is not given, score and decide; deliver nothing."""
        with self._released(), self._session:
            if answer is None:
                self._answer()
            else:
                self._sample, cost = read_answer(answer)
                self._session.answer_given(self._sample, cost=cost)
            return self._decide()[0]

    def run(self) -> AIMessage:
        """Return the message that the application gets.

        Raises:
            UncertainAnswerError: If the answer is withheld by an error.
            SamplingError: If it could not be scored and ``on_error="raise"``.
            ModelCancelledError: If a model cancelled its own request.
            GuardTimeoutError: If the answer did not come in time.
        """
        settled = self._settle()
        if settled.error is not None:
            raise settled.error
        if settled.message is not None:
            return settled.message
        return self._instead(settled)

    def stream(self) -> Iterator[AIMessageChunk]:
        """Yield the answer as it comes, the assessment in the last chunk.

        Where the answer may be withheld it is one chunk, after the decision.
        """
        if self._request.hold:
            yield as_chunk(self.run())
            return
        failed: Settled | None = None
        with self._released(), self._session:
            whole: AIMessageChunk | None = None
            try:
                for given in self._answer_chunks():
                    chunk = as_piece(given)
                    whole = chunk if whole is None else whole + chunk
                    yield self._request.shown(chunk)
            except Exception as error:
                if whole is not None or self._core.fallback is None:
                    raise
                failed = self._answer_failed(error)
            else:
                yield self._last_chunk(whole or AIMessageChunk(content=""))
        if failed is not None:
            yield as_chunk(self._instead(failed))

    def _settle(self) -> Settled:
        """Draw, score and decide; return what comes of it."""
        with self._released(), self._session:
            try:
                answer = self._answer()
            except Exception as error:
                if self._core.fallback is None:
                    raise
                return self._answer_failed(error)
            decided = self._decide()
            return self._request.settled(
                answer,
                *decided,
                policy=self._session.policy,
                samples=self._session.samples_cost,
                causes=self._session.errors,
            )

    def _instead(self, settled: Settled) -> AIMessage:
        """Return what the fallback answers."""
        fallback, request = self._core.required_fallback, self._request
        ask = partial(fallback.invoke, request.value, request.config)
        return settled.instead(within(ask, None))

    def _last_chunk(self, whole: AIMessageChunk) -> AIMessageChunk:
        message = message_chunk_to_message(whole)
        self._answered(message)
        assessment, _, _ = self._decide()
        usage = self._request.usage(message, self._session.samples_cost)
        return metadata_chunk(message.id, assessment, usage=usage)

    def _answer(self) -> BaseMessage:
        self._session.answer_started()
        try:
            with self._place():
                message = self._within(self._ask_answer)
        except Exception as error:
            self._session.answer_ended(None, cost=Cost(), error=error)
            raise
        return self._answered(message)

    def _answered(self, message: BaseMessage) -> BaseMessage:
        self._message = message
        self._sample = sample = read_message(message)
        self._session.answer_ended(sample, cost=cost_of(message, (sample,)))
        return message

    def _ask_answer(self) -> BaseMessage:
        options = self._request.answer_options()
        try:
            return self._invoke(options)
        except Exception as error:
            if not self._request.is_about_logprobs(error, options):
                raise
        self._session.answer_repeated()
        return self._invoke({})

    def _invoke(self, options: dict[str, Any]) -> BaseMessage:
        request = self._request
        candidate = request.route.candidates[0]
        options = {**request.kwargs, **options}
        if not request.quiet:
            return self._invoke_openly(candidate, options)
        run = self._log.open(
            self._manager, ANSWER_TAG, candidate, request.messages, options
        )
        try:
            message = request.context.copy().run(self._invoke_quietly, options)
        except BaseException as error:
            self._log.fail(run, error)
            raise
        self._log.close(run, as_result(message))
        return message

    def _invoke_openly(
        self, candidate: Candidate, options: dict[str, Any]
    ) -> BaseMessage:
        request, message = self._request, None
        if not (self._manager.handlers or candidate.model.verbose):  # nobody to tell
            message = self._invoke_directly(candidate, options, ANSWER_TAG)
        if message is None:
            message = request.model.invoke(
                request.value, request.answer_config, **options
            )
        return message

    def _invoke_quietly(self, options: dict[str, Any]) -> BaseMessage:
        request = self._request
        message = self._invoke_directly(
            request.quiet_candidate, options, ANSWER_TAG, NOSTREAM_TAG
        )
        if message is None:
            message = request.quiet_model.invoke(
                request.value, request.quiet_config, **options
            )
        return message

    def _invoke_directly(
        self, candidate: Candidate, options: dict[str, Any], *tags: str
    ) -> BaseMessage | None:
        """Ask a model past LangChain's callbacks; None where that is not the same."""
        request, model = self._request, candidate.model
        options = {**candidate.kwargs, **options}
        if not (request.route.bare and is_direct(model, options)):
            return None
        run = self._log.unheard(self._manager, *tags)
        return message_of(send(model, request.messages, options, run))

    def _answer_chunks(self) -> Iterator[AIMessageChunk]:
        self._session.answer_started()
        options = self._request.answer_options()
        try:
            with self._place():
                try:
                    yield from self._open_stream(options)
                except Exception as error:
                    if not self._request.is_about_logprobs(error, options):
                        raise
                else:
                    return
                self._session.answer_repeated()
                yield from self._open_stream({})
        except Exception as error:
            self._session.answer_ended(None, cost=Cost(), error=error)
            raise

    def _open_stream(self, options: dict[str, Any]) -> Iterator[AIMessageChunk]:
        request = self._request
        options = {**request.kwargs, **options}
        if request.quiet:
            chunks = request.quiet_model.stream(
                request.value, request.quiet_config, **options
            )
            chunks = _inside(request.context.copy(), chunks)
        else:
            chunks = request.model.stream(
                request.value, request.answer_config, **options
            )
        while (chunk := self._within(partial(next, chunks, None))) is not None:
            yield cast("AIMessageChunk", chunk)

    def _decide(self) -> tuple[Assessment, Verdict, AIMessage | None]:
        assessment, verdict = self._session.finish(self._sample)
        replacement: AIMessage | None = None
        if verdict.action == "ask":
            try:
                verdict, replacement = self._ask_user(assessment)
            except Exception:
                self._session.report(self._core.undecided(assessment))
                raise
            assessment = replace(assessment, decision=verdict.decision)
        withheld = verdict.action != "deliver" or replacement is not None
        self._log.release(withheld=withheld)
        self._session.report(assessment)
        return assessment, verdict, replacement

    def _ask_user(self, assessment: Assessment) -> tuple[Verdict, AIMessage | None]:
        answer = None if self._message is None else self._request.own(self._message)
        with cancelled_by_caller_only("on_uncertain cancelled itself"):
            result = self._core.on_uncertain(self._session.policy, assessment, answer)
        if inspect.iscoroutine(result):
            result.close()
            msg = "an async on_uncertain needs ainvoke, abatch or astream"
            raise ConfigurationError(msg)
        return self._core.chosen(result)

    def _answer_failed(self, error: Exception) -> Settled:
        self._session.stop()
        broken = replace(self._session.broken_off(error), decision="fallback")
        self._log.release(withheld=True)
        self._session.report(broken)
        verdict = Verdict(decision="fallback", action="fallback")
        return self._request.settled(
            None,
            broken,
            verdict,
            None,
            policy=self._session.policy,
            samples=self._session.samples_cost,
        )

    def _within(self, ask: Callable[[], T]) -> T:
        """Run in a thread of its own where there is a time limit to keep."""
        try:
            return within(ask, self._session.remaining)
        except OutOfTimeError:
            raise self._request.timed_out() from None

    @contextmanager
    def _place(self) -> Generator[None]:
        """Hold one of the places that this guard's requests may take."""
        limiter = self._core.assessor.limiter
        try:
            with limiter.hold(timeout=self._session.remaining):
                yield
        except NoPlaceError:
            raise self._request.timed_out() from None

    @contextmanager
    def _released(self) -> Generator[None]:
        """Close the runs that are still held, whatever ended the call."""
        try:
            yield
        finally:
            self._log.release(withheld=True)


def _inside(context: Context, chunks: Iterator[T]) -> Iterator[T]:
    """Draw from an iterator inside a context."""
    while True:
        try:
            chunk = context.run(next, chunks)
        except StopIteration:
            return
        yield chunk
