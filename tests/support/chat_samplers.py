"""A script for the local chat server that really draws, and fails to as it is told."""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from tests.support.chat_payload import completion
from tests.support.chat_protocol import Reply, Request

__all__ = ["Sampler"]

_WORDS = [f"w{number}" for number in range(1000)]
_LOGPROB = -2.0
_LONG = 50

Cache = Literal["prompt", "request", "response"]
"""What a cache goes by; ``response`` gives the stored one with its old name."""


@dataclass(slots=True, kw_only=True)
class Sampler:
    """Writes random words as a model would: n, temperature, seed and limits count.

    Attributes:
        ignores: Parameters that have no effect: ``n``, ``temperature``, ``logprobs``,
            ``seed``, ``max_tokens``.
        cache: What an answer is found again by, None without a cache.
        fixed_seed: Seed of every request that brings none.
        copies: Whether the choices of one request are copies of the first.
        noisy: Whether draws at temperature 0 differ in their last words.
        hot: Whether it draws at temperature 1 whatever it is asked for.
    """

    ignores: frozenset[str] = frozenset()
    cache: Cache | None = None
    fixed_seed: int | None = None
    copies: bool = False
    noisy: bool = False
    hot: bool = False
    _kept: dict[str, Reply] = field(default_factory=dict[str, Reply])
    # Seeded, so that no test fails by chance once in a thousand runs.
    _draws: random.Random = field(default_factory=lambda: random.Random(0))  # noqa: S311

    def __call__(self, request: Request) -> Reply:
        """Answer one request."""
        if self.cache is None:
            return self._drawn(request)
        key = request.prompt if self.cache == "prompt" else json.dumps(request.body)
        if key not in self._kept:
            reply = self._drawn(request)
            if self.cache == "response":
                reply = Reply(body=completion(request, reply))
            self._kept[key] = reply
        return self._kept[key]

    def _drawn(self, request: Request) -> Reply:
        count = 1 if "n" in self.ignores else request.n
        texts = [self._text(request, choice) for choice in range(count)]
        if self.copies:
            texts = texts[:1] * count
        known = "logprobs" not in self.ignores
        return Reply(
            texts=texts,
            choices=count,
            logprobs=[[_LOGPROB] * len(t.split()) for t in texts] if known else None,
            finish_reasons=["length" if self._limit(request) else "stop"],
        )

    def _limit(self, request: Request) -> int | None:
        if "max_tokens" in self.ignores:
            return None
        body = request.body
        return body.get("max_completion_tokens") or body.get("max_tokens")

    def _text(self, request: Request, choice: int) -> str:
        draw = self._generator(request, choice)
        words = [draw(_WORDS) for _ in range(self._limit(request) or _LONG)]
        if self.noisy:
            words[-1] = self._draws.choice(_WORDS)
        return " ".join(words)

    def _generator(self, request: Request, choice: int) -> Callable[[list[str]], str]:
        cold = "temperature" in self.ignores or request.temperature == 0
        if cold and not self.hot:
            return random.Random(zlib.crc32(request.prompt.encode())).choice  # noqa: S311 - no secret
        seed = None if "seed" in self.ignores else request.body.get("seed")
        seed = self.fixed_seed if seed is None else seed
        if seed is None:
            return self._draws.choice
        return random.Random(f"{seed} {choice} {request.prompt}").choice  # noqa: S311 - no secret
