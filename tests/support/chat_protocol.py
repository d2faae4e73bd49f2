"""What the local chat server was asked and what it is told to answer: frozen values."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = ["Billed", "Gate", "Reply", "Request", "Script", "ToolCall", "Usage"]


class Gate:
    """Holds replies back until the test opens it; a held reply is not yet answered."""

    def __init__(self) -> None:
        self._opened: concurrent.futures.Future[None] = concurrent.futures.Future()

    def open(self) -> None:
        """Let every held reply go, now and later."""
        self._opened.set_result(None)

    async def wait(self) -> None:
        """Wait on the server's loop; one cancelled waiter does not cancel the rest."""
        await asyncio.shield(asyncio.wrap_future(self._opened))


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What the server says that it counted, in tokens."""

    prompt: int
    completion: int
    cached: int = 0
    reasoning: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Billed:
    """What the server counted, summed over every request that it answered whole.

    A request that failed, was dropped, was cut off by the client or got malformed
    JSON is in none of the sums: its client cannot know what it cost.
    """

    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens

    def plus(self, usage: Usage) -> Billed:
        return Billed(
            requests=self.requests + 1,
            prompt_tokens=self.prompt_tokens + usage.prompt,
            completion_tokens=self.completion_tokens + usage.completion,
            cached_tokens=self.cached_tokens + usage.cached,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One call that a reply makes. Arguments given as text are sent unchanged."""

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request as it arrived.

    Attributes:
        index: Position among all requests of this server, from 0.
        method: For example ``"POST"``.
        path: For example ``"/v1/chat/completions"``.
        headers: Names in lower case.
        body: The parsed JSON body, empty where there was none.
        arrived: ``time.monotonic()`` when the last byte had arrived.
    """

    index: int
    method: str
    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    arrived: float

    @property
    def n(self) -> int:
        """Choices asked for."""
        return int(self.body.get("n") or 1)

    @property
    def messages(self) -> list[dict[str, Any]]:
        found = self.body.get("messages") or self.body.get("input") or []
        return [{"content": found}] if isinstance(found, str) else list(found)

    @property
    def texts(self) -> list[str]:
        """The text of each message, images left out."""
        return [_text(message.get("content")) for message in self.messages]

    @property
    def prompt(self) -> str:
        """The text of the last message."""
        return self.texts[-1] if self.texts else ""

    @property
    def stream(self) -> bool:
        return bool(self.body.get("stream"))

    @property
    def include_usage(self) -> bool:
        """Whether a stream is to end with a chunk that holds the usage."""
        return bool((self.body.get("stream_options") or {}).get("include_usage"))

    @property
    def logprobs(self) -> bool:
        """Whether log-probabilities are asked for."""
        return bool(self.body.get("logprobs"))

    @property
    def temperature(self) -> float | None:
        value = self.body.get("temperature")
        return None if value is None else float(value)


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return " ".join(
        str(part["text"]) for part in parts if isinstance(part, dict) and "text" in part
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the server answers to one request, and how it misbehaves.

    A sequence that describes the choices is repeated where it is shorter than the
    number of choices, so one entry holds for all of them.

    Attributes:
        texts: What each choice says. None: each choice repeats the last message.
        choices: How many choices come back. None: as many as ``n`` asks for.
        order: Positions of the choices in the JSON list; each keeps its ``index``.
        logprobs: Log-probability of each token of each choice, None for a choice that
            has none. ``"auto"``: -0.1 for each word. None: this server knows none.
            Sent only when they are asked for.
        tokens: What the tokens of each choice say. None: its words; ``"?"`` where there
            are not as many words as log-probabilities.
        finish_reasons: Of each choice. None: ``"tool_calls"`` or ``"stop"``.
        tool_calls: The calls that each choice makes.
        refusals: The text with which each choice refuses; its content is then null.
        reasoning: The ``reasoning_content`` of each choice.
        model: Name of the model that answers. None: the one that was asked.
        usage: What is counted. ``"auto"``: words of the prompt and of the choices.
            None: as ``"auto"``, but the client is not told.
        status: HTTP status; from 400 on, ``body`` is sent instead of choices.
        body: JSON value or raw text of an error, or of a reply of another protocol.
        headers: Further response headers, such as ``Retry-After``.
        delay: Seconds before the first byte.
        chunk_delay: Seconds before each further chunk of a stream.
        gate: The reply is held back until this gate opens.
        stall: Never answer; ends when the client or the server closes.
        drop: Close the connection in the middle of the body.
        reset: Reset it there, so that the client's system reports an error.
        malformed: Send half the JSON, and pretend that it is all.
    """

    texts: Sequence[str | None] | None = None
    choices: int | None = None
    order: Sequence[int] | None = None
    logprobs: Sequence[Sequence[float] | None] | Literal["auto"] | None = "auto"
    tokens: Sequence[Sequence[str]] | None = None
    finish_reasons: Sequence[str] | None = None
    tool_calls: Sequence[Sequence[ToolCall]] = ()
    refusals: Sequence[str | None] = ()
    reasoning: Sequence[str | None] = ()
    model: str | None = None
    usage: Usage | Literal["auto"] | None = "auto"
    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    chunk_delay: float = 0.0
    gate: Gate | None = None
    stall: bool = False
    drop: bool = False
    reset: bool = False
    malformed: bool = False

    @property
    def broken(self) -> bool:
        """Whether the connection ends in the middle of the body."""
        return self.drop or self.reset


Script = Callable[[Request], Reply]
"""Decides what is answered; called on the server's thread, one request at a time."""
