"""How long one call has run, and how long it may still take."""

from __future__ import annotations

import time

__all__ = ["Clock"]


class Clock:
    """Runs from the moment at which it is made.

    Args:
        timeout: Seconds for the whole call, None for no limit.
        sample_timeout: Seconds for the samples, None for no limit.

    Attributes:
        started: When the call began, in seconds of ``time.monotonic``.
        samples_started: When the samples were asked for, None where that was at once.

    Example:
        >>> clock = Clock(timeout=60.0)
        >>> 59 < clock.remaining() <= clock.patience() + 1 <= 61
        True
    """

    def __init__(
        self, *, timeout: float | None = None, sample_timeout: float | None = None
    ) -> None:
        self.started = time.monotonic()
        self.samples_started: float | None = None
        self._timeout, self._sample_timeout = timeout, sample_timeout

    @property
    def elapsed(self) -> float:
        """Seconds since the call began."""
        return time.monotonic() - self.started

    def begin_samples(self) -> None:
        """Note that the samples are asked for only now."""
        self.samples_started = time.monotonic()

    def remaining(self) -> float | None:
        """Return the seconds until the time limit of the whole call, None without."""
        return _left(self._timeout, self.started)

    def patience(self) -> float | None:
        """Return the seconds that the samples may still take, None without a limit."""
        since = self.started if self.samples_started is None else self.samples_started
        limits = (self.remaining(), _left(self._sample_timeout, since))
        return min((limit for limit in limits if limit is not None), default=None)


def _left(limit: float | None, since: float) -> float | None:
    return None if limit is None else max(0.0, limit + since - time.monotonic())
