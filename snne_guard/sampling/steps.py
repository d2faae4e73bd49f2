"""The requests that one draw takes: each again without what the provider rejects.

A draw is a generator of requests, so that threads and tasks carry out the same steps.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Collection, Generator
from typing import Any, Protocol, TypeVar

from snne_guard.sampling.retrying import status_of

__all__ = [
    "Steps",
    "arun_steps",
    "rejected_parameter",
    "run_steps",
    "without_rejected",
]

_LEFT_OUT_FIRST = ("top_logprobs", "logprobs")
"""What is left out first where a provider does not say what it rejects."""

_REJECTED_CODES = frozenset({400, 422})
_OTHER_WORDS: dict[str, str] = {
    "n": r"number of (completions|choices|candidates|generations|samples)"
    r"|\bcandidate_?count\b"
    r"|\b(multiple|several|single|one) (completion|choice|candidate)",
    "logprobs": r"log[ _-]?prob|\Ainclude\b",  # OpenAI's Responses API
}
"""How providers speak of a parameter without its name, as regular expressions."""


class HasOptional(Protocol):
    """A request that can do without some of its parameters."""

    @property
    def optional(self) -> Collection[str]:
        """Parameters that may be left out where the provider rejects them."""
        ...


Result = TypeVar("Result")
Sendable = TypeVar("Sendable", bound=HasOptional)

Steps = Generator[Any, Any, Result]
"""Yields requests, and seconds to wait as floats; is sent results and thrown errors."""


def without_rejected(
    make: Callable[..., Sendable], rejected: set[str]
) -> Steps[tuple[Sendable, Any]]:
    """Send a request, and again without each parameter that the provider rejects.

    Args:
        make: Returns the request; takes the parameters to leave out, ``left_out``.
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
    sent, failed = None, 0
    try:
        step = next(steps)
        while True:
            try:
                if isinstance(step, float):
                    time.sleep(step)
                else:
                    sent = send(step)
            except BaseException as error:  # noqa: BLE001 - the generator raises it
                failed += 1
                step = steps.throw(error)
            else:
                step = steps.send(sent)
    except StopIteration as end:
        return end.value, failed


async def arun_steps(
    steps: Steps[Result], send: Callable[[Any], Awaitable[Any]], /
) -> tuple[Result, int]:
    """Run steps in a task, as ``run_steps`` does in a thread."""
    sent, failed = None, 0
    try:
        step = next(steps)
        while True:
            try:
                if isinstance(step, float):
                    await asyncio.sleep(step)
                else:
                    sent = await send(step)
            except BaseException as error:  # noqa: BLE001 - the generator raises it
                failed += 1
                step = steps.throw(error)
            else:
                step = steps.send(sent)
    except StopIteration as end:
        return end.value, failed


def rejected_parameter(error: BaseException, optional: Collection[str]) -> str | None:
    """Return the parameter without which a rejected request should be sent again.

    Args:
        error: Why the request failed.
        optional: Parameters that could be left out of the request.

    Returns:
        The parameter that the error names (``error.param``), else the one that its text
        mentions first. Where it names none, log-probabilities: an answer must not fail
        for what only the guard wants. None where it is no rejection of the request, or
        names something that cannot be left out.

    Example:
        >>> error = TypeError("create() got an unexpected keyword argument 'n'")
        >>> rejected_parameter(error, ["temperature", "n"])
        'n'
    """
    if not _is_rejection(error):
        return None
    named = getattr(error, "param", None)
    named = named if isinstance(named, str) and named else None
    text = named or f"{error} {getattr(error, 'body', None) or ''}"
    places = {name: _place(name, text) for name in optional}
    named_at = {name: place for name, place in places.items() if place is not None}
    if named_at:
        return min(named_at, key=named_at.__getitem__)
    if named is not None or status_of(error) is None:
        return None
    return next((name for name in _LEFT_OUT_FIRST if name in optional), None)


def _is_rejection(error: BaseException) -> bool:
    """Return whether a request was refused for what it asks: not sent, not billed."""
    if isinstance(error, TypeError):  # any other comes after the reply
        return "unexpected keyword argument" in str(error)
    return isinstance(error, NotImplementedError) or status_of(error) in _REJECTED_CODES


def _place(parameter: str, text: str) -> int | None:
    # The text of a body is often that of a dict, in which a line break is \ and n.
    pattern = rf"(?<![\w\\]){re.escape(parameter)}(?!\w)"
    if parameter in _OTHER_WORDS:
        pattern += f"|{_OTHER_WORDS[parameter]}"
    match = re.search(pattern, text, re.IGNORECASE)
    return None if match is None else match.start()
