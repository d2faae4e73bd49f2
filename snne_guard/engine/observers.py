"""Hand assessments to the observers of a guard.

They are called one after another before the answer is delivered, or the last chunk of a
live stream, in the context of the guarded call, so that they see its current tracing
span. What one raises is logged by its type, and swallowed.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from snne_guard.types import Assessment, Observer

_log = logging.getLogger(__name__)


def notify(observers: Sequence[Observer], assessment: Assessment, /) -> None:
    """Hand an assessment to every observer, from a thread."""
    for observer in observers:
        result = _call(observer, observer.on_assessment, assessment)
        if inspect.isawaitable(result):
            _call(observer, _run_apart, result)


async def anotify(observers: Sequence[Observer], assessment: Assessment, /) -> None:
    """Hand an assessment to every observer, from a task: plain ones run in a thread."""
    for observer in observers:
        function = observer.on_assessment
        if inspect.iscoroutinefunction(function):  # waits for no worker thread
            result = _call(observer, function, assessment)
        else:
            result = await asyncio.to_thread(_call, observer, function, assessment)
        if inspect.isawaitable(result):
            try:
                await result
            except Exception as error:  # noqa: BLE001 - an observer never breaks a call
                _warn(observer, error)


def _call(observer: Observer, function: Callable[[Any], object], given: object) -> Any:  # noqa: ANN401 - whatever it returns
    try:
        return function(given)
    except Exception as error:  # noqa: BLE001 - as above
        _warn(observer, error)
        return None


def _warn(observer: Observer, error: Exception) -> None:
    kinds = type(observer).__name__, type(error).__name__
    _log.warning("observer %s raised %s", *kinds)  # no text: it may be an answer's


def _run_apart(coroutine: Coroutine[Any, Any, object]) -> None:
    """Run to the end in a thread of its own: this one may have a running loop."""
    with ThreadPoolExecutor(1) as pool:
        run = contextvars.copy_context().run
        pool.submit(run, asyncio.run, coroutine).result()
