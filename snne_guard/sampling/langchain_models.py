"""What stands behind a LangChain model: its wrappers, its settings, its abilities."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import (
    Runnable,
    RunnableConfig,
    RunnableWithFallbacks,
)
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.runnables.config import merge_configs
from langchain_core.runnables.configurable import DynamicRunnable
from langchain_core.runnables.retry import RunnableRetry

from snne_guard.errors import ConfigurationError
from snne_guard.sampling.langchain_copies import NESTED
from snne_guard.sampling.langchain_provider import Provider
from snne_guard.sampling.langchain_providers import OPENAI_RESPONSES, provider_of
from snne_guard.sampling.options import (
    ANSWER_OPTIONS,
    AnswerOption,
    AnswerSettings,
    AnswerValue,
    together,
)
from snne_guard.sampling.reading import as_mapping

__all__ = [
    "Candidate",
    "ChatRunnable",
    "answer_settings",
    "check_model",
    "has_choices",
    "is_open",
    "model_name",
    "model_names",
    "pin",
    "quiet_copy",
    "resolve",
]

ChatRunnable = Runnable[Any, Any]
"""A chat model, or a LangChain wrapper around one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One chat model that may give the samples.

    Attributes:
        model: The model itself, as the user made it.
        kwargs: What the wrappers around it bind.
        config: Configuration that the wrappers bring.
        handles: Exceptions after which the next candidate is asked.
    """

    model: BaseChatModel
    kwargs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    config: RunnableConfig = field(default_factory=RunnableConfig)
    handles: tuple[type[BaseException], ...] = ()
    _found: list[Provider] = field(
        init=False, default_factory=list[Provider], repr=False, compare=False
    )

    @property
    def provider(self) -> Provider:
        """How samples are drawn from it."""
        if not self._found:  # some clients take their time to say
            self._found.append(self._provider())
        return self._found[0]

    def _provider(self) -> Provider:
        row = provider_of(self.model)
        if row.supports_batch and self.is_openai and self.uses_responses:
            return OPENAI_RESPONSES
        return row

    @property
    def is_openai(self) -> bool:
        """Whether it is langchain-openai's class, or built on it."""
        return _is_openai(type(self.model))

    @property
    def uses_responses(self) -> bool:
        """Whether OpenAI's Responses API is used: it has neither n nor logprobs."""
        return _uses_responses(self)

    def names(self, kwargs: Mapping[str, Any]) -> tuple[str | None, str | None]:
        """Return what tracers call its model and its provider.

        Args:
            kwargs: Options of the call.
        """
        params = self.model._get_ls_params(**{**self.kwargs, **kwargs})  # noqa: SLF001 - LangChain's own contract for tracers  # pyright: ignore[reportPrivateUsage]
        return params.get("ls_model_name"), params.get("ls_provider")

    def answer_settings(self, kwargs: Mapping[str, Any]) -> AnswerSettings:
        """Return what its answer is drawn with, as far as that can be known.

        Args:
            kwargs: Options of the call.
        """
        options = {**self.kwargs, **kwargs}
        return {
            name: self._values(name, option, options)
            for name, option in ANSWER_OPTIONS.items()
        }

    def _values(
        self, name: str, option: AnswerOption, options: Mapping[str, Any]
    ) -> frozenset[AnswerValue]:
        """Return what an option of a request is, empty if nobody knows."""
        row = self.provider
        place = row.full_of(options)
        full = None if place is None else options[place]
        nested = (
            options.get(held, getattr(self.model, held, None))
            for held in NESTED
            if held not in {row.in_full, *row.in_full_too}
        )
        for inner in map(as_mapping, (full, *nested)):
            if (found := option.values_in(inner)) is not None:
                return found
        if isinstance(full, Mapping):
            return frozenset({None})
        if (found := option.values_in(options)) is not None:
            return found
        fields: dict[str, tuple[str | None, ...]] = {
            "answer_temperature": (row.temperature,),
            "max_tokens": row.limits,
        }
        for held in fields.get(name, option.names):
            if held is not None and held in type(self.model).model_fields:
                return option.values(getattr(self.model, held))
        return frozenset()

    def asked(self, name: str) -> bool:
        """Return whether the user has set an option, on the model or a binding."""
        return bool(self.kwargs.get(name, getattr(self.model, name, None)))


@lru_cache
def _is_openai(kind: type[BaseChatModel]) -> bool:
    return any(base.__name__ == "BaseChatOpenAI" for base in kind.__mro__)


def pin(model: ChatRunnable, config: RunnableConfig | None = None) -> ChatRunnable:
    """Return the runnable as it is under a configuration, nothing left to choose.

    A model without ``configurable_fields`` and the like is returned as it is.

    Args:
        model: A chat model, or one inside ``bind``, ``bind_tools``, ``with_config``,
            ``with_retry``, ``with_fallbacks``, ``configurable_fields`` or
            ``init_chat_model``.
        config: Configuration of the call.

    Raises:
        ConfigurationError: If there is something else inside.
    """
    if isinstance(model, BaseChatModel):
        return model
    if isinstance(model, RunnableWithFallbacks | RunnableBindingBase):
        return _rebuilt(model, lambda inner: pin(inner, _inner_config(model, config)))
    if isinstance(model, DynamicRunnable):
        return pin(*model.prepare(config))
    if is_open(model):
        made: Any = model
        return pin(made._model(config), config)  # noqa: SLF001 - the only way in
    raise ConfigurationError(_not_a_model(model))


def check_model(model: object) -> None:
    """Check that what a guard is to guard is a chat model, whatever is inside it.

    What is chosen only when it is called is checked then.

    Raises:
        ConfigurationError: If it is none.
    """
    wrapper: Any = model
    if isinstance(model, RunnableWithFallbacks):
        for inner in (wrapper.runnable, *wrapper.fallbacks):
            check_model(inner)
    elif isinstance(model, RunnableBindingBase):
        check_model(wrapper.bound)
    elif not (isinstance(model, BaseChatModel | DynamicRunnable) or is_open(model)):
        raise ConfigurationError(_not_a_model(model))


def has_choices(model: ChatRunnable) -> bool:
    """Return whether what is called depends on the configuration of the call."""
    if isinstance(model, RunnableWithFallbacks):
        return any(map(has_choices, (model.runnable, *model.fallbacks)))
    if isinstance(model, RunnableBindingBase):
        return has_choices(model.bound)
    return not isinstance(model, BaseChatModel)


def model_name(model: ChatRunnable) -> str | None:
    """Return what tracers call the model behind a runnable.

    None where there are several, where it depends on the configuration of the call, or
    where it has no name.
    """
    if has_choices(model):
        return None
    names = model_names(model)
    return names.pop() if len(names) == 1 else None


def model_names(model: ChatRunnable) -> set[str | None]:
    """Return what tracers call the models behind a pinned runnable."""
    return {candidate.names({})[0] for candidate in resolve(model)}


def answer_settings(model: ChatRunnable) -> AnswerSettings:
    """Return what the models behind a pinned runnable may draw the answer with."""
    return together(candidate.answer_settings({}) for candidate in resolve(model))


def is_open(model: object) -> bool:
    """Return whether it is what ``init_chat_model`` gives without a fixed model."""
    name = type(model).__name__
    return name == "_ConfigurableModel" and callable(getattr(model, "_model", None))


def resolve(model: ChatRunnable) -> tuple[Candidate, ...]:
    """Return the chat models behind a pinned runnable, in the order of their turns."""
    if isinstance(model, RunnableWithFallbacks):
        handles = tuple(model.exceptions_to_handle)
        return tuple(
            replace(candidate, handles=(*candidate.handles, *handles))
            for runnable in (model.runnable, *model.fallbacks)
            for candidate in resolve(runnable)
        )
    if isinstance(model, RunnableBindingBase):
        return tuple(_bound(candidate, model) for candidate in resolve(model.bound))
    return (Candidate(model=cast("BaseChatModel", model)),)


def quiet_copy(model: ChatRunnable) -> ChatRunnable:
    """Return a copy of a pinned runnable that tells no callback handler anything."""
    if isinstance(model, RunnableBindingBase):
        config = {k: v for k, v in model.config.items() if k != "callbacks"}
        update: dict[str, Any] = {"config": config, "config_factories": []}
        return _rebuilt(model.model_copy(update=update), quiet_copy)
    if isinstance(model, BaseChatModel):
        return model.model_copy(update={"callbacks": None, "verbose": False})
    return _rebuilt(model, quiet_copy)


def _rebuilt(
    model: ChatRunnable, change: Callable[[ChatRunnable], ChatRunnable]
) -> ChatRunnable:
    """Return a wrapper with what is inside changed, itself where nothing changes."""
    if isinstance(model, RunnableWithFallbacks):
        inner = [model.runnable, *model.fallbacks]
        changed = [change(runnable) for runnable in inner]
        if all(new is old for new, old in zip(changed, inner, strict=True)):
            return model
        update = {"runnable": changed[0], "fallbacks": changed[1:]}
        return model.model_copy(update=update)
    binding = cast("RunnableBindingBase[Any, Any]", model)
    bound = change(binding.bound)
    if bound is binding.bound:
        return model
    return binding.model_copy(update={"bound": bound})


def _inner_config(
    model: ChatRunnable, config: RunnableConfig | None
) -> RunnableConfig | None:
    if isinstance(model, RunnableBindingBase):
        return merge_configs(config, model.config)
    return config


def _bound(candidate: Candidate, binding: RunnableBindingBase[Any, Any]) -> Candidate:
    # Samples have their own retry layer, so that of with_retry is left out.
    retry = isinstance(binding, RunnableRetry)
    kwargs: Mapping[str, Any] = {} if retry else binding.kwargs
    return replace(
        candidate,
        kwargs={**candidate.kwargs, **kwargs},
        config=merge_configs(candidate.config, binding.config),
    )


def _not_a_model(model: object) -> str:
    message = (
        "a guard needs a chat model: a BaseChatModel, or one inside bind, bind_tools, "
        "with_config, with_retry, with_fallbacks, configurable_fields or "
        f"init_chat_model; got {type(model).__name__}"
    )
    if isinstance(model, Runnable):
        message += (
            ". To guard a chain, guard the model in it: prompt | guard | parser; to "
            "guard structured output: guard.with_structured_output(schema)"
        )
    return message


def _uses_responses(candidate: Candidate) -> bool:
    """Return whether the Responses API would be used: it has neither n nor logprobs."""
    decide = getattr(candidate.model, "_use_responses_api", None)
    if callable(decide):
        model_kwargs = getattr(candidate.model, "model_kwargs", {})
        return bool(decide({**candidate.kwargs, **model_kwargs}))
    return bool(getattr(candidate.model, "use_responses_api", False))
