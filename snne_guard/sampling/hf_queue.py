"""The queue before a local model: who asks at the same time shares a batch."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter, deque
from collections.abc import Sequence
from concurrent.futures import InvalidStateError

from snne_guard.sampling.hf_decode import Weights, decode
from snne_guard.sampling.hf_rows import Job, Row
from snne_guard.sampling.hf_text import Tokenizer

__all__ = ["BatchQueue"]

_GATHERING = 0.005
"""Seconds that the first request waits for others: little beside a token or two."""


class BatchQueue:
    """Gathers requests into batches and gives each caller its own replies.

    One thread draws; it starts with the first request and ends when none is left. What
    arrives while a batch is drawn makes up the next one.

    Args:
        weights: The model.
        tokenizer: Reads its tokens.
        max_batch_size: Replies that are drawn together at most.
    """

    def __init__(
        self, weights: Weights, tokenizer: Tokenizer, *, max_batch_size: int
    ) -> None:
        self._weights = weights
        self._tokenizer = tokenizer
        self._size = max_batch_size
        self._lock = threading.Lock()
        self._waiting: deque[Job] = deque()
        self._thread: threading.Thread | None = None

    def submit(self, jobs: Sequence[Job]) -> None:
        """Have requests answered; each one's future tells when."""
        with self._lock:
            self._waiting.extend(jobs)
            if self._thread is None and self._waiting:
                thread = threading.Thread(target=self._serve, name="snne-guard-hf")
                thread.start()
                self._thread = thread

    def _serve(self) -> None:
        while True:
            if sum(job.n for job in self._waiting.copy()) < self._size:
                time.sleep(_GATHERING)
            with self._lock:
                jobs = self._next()
                if not jobs:
                    self._thread = None
                    return
            self._answer(jobs)

    def _next(self) -> list[Job]:
        """Take the requests that make up one batch, in the order they came."""
        jobs: list[Job] = []
        rows = 0
        while self._waiting and (not jobs or rows + self._waiting[0].n <= self._size):
            job = self._waiting.popleft()
            jobs.append(job)
            rows += job.n
        return jobs

    def _answer(self, jobs: Sequence[Job]) -> None:
        rows = {id(job): job.rows(self._tokenizer) for job in jobs}
        try:
            self._draw([row for job in jobs for row in rows[id(job)]])
        except Exception as error:  # noqa: BLE001 - it belongs to whoever asked
            left = [job for job in jobs if not job.future.done()]
            if len(jobs) == 1:
                _fail(jobs[0], error)
                return
            # One request may be to blame; the others go on without it.
            for job in left:
                self._finish(job, rows[id(job)])

    def _finish(self, job: Job, rows: Sequence[Row]) -> None:
        try:
            self._draw(rows)
        except Exception as error:  # noqa: BLE001 - it belongs to whoever asked
            _fail(job, error)

    def _draw(self, rows: Sequence[Row]) -> None:
        of_job: dict[int, list[Row]] = {}
        for row in rows:
            of_job.setdefault(id(row.job), []).append(row)
        unfinished = Counter(id(row.job) for row in rows if not row.is_over)

        def ended(row: Row) -> None:
            unfinished[id(row.job)] -= 1
            if not unfinished[id(row.job)]:
                replies = tuple(each.completion() for each in of_job[id(row.job)])
                with contextlib.suppress(InvalidStateError):  # cancelled meanwhile
                    row.job.future.set_result(replies)

        decode(
            self._weights,
            rows,
            max_batch_size=self._size,
            ended=ended,
            failed=lambda row, error: _fail(row.job, error),
        )


def _fail(job: Job, error: BaseException) -> None:
    with contextlib.suppress(InvalidStateError):  # cancelled meanwhile
        job.future.set_exception(error)
