"""What providers reject: left out of a draw, and remembered for a while.

A draw is a generator of requests, so that threads and tasks carry out the same steps.
"""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import (
    Awaitable,
    Callable,
    Collection,
    Generator,
    Hashable,
    Iterable,
    Mapping,
)
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

from snne_guard.engine.retrying import status_of
from snne_guard.engine.vocabulary import REJECTED_CODES, SERVER_ERROR

_LOGPROBS = frozenset({"logprobs", "top_logprobs"})
_SECONDS_KEPT = 600.0
_MOST_KEPT = 1_000
_QUOTED = re.compile(
    r"\"[^\"]{41,}\"|'[^']{41,}'|`[^`]{41,}`|\u201c[^\u201d]{41,}\u201d"
)
_REJECTS = re.compile(
    r"support|allow|permit|accept|availab|unknown|unexpected|unrecogni[sz]ed|invalid"
    r"|extra|deprecated|incompatible|exclusive|both|must|can ?not|can t\b|implement",
    re.IGNORECASE,
)
_RUN = 3  # words in a row that make a quotation

Result = TypeVar("Result")

Steps = Generator[Any, Any, Result]
"""Yields requests and waits; is sent results, and thrown what a request raised."""


@dataclass(frozen=True, slots=True)
class Wait:
    """A step that sends nothing, and takes some seconds."""

    seconds: float


class Rejections:
    """Which parameters models were seen to reject, each remembered for ten minutes.

    What is kept under one key weakens no request under another. At most 1,000 keys are
    kept, the latest; threads and tasks may share one object.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._until: dict[Hashable, dict[str, float]] = {}

    def __reduce__(self) -> tuple[type[Rejections], tuple[()]]:
        """Travel empty: another process finds out for itself."""
        return (Rejections, ())

    def known(self, key: Hashable, /) -> frozenset[str]:
        """Return the parameters that a request under this key does without."""
        now, kept = time.monotonic(), self._until.get(key, {})
        return frozenset(name for name, until in [*kept.items()] if until > now)

    def learn(self, key: Hashable, names: Iterable[str], /) -> None:
        """Remember what a provider was seen to reject, or to ignore."""
        until = dict.fromkeys(names, time.monotonic() + _SECONDS_KEPT)
        if not until:
            return
        with self._lock:
            self._until[key] = {**self._until.pop(key, {}), **until}
            while len(self._until) > _MOST_KEPT:
                del self._until[next(iter(self._until))]


class Rejectable(Protocol):
    """A request of which parts can be left out."""

    @property
    def optional(self) -> Collection[str]:
        """Names of the parameters that the guard has added."""
        ...

    @property
    def texts(self) -> Collection[str]:
        """What is said in it, which an error may quote."""
        ...


def without_rejected(
    make: Callable[..., Any], rejections: Rejections, key: Hashable
) -> Steps[tuple[Any, Any]]:
    """Send a request, and again without each parameter that the provider rejects.

    A rejection that names none of them is answered once more without
    log-probabilities, since an answer must not fail for what only the guard wants; that
    teaches nothing, for the cause may be another one.

    ``make`` takes the parameters to leave out, ``left_out``, and returns the request.
    Returns the request that was answered, and its result.
    """
    left_out, named = rejections.known(key), set[str]()
    while True:
        request = make(left_out=left_out)
        try:
            result = yield request
        except Exception as error:
            name = named_parameter(error, request)
            unnamed = _LOGPROBS & {*request.optional}
            if name is not None:
                if _says_why(error, name, request):
                    named.add(name)
                left_out |= {name}
            elif unnamed and _is_rejection(error):
                left_out |= unnamed
            else:
                raise
        else:
            rejections.learn(key, named)
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


def named_parameter(error: BaseException, request: Rejectable) -> str | None:
    """Return the ``optional`` parameter that an error names as its cause, None if none.

    The error's ``param`` counts first, then what its message names first, since it may
    name others as well. What the message quotes of the request counts for nothing.
    """
    if not _is_rejection(error) and status_of(error) != SERVER_ERROR:
        return None
    found = (*_param(error), *_own_words(_message(error), request.texts))
    return next((name for name in found if name in request.optional), None)


def _says_why(error: BaseException, name: str, request: Rejectable) -> bool:
    """Recognise an error that says in its own words that it rejects a parameter.

    Other errors may quote a reply in which its name stands.
    """
    if param := _param(error):
        return name in param
    own = " ".join(_own_words(_message(error), request.texts))
    return status_of(error) != SERVER_ERROR and _REJECTS.search(own) is not None


def _param(error: BaseException) -> list[str]:
    """Return the words of what an error says is its parameter."""
    return re.findall(r"\w+", str(getattr(error, "param", None) or ""))


def _own_words(said: str, texts: Iterable[str]) -> list[str]:
    """Return the words of a message that it quotes neither at length nor of a request.

    Three words in a row that stand in a text of the request are a quotation, and so is
    a shorter text as a whole.
    """
    # Clients show a body as a dict, in which a line break is \\ and n.
    plain = re.sub(r"\\[nrt]", " ", _QUOTED.sub(" ", said))
    words = re.findall(r"\w+", plain)
    quoted = set[int]()
    for text in texts:
        spoken = re.findall(r"\w+", text)
        size = min(_RUN, len(spoken))
        runs = {tuple(spoken[at : at + size]) for at in range(len(spoken) - size + 1)}
        for at in range(len(words) - size + 1):
            if size and tuple(words[at : at + size]) in runs:
                quoted.update(range(at, at + size))
    return [word for at, word in enumerate(words) if at not in quoted]


def _message(error: BaseException) -> str:
    """Return an error's words on its cause; its body may echo the whole request."""
    body = getattr(error, "body", None)
    inner = body.get("error", body) if isinstance(body, Mapping) else body
    if not isinstance(inner, Mapping):
        return f"{error}"
    message = inner.get("message") or inner.get("msg")
    details = inner.get("detail")
    if message is None and isinstance(details, list):
        # As FastAPI says it: where, what, and the input, which is left out.
        named = [each for each in details if isinstance(each, Mapping)]
        message = " ".join(f"{each.get('loc')} {each.get('msg')}" for each in named)
    return f"{message or details or error}"


def _is_rejection(error: BaseException) -> bool:
    """Recognise a request that was refused for what it asks: not sent, not billed."""
    if isinstance(error, TypeError):  # any other comes after the reply
        return "unexpected keyword argument" in str(error)
    return isinstance(error, NotImplementedError) or status_of(error) in REJECTED_CODES
