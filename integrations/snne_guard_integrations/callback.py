"""Shadow mode: assess the calls of unguarded models, beside the application."""

from __future__ import annotations

import logging
import queue
import random
import threading
from collections import Counter
from contextvars import Context, copy_context
from dataclasses import dataclass, replace
from typing import Any, Self
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from langsmith import get_current_run_tree  # langchain-core requires it

from snne_guard import SNNEGuard
from snne_guard.engine import notify

_log = logging.getLogger(__name__)

_MAX_OPEN = 1000
"""Runs that may be open: one that is cancelled under asyncio never reports its end."""

_KEPT = ("tools", "tool_choice", "response_format", "format", "stop")
"""Parameters of a run that decide what kind of reply it gives."""


class SNNECallbackHandler(BaseCallbackHandler):
    """Assesses the calls of unguarded models after they have answered.

    Pass it as a callback to a model, a chain or an agent; nothing about their runs
    changes. When a run ends, its messages and its answer go into a queue. A daemon
    thread draws samples with the guard's model, scores them beside the answer and tells
    the guard's observers, in the context in which the run began. What the guard decides
    is reported and not carried out. Call ``flush`` before the process ends (``with``
    does), or answers in the queue are lost.

    Args:
        guard: Draws, scores and reports, on the model that is watched. Its
            ``sample_rate`` is the share of runs that are assessed. Of a run's own
            parameters, samples get tools, the form of the reply and stop texts; its
            documents are those of its metadata (``snne_guard_context``), or the
            guard's. Its other models cannot get a run's tools or form: such runs count
            as ``failed``.
        max_queue: Answers that may wait; 0 for any number.

    Attributes:
        counts: Answers so far that were ``assessed``, ``dropped`` since the queue was
            full, or ``failed`` since their assessment raised.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> model = FakeListChatModel(responses=["Paris"])
        >>> handler = SNNECallbackHandler(SNNEGuard(model, n=3))
        >>> model.invoke("The capital of France?", {"callbacks": [handler]}).content
        'Paris'
        >>> handler.flush(), handler.counts["assessed"]
        (True, 1)
    """

    run_inline = True
    """Async code calls the hooks directly, in the context of the run."""

    def __init__(self, guard: SNNEGuard, *, max_queue: int = 100) -> None:
        self._sample_rate = guard.sample_rate
        self._observers = guard.settings.observers
        # The handler chooses the runs, and gives observers the id of the run.
        self._guard = guard.model_copy(update={"observers": (), "sample_rate": 1.0})
        self._open: dict[UUID, _Run] = {}
        self._queue: queue.Queue[tuple[_Run, AIMessage]] = queue.Queue(max_queue)
        self.counts: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._worker: threading.Thread | None = None

    def flush(self, timeout: float = 30.0) -> bool:
        """Wait until every answer is assessed, and return whether that was in time."""
        done = self._queue.all_tasks_done  # as ``join``, which knows no timeout
        with done:
            return done.wait_for(lambda: not self._queue.unfinished_tasks, timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.flush()

    def on_chat_model_start(
        self,
        serialized: dict[str, Any],  # noqa: ARG002 - LangChain's signature
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        **kwargs: Any,  # noqa: ANN401 - LangChain's signature
    ) -> None:
        """Keep what a run is asked, if it is to be assessed."""
        if random.random() >= self._sample_rate:  # noqa: S311 - no secret
            return
        given = kwargs.get("invocation_params") or {}
        run = _Run(
            id=run_id,
            messages=list(messages[0]),
            parameters={name: given[name] for name in _KEPT if given.get(name)},
            documents=(kwargs.get("metadata") or {}).get("snne_guard_context"),
            context=copy_context(),
            parent=get_current_run_tree(),
        )
        with self._lock:
            if len(self._open) >= _MAX_OPEN:
                self._open.pop(next(iter(self._open)))
            self._open[run_id] = run

    def on_llm_end(
        self,
        response: LLMResult,
        *,
        run_id: UUID,
        **kwargs: Any,  # noqa: ANN401, ARG002 - LangChain's signature
    ) -> None:
        """Put the answer of a run into the queue."""
        with self._lock:
            run, answer = self._open.pop(run_id, None), _answer(response)
            if run is None or answer is None:
                return
            if self._queue.full():
                self.counts["dropped"] += 1
                return
            # A copy, since whoever gets the answer may change it.
            self._queue.put((run, answer.model_copy()))
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
        with self._lock:
            self._open.pop(run_id, None)

    def _work(self) -> None:
        while True:
            run, answer = self._queue.get()
            try:
                run.context.run(self._assess, run, answer)
                outcome = "assessed"
            except Exception as error:  # noqa: BLE001 - the next answer must not suffer
                # Its type alone: the message may hold an answer.
                _log.warning("assessing an answer raised %s", type(error).__name__)
                outcome = "failed"
            with self._lock:
                self.counts[outcome] += 1
            self._queue.task_done()

    def _assess(self, run: _Run, answer: AIMessage) -> None:
        model = self._guard.guarded.bind(**run.parameters)
        guard = self._guard.model_copy(update={"guarded": model})
        assessment = guard.assess(run.messages, answer, context=run.documents)
        notify(self._observers, replace(assessment, run_id=str(run.id)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    id: UUID
    messages: list[BaseMessage]
    parameters: dict[str, Any]
    documents: Any
    context: Context
    parent: object
    """LangSmith's run around it, which the context holds only weakly."""


def _answer(response: LLMResult) -> AIMessage | None:
    """Return the message that the application gets, unless a guard gave it."""
    first = response.generations[0][0] if any(response.generations) else None
    message = first.message if isinstance(first, ChatGeneration) else None
    if not isinstance(message, AIMessage) or "snne_guard" in message.response_metadata:
        return None
    return message
