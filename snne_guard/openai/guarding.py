"""Carry out the guarded requests of a client, in threads or in tasks."""

from __future__ import annotations

import inspect
import logging
from collections.abc import AsyncGenerator, Awaitable, Generator, Mapping
from contextlib import aclosing, closing
from dataclasses import dataclass, field
from typing import Any

from snne_guard.call import Call, GuardState, Outcome, Request
from snne_guard.drivers import DriverOptions, tasks, threads
from snne_guard.drivers.limits import Limiter
from snne_guard.engine import guarded_call, wants_logprobs
from snne_guard.errors import (
    ConfigurationError,
    SamplingError,
    UncertainAnswerError,
)
from snne_guard.observers import Observers
from snne_guard.openai.answers import (
    answer_of,
    attach,
    ends_stream,
    parse,
    parts_of,
    refusal_of,
)
from snne_guard.openai.requests import unstreamed
from snne_guard.openai.streams import AsyncGuardedStream, GuardedStream
from snne_guard.sampling.openai import (
    ApiObject,
    ApiRequest,
    OpenAISender,
    StreamedAnswer,
    capabilities_of,
    has_side_effects,
    reusable_options,
)
from snne_guard.sampling.replies import Reply
from snne_guard.settings import GuardSettings
from snne_guard.types import Assessment

__all__ = ["AsyncGuarding", "Guarding"]

_log = logging.getLogger(__name__)

_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Server:
    """What is known of one model at one API, shared by the calls of a guard."""

    state: GuardState = field(default_factory=GuardState)
    rejected: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Result:
    """What a call comes to, without the answer where that is withheld.

    Attributes:
        record: The assessment, as the answer carries it.
        answer: What is delivered; None where the fallback has to say it.
        error: What is raised in place of an answer.
    """

    record: Mapping[str, Any]
    answer: Any = None
    error: BaseException | None = None


@dataclass(frozen=True, kw_only=True)
class _Guarding:
    """What threads and tasks share.

    Attributes:
        client: The user's own client; a copy of the guarded one has another.
        settings: The options of the guard.
        observers: Who is told of assessments.
        limiter: How many requests may be in flight.
        servers: What is known of each model, by API and name.
    """

    client: Any
    settings: GuardSettings
    observers: Observers
    limiter: Limiter
    servers: dict[tuple[str, str], _Server] = field(default_factory=dict)

    @property
    def _driver_options(self) -> DriverOptions:
        return DriverOptions(
            limiter=self.limiter,
            observers=self.observers,
            retry=not self.client.max_retries,  # one layer retries
        )

    def _server_of(self, request: ApiRequest) -> _Server:
        return self.servers.setdefault((request.api.name, request.model), _Server())

    def _prepare(
        self, request: ApiRequest, answer: Reply | None = None
    ) -> tuple[Call, OpenAISender]:
        """Return a guarded call, and what sends its requests."""
        server, body = self._server_of(request), request.body
        asked = Request(
            settings=self.settings,
            state=server.state,
            capabilities=capabilities_of(request.api, server.rejected),
            question=self._question(request),
            tools_bound=bool(body.get("tools") or body.get("functions")),
            side_effects=has_side_effects(body),
            answer=answer,
            answer_settings=_answer_settings(request),
        )
        sender = OpenAISender(
            self.client,
            request,
            temperature=self.settings.temperature,
            logprobs=wants_logprobs(asked),
            rejected=server.rejected,
        )
        return guarded_call(asked), sender

    def _question(self, request: ApiRequest) -> str | None:
        if self.settings.question is not None:
            return self.settings.question(request.api.messages(request.body))
        self._server_of(request).state.warn_if_long(request.question)
        return request.question

    def _result(self, request: ApiRequest, outcome: Outcome) -> _Result:
        record = outcome.assessment.to_metadata()
        raw = None if outcome.answer is None else outcome.answer.raw
        if outcome.delivery == "nothing":
            return _Result(record=record, error=outcome.error)
        if outcome.delivery == "refusal":
            raw = refusal_of(request, raw, self.settings.refusal)
        elif outcome.delivery == "replacement":
            raw = answer_of(request, outcome.replacement)
        elif outcome.delivery == "fallback":
            raw = None
        return _Result(record=record, answer=raw)

    def _from_fallback(self, request: ApiRequest) -> ApiObject:
        """Return what the fallback says, which may have to be awaited."""
        fallback = self.settings.fallback
        body = {**unstreamed(request).body}
        if callable(fallback):
            return fallback(body)
        client = self.client if isinstance(fallback, str) else fallback
        if isinstance(fallback, str):
            body["model"] = fallback
        options = reusable_options(request.options)
        return client.post(
            request.path, body=body, options=options, cast_to=request.cast_to
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
        answer, record = self._settle(request)
        return attach(parse(request, answer), record)

    def _parts(self, request: ApiRequest) -> Generator[Any]:
        """Yield the answer as the parts of a stream, the last with the assessment."""
        if self.settings.withholds:
            answer, record = self._settle(request)
            yield from _marked(_as_parts(request, answer), record)
            return
        call, sender = self._prepare(request)
        held: list[Any] = []
        outcome: Outcome | None = None
        stream: Any = threads.stream(call, sender, self._driver_options)
        with closing(stream):
            for part in stream:
                if isinstance(part, Outcome):
                    outcome = part
                elif held or ends_stream(part):
                    held.append(part)
                else:
                    yield part
        yield from _ended(held, outcome)

    def assess(self, request: ApiRequest, *, answer: Reply | None) -> Assessment:
        """Return the assessment of an answer, which is drawn where none is given."""
        call, sender = self._prepare(unstreamed(request), answer)
        return _assessment(threads.run(call, sender, self._driver_options))

    def _settle(self, request: ApiRequest) -> tuple[ApiObject, Mapping[str, Any]]:
        """Return what is delivered, and the assessment."""
        # The error is raised where nothing holds the answer: tracebacks show locals.
        result = self._run(request)
        if result.error is not None:
            raise result.error
        answer = result.answer
        return self._fall_back(request) if answer is None else answer, result.record

    def _run(self, request: ApiRequest) -> _Result:
        call, sender = self._prepare(request)
        outcome = threads.run(call, sender, self._driver_options)
        return self._result(request, outcome)

    def _fall_back(self, request: ApiRequest) -> ApiObject:
        given = self._from_fallback(request)
        if inspect.iscoroutine(given):
            given.close()
            msg = "a fallback that is async needs an AsyncOpenAI client"
            raise ConfigurationError(msg)
        return answer_of(request, given)


@dataclass(frozen=True, kw_only=True)
class AsyncGuarding(_Guarding):
    """Carries out requests of an ``AsyncOpenAI`` client."""

    async def answer(self, request: ApiRequest) -> ApiObject:
        """Return the answer, as ``Guarding.answer`` does."""
        if request.stream_cls is not None:
            return await AsyncGuardedStream.open(self._parts(request))
        answer, record = await self._settle(request)
        return attach(parse(request, answer), record)

    async def _parts(self, request: ApiRequest) -> AsyncGenerator[Any]:
        if self.settings.withholds:
            answer, record = await self._settle(request)
            for part in _marked(_as_parts(request, answer), record):
                yield part
            return
        call, sender = self._prepare(request)
        held: list[Any] = []
        outcome: Outcome | None = None
        async with aclosing(tasks.stream(call, sender, self._driver_options)) as stream:
            async for part in stream:
                if isinstance(part, Outcome):
                    outcome = part
                elif held or ends_stream(part):
                    held.append(part)
                else:
                    yield part
        for part in _ended(held, outcome):
            yield part

    async def assess(self, request: ApiRequest, *, answer: Reply | None) -> Assessment:
        """Return the assessment of an answer, as ``Guarding.assess`` does."""
        call, sender = self._prepare(unstreamed(request), answer)
        return _assessment(await tasks.run(call, sender, self._driver_options))

    async def _settle(self, request: ApiRequest) -> tuple[ApiObject, Mapping[str, Any]]:
        result = await self._run(request)
        if result.error is not None:
            raise result.error
        answer = result.answer
        if answer is None:
            answer = await self._fall_back(request)
        return answer, result.record

    async def _run(self, request: ApiRequest) -> _Result:
        call, sender = self._prepare(request)
        outcome = await tasks.run(call, sender, self._driver_options)
        return self._result(request, outcome)

    async def _fall_back(self, request: ApiRequest) -> ApiObject:
        given = self._from_fallback(request)
        if isinstance(given, Awaitable):
            given = await given
        return answer_of(request, given)


def _answer_settings(request: ApiRequest) -> dict[str, Any]:
    """Return what the answer is drawn with, by a calibration's names."""
    body = request.body
    limits = [body[name] for name in _LIMITS if body.get(name) is not None]
    stop = body.get("stop")
    return {
        "model": request.model,
        "answer_temperature": body.get("temperature"),
        "top_p": body.get("top_p"),
        "max_tokens": limits[0] if limits else None,
        "stop": [stop] if isinstance(stop, str) else stop,
    }


def _assessment(outcome: Outcome) -> Assessment:
    """Return the assessment; an answer that would be withheld is no error here."""
    error = outcome.error
    decided = isinstance(error, UncertainAnswerError | SamplingError)
    if error is not None and not (decided and outcome.answer is not None):
        raise error
    return outcome.assessment


def _as_parts(request: ApiRequest, answer: ApiObject) -> list[Any]:
    if isinstance(answer, StreamedAnswer):
        return list(answer.parts)
    return list(parts_of(request, answer))


def _marked(parts: list[Any], record: Mapping[str, Any]) -> list[Any]:
    """Return the end of a stream with the assessment on its last part."""
    for part in parts[-1:]:
        attach(part, record)
    return parts


def _ended(held: list[Any], outcome: Outcome | None) -> list[Any]:
    if outcome is None:
        return held
    if outcome.error is not None:
        raise outcome.error
    return _marked(held, outcome.assessment.to_metadata())
