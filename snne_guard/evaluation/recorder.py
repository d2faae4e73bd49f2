"""Draw a recording, one line per question, and resume it after an interruption.

The file itself is the state. A line is written, all of it or nothing, when its question
is complete, so whatever ends a run loses at most the questions in flight.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any

from snne_guard.cost import Cost
from snne_guard.engine.reading import is_complete, is_refused
from snne_guard.errors import ConfigurationError
from snne_guard.evaluation.jsonl import AppendFile, beside, read_appended
from snne_guard.evaluation.recorded_calls import (
    DRAWN,
    check_same_settings,
    drawn_fields,
)
from snne_guard.evaluation.recordings import Question
from snne_guard.redaction import without_secrets
from snne_guard.types import Assessment

Ask = Callable[[Question], Awaitable[Assessment]]
"""Draws the answer to a question and its samples."""

_GIVING_UP = 5
"""This many failed questions in a row mean that the provider is down."""

_LONGEST_ERROR = 1_000

_MANY = 0.2
"""Share of replies that were cut off from which on the token limit is too low."""


class RecordingRun(AppendFile):
    """A run that adds to a recording: which questions are left, and how it went.

    Questions that are in the file are skipped. Those that fail go to
    ``NAME.failed.jsonl`` beside it, with what was drawn for them.

    Args:
        path: The recording; it is appended to.
        questions: What to ask.
        settings: How the answers are drawn; each line has them.
        n_samples: Samples besides the answer; a question with fewer has failed.
        shard: The part of the questions that it is for, such as ``"3/16"``.
        retry_failed: Whether to ask again what failed in an earlier run.
        max_requests: Most requests to send. Only questions in flight exceed it, where
            one takes more, because of retries or a server that ignores ``n``.
        requests_each: Requests that a question takes if none fails.

    Attributes:
        left: The questions to ask.
        known: How many were already in the file; then ``recorded`` and ``failed``.
        replies: How many came, of failed questions too; of them, ``cut_off``.
        stopped: Why it ends early, None if it does not.
        is_down: Whether so many questions have failed in a row that it should end.
        on_done: Called after each question.

    Raises:
        ConfigurationError: The file was drawn with other settings, another process is
            writing it, or ``max_requests`` does not cover one question.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        questions: Iterable[Question],
        *,
        settings: Mapping[str, Any],
        n_samples: int,
        shard: str | None = None,
        retry_failed: bool = False,
        max_requests: int | None = None,
        requests_each: int = 1,
    ) -> None:
        if max_requests is not None and max_requests < requests_each:
            takes = f"one question takes {requests_each} requests"
            msg = f"{takes}, but the limit is {max_requests}"
            raise ConfigurationError(msg)
        super().__init__(path)
        self.failures_path = beside(self.path, "failed")
        self.settings = dict(settings)
        self.n_samples = n_samples
        self.shard = shard
        self.retry_failed = retry_failed
        self.recorded = self.failed = 0
        self.replies = self.cut_off = 0
        self.cost = Cost(money=0.0)
        self.stopped: str | None = None
        self.is_down = False
        self.on_done: Callable[[], object] = lambda: None
        self._most, self._each = max_requests, requests_each
        self._failed_in_a_row = 0
        try:
            self.ids = {*self._recorded()}
            failed = self.failures()
        except BaseException:
            self.close()
            raise
        questions = list(questions)
        self.known = sum(question.id in self.ids for question in questions)
        passed_over = self.ids if retry_failed else {*self.ids, *failed}
        self.left = [each for each in questions if each.id not in passed_over]
        if max_requests is not None and len(self.left) * requests_each > max_requests:
            self.left = self.left[: max_requests // requests_each]
            self.stopped = self._at_limit()

    def failures(self) -> dict[str, str]:
        """Return the errors of questions not recorded since, by id."""
        rows = read_appended(self.failures_path, dict)
        errors = {str(row.get("id")): str(row.get("error")) for row in rows}
        return {name: why for name, why in errors.items() if name not in self.ids}

    def may_ask(self) -> bool:
        """Allow one more question, unless the provider is down or the limit reached."""
        if self.is_down:
            return False
        if self._most is not None and self.cost.attempts + self._each > self._most:
            self.stopped = self._at_limit()
            return False
        return True

    def keep(self, question: Question, drawn: Assessment | Exception) -> None:
        """Write a question with what was drawn for it, or keep it aside as failed."""
        fields = drawn_fields(drawn, settings=self.settings, shard=self.shard)
        cost = None if isinstance(drawn, Exception) else drawn.cost
        error = failure(drawn, n_samples=self.n_samples)
        self.write(question, fields, cost=cost, error=error)

    def write(
        self,
        question: Question,
        drawn: Mapping[str, Any],
        *,
        cost: Cost | None,
        error: str | None,
    ) -> None:
        """Write a question with its ``drawn_fields``; ``error`` says why it failed."""
        given = {k: v for k, v in question.to_dict().items() if k not in DRAWN}
        row = {**given, **drawn}
        self.cost += cost or Cost(money=0.0)
        ends = drawn["drawn"]["finish_reasons"] if drawn else []
        whole = [not end or is_complete(end) or is_refused(end) for end in ends]
        self.replies += len(whole)
        self.cut_off += whole.count(False)
        if error is None:
            self.append(row)
            self.ids.add(question.id)
            self.recorded += 1
            self._failed_in_a_row = 0
        else:
            with AppendFile(self.failures_path) as failures:
                failures.append({**row, "error": error})
            self.failed += 1
            self._failed_in_a_row += 1
            if self._failed_in_a_row == _GIVING_UP:
                self.is_down = True
                self.stopped = f"{_GIVING_UP} questions failed in a row: {error}"
        self.on_done()

    @property
    def warning(self) -> str | None:
        """What to do about replies that were cut off, if a fifth of them were."""
        if not self.cut_off >= _MANY * self.replies > 0:
            return None
        return (
            f"warning: {self.cut_off} of {self.replies} replies were cut off, and a "
            "guard does not count such samples; record anew with a larger --max-tokens"
        )

    def _recorded(self) -> Iterator[str]:
        settings = json.loads(json.dumps(self.settings))
        for number, row in enumerate(read_appended(self.path, dict)):
            if not number:
                check_same_settings(row.get("settings"), settings, name=self.path)
            yield str(row.get("id"))

    def _at_limit(self) -> str:
        return (
            f"stopped at the limit of {self._most} requests, where a question takes "
            f"{self._each}; run the same command again to continue"
        )


async def record(run: RecordingRun, ask: Ask, *, max_concurrency: int = 4) -> None:
    """Draw what is left of a run, unless too many questions fail in a row.

    Where ``ask`` raises, or returns fewer samples than the run wants, the question is
    kept aside as failed. What cannot be written, as on a full disk, ends the run.
    """
    left = iter(run.left)

    async def draw() -> None:
        for question in left:
            if not run.may_ask():
                return
            drawn: Assessment | Exception
            try:
                drawn = await ask(question)
            except Exception as raised:  # noqa: BLE001 - the next question may succeed
                drawn = raised
            run.keep(question, drawn)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(max_concurrency):
                group.create_task(draw())
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None  # what ends a run: a full disk


def failure(drawn: Assessment | Exception, *, n_samples: int) -> str | None:
    """Return the failure of a question, None if it has its answer and samples.

    Keys that a provider has echoed in an error are left out.
    """
    if isinstance(drawn, Exception):
        # Masked first: half of a key that was cut off would not be recognised.
        why = without_secrets(str(drawn))[:_LONGEST_ERROR]
        return f"{type(drawn).__name__}: {why}"
    enough = drawn.answer and len(drawn.samples) >= n_samples
    return None if enough else "the answer or samples are missing"
