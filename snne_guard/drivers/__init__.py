"""Carry out a guarded call: by threads or by tasks."""

from __future__ import annotations

from dataclasses import dataclass

from snne_guard.drivers.limits import Limiter
from snne_guard.observers import Observers

__all__ = ["DriverOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverOptions:
    """How the requests of a guard's calls are sent, and who hears of the calls.

    Attributes:
        limiter: How many requests may be in flight, all calls together.
        observers: Who gets the assessments.
        retry: Whether the driver retries failed requests; only where neither model nor
            client does.
    """

    limiter: Limiter
    observers: Observers
    retry: bool
