"""Send a request again without what the provider rejects.

A draw is a generator of requests, so that threads and tasks carry out the same steps.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Collection, Generator
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from snne_guard.engine.retrying import status_of
from snne_guard.engine.vocabulary import REJECTED_CODES

__all__ = [
    "Steps",
    "Wait",
    "arun_steps",
    "rejected_parameter",
    "run_steps",
    "without_rejected",
]

_LOGPROBS = ("top_logprobs", "logprobs")

Result = TypeVar("Result")

Steps = Generator[Any, Any, Result]
"""Yields requests and waits; is sent results, and thrown what a request raised."""


@dataclass(frozen=True, slots=True)
class Wait:
    """A step that sends nothing, and takes some seconds."""

    seconds: float


def without_rejected(
    make: Callable[..., Any], rejected: set[str]
) -> Steps[tuple[Any, Any]]:
    """Send a request, and again without each parameter that the provider rejects.

    Args:
        make: Takes the parameters to leave out, ``left_out``, and returns the request;
            those in its attribute ``optional`` may be left out as well.
        rejected: What the provider is known to reject; what a request succeeded without
            is added.

    Returns:
        The request that was answered, and its result.
    """
    left_out = frozenset(rejected)
    while True:
        request = make(left_out=left_out)
        try:
            result = yield request
        except Exception as error:
            parameter = rejected_parameter(error, request.optional)
            if parameter is None:
                raise
            left_out |= {parameter}
        else:
            rejected.update(left_out)
            return request, result


def run_steps(
    steps: Steps[Result], send: Callable[[Any], Any], /
) -> tuple[Result, int]:
    """Run steps in a thread; return their result and how many requests failed."""
    failed, proceed = 0, partial(steps.send, None)
    while True:
        try:
            step = proceed()
        except StopIteration as end:
            return end.value, failed
        try:
            sent = None
            if isinstance(step, Wait):
                time.sleep(step.seconds)
            else:
                sent = send(step)
            proceed = partial(steps.send, sent)
        except BaseException as error:  # noqa: BLE001 - the generator raises it
            failed += 1
            proceed = partial(steps.throw, error)


async def arun_steps(
    steps: Steps[Result], send: Callable[[Any], Awaitable[Any]], /
) -> tuple[Result, int]:
    """Run steps in a task, as ``run_steps`` does in a thread."""
    failed, proceed = 0, partial(steps.send, None)
    while True:
        try:
            step = proceed()
        except StopIteration as end:
            return end.value, failed
        try:
            sent = None
            if isinstance(step, Wait):
                await asyncio.sleep(step.seconds)
            else:
                sent = await send(step)
            proceed = partial(steps.send, sent)
        except BaseException as error:  # noqa: BLE001 - the generator raises it
            failed += 1
            proceed = partial(steps.throw, error)


def rejected_parameter(error: BaseException, optional: Collection[str]) -> str | None:
    """Return the parameter without which a rejected request should be sent again.

    Args:
        error: Why the request failed.
        optional: Parameters that could be left out of the request.

    Returns:
        The parameter that the error names first: it may quote the others. Where it
        names none, log-probabilities: an answer must not fail for what only the guard
        wants. None where nothing can be left out, or the request was not refused for
        what it asks.

    Example:
        >>> error = TypeError("create() got an unexpected keyword argument 'n'")
        >>> rejected_parameter(error, ["temperature", "n"])
        'n'
    """
    if not _is_rejection(error):
        return None
    # Clients show a body as a dict, in which a line break is \\ and n.
    said = f"{getattr(error, 'param', '')} {error} {getattr(error, 'body', '')}"
    words = re.findall(r"(?<!\\)\b\w+", said)
    return next((name for name in (*words, *_LOGPROBS) if name in optional), None)


def _is_rejection(error: BaseException) -> bool:
    """Return whether a request was refused for what it asks: not sent, not billed."""
    if isinstance(error, TypeError):  # any other comes after the reply
        return "unexpected keyword argument" in str(error)
    return isinstance(error, NotImplementedError) or status_of(error) in REJECTED_CODES
