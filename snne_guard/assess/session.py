"""One guarded call, by threads or tasks: samples beside the answer, then a verdict."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import ParamSpec, Self, TypeVar

from snne_guard.assess.books import Books
from snne_guard.assess.brief import Assessor, Brief
from snne_guard.decision import Verdict
from snne_guard.sampling.collect import Draw, Reply
from snne_guard.sampling.drive import DrawListener, TaskDraws, ThreadDraws
from snne_guard.sampling.within import OutOfTimeError, awithin, off_loop, within
from snne_guard.types import Assessment, Sample

__all__ = ["AsyncSession", "Session"]

P = ParamSpec("P")
T = TypeVar("T")


class Session(Books):
    """A guarded call in threads.

    Enter it before the answer is drawn, call ``finish`` with the answer; leaving it
    ends what is still in flight.

    Args:
        assessor: What is shared with other calls.
        brief: What this call is about.
        send: Sends one request for samples.
    """

    def __init__(
        self, assessor: Assessor, brief: Brief, send: Callable[[Draw], Reply]
    ) -> None:
        super().__init__(assessor, brief)
        self._draws = ThreadDraws(
            self._collector,
            send,
            listener=_listener(self),
            limiter=assessor.limiter,
            circuit=assessor.circuit,
            caller=brief.id,
            max_attempts=assessor.plan.max_attempts,
            context=brief.context,
        )

    def __enter__(self) -> Self:
        self._brakes.begin()
        if self._concurrent and self._brakes.release(self._collector):
            self._draws.start()
        return self

    def __exit__(
        self, kind: object, error: BaseException | None, trace: object
    ) -> None:
        self.stop()
        if error is not None and self.assessment is None:
            self.report(self.broken_off(error))

    def finish(self, answer: Sample) -> tuple[Assessment, Verdict]:
        """Wait for the samples within the limits, score, decide."""
        found = self._found(answer)
        if self._watch is None or self._watch.light:
            return self._watched(found)
        try:
            return within(partial(self._watched, found), self._watching_time)
        except OutOfTimeError:
            return self._unwatched(found)

    def _found(self, answer: Sample) -> tuple[Assessment, Verdict]:
        self._assessor = self._assessor.for_answer(answer)
        if self._skips(answer) is None and self._brakes.release(self._collector):
            self._clock.begin_samples()
            self._draws.start()
        skip = self._skips(answer)
        if skip is not None:
            self.stop()
            return self._skipped(answer, skip)
        settled = self._draws.wait_rounds(
            self._clock.patience, partial(self._settles, answer)
        )
        self.stop()
        judged = partial(self._judged, answer, late=not settled)
        try:
            return within(judged, self._scoring_time(answer))
        except OutOfTimeError:
            return self._skipped(answer, reason="scoring_late")

    def _settles(self, answer: Sample) -> bool:
        try:
            return within(partial(self._enough, answer), self._scoring_time(answer))
        except OutOfTimeError:
            return False

    def stop(self) -> None:
        """End what is in flight; nothing more is taken in."""
        self._draws.stop()
        self._ended(unfinished=self._draws.unfinished)

    def report(self, assessment: Assessment) -> None:
        """Hand the final assessment to the observers."""
        self.assessment = assessment
        self._assessor.observers.assessed(assessment)


class AsyncSession(Books):
    """A guarded call in tasks; the twin of ``Session``.

    Args:
        assessor: What is shared with other calls.
        brief: What this call is about.
        send: Sends one request for samples.
    """

    def __init__(
        self,
        assessor: Assessor,
        brief: Brief,
        send: Callable[[Draw], Awaitable[Reply]],
    ) -> None:
        super().__init__(assessor, brief)
        self._draws = TaskDraws(
            self._collector,
            send,
            listener=_listener(self),
            limiter=assessor.limiter,
            circuit=assessor.circuit,
            caller=brief.id,
            max_attempts=assessor.plan.max_attempts,
            context=brief.context,
        )

    async def __aenter__(self) -> Self:
        self._brakes.begin()
        if self._concurrent and self._brakes.release(self._collector):
            self._draws.start()
        return self

    async def __aexit__(
        self, kind: object, error: BaseException | None, trace: object
    ) -> None:
        try:
            await self.stop()
        finally:
            if error is not None and self.assessment is None:
                broken = self.broken_off(error)
                if isinstance(error, Exception):
                    await self.report(broken)
                else:  # being cancelled: tell, but wait for nothing
                    self.assessment = broken
                    self._assessor.observers.announce(broken)

    async def finish(self, answer: Sample) -> tuple[Assessment, Verdict]:
        """Wait for the samples within the limits, score, decide."""
        found = await self._found(answer)
        if self._watch is None or self._watch.light:
            return self._watched(found)
        seen = off_loop(partial(self._watched, found))
        try:
            return await awithin(seen, self._watching_time)
        except OutOfTimeError:
            return self._unwatched(found)

    async def _found(self, answer: Sample) -> tuple[Assessment, Verdict]:
        self._assessor = self._assessor.for_answer(answer)
        if self._skips(answer) is None and self._brakes.release(self._collector):
            self._clock.begin_samples()
            self._draws.start()
        skip = self._skips(answer)
        if skip is not None:
            await self.stop()
            return self._skipped(answer, skip)
        settled = await self._draws.wait_rounds(
            self._clock.patience, partial(self._settles, answer)
        )
        await self.stop()
        judged = self._off_loop(answer, self._judged, answer, late=not settled)
        try:
            return await awithin(judged, self._scoring_time(answer))
        except OutOfTimeError:
            return self._skipped(answer, reason="scoring_late")

    async def _settles(self, answer: Sample) -> bool:
        enough = self._off_loop(answer, self._enough, answer)
        try:
            return await awithin(enough, self._scoring_time(answer))
        except OutOfTimeError:
            return False

    async def _off_loop(
        self, answer: Sample, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Do what would hold up the event loop in a thread."""
        if self._is_quick(answer):
            return work(*args, **kwargs)
        return await off_loop(partial(work, *args, **kwargs))

    async def stop(self) -> None:
        """End what is in flight and wait until it has ended."""
        await self._draws.stop()
        self._ended(unfinished=self._draws.unfinished)

    async def report(self, assessment: Assessment) -> None:
        """Hand the final assessment to the observers."""
        self.assessment = assessment
        await self._assessor.observers.aassessed(assessment)


def _listener(books: Books) -> DrawListener:
    return books.listen
