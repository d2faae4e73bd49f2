"""Requests that no handler is told of, past LangChain's callbacks where it is the same.

``BaseChatModel.generate`` makes a run, tells handlers of it and has the request sent by
``_generate_with_cache``: that one looks into the cache, waits for the rate limiter,
chooses between streaming and not, calls ``_generate`` (``_agenerate`` in a thread where
a class has no such method) and gives messages their ids, metadata and content blocks.
Without anybody to tell, the run is most of what a request costs on our side, so the
sending alone is called. A class or an instrumentation that changes any step before it
is asked as ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType, ModuleType
from typing import Any

from langchain_core.callbacks import (
    AsyncCallbackManagerForLLMRun,
    BaseCallbackHandler,
    CallbackManagerForLLMRun,
)
from langchain_core.language_models import BaseChatModel, chat_models
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatResult, LLMResult
from langchain_core.runnables import Runnable, RunnableBinding, base

from snne_guard.sampling.langchain_quiet import silent

__all__ = [
    "agenerate",
    "ais_direct",
    "asend",
    "generate",
    "is_bare",
    "is_direct",
    "send",
]

_THREADS = ("_convert_input", "invoke", "generate_prompt", "generate")
_TASKS = ("_convert_input", "ainvoke", "agenerate_prompt", "agenerate")
"""The steps that are left out, in the order in which they call one another."""

_NAMED = frozenset({"callbacks", "metadata", "run_id", "run_name", "tags"})
"""Options that ``generate`` takes for the run: a provider never sees them."""

_TOLD = frozenset({"ls_structured_output_format", "structured_output_format"})
"""Options that only tracers are told."""


def _normalizer() -> Callable[[Sequence[BaseMessage]], list[BaseMessage]] | None:
    """Return what ``generate`` does to messages first, None where it does nothing."""
    try:
        from langchain_core.language_models._utils import (
            _normalize_messages as normalize,  # pyright: ignore[reportPrivateUsage]
        )
    except ImportError:  # pragma: no cover - a private name, gone in some version
        return None
    return normalize


_normalize = _normalizer()


def is_bare(model: Runnable[Any, Any]) -> bool:
    """Return whether a runnable does no more than call one chat model.

    Options may be bound to it, and a configuration that is known.
    """
    if isinstance(model, BaseChatModel):
        return True
    if not isinstance(model, RunnableBinding) or model.config_factories:
        return False
    steps = ("invoke", "ainvoke")
    return _has_langchains(model, steps, base) and is_bare(model.bound)


def is_direct(model: BaseChatModel, options: Mapping[str, Any]) -> bool:
    """Return whether ``send`` is to a request what ``invoke`` and ``generate`` are.

    Args:
        model: The model.
        options: Of the request, what is bound to the model among them.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> class Logged(FakeListChatModel):
        ...     def generate(self, *args, **kwargs):
        ...         print("asked")
        ...         return super().generate(*args, **kwargs)
        >>> is_direct(FakeListChatModel(responses=[]), {})
        True
        >>> is_direct(Logged(responses=[]), {})
        False
    """
    return _is_plain(model, options, (*_THREADS, "_generate_with_cache"))


def ais_direct(model: BaseChatModel, options: Mapping[str, Any]) -> bool:
    """Return the same of ``asend``, ``ainvoke`` and ``agenerate``."""
    return _is_plain(model, options, (*_TASKS, "_agenerate_with_cache"))


def _is_plain(
    model: BaseChatModel, options: Mapping[str, Any], steps: Sequence[str]
) -> bool:
    if _normalize is None or not _NAMED.isdisjoint(options):
        return False
    return _has_langchains(model, steps, chat_models)


def _has_langchains(model: object, steps: Sequence[str], module: ModuleType) -> bool:
    """Return whether methods are those of LangChain's module, not even wrapped."""
    own, kind = vars(model), type(model)
    methods = [None if step in own else getattr(kind, step, None) for step in steps]
    # Not isinstance: wrappers of instrumentations pass for what they wrap.
    plain = [method for method in methods if type(method) is FunctionType]
    if len(plain) < len(methods):
        return False
    return all(method.__globals__ is vars(module) for method in plain)


def send(
    model: BaseChatModel,
    messages: Sequence[BaseMessage],
    options: Mapping[str, Any],
    run: CallbackManagerForLLMRun,
) -> LLMResult:
    """Send a request for which ``is_direct``; no handler is told of it.

    Args:
        model: The model that is asked.
        messages: The whole conversation.
        options: Of this request, what is bound to the model among them.
        run: What the model is given to tell handlers by.
    """
    made = model._generate_with_cache(  # noqa: SLF001 - the step itself  # pyright: ignore[reportPrivateUsage]
        _normalized(messages), run_manager=run, **_sent(options)
    )
    return _whole(made)


async def asend(
    model: BaseChatModel,
    messages: Sequence[BaseMessage],
    options: Mapping[str, Any],
    run: AsyncCallbackManagerForLLMRun,
) -> LLMResult:
    """Do the same in a task, where ``ais_direct``."""
    asking = model._agenerate_with_cache(  # noqa: SLF001 - the step itself  # pyright: ignore[reportPrivateUsage]
        _normalized(messages), run_manager=run, **_sent(options)
    )
    # As agenerate does: a model that swallows its cancellation does not keep us.
    (made,) = await asyncio.gather(asking)
    return _whole(made)


def generate(
    model: BaseChatModel,
    messages: Sequence[BaseMessage],
    options: Mapping[str, Any],
    run: CallbackManagerForLLMRun,
) -> LLMResult:
    """Send any request, by ``generate`` where it cannot be sent directly."""
    if is_direct(model, options):
        return send(model, messages, options, run)
    seen = _Seen()
    result = model.generate([list(messages)], callbacks=seen.handlers, **options)
    return seen.completed(result)


async def agenerate(
    model: BaseChatModel,
    messages: Sequence[BaseMessage],
    options: Mapping[str, Any],
    run: AsyncCallbackManagerForLLMRun,
) -> LLMResult:
    """Do the same in a task."""
    if ais_direct(model, options):
        return await asend(model, messages, options, run)
    seen = _Seen()
    asking = model.agenerate([list(messages)], callbacks=seen.handlers, **options)
    return seen.completed(await asking)


def _normalized(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    return list(messages) if _normalize is None else _normalize(messages)


def _whole(made: ChatResult) -> LLMResult:
    return LLMResult(generations=[[*made.generations]], llm_output=made.llm_output)


def _sent(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name not in _TOLD}


class _Seen(BaseCallbackHandler):
    """Keeps what ``generate`` leaves out of its result: the model that answered."""

    run_inline = True

    def __init__(self) -> None:
        self.output: dict[str, Any] = {}

    @property
    def handlers(self) -> list[BaseCallbackHandler]:
        """All that a quiet request needs."""
        return [self, *silent()]

    @property
    def ignore_chat_model(self) -> bool:
        """Always: it need not know that a request goes out."""
        return True

    def on_llm_end(self, response: LLMResult, **kwargs: Any) -> None:  # noqa: ANN401, ARG002 - LangChain's signature
        self.output = dict(response.llm_output or {})

    def completed(self, result: LLMResult) -> LLMResult:
        output = {**(result.llm_output or {}), **self.output}
        return LLMResult(generations=result.generations, llm_output=output)
