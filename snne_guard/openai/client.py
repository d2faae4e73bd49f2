"""Clients of the ``openai`` package whose answers are guarded."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cache, cached_property, partial
from typing import Any, Self, Unpack, get_args, overload

import openai

from snne_guard.checks import check_choice
from snne_guard.engine import GuardState, Limiter
from snne_guard.errors import ConfigurationError
from snne_guard.openai.apis import ApiObject
from snne_guard.openai.calls import AsyncClientGuard, ClientGuard
from snne_guard.openai.delivery import RefusalAs
from snne_guard.openai.other_models import OtherModel, clients_of
from snne_guard.openai.request import ApiRequest, guarded_request
from snne_guard.settings import GuardOptions, GuardSettings
from snne_guard.types import Assessment


class ClientOptions(GuardOptions, total=False):
    """The options of ``guard_client``; ``SNNEGuard`` says what each means."""

    fallback: str | Callable[[dict[str, Any]], Any]
    other_models: Sequence[str | OtherModel] | None


class _Guarded:
    """The methods that sync and async guarded clients share.

    The names of its attributes must not clash with a client's own.
    """

    _snne_guard: ClientGuard | AsyncClientGuard
    _snne_handle: Callable[[ApiRequest], Any]  # answers a request, or assesses it

    def post(self, path: str, **given: object) -> ApiObject:
        """Send a request, guarded if it asks for an answer; async callers await it."""
        request = guarded_request(path, given)
        if request is None:
            return self._snne_guard.client.post(path, **given)
        return self._snne_handle(request)

    def copy(self, **options: object) -> Self:
        """Return a guarded client with other options of the client."""
        inner = self._snne_guard.client.copy(**options)
        copied: Self = _guarded_client(replace(self._snne_guard, client=inner))
        return copied

    with_options = copy

    @property
    def guard_settings(self) -> GuardSettings:
        """Every option of the guard, also those that its calibration has set."""
        return self._snne_guard.settings

    def assessments(self) -> AbstractContextManager[list[Assessment]]:
        """Collect the assessment of every call in a list, as the calls end.

        It sees the calls of this client and its copies in any task or thread, so it
        also works inside a framework. A stream ends with its last part. The context
        managers may be nested; each list gets every call.

        Example:
            >>> client = guard_client(openai.OpenAI(api_key="..."))
            >>> with client.assessments() as seen:
            ...     pass  # run the agent, the chain, the query
            >>> seen
            []
        """
        return self._snne_guard.state.collected()

    def _snne_assess(self, answer: str | None, request: Mapping[str, Any]) -> ApiObject:
        """Call ``create`` of a client that assesses where this one answers."""
        handle = partial(self._snne_guard.assess, answer=answer)
        client = _guarded_client(self._snne_guard, handle)
        chat = "messages" in request
        api = client.chat.completions if chat else client.responses
        return api.create(**request)


class GuardedOpenAI(_Guarded, openai.OpenAI):
    """An ``OpenAI`` client whose answers are guarded; ``guard_client`` makes it."""

    def assess(self, *, answer: str | None = None, **request: object) -> Assessment:
        """Return everything about one answer, the samples and the matrix included.

        It neither withholds an answer nor raises because one is uncertain;
        ``decision`` says what the guard would do.

        Args:
            answer: An answer that you already have; only samples are drawn then.
            **request: What ``chat.completions.create`` takes or, with an ``input``,
                what ``responses.create`` takes.

        Raises:
            Exception: The client's own error, if it gets no answer.
        """
        assessment: Assessment = self._snne_assess(answer, request)
        return assessment


class AsyncGuardedOpenAI(_Guarded, openai.AsyncOpenAI):
    """An ``AsyncOpenAI`` client whose answers are guarded."""

    async def assess(
        self, *, answer: str | None = None, **request: object
    ) -> Assessment:
        """Return everything about one answer, as ``GuardedOpenAI.assess`` does."""
        assessment: Assessment = await self._snne_assess(answer, request)
        return assessment


@overload
def guard_client(
    client: openai.OpenAI,
    *,
    refusal_as: RefusalAs = ...,
    **options: Unpack[ClientOptions],
) -> GuardedOpenAI: ...
@overload
def guard_client(
    client: openai.AsyncOpenAI,
    *,
    refusal_as: RefusalAs = ...,
    **options: Unpack[ClientOptions],
) -> AsyncGuardedOpenAI: ...
def guard_client(
    client: openai.OpenAI | openai.AsyncOpenAI,
    *,
    refusal_as: RefusalAs = "content",
    **options: Unpack[ClientOptions],
) -> GuardedOpenAI | AsyncGuardedOpenAI:
    """Return a client of the same class whose answers are guarded.

    It guards ``create``, ``parse`` and ``stream`` of ``chat.completions`` and
    ``responses``. They return what the client returns, with the assessment as the dict
    ``snne_guard``; a stream has it on its last part. ``assess(...)`` takes what
    ``create`` takes and returns the whole ``Assessment``. Everything else passes
    through unguarded, including ``responses.retrieve``, realtime connections and your
    own calls to ``request``. Your client is never changed.

    A refused answer is an ordinary completion with the text of the refusal; if JSON
    was requested, the text is the message's ``refusal``. Streams are live if an answer
    can only be flagged; otherwise nothing arrives before the decision. Samples are not
    stored. If the request stores its answer, a refused answer stays at the provider,
    and the refusal has a different id.

    ``n`` above 1, ``background`` and ``with_raw_response`` raise a
    ``ConfigurationError``, and so does ``with_streaming_response`` without a stream. If
    tools run at the provider, or the request names a conversation or a stored prompt,
    no sample is drawn and the answer has no score (reason ``side_effects``).

    Args:
        client: ``OpenAI``, ``AsyncOpenAI``, or a subclass such as ``AzureOpenAI``.
        refusal_as: Where the text of a refusal goes: in the message's content
            (``"content"``) or in its ``refusal``, which many frameworks raise as an
            error. If JSON was requested, it is always the ``refusal``.
        **options: Those of ``SNNEGuard``; the most important are ``n``, ``threshold``
            and ``on_uncertain``. Four differ. ``fallback`` is the name of another
            model, or a function that takes the request's body and returns a text or
            an answer. ``other_models`` are names of models that the same client asks,
            or an ``OtherModel`` for each that another one asks.
            ``question`` and ``context`` get the messages of the request; for a single
            call, set the context by ``extra_body={"snne_guard_context": ...}``.
            A function as ``on_uncertain`` returns one of the words, or an answer of the
            ``openai`` package.

    Raises:
        ConfigurationError: An option makes no sense, or the client is not one of the
            ``openai`` package, or is guarded already.

    Example:
        >>> client = guard_client(openai.OpenAI(api_key="..."), n=5, threshold=0.4)
        >>> isinstance(client, openai.OpenAI)
        True
    """
    _check_client(client, options.get("fallback"))
    check_choice(refusal_as, get_args(RefusalAs), what="refusal_as")
    given: dict[str, Any] = {**options}
    others = clients_of(given.pop("other_models", None) or (), client)
    names = [name for name, _ in others]
    settings = GuardSettings.given(**given, other_models=names)
    settings.check_calibration({})
    kind = AsyncClientGuard if isinstance(client, openai.AsyncOpenAI) else ClientGuard
    guard = kind(
        client=client,
        settings=settings,
        state=GuardState(Limiter(settings.max_concurrency)),
        refusal_as=refusal_as,
        others=dict(others),
    )
    guarded: GuardedOpenAI | AsyncGuardedOpenAI = _guarded_client(guard)
    return guarded


def _check_client(client: object, fallback: object) -> None:
    if isinstance(client, GuardedOpenAI | AsyncGuardedOpenAI):
        msg = "this client is guarded already; pass the original one to guard_client()"
        raise ConfigurationError(msg)
    if not isinstance(client, openai.OpenAI | openai.AsyncOpenAI):
        msg = f"expected an OpenAI or AsyncOpenAI client, got {type(client).__name__}"
        raise ConfigurationError(msg)
    if not (fallback is None or callable(fallback) or isinstance(fallback, str)):
        msg = (
            "expected fallback to be the name of a model or a function, got "
            f"{type(fallback).__name__}"
        )
        raise ConfigurationError(msg)


def _guarded_client(
    guard: ClientGuard | AsyncClientGuard,
    handle: Callable[[ApiRequest], Any] | None = None,
) -> Any:  # noqa: ANN401 - of a class that is made here
    """Return a client that shares everything with the user's except ``post``."""
    own = guard.client
    kind: Any = type(own)
    client = object.__new__(_guarded_class(kind))
    for name, value in vars(own).items():
        # Resources that the user's client has cached would post through that client.
        made_on_demand = inspect.getattr_static(kind, name, None)
        if not isinstance(made_on_demand, cached_property):
            vars(client)[name] = value
    client._snne_guard = guard
    client._snne_handle = handle or guard.answer
    return client


@cache
def _guarded_class(kind: Any) -> Any:  # noqa: ANN401 - no static type has both bases
    tasks = issubclass(kind, openai.AsyncOpenAI)
    base = AsyncGuardedOpenAI if tasks else GuardedOpenAI
    return type(f"Guarded{kind.__name__}", (base, kind), {})
