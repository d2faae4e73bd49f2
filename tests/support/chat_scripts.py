"""Ready-made scripts for the local chat server, the usual providers and faults."""

from __future__ import annotations

import json
import random
import threading
from collections import Counter
from collections.abc import Sequence
from typing import Any

from tests.support.chat_protocol import Reply, Request, Script, Usage

__all__ = [
    "always",
    "cycle",
    "drawn",
    "error",
    "failing",
    "ignoring_n",
    "in_turn",
    "rejecting",
    "rejecting_n",
    "response",
]


def always(text: str, **options: Any) -> Script:
    """Answer every choice of every request with one text."""
    reply = Reply(texts=(text,), **options)
    return lambda _request: reply


def cycle(texts: Sequence[str], **options: Any) -> Script:
    """Give each choice the next text, over all requests together."""
    lock = threading.Lock()
    given = 0

    def script(request: Request) -> Reply:
        nonlocal given
        count = options.get("choices") or request.n
        with lock:
            first, given = given, given + count
        drawn = [texts[index % len(texts)] for index in range(first, first + count)]
        return Reply(texts=drawn, **options)

    return script


def in_turn(replies: Sequence[Reply]) -> Script:
    """Give each request the next reply; the last one repeats."""
    lock = threading.Lock()
    left = list(replies)

    def script(_request: Request) -> Reply:
        with lock:
            return left.pop(0) if len(left) > 1 else left[0]

    return script


def ignoring_n(texts: Sequence[str], **options: Any) -> Script:
    """Answer with one choice whatever ``n`` says, as some servers do with HTTP 200."""
    return cycle(texts, choices=1, **options)


def error(
    status: int,
    message: str = "made up by the test",
    *,
    code: str | None = None,
    param: str | None = None,
    retry_after: float | None = None,
) -> Reply:
    """Return an error in the form that the OpenAI API has for it."""
    kind = "invalid_request_error" if status < 429 else "server_error"
    body = {"error": {"message": message, "type": kind, "param": param, "code": code}}
    headers = {} if retry_after is None else {"Retry-After": f"{retry_after:g}"}
    return Reply(status=status, body=body, headers=headers)


def response(
    text: str,
    *,
    incomplete: str | None = None,
    failed: str | None = None,
    logprobs: Sequence[float] | None = None,
    **options: Any,
) -> Reply:
    """Return a reply in the form that OpenAI's Responses API has for it."""
    part: dict[str, Any] = {"type": "output_text", "text": text, "annotations": []}
    if logprobs is not None:
        part["logprobs"] = [
            {"token": token, "logprob": value, "bytes": None, "top_logprobs": []}
            for token, value in zip(text.split(), logprobs, strict=False)
        ]
    message = {"type": "message", "id": "msg_1", "role": "assistant"}
    usage = {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}
    details = {"input_tokens_details": {"cached_tokens": 0}}
    details["output_tokens_details"] = {"reasoning_tokens": 0}
    body = {
        "id": "resp_2",
        "object": "response",
        "created_at": 1_700_000_000,
        "model": "test-model",
        "status": "failed" if failed else "incomplete" if incomplete else "completed",
        "incomplete_details": {"reason": incomplete} if incomplete else None,
        "error": {"code": failed, "message": "made up"} if failed else None,
        "output": [{**message, "status": "completed", "content": [part]}],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {**usage, **details},
    }
    return Reply(body=body, usage=Usage(prompt=5, completion=2), **options)


def rejecting_n(then: Script, *, max_n: int = 1) -> Script:
    """Refuse requests for more than ``max_n`` choices with HTTP 400."""
    refusal = error(400, f"n must be at most {max_n}", param="n", code="invalid_value")
    return lambda request: refusal if request.n > max_n else then(request)


def rejecting(parameter: str, then: Script) -> Script:
    """Refuse requests that name a parameter (``logprobs``, ``n``, …) with HTTP 400."""
    message = f"Unsupported parameter: '{parameter}' is not supported with this model."
    refusal = error(400, message, param=parameter, code="unsupported_parameter")
    return lambda request: refusal if parameter in request.body else then(request)


def failing(
    then: Script,
    *,
    rate: float,
    seed: int = 0,
    status: int = 503,
    at_most: int | None = None,
) -> Script:
    """Fail a share of the requests, the same ones for the same seed.

    Args:
        then: Answers the others.
        rate: Share of the requests that fail.
        seed: Which of them do. The n-th of several requests that are alike fails or
            not whatever else has arrived: the order of arrival is left to chance.
        status: What they fail with.
        at_most: How often one request fails. A client that sends it once more gets
            through, where it would otherwise give up now and then.
    """
    lock = threading.Lock()
    seen, failures = Counter[str](), Counter[str]()

    def fails(request: Request) -> bool:
        name = json.dumps(request.body, sort_keys=True)
        with lock:
            seen[name] += 1
            if failures[name] == at_most or drawn(seed, name, seen[name]) >= rate:
                return False
            failures[name] += 1
            return True

    return lambda request: (
        error(status, "overloaded") if fails(request) else then(request)
    )


def drawn(*key: object) -> float:
    """Return a number from 0 to 1 that looks random and hangs on the key alone."""
    return random.Random(repr(key)).random()  # noqa: S311 - which one fails is no secret
