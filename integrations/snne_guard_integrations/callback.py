"""Shadow mode: assess the calls of unguarded models, beside the application."""

from __future__ import annotations

import asyncio
import inspect
import logging
import queue
import random
import threading
from collections import Counter
from collections.abc import Awaitable, Mapping
from contextvars import Context, copy_context
from dataclasses import dataclass, replace
from typing import Any, Self
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from langsmith import get_current_run_tree  # langchain-core requires it

from snne_guard import ConfigurationError, SNNEGuard

__all__ = ["SNNECallbackHandler", "ShadowCounts"]

_log = logging.getLogger(__name__)

_MAX_OPEN = 1000
"""Runs that may be open; a run that never reports its end would stay for ever."""

_FORM = ("tools", "tool_choice", "response_format", "format", "stop")
"""Parameters of a run that decide what kind of reply it gives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowCounts:
    """What became of the runs that a ``SNNECallbackHandler`` has seen.

    Attributes:
        seen: Runs of chat models that began, less those that ``sample_rate`` left out.
        skipped: Runs that failed, gave no message, or were guarded already.
        dropped: Answers that found the queue full, or the handler closed.
        assessed: Answers that were assessed.
        failed: Answers of which the assessment, or an observer of it, raised.
    """

    seen: int = 0
    skipped: int = 0
    dropped: int = 0
    assessed: int = 0
    failed: int = 0


class SNNECallbackHandler(BaseCallbackHandler):
    """Assesses a share of the calls of unguarded models, after they have answered.

    Pass it as a callback to a model, a chain or an agent; nothing about their runs
    changes. When a run ends, its messages and its answer go into a queue. A daemon
    thread draws samples with the guard's model, scores them beside the answer and tells
    the guard's observers, in the context in which the run began and with its id as
    ``run_id``. What the guard decides is reported and not carried out.

    The hooks neither wait nor raise. Where the queue is full, an answer is dropped and
    counted. Call ``close`` before the process ends (``with`` does), or what waits is
    lost.

    Args:
        guard: Draws, scores and reports, on the model that is watched. Of a run's own
            parameters, samples get tools, the form of the reply and stop texts.
        sample_rate: Share of runs to assess, in [0, 1]; None: the guard's.
        max_queue: Answers that may wait; at least 1.

    Raises:
        ConfigurationError: An option makes no sense.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> model = FakeListChatModel(responses=["Paris"])
        >>> handler = SNNECallbackHandler(SNNEGuard(model, n=3))
        >>> model.invoke("The capital of France?", {"callbacks": [handler]}).content
        'Paris'
        >>> handler.flush(), handler.counts.assessed
        (True, 1)
    """

    run_inline = True
    """Async code calls the hooks directly, in the context of the run."""

    def __init__(
        self,
        guard: SNNEGuard,
        *,
        sample_rate: float | None = None,
        max_queue: int = 100,
    ) -> None:
        _check_guard(guard)
        rate = guard.sample_rate if sample_rate is None else sample_rate
        if not 0 <= rate <= 1:
            msg = f"sample_rate must be in [0, 1]; got {rate!r}"
            raise ConfigurationError(msg)
        if max_queue < 1:
            msg = f"max_queue must be at least 1; got {max_queue!r}"
            raise ConfigurationError(msg)
        self.sample_rate = rate
        self._observers = tuple(guard.observers)
        # The handler chooses the runs, and tells observers which run it was.
        alone = {"observers": (), "sample_rate": 1.0}
        self._guard = guard.model_copy(update=alone)
        self._open: dict[UUID, _Asked] = {}
        self._queue: queue.Queue[tuple[_Asked, AIMessage]] = queue.Queue(max_queue)
        self._counts: Counter[str] = Counter()
        self._waiting = 0
        self._changed = threading.Condition()
        self._worker: threading.Thread | None = None
        self._closed = False

    @property
    def counts(self) -> ShadowCounts:
        """What became of the runs so far."""
        with self._changed:
            return ShadowCounts(**self._counts)

    def flush(self, timeout: float = 30.0) -> bool:
        """Wait until every answer in the queue is assessed.

        Args:
            timeout: Seconds to wait at most.

        Returns:
            Whether all were assessed in time.
        """
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting, timeout)

    def close(self, timeout: float = 30.0) -> bool:
        """Take no more runs and ``flush``."""
        self._closed = True
        return self.flush(timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def on_chat_model_start(
        self,
        serialized: dict[str, Any],  # noqa: ARG002 - LangChain's signature
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        **kwargs: Any,  # noqa: ANN401 - LangChain's signature
    ) -> None:
        """Keep what a run is asked, if it is to be assessed."""
        chosen = random.random() < self.sample_rate  # noqa: S311 - no secret
        if self._closed or not chosen:
            return
        asked = _Asked(
            run_id=run_id,
            messages=list(messages[0]),
            form=_form(kwargs.get("invocation_params") or {}),
            context=copy_context(),
            parent=get_current_run_tree(),
        )
        with self._changed:
            self._counts["seen"] += 1
            if len(self._open) >= _MAX_OPEN:
                self._open.pop(next(iter(self._open)))
                self._counts["skipped"] += 1
            self._open[run_id] = asked

    def on_llm_end(
        self,
        response: LLMResult,
        *,
        run_id: UUID,
        **kwargs: Any,  # noqa: ANN401, ARG002 - LangChain's signature
    ) -> None:
        """Put the answer of a run into the queue."""
        with self._changed:
            asked = self._open.pop(run_id, None)
            if asked is None:
                return
            answer = _answer(response)
            if answer is None or "snne_guard" in answer.response_metadata:
                self._counts["skipped"] += 1
                return
            if self._closed or self._queue.full():
                self._counts["dropped"] += 1
                return
            # A copy, since whoever gets the answer may change it.
            self._queue.put_nowait((asked, answer.model_copy()))
            self._waiting += 1
            if self._worker is None:
                self._worker = threading.Thread(
                    target=self._work, name="snne_guard-shadow", daemon=True
                )
                self._worker.start()

    def on_llm_error(
        self,
        error: BaseException,  # noqa: ARG002 - LangChain's signature
        *,
        run_id: UUID,
        **kwargs: Any,  # noqa: ANN401, ARG002 - LangChain's signature
    ) -> None:
        """Forget a run that failed."""
        with self._changed:
            if self._open.pop(run_id, None) is not None:
                self._counts["skipped"] += 1

    def _work(self) -> None:
        while True:
            asked, answer = self._queue.get()
            try:
                asked.context.run(self._assess, asked, answer)
                outcome = "assessed"
            except Exception as error:  # noqa: BLE001 - the next answer must not suffer
                # Its type alone: the message may hold an answer.
                _log.warning("assessing an answer raised %s", type(error).__name__)
                outcome = "failed"
            with self._changed:
                self._counts[outcome] += 1
                self._waiting -= 1
                self._changed.notify_all()

    def _assess(self, asked: _Asked, answer: AIMessage) -> None:
        guard = self._guard
        if asked.form:
            bound = guard.guarded.bind(**asked.form)
            guard = guard.model_copy(update={"guarded": bound})
        assessment = guard.assess(asked.messages, answer)
        assessment = replace(assessment, run_id=str(asked.run_id))
        for observer in self._observers:
            told = observer.on_assessment(assessment)
            if inspect.isawaitable(told):
                asyncio.run(_wait(told))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    run_id: UUID
    messages: list[BaseMessage]
    form: dict[str, Any]
    context: Context
    parent: object
    """LangSmith's run around it, which the context holds only weakly."""


def _check_guard(guard: object) -> None:
    if not isinstance(guard, SNNEGuard):
        msg = f"guard must be an SNNEGuard; got {type(guard).__name__}"
        raise ConfigurationError(msg)


def _form(parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {name: parameters[name] for name in _FORM if parameters.get(name)}


def _answer(response: LLMResult) -> AIMessage | None:
    """Return the message that the application gets, the first of several."""
    first = response.generations[0][0] if any(response.generations) else None
    message = first.message if isinstance(first, ChatGeneration) else None
    return message if isinstance(message, AIMessage) else None


async def _wait(told: Awaitable[Any]) -> None:
    await told
