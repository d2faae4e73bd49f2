"""What stands behind a LangChain model: its wrappers, its settings, its abilities."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
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

__all__ = [
    "Candidate",
    "ChatRunnable",
    "check_model",
    "has_choices",
    "is_open",
    "pin",
    "quiet_copy",
    "resolve",
    "sampling_copy",
    "side_effects",
]

ChatRunnable = Runnable[Any, Any]
"""A chat model, or a LangChain wrapper around one."""

TOKEN_LIMITS = (
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "max_new_tokens",
    "num_predict",
)

_OFF: dict[str, object] = {"streaming": False, "seed": None, "store": False}
"""Options that would garble samples, make them all alike or leave traces."""


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

    @property
    def is_openai(self) -> bool:
        """Whether it is langchain-openai's class, or built on it."""
        names = {base.__name__ for base in type(self.model).__mro__}
        return "BaseChatOpenAI" in names

    @property
    def speaks_openai(self) -> bool:
        """Whether it speaks Chat Completions as OpenAI does."""
        return self.is_openai and not self.uses_responses

    @property
    def uses_responses(self) -> bool:
        """Whether OpenAI's Responses API is used: it has neither n nor logprobs."""
        return _uses_responses(self)

    def asked(self, name: str) -> bool:
        """Return whether the user has set an option, on the model or a binding."""
        return bool(self.kwargs.get(name, getattr(self.model, name, None)))


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
        message += ". To guard a chain, guard the model in it: prompt | guard | parser"
    return message


def sampling_copy(
    model: BaseChatModel,
    *,
    temperature: float,
    max_tokens: int | None,
    clean: Callable[[Mapping[str, Any]], dict[str, Any]] = dict,
) -> BaseChatModel:
    """Return a copy of a chat model that draws samples.

    Its cache, streaming, callbacks and own retries are off, it stores nothing, and
    the temperature is set where the model has one. ``clean`` takes out of its nested
    options what samples must not carry. The user's object is untouched, and the copy
    shares its connections.
    """
    update: dict[str, Any] = {
        "cache": False,
        "disable_streaming": True,
        "callbacks": None,
        "verbose": False,
    }
    fields = type(model).model_fields
    if "temperature" in fields:
        update["temperature"] = temperature
    update |= {
        name: off
        for name, off in _OFF.items()
        if name in fields and getattr(model, name)
    }
    if "n" in fields:
        update["n"] = fields["n"].default
    for place in ("extra_body", "model_kwargs"):
        if place in fields and (inner := getattr(model, place)):
            update[place] = clean(inner)
    if max_tokens is not None:
        update |= {name: max_tokens for name in TOKEN_LIMITS if name in fields}
    return model.model_copy(update=update | _clients_without_retries(model))


_ACTING = ("conversation", "background", "mcp_servers", "web_search_options")
"""Options with which a provider does more than answer."""
_NESTED = ("extra_body", "model_kwargs")
_PROPOSED = frozenset(
    {"function", "functionDeclarations", "function_declarations", "toolSpec"}
)
"""Keys of tools that the provider only proposes to call."""
_SCHEMAS = frozenset({"args_schema", "input_schema", "parameters", "properties"})


def side_effects(candidate: Candidate, kwargs: Mapping[str, Any]) -> bool:
    """Return whether a further draw could do something besides answering.

    Tools that run at the provider may write, pay or send; a stored conversation would
    grow by every sample.
    """
    model = candidate.model
    names = (*_ACTING, *_NESTED)
    own = {name: getattr(model, name) for name in names if hasattr(model, name)}
    return _acts(own) or _acts({**candidate.kwargs, **kwargs})


def _acts(options: Mapping[str, Any]) -> bool:
    if any(_is_set(options.get(name)) for name in _ACTING):
        return True
    if isinstance(tools := options.get("tools"), Sequence):
        given = cast("Sequence[object]", tools)
        if any(_runs_at_provider(tool) for tool in given):
            return True
    return any(
        _acts(cast("Mapping[str, Any]", nested))
        for place in _NESTED
        if isinstance(nested := options.get(place), Mapping)
    )


def _is_set(value: object) -> bool:
    # An empty mapping asks for something, in its usual form; an empty list does not.
    return value is not None and value is not False and value != []


def _runs_at_provider(tool: object) -> bool:
    if not isinstance(tool, Mapping):
        return False
    given = cast("Mapping[str, object]", tool)
    if "type" in given:
        return given["type"] not in ("function", "custom")
    # Tools of the user's own have a schema, at Anthropic and elsewhere too.
    if {"name", "title"} & given.keys() and _SCHEMAS & given.keys():
        return False
    return not given.keys() <= _PROPOSED


def _clients_without_retries(model: BaseChatModel) -> dict[str, Any]:
    update: dict[str, Any] = {}
    for root, leaf in (
        ("root_client", "client"),
        ("root_async_client", "async_client"),
    ):
        client: Any = getattr(model, root, None)
        if client is not None and hasattr(client, "with_options"):
            client = client.with_options(max_retries=0)
            update |= {root: client, leaf: client.chat.completions}
    return update


def _uses_responses(candidate: Candidate) -> bool:
    """Return whether the Responses API would be used: it has neither n nor logprobs."""
    decide = getattr(candidate.model, "_use_responses_api", None)
    if callable(decide):
        model_kwargs = getattr(candidate.model, "model_kwargs", {})
        return bool(decide({**candidate.kwargs, **model_kwargs}))
    return bool(getattr(candidate.model, "use_responses_api", False))
