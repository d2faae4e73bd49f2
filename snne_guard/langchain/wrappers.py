"""The chat models inside LangChain's wrappers.

``bind``, ``bind_tools``, ``with_config``, ``with_retry`` and ``with_fallbacks`` each
put a runnable around a model. ``ModelTree`` is what is inside, in one walk; ``rebuild``
changes the models and keeps the wrappers.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable, RunnableBinding, RunnableWithFallbacks
from langchain_core.runnables.configurable import DynamicRunnable
from langchain_core.runnables.retry import RunnableRetry

from snne_guard.engine import answer_settings
from snne_guard.engine.options import asked_of, option_key
from snne_guard.engine.rejections import Steps, Wait
from snne_guard.errors import ConfigurationError
from snne_guard.langchain.providers import Provider, parameters_of, provider_of

ChatRunnable = Runnable[Any, Any]
"""A ``BaseChatModel``, or one inside the wrappers named above."""

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One chat model inside wrappers, and how a call asks it.

    Attributes:
        model: The model.
        options: Those of the call, which override those that are bound.
        provider: Its row in the table.
        fields: Those of the model; ``dict(model)`` takes six times as long.
        parameters: The parameters that it takes, as far as is known beforehand.
        name: Name of the model, None where it has none.
        key: What rejections of such a request are remembered under.
    """

    model: BaseChatModel
    options: Mapping[str, Any]
    provider: Provider
    fields: Mapping[str, Any] = field(repr=False)
    parameters: frozenset[str]
    name: str | None
    key: Hashable = field(repr=False)

    @property
    def answer_settings(self) -> dict[str, Any]:
        """What the answer is drawn with, by a calibration's names."""
        given = {name: v for name, v in self.options.items() if v is not None}
        return {**answer_settings(self.fields), **answer_settings(given)}


@dataclass(frozen=True, slots=True)
class _Retried:
    """What stands in ``with_retry``; the wrapper has its settings."""

    inside: _Node
    wrapper: RunnableRetry[Any, Any]


@dataclass(frozen=True, slots=True)
class _Alternatives:
    """What stands in ``with_fallbacks``, in the order in which it is tried."""

    choices: tuple[_Node, ...]
    handled: tuple[type[BaseException], ...]


_Node = Target | _Retried | _Alternatives


class ModelTree:
    """The chat models inside wrappers, each with its options and its provider.

    Attributes:
        targets: The models, in the order in which they are tried.

    Raises:
        ConfigurationError: If there is anything else than a chat model inside.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> model = FakeListChatModel(responses=["Paris"]).bind(stop=["."], top_p=0.9)
        >>> tree = ModelTree(model.with_retry())
        >>> tree.answer_settings, tree.retries_itself
        ({'top_p': 0.9, 'stop': ['.']}, True)
    """

    def __init__(
        self,
        runnable: ChatRunnable,
        options: Mapping[str, Any] | None = None,
        *,
        provider: Provider | None = None,
    ) -> None:
        self._provider = provider
        self.targets: list[Target] = []
        self._root = self._walked(runnable, {**(options or {})})

    def _walked(self, runnable: ChatRunnable, options: Mapping[str, Any]) -> _Node:
        if isinstance(runnable, BaseChatModel):
            provider = provider_of(runnable, options, own=self._provider)
            fields = {**vars(runnable), **(runnable.model_extra or {})}
            name = getattr(runnable, "model_name", None)
            if not isinstance(name, str):
                name = getattr(runnable, "model", None)
                name = name if isinstance(name, str) else None
            # Once for a call, whose every draw asks for them.
            target = Target(
                model=runnable,
                options=options,
                provider=provider,
                fields=fields,
                parameters=parameters_of(runnable, provider, options),
                name=name,
                key=(type(runnable), name, option_key([fields, options])),
            )
            self.targets.append(target)
            return target
        if isinstance(runnable, RunnableWithFallbacks):
            choices = [self._walked(each, options) for each in runnable.runnables]
            return _Alternatives((*choices,), (*runnable.exceptions_to_handle,))
        if not isinstance(runnable, RunnableBinding | RunnableRetry):
            raise ConfigurationError(_refusal(runnable))
        inside = self._walked(runnable.bound, {**runnable.kwargs, **options})
        if isinstance(runnable, RunnableRetry):
            return _Retried(inside, runnable)
        return inside

    @property
    def parameters(self) -> frozenset[str]:
        """The parameters that every model takes, as far as is known beforehand."""
        return frozenset.intersection(*(each.parameters for each in self.targets))

    @property
    def levels(self) -> list[Mapping[str, Any]]:
        """The fields and the options of each model."""
        pairs = [(target.fields, target.options) for target in self.targets]
        return [level for pair in pairs for level in pair]

    @property
    def answer_settings(self) -> dict[str, Any]:
        """What the answer is drawn with, as far as all models agree on it."""
        first, *others = [target.answer_settings for target in self.targets]
        return {
            name: value
            for name, value in first.items()
            if all((name, value) in other.items() for other in others)
        }

    @property
    def named(self) -> dict[str, Any]:
        """``{"model": name}``, with None where it has none; empty for several."""
        first, *others = self.targets
        return {} if others else {"model": first.name}

    @property
    def retries_itself(self) -> bool:
        """Whether failed requests are sent again without the guard.

        True where every model inside is in ``with_retry`` or has ``max_retries`` above
        0; a client's own default (``max_retries=None``) counts as above 0.
        """
        return _retries_itself(self._root)

    @property
    def asks(self) -> dict[str, Any]:
        """What models and options say of a call, as fields of a ``Request``."""
        levels = self.levels
        return {
            "parameters": self.parameters,
            "keys": tuple(target.key for target in self.targets),
            "tools_bound": any(level.get("tools") for level in levels),
            "retry": not self.retries_itself,
            "model": self.named.get("model"),
            "answer_settings": self.answer_settings,
            **asked_of(levels),
        }

    def steps(self, ask: Callable[[Target], Steps[Result]]) -> Steps[Result]:
        """Return the requests of one draw, as the wrappers would have them sent."""
        if isinstance(self._root, Target):
            return ask(self._root)
        return _carried_out(self._root, ask)


def _retries_itself(node: _Node) -> bool:
    if isinstance(node, _Alternatives):
        return all(map(_retries_itself, node.choices))
    if isinstance(node, _Retried):
        return True
    retries = getattr(node.model, "max_retries", 0) != 0
    return retries and node.provider.retries_statuses


def _carried_out(node: _Node, ask: Callable[[Target], Steps[Result]]) -> Steps[Result]:
    """Carry out retries and fallbacks, beneath the callbacks of LangChain's own."""
    if isinstance(node, Target):
        return (yield from ask(node))
    if isinstance(node, _Alternatives):
        errors: list[BaseException] = []
        for choice in node.choices:
            try:
                return (yield from _carried_out(choice, ask))
            except node.handled as error:
                errors.append(error)
        raise errors[0]  # as LangChain does: the first model's own
    waits: list[float] = []
    # Tenacity would sleep in this thread. Its wait becomes a step instead, which is
    # carried out in a thread or in a task.
    attempts = node.wrapper._sync_retrying(  # noqa: SLF001 - its settings, in one place
        reraise=True, sleep=waits.append
    )
    for attempt in attempts:
        if waits:
            yield Wait(waits.pop())
        with attempt:
            return (yield from _carried_out(node.inside, ask))
    raise AssertionError  # the last attempt has returned or raised


def labels_of(runnable: ChatRunnable) -> tuple[list[str], dict[str, Any]]:
    """Return the tags and metadata of the first model's own runs in its wrappers."""
    if isinstance(runnable, RunnableWithFallbacks):
        return labels_of(runnable.runnable)
    own: Mapping[str, Any] = {}
    tags: list[str] = []
    metadata: dict[str, Any] = {}
    if isinstance(runnable, BaseChatModel):
        own = {"tags": runnable.tags, "metadata": runnable.metadata}
    elif isinstance(runnable, RunnableBinding | RunnableRetry):
        tags, metadata = labels_of(runnable.bound)
        own = runnable.config
    tags = [*tags, *(own.get("tags") or ())]
    return tags, {**metadata, **(own.get("metadata") or {})}


def rebuild(
    wrapper: ChatRunnable, change: Callable[[BaseChatModel], ChatRunnable]
) -> ChatRunnable:
    """Return the same wrappers around changed chat models; ``wrapper`` stays as it is.

    Raises:
        ConfigurationError: If there is anything else than a chat model inside.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> model = FakeListChatModel(responses=["Paris"]).bind(stop=["."])
        >>> uncached = rebuild(model, lambda m: m.model_copy(update={"cache": False}))
        >>> uncached.bound.cache, uncached.kwargs
        (False, {'stop': ['.']})
    """
    if isinstance(wrapper, BaseChatModel):
        return change(wrapper)
    if isinstance(wrapper, RunnableWithFallbacks):
        first, *others = (rebuild(each, change) for each in wrapper.runnables)
        return wrapper.model_copy(update={"runnable": first, "fallbacks": others})
    if isinstance(wrapper, RunnableBinding | RunnableRetry):
        bound = rebuild(wrapper.bound, change)
        return wrapper.model_copy(update={"bound": bound})
    raise ConfigurationError(_refusal(wrapper))


def _refusal(given: object) -> str:
    if isinstance(given, DynamicRunnable) or callable(getattr(given, "_model", None)):
        return (
            f"a guard cannot stand around a configurable model ({type(given).__name__})"
            ": guard the model first, then call configurable_fields or "
            "configurable_alternatives on the guard, or give init_chat_model a model"
        )
    return (
        "a guard needs a chat model: a BaseChatModel, or one inside bind, bind_tools, "
        f"with_config, with_retry or with_fallbacks; got {type(given).__name__}. To "
        "guard a chain, put the guard in the model's place: prompt | guard | parser"
    )
