"""What the callback handler has under way and in its queue, and the threads for it."""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Mapping
from contextvars import Context
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID
from weakref import WeakSet

from langchain_core.messages import AIMessage, BaseMessage

from snne_guard import ConfigurationError

__all__ = ["Asked", "Backlog", "Job", "ShadowCounts", "WatchedRun"]

logger = logging.getLogger(__name__)

MAX_OPEN = 1_000
"""Runs that may be under way; of those that never end the oldest are let go."""
IDLE_SECONDS = 1.0
"""How long a thread waits for the next answer before it ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowCounts:
    """What became of the runs that a handler was told of.

    Every run is in one place: ``seen`` is ``skipped + taken`` and those that are under
    way, ``taken`` is ``assessed + failed + dropped + waiting``.

    Attributes:
        seen: Runs of models that began, those of a guard's samples left out.
        skipped: Runs that were not to be assessed.
        taken: Answers that were put up for it.
        assessed: Answers of which there is an ``Assessment``, scored or not.
        failed: Answers lost by an error, in a hook or while assessing.
        dropped: Answers lost since the queue was full or closed.
        waiting: Answers in the queue or being assessed.
        reasons: How often each reason for the skipped, failed and dropped came up.
            Failures are named by the type of the error.
    """

    seen: int = 0
    skipped: int = 0
    taken: int = 0
    assessed: int = 0
    failed: int = 0
    dropped: int = 0
    waiting: int = 0
    reasons: Mapping[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedRun:
    """A run of a chat model that began, as ``take_when`` gets to see it.

    Attributes:
        run_id: LangChain's id of the run.
        messages: What the model was asked.
        tags: Tags of the run.
        metadata: Its metadata: in LangGraph ``langgraph_node`` is in there.
        parameters: What LangChain tells of the model and of this call's options.
    """

    run_id: UUID
    messages: tuple[BaseMessage, ...] = field(repr=False)
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    parameters: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A run that is to be assessed when it has ended."""

    run: WatchedRun
    options: Mapping[str, Any]
    context: Context


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """An answer to be assessed."""

    asked: Asked
    answer: AIMessage


class _Open(NamedTuple):
    """A run that is under way, its task if any, and what that calls at its end."""

    asked: Asked
    task: asyncio.Task[Any] | None
    leave: Callable[[asyncio.Task[Any]], None]


class Backlog:
    """What is under way and what waits, the threads that see to it, and the count.

    Its lock is reentrant, and nothing is logged while it is held: an abandoned stream
    may be collected, which calls a hook, in the middle of anything.
    """

    def __init__(
        self,
        work: Callable[[Job], object],
        *,
        max_queue: int,
        workers: int,
        exit_timeout: float,
    ) -> None:
        for name, value in (("max_queue", max_queue), ("workers", workers)):
            if value < 1:
                msg = f"{name} must be a whole number of at least 1; got {value!r}"
                raise ConfigurationError(msg)
        if not exit_timeout >= 0:
            msg = f"exit_timeout must be 0 seconds or more; got {exit_timeout!r}"
            raise ConfigurationError(msg)
        self._work, self._max_queue = work, max_queue
        self._workers, self._exit_timeout = workers, exit_timeout
        self.closed = False
        self.renew()
        _LIVE.add(self)
        # The last to be registered is the first to be called: before what the guard's
        # model may have registered.
        atexit.unregister(_leave)
        atexit.register(_leave)

    def renew(self) -> None:
        """Begin with nothing, as a forked process does: its parent does the rest."""
        self._turn = threading.Condition(threading.RLock())
        self._open: OrderedDict[UUID, _Open] = OrderedDict()
        self._jobs: deque[Job] = deque()
        self._threads = self._idle = self._busy = 0
        self._tally: Counter[str] = Counter()
        self._reasons: Counter[str] = Counter()

    def counts(self) -> ShadowCounts:
        with self._turn:
            return ShadowCounts(
                **self._tally,
                waiting=len(self._jobs) + self._busy,
                reasons=dict(self._reasons),
            )

    def note(self, *what: str, reason: str | None = None) -> None:
        with self._turn:
            self._tally.update(what)
            self._reasons.update([] if reason is None else [reason])

    def failed(self, error: BaseException) -> None:
        """Count an answer that a hook has lost."""
        self.note("taken", "failed", reason=type(error).__name__)
        _say_lost(error)

    def begin(self, asked: Asked) -> None:
        """Keep what a run was asked until it ends."""
        run_id = asked.run.run_id
        # LangChain says nothing of an `ainvoke` that is cancelled; its task does.
        task, leave = _current_task(), partial(self._left, run_id)
        if task is not None:
            task.add_done_callback(leave)
        with self._turn:
            self._open[run_id] = _Open(asked, task, leave)
            if len(self._open) > MAX_OPEN:
                self.ended(next(iter(self._open)))
                self.note("taken", "dropped", reason="never_ended")

    def is_open(self, run_id: UUID | None) -> bool:
        """Return whether a run is under way that is to be assessed."""
        with self._turn:
            return run_id in self._open

    def ended(self, run_id: UUID) -> Asked | None:
        """Return what a run was asked, None where it is not to be assessed."""
        with self._turn:
            found = self._open.pop(run_id, None)
        if found is None:
            return None
        if found.task is not None:
            found.task.remove_done_callback(found.leave)
        return found.asked

    def _left(self, run_id: UUID, task: asyncio.Task[Any]) -> None:
        if task.cancelled() and self.ended(run_id) is not None:
            self.note("skipped", reason="abandoned")

    def offer(self, job: Job) -> None:
        """Take an answer in, or drop it; never wait."""
        error: BaseException | None = None
        with self._turn:
            self.note("taken")
            lost = "closed" if self.closed else None
            if lost is None and len(self._jobs) >= self._max_queue:
                lost = "queue_full"
            if lost is None:
                self._jobs.append(job)
                self._turn.notify_all()
                error = self._staff()
            else:
                self.note("dropped", reason=lost)
            first = lost == "queue_full" and self._reasons[lost] == 1
        if error is not None:
            _say_lost(error)
        if first:
            logger.warning("the queue is full: answers are dropped, and counted")

    def flush(self, timeout: float | None) -> bool:
        """Wait until nothing waits; return whether that came about in time."""
        with self._turn:
            return self._turn.wait_for(
                lambda: not self._jobs and not self._busy, timeout
            )

    def close(self, *, drain: bool, timeout: float | None) -> bool:
        """Take in nothing more, and see to what waits or drop it."""
        with self._turn:
            self.closed = True
            self._turn.notify_all()  # threads that wait for more may end
            done = self.flush(timeout if drain else 0.0)
            while self._jobs:
                self._jobs.popleft()
                self.note("dropped", reason="closed")
        return done

    def leave(self) -> None:
        """Close as the process ends, and say how much is lost by it."""
        before = self.counts().dropped
        self.close(drain=True, timeout=self._exit_timeout)
        left = self.counts()
        lost = left.dropped - before + left.waiting
        if lost:
            logger.warning("the process ends with %d answers not assessed", lost)

    def _staff(self) -> BaseException | None:
        """Start one more thread where there is work for it."""
        if self._threads >= self._workers or len(self._jobs) <= self._idle:
            return None
        thread = threading.Thread(
            target=self._serve, daemon=True, name="snne-guard-shadow"
        )
        try:
            thread.start()
        except RuntimeError as error:  # the process may start no more threads
            if self._threads:
                return None
            self._jobs.pop()
            self.note("failed", reason=type(error).__name__)
            return error
        self._threads += 1
        return None

    def _serve(self) -> None:
        while (job := self._next()) is not None:
            self._settled(self._do(job))
            del job  # who waits holds no messages

    def _do(self, job: Job) -> str | None:
        try:
            self._work(job)
        except BaseException as error:  # noqa: BLE001 - nothing may end this thread
            _say_lost(error)
            return type(error).__name__
        return None

    def _next(self) -> Job | None:
        with self._turn:
            self._idle += 1
            self._turn.wait_for(lambda: self._jobs or self.closed, IDLE_SECONDS)
            self._idle -= 1
            if not self._jobs:
                self._threads -= 1
                return None
            self._busy += 1
            return self._jobs.popleft()

    def _settled(self, failure: str | None) -> None:
        with self._turn:
            self._busy -= 1
            self.note("failed" if failure else "assessed", reason=failure)
            self._turn.notify_all()


def _current_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:  # no event loop runs in this thread
        return None


def _say_lost(error: BaseException) -> None:
    # The kind of failure only: its text may quote what was asked.
    logger.warning("an answer was not assessed: %s", type(error).__name__)


_LIVE: WeakSet[Backlog] = WeakSet()


def _leave() -> None:
    for backlog in list(_LIVE):
        backlog.leave()


def _renew() -> None:
    for backlog in list(_LIVE):
        backlog.renew()


if hasattr(os, "register_at_fork"):  # pragma: no branch - Windows has no fork
    os.register_at_fork(after_in_child=_renew)
