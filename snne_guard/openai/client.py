"""Clients of the ``openai`` package whose answers are guarded."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import cache, cached_property, partial
from os import PathLike
from typing import Any, Self, TypedDict, Unpack, overload

import openai

from snne_guard.decision import Calibration, Threshold
from snne_guard.drivers.limits import Limiter
from snne_guard.errors import ConfigurationError
from snne_guard.observers import Observers
from snne_guard.openai.guarding import AsyncGuarding, Guarding
from snne_guard.openai.requests import request_of
from snne_guard.sampling.openai import ApiObject, ApiRequest
from snne_guard.sampling.replies import Reply
from snne_guard.scorers import Method
from snne_guard.settings import GuardSettings
from snne_guard.types import (
    Assessment,
    Observer,
    OnError,
    OnUncertain,
    Prices,
    Sample,
    Schedule,
    Similarity,
    ToolCalls,
)

__all__ = ["AsyncGuardedOpenAI", "GuardOptions", "GuardedOpenAI", "guard_client"]

Limit = float | Threshold


class GuardOptions(TypedDict, total=False):
    """The options of ``guard_client``; ``GuardSettings`` says what each means."""

    n: int
    threshold: Limit | tuple[Limit, Limit] | None
    calibration: Calibration | str | PathLike[str] | None
    on_uncertain: OnUncertain | Callable[[Assessment], Any]
    fallback: str | openai.OpenAI | openai.AsyncOpenAI | Callable[[dict[str, Any]], Any]
    refusal: str
    on_error: OnError
    method: str | Method
    similarity: str | Similarity | None
    temperature: float
    question: Callable[[list[Any]], str | None] | None
    tool_calls: ToolCalls
    min_samples: int | None
    schedule: Schedule
    timeout: float | None
    sample_timeout: float | None
    max_concurrency: int | None
    sample_rate: float
    prices: Prices | None
    observers: Sequence[Observer]


class GuardedOpenAI(openai.OpenAI):
    """An ``OpenAI`` client whose answers are guarded; ``guard_client`` makes it."""

    _snne_guarding: Guarding
    _snne_answer: Callable[[ApiRequest], Any]

    def post(self, path: str, **given: ApiObject) -> ApiObject:
        """Send a request; one for an answer is guarded."""
        request = request_of(path, given)
        if request is None:
            return self._snne_guarding.client.post(path, **given)
        return self._snne_answer(request)

    def copy(self, **options: ApiObject) -> Self:
        """Return a guarded client with other options of the client."""
        inner = self._snne_guarding.client.copy(**options)
        made: Self = _over(replace(self._snne_guarding, client=inner))
        return made

    with_options = copy

    def assess(self, *, answer: str | None = None, **request: ApiObject) -> Assessment:
        """Return everything about one answer, samples and matrix too.

        Nothing is withheld or raised for being uncertain; ``decision`` says what would
        be done.

        Args:
            answer: An answer that exists already; only samples are drawn then.
            **request: What ``chat.completions.create`` takes, or what
                ``responses.create`` takes where there is an ``input``.

        Raises:
            Exception: What the answer fails with.
        """
        guarding = self._snne_guarding
        client = _over(guarding, partial(guarding.assess, answer=_reply(answer)))
        found: Assessment = _create(client, request)(**request)
        return found


class AsyncGuardedOpenAI(openai.AsyncOpenAI):
    """An ``AsyncOpenAI`` client whose answers are guarded."""

    _snne_guarding: AsyncGuarding
    _snne_answer: Callable[[ApiRequest], Awaitable[Any]]

    async def post(self, path: str, **given: ApiObject) -> ApiObject:
        """Send a request; one for an answer is guarded."""
        request = request_of(path, given)
        if request is None:
            return await self._snne_guarding.client.post(path, **given)
        return await self._snne_answer(request)

    def copy(self, **options: ApiObject) -> Self:
        """Return a guarded client with other options of the client."""
        inner = self._snne_guarding.client.copy(**options)
        made: Self = _over(replace(self._snne_guarding, client=inner))
        return made

    with_options = copy

    async def assess(
        self, *, answer: str | None = None, **request: ApiObject
    ) -> Assessment:
        """Return everything about one answer, as ``GuardedOpenAI.assess`` does."""
        guarding = self._snne_guarding
        client = _over(guarding, partial(guarding.assess, answer=_reply(answer)))
        found: Assessment = await _create(client, request)(**request)
        return found


@overload
def guard_client(
    client: openai.OpenAI, **options: Unpack[GuardOptions]
) -> GuardedOpenAI: ...
@overload
def guard_client(
    client: openai.AsyncOpenAI, **options: Unpack[GuardOptions]
) -> AsyncGuardedOpenAI: ...
def guard_client(
    client: openai.OpenAI | openai.AsyncOpenAI, **options: Unpack[GuardOptions]
) -> GuardedOpenAI | AsyncGuardedOpenAI:
    """Return a client of the same class whose answers are guarded.

    ``chat.completions`` and ``responses`` are: ``create``, ``parse`` and ``stream``.
    What comes back is what the client gives, with the assessment as the dict
    ``snne_guard``; in a stream it is on the last part. ``assess(...)`` takes what
    ``create`` takes and returns the whole ``Assessment``. Everything else of the client
    passes through unguarded, ``responses.retrieve`` and realtime connections too; the
    client that is given is never changed.

    A refused answer is an ordinary completion with the text of the refusal; where JSON
    was asked for, it is the message's ``refusal``. Streams flow where an answer can
    only be flagged; else nothing comes before the decision. ``n`` above 1,
    ``background`` and ``with_raw_response`` are refused with a ``ConfigurationError``.
    Where tools run at the provider, or a conversation or stored prompt is named, no
    sample is drawn and the answer counts as not scored (``side_effects``). Samples are
    not stored; an answer that the request stores can be read at the provider by its id,
    also if it was refused.

    Args:
        client: ``OpenAI``, ``AsyncOpenAI``, or a subclass such as ``AzureOpenAI``.
        **options: See ``GuardSettings``; the most important are ``n``, ``threshold``
            and ``on_uncertain``. ``fallback`` is the name of another model, another
            client, or a function from the body of the request to a text or an answer.
            ``question`` gets the request's list of messages.

    Raises:
        ConfigurationError: An option makes no sense, or the client is none of the
            ``openai`` package, or guarded already.

    Example:
        >>> client = guard_client(openai.OpenAI(api_key="..."), n=5, threshold=0.4)
        >>> isinstance(client, openai.OpenAI)
        True

        It is called as the client is::

            completion = client.chat.completions.create(
                model="gpt-4.1-mini",
                messages=[{"role": "user", "content": "Capital of France?"}],
            )
            completion.snne_guard["uncertainty"]
    """
    _check_client(client)
    _check_options(client, options)
    settings = GuardSettings(**options)
    settings.check_calibration({})
    kind = AsyncGuarding if isinstance(client, openai.AsyncOpenAI) else Guarding
    guarding = kind(
        client=client,
        settings=settings,
        observers=Observers(settings.observers),
        limiter=Limiter(settings.max_concurrency),
    )
    made: GuardedOpenAI | AsyncGuardedOpenAI = _over(guarding)
    return made


def _check_client(client: object) -> None:
    if isinstance(client, GuardedOpenAI | AsyncGuardedOpenAI):
        msg = "this client is guarded already; give guard_client() your own"
        raise ConfigurationError(msg)
    if not isinstance(client, openai.OpenAI | openai.AsyncOpenAI):
        msg = (
            "guard_client() takes OpenAI(), AsyncOpenAI() or a subclass; "
            f"got {type(client).__name__}"
        )
        raise ConfigurationError(msg)


def _check_options(client: object, options: GuardOptions) -> None:
    known = GuardOptions.__optional_keys__ | {"include_answer", "tau"}
    for name in options:
        if name not in known:
            msg = f"unknown option {name!r}; known are {', '.join(sorted(known))}"
            raise ConfigurationError(msg)
    fallback = options.get("fallback")
    if fallback is None or (isinstance(fallback, str) and fallback):
        return
    same = (
        openai.AsyncOpenAI if isinstance(client, openai.AsyncOpenAI) else openai.OpenAI
    )
    if not (callable(fallback) or isinstance(fallback, same)):
        msg = (
            f"fallback must be the name of a model, another {same.__name__} client or "
            f"a function; got {type(fallback).__name__}"
        )
        raise ConfigurationError(msg)


def _over(
    guarding: Guarding | AsyncGuarding,
    answer: Callable[[ApiRequest], Any] | None = None,
) -> ApiObject:
    """Return a client that shares everything with the user's but how it posts.

    Args:
        guarding: The user's client, and what its copies have in common.
        answer: What becomes of a guarded request; None: it is answered.
    """
    kind: Any = type(guarding.client)
    made: Any = object.__new__(_guarded(kind))
    fields: dict[str, Any] = guarding.client.__dict__
    for name, value in fields.items():
        # Resources that the user's client has made already would post by that one.
        if not isinstance(inspect.getattr_static(kind, name, None), cached_property):
            made.__dict__[name] = value
    made._snne_guarding = guarding  # noqa: SLF001 - one of our own
    made._snne_answer = answer or guarding.answer  # noqa: SLF001 - likewise
    return made


@cache
def _guarded(kind: ApiObject) -> ApiObject:
    tasks = issubclass(kind, openai.AsyncOpenAI)
    base = AsyncGuardedOpenAI if tasks else GuardedOpenAI
    return type(f"Guarded{kind.__name__}", (base, kind), {})


def _create(client: ApiObject, request: dict[str, Any]) -> ApiObject:
    """Return the ``create`` that a request is for."""
    if "messages" in request:
        return client.chat.completions.create
    return client.responses.create


def _reply(answer: str | None) -> Reply | None:
    if answer is None:
        return None
    return Reply(samples=(Sample(text=answer, finish_reason="stop"),))
