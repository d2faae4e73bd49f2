"""Time limits in tests that a slow machine must not reach too early."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

__all__ = ["PATIENT", "in_time"]

PATIENT = """
from snne_guard.assess import observe
observe._FLUSH_SECONDS = 60.0
"""
"""How a program begins whose calls wait for their observers however long these take."""


def in_time(check: Callable[[float], None], *, seconds: float = 1.0) -> None:
    """Check what a time limit leaves, again with more time where it did not hold.

    What is to come before the limit takes a moment, and many where other processes have
    the processor. So the limit grows rather than that every run waits for a long one.

    Args:
        check: Does everything with a limit in seconds, and asserts what is to follow.
        seconds: The first limit.
    """
    for limit in (seconds, 8 * seconds):
        with suppress(AssertionError):
            return check(limit)
    return check(60 * seconds)
