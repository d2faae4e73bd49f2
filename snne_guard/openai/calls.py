"""Guard the requests of a client, in threads or in tasks."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Generator, Mapping
from contextlib import aclosing, closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from snne_guard import engine
from snne_guard.engine import (
    GuardState,
    Request,
    Response,
    read_reply,
    request_of,
)
from snne_guard.engine.options import asked_of
from snne_guard.engine.tasks import in_thread
from snne_guard.errors import ConfigurationError
from snne_guard.openai.apis import ApiObject
from snne_guard.openai.delivery import RefusalAs, delivered
from snne_guard.openai.other_models import request_to
from snne_guard.openai.request import ApiRequest
from snne_guard.openai.sender import OpenAISender
from snne_guard.openai.streams import (
    AsyncGuardedStream,
    GuardedStream,
    StreamEnd,
    parts_of,
)
from snne_guard.settings import GuardSettings
from snne_guard.types import Assessment


@dataclass(frozen=True, kw_only=True)
class _Guard:
    """What threads and tasks share."""

    client: Any
    settings: GuardSettings
    state: GuardState
    refusal_as: RefusalAs = "content"
    others: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def _prepare(
        self, request: ApiRequest, answer: str | None = None
    ) -> tuple[Request, OpenAISender]:
        """Return the engine's request and its sender, for a driver."""
        state, body = self.state, request.body
        given = None
        if answer is not None:
            given = Response(replies=(read_reply(text=answer, finish_reason="stop"),))
        others = self._senders_to_others(request)
        sender = OpenAISender(
            self.client, request, rejections=state.rejections, others=others
        )
        engine_request = request_of(
            request.api.messages(body),
            settings=self.settings,
            state=state,
            last=request.question,
            context=request.context,
            answer_settings=request.answer_settings,
            parameters=request.api.parameters,
            keys=(sender.key,),
            tools_bound=bool(body.get("tools") or body.get("functions")),
            retry=not self.client.max_retries,  # one layer retries
            others_retried=frozenset(
                name
                for name, own in self.others.items()
                if not (own or self.client).max_retries
            ),
            model=request.model,
            answer=given,
            **asked_of([body]),
        )
        return engine_request, sender

    def _senders_to_others(self, request: ApiRequest) -> dict[str, OpenAISender]:
        """Return the senders of the other models."""
        place, senders = self.client.base_url, dict[str, OpenAISender]()
        for name, own in self.others.items():
            client = self.client if own is None else own
            if name == request.model and client.base_url == place:
                msg = f"the other model {name!r} is the guarded model itself"
                raise ConfigurationError(msg)
            asked = request_to(request, name, client=own)
            rejections = self.state.rejections
            senders[name] = OpenAISender(client, asked, rejections=rejections)
        return senders

    def _ask_fallback(self, request: ApiRequest) -> Any:  # noqa: ANN401 - a user's function
        """Return the fallback's result, which may have to be awaited."""
        fallback, request = self.settings.fallback, request.another()
        if callable(fallback):
            return fallback({**request.body})
        body = {**request.body, "model": fallback}
        return replace(request, body=body).post(self.client)


@dataclass(frozen=True, kw_only=True)
class ClientGuard(_Guard):
    """Guards the requests of an ``OpenAI`` client."""

    def answer(self, request: ApiRequest) -> ApiObject:
        """Return the answer, or what stands in its place, with the assessment on it.

        Raises:
            Exception: What the answer fails with, or what is raised in its place.
        """
        if request.stream_cls is not None:
            return GuardedStream(self._parts(request))
        outcome = engine.run(*self._prepare(request))
        if outcome.delivery == "fallback":
            outcome = replace(outcome, replacement=self._ask_fallback(request))
        return delivered(request, outcome, self.settings.refusal, self.refusal_as)

    def assess(self, request: ApiRequest, *, answer: str | None) -> Assessment:
        """Return the assessment of an answer, which is drawn where none is given."""
        return engine.run(*self._prepare(request.unstreamed(), answer)).assessed()

    def _parts(self, request: ApiRequest) -> Generator[Any]:
        """Yield the answer as the parts of a stream, the last with the assessment."""
        if self.settings.withholds:
            yield from parts_of(request, self.answer(request.unstreamed()))
            return
        end = StreamEnd()
        with closing(engine.stream(*self._prepare(request))) as items:
            for item in items:
                yield from end.pass_on(item)


@dataclass(frozen=True, kw_only=True)
class AsyncClientGuard(_Guard):
    """Guards the requests of an ``AsyncOpenAI`` client, as ``ClientGuard`` does."""

    async def _prepared(
        self, request: ApiRequest, answer: str | None = None
    ) -> tuple[Request, OpenAISender]:
        """Return request and sender; functions of the user hold up no loop."""
        prepare = partial(self._prepare, request, answer)
        return await in_thread(prepare) if self.settings.asks_functions else prepare()

    async def answer(self, request: ApiRequest) -> ApiObject:
        """Return the answer, or what stands in its place."""
        if request.stream_cls is not None:
            parts = self._parts(request)
            return AsyncGuardedStream(await anext(parts, None), parts)
        outcome = await engine.arun(*await self._prepared(request))
        if outcome.delivery == "fallback":
            given = await in_thread(partial(self._ask_fallback, request))
            given = await given if isinstance(given, Awaitable) else given
            outcome = replace(outcome, replacement=given)
        return delivered(request, outcome, self.settings.refusal, self.refusal_as)

    async def assess(self, request: ApiRequest, *, answer: str | None) -> Assessment:
        """Return the assessment of an answer, which is drawn where none is given."""
        prepared = await self._prepared(request.unstreamed(), answer)
        return (await engine.arun(*prepared)).assessed()

    async def _parts(self, request: ApiRequest) -> AsyncGenerator[Any]:
        if self.settings.withholds:
            for part in parts_of(request, await self.answer(request.unstreamed())):
                yield part
            return
        end = StreamEnd()
        prepared = await self._prepared(request)
        async with aclosing(engine.astream(*prepared)) as items:
            async for item in items:
                for part in end.pass_on(item):
                    yield part
