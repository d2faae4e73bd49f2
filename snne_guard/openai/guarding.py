"""Carry out the guarded requests of a client, in threads or in tasks."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Generator, Mapping
from contextlib import aclosing, closing
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from snne_guard.call import GuardState, Outcome, Request
from snne_guard.drivers import tasks, threads
from snne_guard.limiter import Limiter
from snne_guard.openai.answers import (
    RefusalAs,
    answer_of,
    attach,
    parse,
    refusal_of,
)
from snne_guard.openai.streams import (
    AsyncGuardedStream,
    GuardedStream,
    StreamEnd,
    parts_of,
)
from snne_guard.sampling.openai.apis import ApiObject
from snne_guard.sampling.openai.sender import (
    ApiRequest,
    OpenAISender,
    reusable_options,
)
from snne_guard.sampling.options import asks_for_schema, may_act
from snne_guard.sampling.reading import read_sample
from snne_guard.sampling.replies import ProviderCapabilities, Reply
from snne_guard.settings import GuardSettings
from snne_guard.types import Assessment

__all__ = ["AsyncGuarding", "Guarding"]

MODELS_KEPT = 1000
"""Most models whose quirks a guard remembers; beyond that it starts learning again."""


@dataclass(frozen=True, kw_only=True)
class _Guarding:
    """What threads and tasks share.

    ``models`` has the state of the calls of each model, by API and name.
    """

    client: Any
    settings: GuardSettings
    limiter: Limiter
    refusal_as: RefusalAs = "content"
    models: dict[tuple[str, str], GuardState] = field(default_factory=dict)

    def _prepare(
        self, request: ApiRequest, answer: str | None = None
    ) -> tuple[Request, OpenAISender]:
        """Return what a driver needs: the engine's request, and its sender."""
        if len(self.models) >= MODELS_KEPT:  # their names may come from strangers
            self.models.clear()
        name = (request.api.name, request.model[:256])
        state = self.models.setdefault(name, GuardState(self.limiter))
        rejected = state.rejected[name]
        messages = request.api.messages(request.body)
        ask = self.settings.question
        chosen = None if ask is None else ask(messages)
        given = None
        if answer is not None:
            given = Reply(samples=(read_sample(text=answer, finish_reason="stop"),))
        engine_request = Request(
            settings=self.settings,
            state=state,
            capabilities=ProviderCapabilities.of(request.api.parameters - rejected),
            question=state.question(chosen, request.question),
            tools_bound=bool(
                request.body.get("tools") or request.body.get("functions")
            ),
            context=self.settings.context_of(messages),
            schema=asks_for_schema(request.body),
            side_effects=may_act(request.body),
            retry=not self.client.max_retries,  # one layer retries
            answer=given,
            answer_settings=request.answer_settings,
        )
        return engine_request, OpenAISender(self.client, request, rejected=rejected)

    def _delivered(self, request: ApiRequest, outcome: Outcome) -> Any:  # noqa: ANN401 - the API's
        """Return what is delivered, None where the fallback has to be asked."""
        if outcome.delivery == "fallback":
            return None
        if outcome.delivery == "replacement":
            return answer_of(request, outcome.replacement)
        if outcome.delivery == "nothing" or outcome.answer is None:
            assert outcome.error is not None  # noqa: S101 - why there is nothing
            # Nothing here shows the answer: tracebacks may show local variables.
            raise outcome.error
        drawn = outcome.answer.raw
        if outcome.delivery == "refusal":
            text = str(self.settings.refusal)
            return refusal_of(request, drawn, text, place=self.refusal_as)
        return drawn

    def _ask_fallback(self, request: ApiRequest) -> Any:  # noqa: ANN401 - a user's function
        """Return what the fallback gives, which may have to be awaited."""
        fallback, body = self.settings.fallback, {**request.unstreamed().body}
        if callable(fallback):
            return fallback(body)
        return self.client.post(
            request.path,
            body={**body, "model": fallback},
            options=reusable_options(request.options),
            cast_to=request.cast_to,
        )


@dataclass(frozen=True, kw_only=True)
class Guarding(_Guarding):
    """Carries out requests of an ``OpenAI`` client."""

    def answer(self, request: ApiRequest) -> ApiObject:
        """Return the answer, or what stands in its place, with the assessment on it.

        Raises:
            Exception: What the answer fails with, or what is raised in its place.
        """
        if request.stream_cls is not None:
            return GuardedStream(self._parts(request))
        answer, record = self._deliver(request)
        return attach(parse(request, answer), record)

    def assess(self, request: ApiRequest, *, answer: str | None) -> Assessment:
        """Return the assessment of an answer, which is drawn where none is given."""
        return threads.run(*self._prepare(request.unstreamed(), answer)).assessed()

    def _parts(self, request: ApiRequest) -> Generator[Any]:
        """Yield the answer as the parts of a stream, the last with the assessment."""
        if self.settings.withholds:
            answer, record = self._deliver(request.unstreamed())
            yield from parts_of(request, answer, record)
            return
        end = StreamEnd()
        with closing(threads.stream(*self._prepare(request))) as items:
            for item in items:
                yield from end.pass_on(item)

    def _deliver(self, request: ApiRequest) -> tuple[ApiObject, Mapping[str, Any]]:
        """Return what the application gets, and the assessment as it carries it."""
        outcome = threads.run(*self._prepare(request))
        answer = self._delivered(request, outcome)
        if answer is None:
            answer = answer_of(request, self._ask_fallback(request))
        return answer, outcome.assessment.to_metadata()


@dataclass(frozen=True, kw_only=True)
class AsyncGuarding(_Guarding):
    """Carries out requests of an ``AsyncOpenAI`` client, as ``Guarding`` does."""

    async def answer(self, request: ApiRequest) -> ApiObject:
        """Return the answer, or what stands in its place."""
        if request.stream_cls is not None:
            parts = self._parts(request)
            return AsyncGuardedStream(await anext(parts, None), parts)
        answer, record = await self._deliver(request)
        return attach(parse(request, answer), record)

    async def assess(self, request: ApiRequest, *, answer: str | None) -> Assessment:
        """Return the assessment of an answer, which is drawn where none is given."""
        prepared = self._prepare(request.unstreamed(), answer)
        return (await tasks.run(*prepared)).assessed()

    async def _parts(self, request: ApiRequest) -> AsyncGenerator[Any]:
        if self.settings.withholds:
            answer, record = await self._deliver(request.unstreamed())
            for part in parts_of(request, answer, record):
                yield part
            return
        end = StreamEnd()
        async with aclosing(tasks.stream(*self._prepare(request))) as items:
            async for item in items:
                for part in end.pass_on(item):
                    yield part

    async def _deliver(
        self, request: ApiRequest
    ) -> tuple[ApiObject, Mapping[str, Any]]:
        outcome = await tasks.run(*self._prepare(request))
        answer = self._delivered(request, outcome)
        if answer is None:
            given = await tasks.in_thread(partial(self._ask_fallback, request))
            given = await given if isinstance(given, Awaitable) else given
            answer = answer_of(request, given)
        return answer, outcome.assessment.to_metadata()
