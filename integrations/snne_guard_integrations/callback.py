"""Shadow mode: a callback handler that resamples a share of ordinary runs, later."""

from __future__ import annotations

import asyncio
import functools
import random
from collections.abc import Callable, Mapping
from contextvars import copy_context
from typing import Any, Self, TypeVar, cast
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.runnables import Runnable, RunnableBinding

from snne_guard import ConfigurationError, SNNEGuard
from snne_guard.langchain import ANSWER_TAG, PROVIDERS, SAMPLE_TAG
from snne_guard_integrations._backlog import (
    Asked,
    Backlog,
    Job,
    ShadowCounts,
    WatchedRun,
)

__all__ = ["SNNECallbackHandler", "ShadowCounts", "WatchedRun"]

Hook = TypeVar("Hook", bound=Callable[..., None])

_SHAPING = frozenset(
    {
        "format",
        "function_call",
        "functions",
        "output_config",
        "output_format",
        "parallel_tool_calls",
        "previous_response_id",
        "response_format",
        "response_json_schema",
        "response_mime_type",
        "response_schema",
        "toolConfig",
        "tool_choice",
        "tool_config",
        "tools",
    }
).union(*(row.acting for row in PROVIDERS))
"""What providers call tools and the form of a reply: samples need the same."""


def _harmless(hook: Hook) -> Hook:
    """Let a hook count its failure instead of breaking the run that called it."""

    @functools.wraps(hook)
    def told(self: SNNECallbackHandler, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - LangChain's
        try:
            hook(self, *args, **kwargs)
        except Exception as error:  # noqa: BLE001 - the run is none of ours
            self._backlog.failed(error)  # pyright: ignore[reportPrivateUsage]

    return cast("Hook", told)


class SNNECallbackHandler(BaseCallbackHandler):
    """Watches ordinary runs of chat models and assesses a share of them, later.

    For those who cannot put a guard in the model's place. Hand it to a chain, an agent
    or a model as a callback: nothing about the run changes. When a run has ended, its
    messages and its answer go into a queue; a thread draws samples of it with the
    guard's model, scores them beside the answer that was delivered, and tells the
    guard's observers. ``Assessment.run_id`` is the run that was watched, and observers
    are called in a copy of the context in which it began, so that a tracing tool's
    score lands on the right trace. What the guard decides is only reported.

    It never waits and never raises: a hook takes tens of microseconds, a full queue
    drops and counts. No callback handler is told of the samples, so that they are in
    nobody's traces and usage counters; their cost is in the assessment.

    Args:
        guard: What draws, scores and reports; every option of it holds. Its model
            should be the one that is watched: of a watched run's own options, only
            ``stop``, tools and the form of the reply are passed on.
        sample_rate: Share of runs that are taken, in [0, 1]; None for the guard's own.
        take_when: Says of a ``WatchedRun`` whether to take it. It is asked in the run
            itself, so it must be quick; one that fails takes nothing.
        max_queue: Answers that may wait.
        workers: Answers that are assessed at the same time.
        exit_timeout: Seconds that the end of the process waits for what is in the
            queue; 0 drops it. What is lost is logged as a number.

    Raises:
        ConfigurationError: If an option makes no sense.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> model = FakeListChatModel(responses=["Paris"])
        >>> handler = SNNECallbackHandler(SNNEGuard(model, n=3))
        >>> with handler:
        ...     answer = model.invoke(
        ...         "The capital of France?", {"callbacks": [handler]}
        ...     )
        >>> handler.counts.assessed
        1
    """

    raise_error = False
    run_inline = True
    """The hooks do not wait, so they need no thread, which asyncio would give them."""

    def __init__(
        self,
        guard: SNNEGuard,
        *,
        sample_rate: float | None = None,
        take_when: Callable[[WatchedRun], object] | None = None,
        max_queue: int = 100,
        workers: int = 1,
        exit_timeout: float = 5.0,
    ) -> None:
        super().__init__()
        _check(guard, sample_rate)
        rate = guard.sample_rate if sample_rate is None else sample_rate
        self.guard = guard
        self.sample_rate, self.take_when = rate, take_when
        self._options: dict[str, Any] = {
            "sample_rate": rate,
            "take_when": take_when,
            "max_queue": max_queue,
            "workers": workers,
            "exit_timeout": exit_timeout,
        }
        # Who is taken is decided here, once.
        self._drawing = guard.on(guard.model, sample_rate=1.0)
        self._kind, self._shaped = _kind_of(guard), _is_shaped(guard.model)
        self._backlog = Backlog(
            self._assess,
            max_queue=max_queue,
            workers=workers,
            exit_timeout=exit_timeout,
        )

    @property
    def counts(self) -> ShadowCounts:
        """What became of the runs so far, in this process."""
        return self._backlog.counts()

    def flush(self, timeout: float | None = 30.0) -> bool:
        """Wait until every answer in the queue is assessed.

        Args:
            timeout: Seconds to wait at most, None for no limit.

        Returns:
            Whether it came about in time.
        """
        return self._backlog.flush(timeout)

    async def aflush(
        self,
        timeout: float | None = 30.0,  # noqa: ASYNC109 - mirrors the thread twin
    ) -> bool:
        """Do what ``flush`` does without blocking the event loop."""
        return await asyncio.to_thread(self.flush, timeout)

    def close(self, *, drain: bool = True, timeout: float | None = 30.0) -> bool:
        """Take no more runs, and see to what is in the queue.

        Args:
            drain: Whether to assess what is in the queue, or else to drop it.
            timeout: Seconds after which the rest is dropped after all.

        Returns:
            Whether nothing was left. What is being assessed goes on in any case.
        """
        return self._backlog.close(drain=drain, timeout=timeout)

    async def aclose(
        self,
        *,
        drain: bool = True,
        timeout: float | None = 30.0,  # noqa: ASYNC109 - mirrors the thread twin
    ) -> bool:
        """Do what ``close`` does without blocking the event loop."""
        return await asyncio.to_thread(self.close, drain=drain, timeout=timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        """Return itself: a copy of a model is watched by the same handler."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Start anew in another process: a queue and threads cannot travel."""
        return functools.partial(type(self), self.guard, **self._options), ()

    @property
    def ignore_chain(self) -> bool:
        """Always: only runs of models are watched."""
        return True

    @property
    def ignore_agent(self) -> bool:
        """Always."""
        return True

    @property
    def ignore_retriever(self) -> bool:
        """Always."""
        return True

    @property
    def ignore_retry(self) -> bool:
        """Always."""
        return True

    @property
    def ignore_custom_event(self) -> bool:
        """Always."""
        return True

    @_harmless
    def on_chat_model_start(
        self,
        serialized: dict[str, Any],  # noqa: ARG002 - LangChain's signature
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,  # noqa: ANN401 - LangChain's signature
    ) -> None:
        """Keep what a run is asked, if it is to be assessed."""
        if SAMPLE_TAG in (tags or ()):
            return
        self._backlog.note("seen")
        run = WatchedRun(
            run_id=run_id,
            messages=tuple(messages[0]),
            tags=tuple(tags or ()),
            metadata=metadata or {},
            parameters=kwargs.get("invocation_params") or {},
        )
        options = self._carried(run.parameters, kwargs.get("options") or {})
        reason = self._skips(run, parent_run_id, options)
        if reason is not None:
            self._backlog.note("skipped", reason=reason)
            return
        asked = Asked(run=run, options=options or {}, context=copy_context())
        self._backlog.begin(asked)

    @_harmless
    def on_llm_start(self, *_args: Any, **_kwargs: Any) -> None:  # noqa: ANN401 - LangChain's signature
        """Count a run of a completion model, which is never assessed."""
        self._backlog.note("seen", "skipped", reason="not_a_chat_model")

    @_harmless
    def on_llm_end(
        self,
        response: LLMResult,
        *,
        run_id: UUID,
        **kwargs: Any,  # noqa: ANN401, ARG002 - LangChain's signature
    ) -> None:
        """Put the run's answer into the queue."""
        asked = self._backlog.ended(run_id)
        if asked is None:
            return
        answer = _answer(response)
        reason = "no_answer" if answer is None else _settled_before(answer)
        if answer is None or reason is not None:
            self._backlog.note("skipped", reason=reason)
            return
        # A copy: what comes after the run may change the message.
        self._backlog.offer(Job(asked=asked, answer=answer.model_copy()))

    @_harmless
    def on_llm_error(
        self,
        error: BaseException,
        *,
        run_id: UUID,
        **kwargs: Any,  # noqa: ANN401, ARG002 - LangChain's signature
    ) -> None:
        """Let go of a run that failed or was left alone."""
        if self._backlog.ended(run_id) is not None:
            left = isinstance(error, GeneratorExit | asyncio.CancelledError)
            self._backlog.note("skipped", reason="abandoned" if left else "run_failed")

    def _skips(
        self,
        run: WatchedRun,
        parent_run_id: UUID | None,
        options: Mapping[str, Any] | None,
    ) -> str | None:
        """Return why a run is not to be assessed, None if it is."""
        whys: dict[str, Callable[[], object]] = {
            "closed": lambda: self._backlog.closed,
            "guarded": lambda: ANSWER_TAG in run.tags,
            "nested": lambda: self._backlog.is_open(parent_run_id),
            "not_sampled": lambda: random.random() >= self.sample_rate,  # noqa: S311 - no secret
            "shape_unknown": lambda: options is None,
            "not_taken": lambda: self.take_when and not self.take_when(run),
        }
        return next((reason for reason, holds in whys.items() if holds()), None)

    def _carried(
        self, parameters: Mapping[str, Any], options: Mapping[str, Any]
    ) -> dict[str, Any] | None:
        """Return the options that samples share with the run, None if they cannot."""
        stop = options.get("stop")
        carried = {"stop": stop} if stop else {}
        shape = {
            name: value
            for name in _SHAPING & parameters.keys()
            if (value := parameters[name]) not in (None, False, [])
        }
        if shape and parameters.get("_type") == self._kind:
            return carried | shape
        shaped = shape or "ls_structured_output_format" in options
        return carried if self._shaped or not shaped else None

    def _assess(self, job: Job) -> None:
        run = job.asked.run
        assess = functools.partial(
            self._drawing.assess,
            list(run.messages),
            {"metadata": dict(run.metadata)},
            answer=job.answer,
            run_id=run.run_id,
            **job.asked.options,
        )
        job.asked.context.run(assess)


def _answer(response: LLMResult) -> AIMessage | None:
    """Return the message that the application gets: of several the first."""
    for generation in response.generations[0][:1] if response.generations else ():
        if isinstance(generation, ChatGeneration):
            message = generation.message
            return message if isinstance(message, AIMessage) else None
    return None


def _settled_before(answer: AIMessage) -> str | None:
    """Return why an answer needs no assessment, None if it does."""
    if "snne_guard" in answer.response_metadata:
        return "guarded"
    # LangChain's mark of an answer from its cache: it was drawn, and seen, before.
    usage: Mapping[str, Any] = {**(answer.usage_metadata or {})}
    return "cached" if usage.get("total_cost") == 0 else None


def _kind_of(guard: SNNEGuard) -> str | None:
    """Return LangChain's word for the guard's model, None where it is left open."""
    try:
        model = guard.innermost
    except Exception:  # noqa: BLE001 - a model that is chosen when it is called
        return None
    return model._llm_type  # noqa: SLF001 - LangChain's own contract for tracers  # pyright: ignore[reportPrivateUsage]


def _is_shaped(model: Runnable[Any, Any]) -> bool:
    """Return whether the guard's model has tools or a form of reply bound itself."""
    while isinstance(model, RunnableBinding):
        if _SHAPING & model.kwargs.keys():
            return True
        model = model.bound
    return False


def _check(guard: object, sample_rate: float | None) -> None:
    if not isinstance(guard, SNNEGuard):
        msg = (
            "SNNECallbackHandler needs a guard that says how to sample and score: "
            f"SNNEGuard(model, ...); got {type(guard).__name__}"
        )
        raise ConfigurationError(msg)
    if sample_rate is not None and not 0 <= sample_rate <= 1:
        msg = f"sample_rate must be in [0, 1], or None; got {sample_rate!r}"
        raise ConfigurationError(msg)
