"""One reply while it is drawn: its tokens so far, its random numbers, its end."""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field

import numpy as np

from snne_guard.sampling.hf_settings import Completion, GenerationSettings, Token
from snne_guard.sampling.hf_text import TextStream, Tokenizer
from snne_guard.types import FloatArray

__all__ = ["Job", "Listener", "Row"]

Listener = Callable[[Sequence[Token]], None]
"""Told of tokens as they become certain, in the thread that draws."""


@dataclass(slots=True, kw_only=True, eq=False)
class Job:
    """One request: several replies to one prompt.

    Attributes:
        prompt: Tokens of the prompt, at least one.
        n: Replies that are wanted.
        settings: How they are drawn.
        room: Tokens that the context window leaves for a reply.
        listener: Told of the tokens of the first reply, None for nobody.
        future: Gets the replies. Who cancels it drops the request.
    """

    prompt: tuple[int, ...]
    n: int
    settings: GenerationSettings
    room: int
    listener: Listener | None = None
    future: Future[tuple[Completion, ...]] = field(
        default_factory=Future[tuple[Completion, ...]]
    )

    def rows(self, tokenizer: Tokenizer) -> list[Row]:
        """Return a row for each reply."""
        seeds = np.random.SeedSequence(self._entropy())
        return [
            Row(self, tokenizer, random=np.random.default_rng(seed))
            for seed in seeds.spawn(self.n)
        ]

    def _entropy(self) -> Sequence[int] | None:
        # The prompt counts too: else the noise of all questions would be the same.
        if self.settings.entropy is None:
            return None
        return self.settings.entropy, zlib.crc32(np.array(self.prompt).tobytes())


class Row:
    """One reply that grows by a token a step.

    What it draws depends on its own random numbers and its own tokens, so that it can
    be taken up again in another batch where it was left.

    Args:
        job: The request that it belongs to.
        tokenizer: Reads its tokens.
        random: Gives it one number a token.
    """

    def __init__(
        self, job: Job, tokenizer: Tokenizer, *, random: np.random.Generator
    ) -> None:
        self.job = job
        self.settings = job.settings
        self.ids: list[int] = []
        self.finish_reason: str | None = None
        self._limit = min(job.settings.max_tokens, job.room)
        self._stream = TextStream(tokenizer, job.settings.stop)
        self._uniforms = random
        self._uniform: float | None = None
        self._states: list[FloatArray] = []

    @property
    def prefix(self) -> tuple[int, ...]:
        """All tokens that the model has to have read before it draws the next one."""
        return (*self.job.prompt, *self.ids)

    @property
    def cancelled(self) -> bool:
        """Whether nobody waits for it any more."""
        return self.job.future.done() and self.finish_reason is None

    @property
    def wants_state(self) -> bool:
        """Whether the hidden state of the last token read is to be kept."""
        return self.settings.hidden_layer is not None and len(self._states) < len(
            self.ids
        )

    @property
    def is_over(self) -> bool:
        """Whether the model has nothing to read for it any more."""
        if self.cancelled:
            return True
        if self.finish_reason is None:
            return False
        asked = self.settings.hidden_layer is not None
        return not asked or len(self._states) >= len(self._stream.tokens)

    def uniform(self) -> float:
        """Return the random number of the next token, the same until it is drawn."""
        if self._uniform is None:
            self._uniform = float(self._uniforms.random())
        return self._uniform

    def keep_state(self, state: FloatArray) -> None:
        """Keep the hidden state of the last token that was read."""
        self._states.append(state)

    def accept(
        self, token_id: int, logprob: float, sampling: float, *, is_end: bool
    ) -> None:
        """Add the token that was drawn."""
        self._uniform = None
        self.ids.append(token_id)
        # Rounding may leave a probability a hair above 1.
        logprob, sampling = min(logprob, 0.0), min(sampling, 0.0)
        if is_end:
            self._stream.finish()
            self.finish_reason = "stop"
        elif self._stream.push(token_id, logprob, sampling):
            self.finish_reason = "stop"
        elif len(self.ids) >= self._limit:
            self.finish_reason = "stop" if self._stream.finish() else "length"
        self._tell(self.job.listener)

    def _tell(self, listener: Listener | None) -> None:
        if listener is None:
            return
        fresh = self._stream.release(everything=self.finish_reason is not None)
        if not fresh:
            return
        try:
            listener(fresh)
        except Exception as error:  # noqa: BLE001 - it ends this request, no other one
            with contextlib.suppress(InvalidStateError):  # cancelled meanwhile
                self.job.future.set_exception(error)

    def completion(self) -> Completion:
        """Return the reply, once it has ended."""
        if self.finish_reason is None:  # pragma: no cover - a slip in this package
            msg = "this reply has not ended"
            raise RuntimeError(msg)
        tokens = self._stream.tokens
        states = self._states[: len(tokens)]
        return Completion(
            text=self._stream.text,
            tokens=tokens,
            finish_reason=self.finish_reason,
            prompt_tokens=len(self.job.prompt),
            completion_tokens=len(self.ids),
            hidden_state=states[-1] if states else None,
        )
