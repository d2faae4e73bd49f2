"""Guarded calls carried out by either driver, on scripted senders."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from snne_guard.call import GuardState, Outcome, Request
from snne_guard.drivers import DriverOptions, tasks, threads
from snne_guard.drivers.limits import Limiter
from snne_guard.engine import guarded_call
from snne_guard.observers import Observers
from snne_guard.sampling.replies import Draw
from snne_guard.settings import GuardSettings

__all__ = [
    "Run",
    "driver_options",
    "guarding",
    "paris",
    "run_in_tasks",
    "run_in_threads",
]

Run = Callable[..., Outcome]


def guarding(**options: Any) -> Request:
    """Return a request with options of the guard."""
    return Request(settings=GuardSettings(**options), state=GuardState())


def paris(draw: Draw, place: int) -> str:
    """Answer "Paris" to everything."""
    del draw, place
    return "Paris"


def driver_options(
    limiter: Limiter | None = None, observers: Any = (), *, retry: bool = False
) -> DriverOptions:
    return DriverOptions(
        limiter=limiter or Limiter(None), observers=Observers(observers), retry=retry
    )


def run_in_threads(request: Request, sender: Any, **options: Any) -> Outcome:
    return threads.run(guarded_call(request), sender, driver_options(**options))


def run_in_tasks(request: Request, sender: Any, **options: Any) -> Outcome:
    call = guarded_call(request)
    return asyncio.run(tasks.run(call, sender, driver_options(**options)))
