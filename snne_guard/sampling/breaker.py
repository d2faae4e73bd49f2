"""A breaker: while the provider is failing, samples are shed before answers."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

from snne_guard._forks import begin_in_forks
from snne_guard.errors import ConfigurationError, ModelCancelledError
from snne_guard.sampling.retry import is_transient

__all__ = ["BREAKER", "Breaker", "Circuit", "ShedError"]

logger = logging.getLogger(__name__)


class ShedError(Exception):
    """A request for samples was not sent, since the provider is failing."""

    def __init__(self) -> None:
        super().__init__("not sent: the provider is failing, so samples are shed")


_MOST = 1_000_000  # requests that are remembered


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value)


def _require(*, good: bool, what: str, got: object) -> None:
    if not good:
        msg = f"Breaker: {what}; got {got!r}"
        raise ConfigurationError(msg)


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaker:
    """When samples are shed so that a failing provider can still give answers.

    Failures are what a retry may mend: 429, 5xx, timeouts, lost connections. Answers
    count like samples, each attempt that the guard sees as one.

    Attributes:
        failures: Failed requests within ``window`` from which it may open.
        share: Share of the requests within ``window`` that must have failed, in
            (0, 1]; those still in flight have not.
        window: Seconds that a request counts for.
        cooldown: Seconds for which samples are shed; then one guarded call draws
            samples, and its first result closes the breaker or begins anew.

    Raises:
        ConfigurationError: If a value makes no sense.
    """

    failures: int = 20
    share: float = 0.6
    window: float = 30.0
    cooldown: float = 10.0

    def __post_init__(self) -> None:
        _require(
            good=_is_number(self.failures) and self.failures in range(1, _MOST),
            what="failures must be a whole number of at least 1",
            got=self.failures,
        )
        _require(
            good=_is_number(self.share) and 0 < self.share <= 1,
            what="share must be in (0, 1]",
            got=self.share,
        )
        for name in ("window", "cooldown"):
            value = getattr(self, name)
            good = _is_number(value) and value > 0
            _require(good=good, what=f"{name} must be seconds above 0", got=value)


BREAKER = Breaker()
"""The breaker of every guard that is not given another one."""


class _Event(IntEnum):
    """What happens to a request."""

    begun = 0
    answered = 1
    failed = 2


_SLOTS = 50


class _Window:
    """Counts of what happened lately, in a few slots, whatever the traffic.

    Args:
        seconds: For how long something counts; it may be a slot's length less.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds, self._slot = seconds, seconds / _SLOTS
        self._counts: deque[tuple[float, list[int]]] = deque()

    def note(self, event: _Event, now: float) -> None:
        """Count an event, and forget those that are too long ago."""
        if not self._counts or now >= self._counts[-1][0] + self._slot:
            self._counts.append((now, [0] * len(_Event)))
        self._counts[-1][1][event] += 1
        while self._counts[0][0] <= now - self._seconds:
            self._counts.popleft()

    def count(self, event: _Event) -> int:
        """Return how often it happened lately."""
        return sum(counts[event] for _, counts in self._counts)

    def clear(self) -> None:
        """Forget everything."""
        self._counts.clear()


class Circuit:
    """The state of a breaker, shared by all calls of a guard, threads and loops alike.

    Args:
        breaker: When it opens; None for never.
        clock: Seconds that only ever grow.

    Example:
        >>> circuit = Circuit(Breaker(failures=2))
        >>> circuit.ended(TimeoutError()), circuit.ended(TimeoutError())
        (None, None)
        >>> circuit.admits("a call")
        False
    """

    def __init__(
        self,
        breaker: Breaker | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.breaker = breaker
        self._clock = clock
        begin_in_forks(self)

    def begin(self) -> None:
        """Know of no failure."""
        self._lock = threading.Lock()
        self._window = _Window(0.0 if self.breaker is None else self.breaker.window)
        self._opened: float | None = None
        self._probe: tuple[str, float] | None = None

    def __reduce__(self) -> tuple[type[Circuit], tuple[Breaker | None]]:
        """Start closed in another process; a lock cannot travel."""
        return (Circuit, (self.breaker,))

    def admits(self, caller: str) -> bool:
        """Return whether a guarded call may send a request for samples now.

        Args:
            caller: Id of the call. After the cooldown one call is let through, all of
                its requests; another only if nothing is heard of that one.
        """
        with self._lock:
            if self.breaker is None or self._opened is None:
                return True
            now = self._clock()
            if now < self._opened + self.breaker.cooldown:
                return False
            if self._probe is not None:
                holder, since = self._probe
                if holder == caller:
                    return True
                if now < since + self.breaker.cooldown:
                    return False
            self._probe = (caller, now)
            return True

    def began(self) -> None:
        """Count a request that goes out.

        Failures come back sooner than replies: of a burst they are the first to end,
        so their share is of what was sent.
        """
        with self._lock:
            if self.breaker is not None and self._opened is None:
                self._window.note(_Event.begun, self._clock())

    def ended(
        self, error: BaseException | None = None, *, answer: bool = False
    ) -> None:
        """Count a request that has ended.

        Args:
            error: Why it failed, None if it did not.
            answer: Whether it was for an answer. That answers pass again says nothing
                about the load of the samples, so it does not close the breaker.
        """
        if isinstance(error, ModelCancelledError) or (
            error is not None and not isinstance(error, Exception)
        ):
            return  # cancelled by its client: the provider has said nothing
        failed = error is not None and is_transient(error)
        with self._lock:
            if self.breaker is None:
                return
            now = self._clock()
            if self._opened is None:
                self._count(self.breaker, now, failed=failed)
            elif now >= self._opened + self.breaker.cooldown:
                self._tested(now, failed=failed, answer=answer)

    def _count(self, breaker: Breaker, now: float, *, failed: bool) -> None:
        window = self._window
        window.note(_Event.failed if failed else _Event.answered, now)
        if not failed:
            return
        failures = window.count(_Event.failed)
        ended = failures + window.count(_Event.answered)
        total = max(ended, window.count(_Event.begun))
        if failures >= max(breaker.failures, breaker.share * total):
            logger.warning(
                "the provider is failing (%d of %d requests in %g s): samples are shed",
                failures,
                total,
                breaker.window,
            )
            self._open(now)

    def _tested(self, now: float, *, failed: bool, answer: bool) -> None:
        """Take in what the provider does after the cooldown."""
        if failed:
            self._open(now)
        elif not answer:
            logger.warning("the provider answers again: samples are drawn")
            self._opened = self._probe = None

    def _open(self, now: float) -> None:
        self._opened, self._probe = now, None
        self._window.clear()
