"""Drawing the answers and samples of a data set into a recording."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

from snne_guard.evaluation.recording.drawn import Drawn
from snne_guard.evaluation.recording.lines import BadLine
from snne_guard.evaluation.recording.questions import Question
from snne_guard.evaluation.recording.store import Failure, RecordingStore
from snne_guard.sampling.retry import is_transient, status_of
from snne_guard.types import Cost

__all__ = ["Draw", "Recorder", "Tally"]

_PATIENCE = 4
"""Questions that may fail one after the other, besides as many as are drawn at once: a
moment without network takes all of those."""

_ABOUT_THE_QUESTION = frozenset({400, 413, 422})
"""Of all HTTP errors these alone may leave the next question unharmed: too long a
context, a content filter."""

Row = tuple[int, Question | BadLine]


class Draw(Protocol):
    """Draws the answer and samples of one question."""

    async def __call__(
        self, question: Question, /, *, n_samples: int, tries: int
    ) -> Drawn:
        """Draw.

        Args:
            question: What to ask.
            n_samples: Samples wanted; fewer where some are there from an earlier run.
            tries: How often this question has failed before. Where a seed fixes what
                is drawn, it has to be another one each time.

        Returns:
            What came. An exception means that nothing did.
        """
        ...


@dataclass(slots=True, kw_only=True)
class Tally:
    """What a run has done so far.

    Attributes:
        recorded: Questions that were written into the recording.
        failed: Questions that were kept aside.
        bad_lines: Lines that are no question.
        recorded_before: Questions that were in the recording already.
        failed_before: Questions that failed in an earlier run and were passed over.
        reasons: How many of the recorded questions had a reason code.
        cost: What was drawn took, the questions that failed included.
        stopped: Why the run ended before the last question, None if it did not.
        error: Why the provider was given up, where it was.
    """

    recorded: int = 0
    failed: int = 0
    bad_lines: int = 0
    recorded_before: int = 0
    failed_before: int = 0
    reasons: Counter[str] = field(default_factory=Counter[str])
    cost: Cost = field(default_factory=Cost)
    stopped: Literal["asked", "outage", "bad_line"] | None = None
    error: str | None = None

    @property
    def complete(self) -> bool:
        """Whether every question is in the recording."""
        lost = self.failed + self.failed_before + self.bad_lines
        return not lost and self.stopped is None


class Recorder:
    """Draws what a recording does not have yet, some questions at once.

    Each is written as soon as it is complete, so the lines of a recording are in the
    order in which they were finished. A question that fails is kept aside. Where one
    after the other fails since the provider does, the run stops, and those count as
    not yet drawn.

    Args:
        store: The recording.
        draw: Draws one question.
        n_samples: Samples besides the answer, at least 1.
        max_concurrency: Questions that are drawn at once.
        retry_failed: Whether questions that failed in an earlier run are drawn again.
        strict: Whether the first bad line ends the run.
        on_bad_line: Told the number of a bad line, and what is wrong with it.
        on_failure: Told of a question that failed, and why.
        on_progress: Told the tally after each question.

    Attributes:
        tally: What was done so far.

    Example:
        >>> import asyncio, pathlib, tempfile
        >>> from snne_guard import Sample
        >>> async def draw(question, /, *, n_samples, tries):
        ...     return Drawn(answer=Sample(text="4"), samples=(Sample(text="5"),))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder) / "out.jsonl"
        ...     with RecordingStore(path, settings={"model": "m"}) as store:
        ...         recorder = Recorder(store, draw, n_samples=1)
        ...         rows = [(1, Question.from_dict({"id": "1", "question": "2+2?"}))]
        ...         asyncio.run(recorder.run(rows)).recorded
        1
    """

    def __init__(
        self,
        store: RecordingStore,
        draw: Draw,
        *,
        n_samples: int = 10,
        max_concurrency: int = 4,
        retry_failed: bool = False,
        strict: bool = False,
        on_bad_line: Callable[[int, str], object] | None = None,
        on_failure: Callable[[Question, str], object] | None = None,
        on_progress: Callable[[Tally], object] | None = None,
    ) -> None:
        self.tally = Tally()
        self._store, self._draw = store, draw
        self._n_samples, self._max_concurrency = n_samples, max_concurrency
        self._retry_failed, self._strict = retry_failed, strict
        self._on_bad_line, self._on_failure = on_bad_line, on_failure
        self._on_progress = on_progress
        self._in_a_row = 0
        self._held: list[tuple[Question, Drawn, int]] = []

    def stop(self) -> None:
        """Begin no further question; those that are being drawn are finished."""
        if self.tally.stopped is None:
            self.tally.stopped = "asked"

    def wants(self, question: Question) -> bool:
        """Return whether a run would draw this question."""
        state = self._store.state(question)
        if state != "failed":
            return state == "new"
        failure = self._store.failure(question)
        return self._retry_failed or (failure is not None and failure.outage)

    async def run(self, rows: Iterable[Row]) -> Tally:
        """Draw the questions of ``rows`` that the recording does not have.

        Args:
            rows: As ``parse_questions`` gives them; taken one by one.

        Returns:
            The tally.

        Raises:
            OSError: If a line cannot be written; what was written before is whole.
        """
        left = iter(rows)
        reading = asyncio.Lock()

        async def work() -> None:
            while True:
                async with reading:
                    question = await self._next(left)
                if question is None:
                    return
                await self._one(question)

        tasks = [asyncio.create_task(work()) for _ in range(self._max_concurrency)]
        cut = True
        try:
            await asyncio.gather(*tasks)
            cut = self.tally.stopped is not None
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            self._settle_held(again=cut)
        return self.tally

    async def _next(self, rows: Iterator[Row]) -> Question | None:
        """Return the next question to draw, None after the last or when stopped."""
        while self.tally.stopped is None:
            # In a thread: a pipe may take its time.
            number, row = await asyncio.to_thread(next, rows, (0, None))
            if row is None:
                return None
            if isinstance(row, BadLine):
                self._bad_line(number, row)
            elif self._store.state(row) == "recorded":
                self.tally.recorded_before += 1
            elif self.wants(row):
                return row
            else:
                self.tally.failed_before += 1
        return None

    def _bad_line(self, number: int, row: BadLine) -> None:
        self.tally.bad_lines += 1
        if self._on_bad_line is not None:
            self._on_bad_line(number, row.message)
        if self._strict:
            self.tally.stopped = "bad_line"

    async def _one(self, question: Question) -> None:
        before = self._store.failure(question)
        if before is None:
            before = Failure(drawn=Drawn(), tries=0, outage=False)
        missing = max(0, self._n_samples - len(before.drawn.samples))
        try:
            new = await self._draw(question, n_samples=missing, tries=before.tries)
        except Exception as error:  # noqa: BLE001 - a provider's, whatever it is
            new = Drawn(error=error)
        self.tally.cost += new.cost
        drawn = before.drawn + new
        if drawn.is_complete(self._n_samples):
            self._record(question, drawn)
        else:
            self._fail(question, drawn, before.tries + 1)
        if self._on_progress is not None:
            self._on_progress(self.tally)

    def _record(self, question: Question, drawn: Drawn) -> None:
        samples = drawn.samples[: self._n_samples]
        self._store.record(question, replace(drawn, samples=samples))
        self.tally.recorded += 1
        self.tally.reasons.update(drawn.reasons)
        self._in_a_row = 0
        if self.tally.stopped != "outage":  # it was about those alone, then
            self._settle_held(again=False)

    def _fail(self, question: Question, drawn: Drawn, tries: int) -> None:
        outage = drawn.error is not None and _is_outage(drawn.error)
        if outage:
            self._held.append((question, drawn, tries))
        else:
            self._keep_aside(question, drawn, tries)
        # Where nothing has worked yet, anything may be wrong with all of them.
        if outage or not self.tally.recorded:
            self._in_a_row += 1
        if self._in_a_row >= self._max_concurrency + _PATIENCE:
            self._give_up(drawn)

    def _give_up(self, drawn: Drawn) -> None:
        if self.tally.stopped is None:
            self.tally.stopped = "outage"
            self.tally.error = drawn.why()

    def _settle_held(self, *, again: bool) -> None:
        """Decide on questions that failed since the provider did.

        Args:
            again: Whether the next run is to draw them without being asked to.
        """
        held, self._held = self._held, []
        for question, drawn, tries in held:
            if not again:
                self._keep_aside(question, drawn, tries)
            elif drawn.answer is not None or drawn.samples:
                self._store.fail(question, drawn, tries=tries, outage=True)

    def _keep_aside(self, question: Question, drawn: Drawn, tries: int) -> None:
        self._store.fail(question, drawn, tries=tries, outage=False)
        self.tally.failed += 1
        if self._on_failure is not None:
            self._on_failure(question, drawn.why())


def _is_outage(error: BaseException) -> bool:
    """Return whether the next question would most likely fail in the same way."""
    status = status_of(error)
    if status is None:
        return is_transient(error)
    return status not in _ABOUT_THE_QUESTION
