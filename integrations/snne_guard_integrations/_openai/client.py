"""A client like the user's own, of a class of its kind, whose answers are guarded."""

from __future__ import annotations

import inspect
from functools import cache, cached_property
from typing import Any, Self

import openai

from snne_guard import AsyncOpenAIGuard, ConfigurationError, OpenAIGuard
from snne_guard_integrations._openai.requests import Post, api_of
from snne_guard_integrations._openai.shared import Delivery
from snne_guard_integrations._openai.tasks import AsyncGuarding
from snne_guard_integrations._openai.threads import Guarding

__all__ = ["guarded"]


class _Guarded:
    """Put before the class of a client: every request passes through ``post``."""

    _snne_guarding: Any

    def copy(self, **options: Any) -> Self:  # noqa: ANN401 - the client's own
        """Return a guarded client with other options, under the same limits."""
        guarding: Any = self._snne_guarding.over(options)
        made: Self = _over(guarding)
        return made

    with_options = copy


class _Threads(_Guarded):
    def post(self, path: str, **given: Any) -> Any:  # noqa: ANN401 - the client's own
        """Send a request; one for an answer is guarded."""
        guarding: Guarding = self._snne_guarding
        api = api_of(path)
        if api is None:
            return guarding.inner.post(path, **given)
        return guarding.deliver(Post.of(api, path, given))


class _Tasks(_Guarded):
    async def post(self, path: str, **given: Any) -> Any:  # noqa: ANN401 - the client's own
        """Send a request; one for an answer is guarded."""
        guarding: AsyncGuarding = self._snne_guarding
        api = api_of(path)
        if api is None:
            return await guarding.inner.post(path, **given)
        return await guarding.deliver(Post.of(api, path, given))


def guarded(client: object, delivery: Delivery, settings: dict[str, Any]) -> Any:  # noqa: ANN401 - a client of the same kind
    """Return a guarded client.

    Args:
        client: The user's own; it is not changed.
        delivery: How decisions are carried out.
        settings: Those of the guard.

    Raises:
        ConfigurationError: If it is no client of the openai package, or guarded
            already, or if an option makes no sense.
    """
    if isinstance(client, _Guarded):
        msg = "this client is guarded already; give guard_client() your own"
        raise ConfigurationError(msg)
    if isinstance(client, openai.OpenAI):
        guard = OpenAIGuard(client, **settings)
        return _over(Guarding(inner=client, guard=guard, delivery=delivery))
    if isinstance(client, openai.AsyncOpenAI):
        tasks = AsyncOpenAIGuard(client, **settings)
        return _over(AsyncGuarding(inner=client, guard=tasks, delivery=delivery))
    msg = (
        "guard_client() takes OpenAI(), AsyncOpenAI() or one of their kind; "
        f"got {type(client).__name__}"
    )
    raise ConfigurationError(msg)


def _over(guarding: Guarding | AsyncGuarding) -> Any:  # noqa: ANN401 - a client of the same kind
    """Return a client that shares everything with the user's but what it sends."""
    kind: Any = type(guarding.inner)
    made: Any = object.__new__(_kind(kind))
    fields: dict[str, Any] = guarding.inner.__dict__
    for name, value in fields.items():
        # Resources that the user's client has made already would ask it, not this one.
        if not isinstance(inspect.getattr_static(kind, name, None), cached_property):
            made.__dict__[name] = value
    made._snne_guarding = guarding  # noqa: SLF001 - one of our own
    return made


@cache
def _kind(kind: Any) -> Any:  # noqa: ANN401 - a client's class, and one below it
    mixin: type = _Tasks if issubclass(kind, openai.AsyncOpenAI) else _Threads
    return type(f"Guarded{kind.__name__}", (mixin, kind), {})
