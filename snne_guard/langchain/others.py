"""Other chat models, each of which draws a sample beside the guarded one.

Another model is asked at its own settings. It gets the conversation, tools or schema
in its own form, and the stop texts and the token limit of the call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from langchain_core.language_models import BaseChatModel

from snne_guard.engine import answer_settings, asks_for_schema, may_act
from snne_guard.engine.vocabulary import LIMITS
from snne_guard.errors import ConfigurationError
from snne_guard.langchain.wrappers import ChatRunnable, ModelTree, rebuild


def names_of(models: Sequence[ChatRunnable]) -> list[str]:
    """Return the name of each other model: its own, or its class where it has none.

    Raises:
        ConfigurationError: They are no list of chat models.
    """
    if not isinstance(models, list | tuple):
        msg = f"expected other_models to be a list, got {type(models).__name__}"
        raise ConfigurationError(msg)
    first = [ModelTree(model).targets[0] for model in models]
    return [target.name or type(target.model).__name__ for target in first]


def check_others(models: Sequence[ChatRunnable], guarded: ModelTree) -> None:
    """Refuse other models that are none, or whose samples could act on the world.

    Raises:
        ConfigurationError: One is the guarded model, or runs tools at its provider.
    """
    for model, name in zip(models, names_of(models), strict=True):
        tree = ModelTree(model)
        pairs = [(own, other) for own in guarded.targets for other in tree.targets]
        if any(
            other.model is own.model or (own.name and own.name == other.name)
            for own, other in pairs
        ):
            msg = (
                f"expected other models than the guarded one, got {name!r}; more "
                "samples of it are drawn with a larger n"
            )
            raise ConfigurationError(msg)
        if any(map(may_act, tree.levels)):
            msg = (
                f"the other model {name!r} has tools that run at its provider, so that "
                "its sample could act on the world"
            )
            raise ConfigurationError(msg)


def bound_to_each(
    models: Sequence[ChatRunnable],
    names: Sequence[str],
    change: Callable[[BaseChatModel], ChatRunnable],
) -> list[ChatRunnable]:
    """Return other models with something bound to each, in its own form.

    Raises:
        ConfigurationError: One cannot be bound; the message names it.
    """
    bound: list[ChatRunnable] = []
    for model, name in zip(models, names, strict=True):
        try:
            bound.append(rebuild(model, change))
        except Exception as error:
            msg = f"the other model {name!r} cannot be bound to this: {error!r}"
            raise ConfigurationError(msg) from error
    return bound


def check_forms(guarded: ModelTree, others: Mapping[str, ModelTree]) -> None:
    """Refuse other models that are not asked for the guarded one's form of answer.

    Raises:
        ConfigurationError: One lacks the tools or the schema of the model.
    """
    forms: Mapping[str, Callable[[Mapping[str, Any]], Any]] = {
        "tools": lambda level: level.get("tools"),
        "schema": asks_for_schema,
    }
    for name, other in others.items():
        for form, is_asked in forms.items():
            if any(map(is_asked, guarded.levels)) > any(map(is_asked, other.levels)):
                msg = (
                    f"the other model {name!r} has no {form}, and the guarded one has: "
                    "bind it by bind_tools or with_structured_output of the guard, or "
                    "to both models; in create_agent, ask for a schema by ToolStrategy"
                )
                raise ConfigurationError(msg)


def tree_of(model: ChatRunnable, options: Mapping[str, Any]) -> ModelTree:
    """Return the other model with the stop texts and the token limit of a call."""
    given = answer_settings(options)
    limit, stop = given.get("max_tokens"), given.get("stop")
    if limit is not None:
        model = rebuild(model, partial(_limited, limit=limit))
    return ModelTree(model, {} if stop is None else {"stop": stop})


def _limited(model: BaseChatModel, *, limit: int) -> ChatRunnable:
    """Return a model with a token limit, in the field that its class has for it."""
    field = next((name for name in LIMITS if name in type(model).model_fields), None)
    if field is None:
        return model.bind(max_tokens=limit)
    return model.model_copy(update={field: limit})
