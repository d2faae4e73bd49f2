"""JSON of requests, read so that a large body does not hold up other requests."""

from __future__ import annotations

import asyncio
import math
import re
from collections import defaultdict
from functools import partial
from typing import Any

from starlette.requests import Request

from snne_guard.engine.tasks import in_thread
from snne_guard.errors import InputError
from snne_guard.files import json_object
from snne_guard.server.errors import Fault

MAX_BODY = 32 * 2**20
"""Bytes that the body of a request to be guarded may have."""

_LARGE = 64 * 2**10  # bytes above which a body is read in a thread
_AT_ONCE = 2  # large bodies of one key
_MOST_VALUES = 100_000
_DEEPEST = 100
_MARKS = re.compile(rb'\\["\\]|["\[{,\]}]')
_STEPS = {b"[": 1, b"{": 1, b"]": -1, b"}": -1}


class BodyReader:
    """Reads bodies; of each key no more than two large ones at a time."""

    def __init__(self) -> None:
        self._turns = defaultdict[str, asyncio.Semaphore](
            partial(asyncio.Semaphore, _AT_ONCE)
        )

    async def read(self, content: bytes, *, key: str) -> dict[str, Any]:
        """Return the JSON object that a body is."""
        if len(content) <= _LARGE:
            return _object(content)
        async with self._turns[key]:
            found: dict[str, Any] = await in_thread(partial(_object, content))
            return found


async def read_body(request: Request) -> bytes:
    """Return the body of a request, unless it is too large."""
    content = bytearray()
    async for chunk in request.stream():
        content += chunk
        if len(content) > MAX_BODY:
            message = f"the body has more than {MAX_BODY} bytes"
            raise Fault(413, message, code="request_too_large")
    return bytes(content)


def _object(content: bytes) -> dict[str, Any]:
    # The parser lets no other thread run until it ends, and so do those who write the
    # request for each draw: their time must have a limit.
    inside, values, depth = False, 0, 0
    for mark in _MARKS.finditer(content):
        if mark[0] == b'"':
            inside = not inside
        elif not inside:
            step = _STEPS.get(mark[0], 0)
            values, depth = values + (step >= 0), depth + step
            if values > _MOST_VALUES or depth > _DEEPEST:
                msg = (
                    f"expected a JSON object of at most {_MOST_VALUES} values, "
                    f"{_DEEPEST} levels deep"
                )
                raise InputError(msg)
    return json_object(content, number=_number)


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        msg = "expected a finite number"
        raise ValueError(msg)
    return int(text) if text.lstrip("-").isdigit() else value
