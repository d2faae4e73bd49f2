"""Drawing samples from LangChain chat models, by threads or by tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.callbacks import AsyncCallbackManager, CallbackManager
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage

from snne_guard.sampling.collect import Draw, Reply, one_more_request
from snne_guard.sampling.langchain_direct import agenerate, generate
from snne_guard.sampling.langchain_messages import read_result
from snne_guard.sampling.langchain_models import Candidate
from snne_guard.sampling.langchain_options import request_options, seed_of
from snne_guard.sampling.langchain_route import Route
from snne_guard.sampling.langchain_runs import (
    NOSTREAM_TAG,
    SAMPLE_TAG,
    AsyncRunLog,
    RunLog,
)
from snne_guard.sampling.memory import Memory
from snne_guard.sampling.plan import SamplingPlan
from snne_guard.sampling.retry import rejects
from snne_guard.sampling.settings import Settings

__all__ = ["AsyncSamples", "Samples"]


@dataclass(slots=True, kw_only=True)
class _Samples:
    """What both twins share: which options a request carries.

    Attributes:
        route: Whom to ask.
        messages: The whole conversation.
        kwargs: Options of this call.
        plan: Temperature and token limit.
        memory: What was learnt about the provider.
        logprobs: Whether log-probabilities are wanted.
    """

    route: Route
    messages: Sequence[BaseMessage]
    kwargs: Mapping[str, Any]
    plan: SamplingPlan
    memory: Memory
    logprobs: bool

    def options(
        self, candidate: Candidate, draw: Draw, settings: Settings
    ) -> dict[str, Any]:
        return request_options(
            candidate,
            self.kwargs,
            draw,
            plan=self.plan,
            logprobs=settings.logprobs,
            temperature=settings.temperature,
        )

    def drawing(self, index: int, draw: Draw, settings: Settings) -> BaseChatModel:
        """Return the copy of a candidate that draws under these settings."""
        candidate, copy = self.route.candidates[index], self.route.copies[index]
        row, fields = candidate.provider, type(copy).model_fields
        update: dict[str, Any] = {}
        if not settings.temperature and row.temperature in fields:
            update["temperature"] = None
        if row.seed_is_field and (seed := seed_of(candidate, draw)) is not None:
            update["seed"] = seed
        return copy.model_copy(update=update) if update else copy

    def settings(self) -> Settings:
        """Return what this provider is known to take."""
        return Settings.known(self.memory, logprobs=self.logprobs)

    def amended(
        self, error: BaseException, draw: Draw, settings: Settings
    ) -> Settings | None:
        """Return settings with which a rejected request may pass, None if none may."""
        return settings.amended(error, n=draw.n, memory=self.memory)

    def is_final(self, index: int, draw: Draw, error: BaseException) -> bool:
        """Return whether the next candidate is not to be asked."""
        # A smaller request may pass, and keeps the samples with one model.
        rejects_n = draw.n > 1 and rejects(error, "n") is not False
        return rejects_n or index + 1 == len(self.route.candidates)


class Samples(_Samples):
    """Sends requests for samples from threads.

    Args:
        log: Where the runs are told.
    """

    log: RunLog
    managers: tuple[CallbackManager, ...]

    def listen(self, log: RunLog) -> Samples:
        """Tell handlers of each request; call it in the user's own context."""
        self.log = log
        self.managers = tuple(
            log.manager(candidate) for candidate in self.route.candidates
        )
        return self

    def send(self, draw: Draw) -> Reply:
        """Send one request, to the next candidate where one has failed."""
        for index, candidate in enumerate(self.route.candidates):
            try:
                if index:
                    one_more_request()
                return self._ask(index, draw)
            except candidate.handles as error:
                if self.is_final(index, draw, error):
                    raise
        raise AssertionError  # pragma: no cover - a route has at least one candidate

    def _ask(self, index: int, draw: Draw) -> Reply:
        settings = asked = self.settings()
        while True:
            try:
                reply = self._generate(index, draw, settings)
            except Exception as error:
                amended = self.amended(error, draw, settings)
                if amended is None:
                    raise
                settings = amended
                one_more_request()
            else:
                settings.learn(self.memory, asked=asked)
                return reply

    def _generate(self, index: int, draw: Draw, settings: Settings) -> Reply:
        candidate, manager = self.route.candidates[index], self.managers[index]
        options = self.options(candidate, draw, settings)
        run = self.log.open(manager, SAMPLE_TAG, candidate, self.messages, options)
        unheard = self.log.unheard(manager, SAMPLE_TAG, NOSTREAM_TAG)
        try:
            copy = self.drawing(index, draw, settings)
            result = generate(copy, self.messages, options, unheard)
        except BaseException as error:
            self.log.fail(run, error)
            raise
        self.log.close(run, result)
        return read_result(result)


class AsyncSamples(_Samples):
    """The twin of ``Samples`` for tasks."""

    log: AsyncRunLog
    managers: tuple[AsyncCallbackManager, ...]

    def listen(self, log: AsyncRunLog) -> AsyncSamples:
        """Tell handlers of each request; call it in the user's own context."""
        self.log = log
        self.managers = tuple(
            log.manager(candidate) for candidate in self.route.candidates
        )
        return self

    async def send(self, draw: Draw) -> Reply:
        """Send one request, to the next candidate where one has failed."""
        for index, candidate in enumerate(self.route.candidates):
            try:
                if index:
                    one_more_request()
                return await self._ask(index, draw)
            except candidate.handles as error:
                if self.is_final(index, draw, error):
                    raise
        raise AssertionError  # pragma: no cover - a route has at least one candidate

    async def _ask(self, index: int, draw: Draw) -> Reply:
        settings = asked = self.settings()
        while True:
            try:
                reply = await self._generate(index, draw, settings)
            except Exception as error:
                amended = self.amended(error, draw, settings)
                if amended is None:
                    raise
                settings = amended
                one_more_request()
            else:
                settings.learn(self.memory, asked=asked)
                return reply

    async def _generate(self, index: int, draw: Draw, settings: Settings) -> Reply:
        candidate, manager = self.route.candidates[index], self.managers[index]
        options = self.options(candidate, draw, settings)
        run = await self.log.open(
            manager, SAMPLE_TAG, candidate, self.messages, options
        )
        unheard = self.log.unheard(manager, SAMPLE_TAG, NOSTREAM_TAG)
        try:
            copy = self.drawing(index, draw, settings)
            result = await agenerate(copy, self.messages, options, unheard)
        except BaseException as error:
            await self.log.fail(run, error)
            raise
        await self.log.close(run, result)
        return read_result(result)
