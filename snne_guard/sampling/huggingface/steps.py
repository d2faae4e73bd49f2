"""What happens at each step of ``generate``: the draw, its end, cancellation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Event
from typing import Any

import torch
from torch import Tensor
from transformers import (
    GenerationConfig,
    LogitsProcessor,
    MinPLogitsWarper,
    StoppingCriteria,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)
from transformers.generation.streamers import BaseStreamer

from snne_guard.sampling.huggingface.loading import Model
from snne_guard.sampling.huggingface.settings import (
    Completion,
    GenerationSettings,
    Token,
)
from snne_guard.sampling.huggingface.text import ReplyText
from snne_guard.types import FloatArray

__all__ = ["Cancelled", "DrawToken", "EndRows", "Listener", "Row"]

_SHARE = 0.25
"""Ended rows at which the others go on alone; a copy of the cache is the price."""


@dataclass(slots=True, kw_only=True)
class Row:
    """One reply while it is drawn.

    Attributes:
        prompt: Tokens of its prompt.
        numbers: Random numbers in [0, 1), one for each token that may be drawn.
        text: Its text so far.
        ids: Tokens drawn so far.
        logprobs: Their log-probabilities; there may be more of them.
        ended: Whether an end token or a stop text has ended it.
    """

    prompt: tuple[int, ...]
    numbers: FloatArray
    text: ReplyText
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    ended: bool = False

    def add(self, token: int, *, is_end: bool) -> None:
        """Add a drawn token."""
        self.ids.append(token)
        self.ended = is_end or self.text.push(token)

    def completion(self) -> Completion:
        """Return the reply as it is now."""
        stopped = self.text.finish() or self.ended
        read = zip(self.ids, self.text.pieces, self.logprobs, strict=False)
        return Completion(
            text=self.text.text,
            tokens=tuple(
                Token(id=token, text=piece, logprob=logprob)
                for token, piece, logprob in read
            ),
            finish_reason="stop" if stopped else "length",
            prompt_tokens=len(self.prompt),
            completion_tokens=len(self.ids),
        )


class DrawToken(LogitsProcessor):
    """Draws the next token of each row and leaves it as the only possible one."""

    def __init__(
        self, model: Model, settings: GenerationSettings, numbers: FloatArray
    ) -> None:
        self._warpers = _warpers(settings, model.generation_config)
        # MPS has no float64.
        self._dtype = torch.float32 if model.device.type == "mps" else torch.float64
        self._numbers = torch.tensor(numbers, dtype=self._dtype, device=model.device)
        self._logprobs: list[Tensor] = []

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Any:  # noqa: ANN401 - theirs
        """Return the scores of the next token, of which one is possible."""
        own = torch.log_softmax(scores.float(), dim=-1)
        if self._warpers is None:
            token = own.argmax(dim=-1, keepdim=True)
        else:
            warped = own
            for warper in self._warpers:
                warped = warper(input_ids, warped)
            place = len(self._logprobs)
            token = self._pick(warped, self._numbers[:, place : place + 1])
        self._logprobs.append(own.gather(1, token))
        return torch.full_like(scores, -torch.inf).scatter_(1, token, 0.0)

    def logprobs(self) -> list[list[float]]:
        """Return the log-probabilities of the tokens drawn so far, by row."""
        stacked: Any = torch.cat(self._logprobs, dim=1).double().cpu()
        # Rounding may leave a probability slightly above 1.
        rows: list[list[float]] = stacked.clamp(max=0.0).tolist()
        return rows

    def _pick(self, warped: Tensor, numbers: Tensor) -> Tensor:
        """Return for each row the token at which the cumulated probability exceeds."""
        cumulated = torch.softmax(warped.to(self._dtype), dim=-1).cumsum(dim=-1)
        total = cumulated[:, -1:].contiguous()
        token = torch.searchsorted(cumulated, numbers * total, right=True)
        # Rounding must not lead past the last token that has any probability.
        return torch.minimum(token, torch.searchsorted(cumulated, total))


def _warpers(
    settings: GenerationSettings, config: GenerationConfig
) -> list[Any] | None:
    """Return what changes the distribution before a draw, None for greedy decoding."""
    temperature, top_k, top_p = settings.temperature, settings.top_k, settings.top_p
    min_p: float | None = None
    if temperature is None and config.do_sample:
        temperature = 1.0 if config.temperature is None else config.temperature
        top_k = top_k or config.top_k or None
        top_p = top_p or config.top_p
        min_p = config.min_p
    if not temperature:
        return None
    warpers: list[Any] = []
    if temperature != 1:
        warpers.append(TemperatureLogitsWarper(float(temperature)))
    if top_k is not None:
        warpers.append(TopKLogitsWarper(top_k))
    if top_p is not None and top_p < 1:
        warpers.append(TopPLogitsWarper(top_p))
    if min_p:
        warpers.append(MinPLogitsWarper(min_p))
    return warpers


class EndRows(StoppingCriteria):
    """Adds each drawn token to its row, and ends rows at an end token or stop text.

    Where the batch can be made smaller, all stop once a quarter of them have ended.

    ``stop_strings`` of transformers would prepare the whole vocabulary for each
    request, which takes a second for a large one.
    """

    def __init__(
        self, rows: Sequence[Row], ends: Sequence[int], *, shrinks: bool
    ) -> None:
        self._rows = rows
        self._ends = frozenset(ends)
        self._shrinks = shrinks

    def __call__(self, input_ids: Tensor, scores: Any, **_: Any) -> Any:  # noqa: ANN401, ARG002 - theirs
        """Return which rows have ended."""
        for row, token in zip(self._rows, input_ids[:, -1].tolist(), strict=True):
            if not row.ended:
                row.add(token, is_end=token in self._ends)
        ended = [row.ended for row in self._rows]
        if self._shrinks and sum(ended) >= _SHARE * len(ended):
            ended = [True] * len(ended)
        return torch.tensor(ended, device=input_ids.device)


class Cancelled(StoppingCriteria):
    """Ends all rows once nobody waits for them."""

    def __init__(self, cancelled: Event | None) -> None:
        self._cancelled = cancelled

    def __call__(self, input_ids: Tensor, scores: Any, **_: Any) -> Any:  # noqa: ANN401, ARG002 - theirs
        """Return that all rows have ended, once cancelled."""
        done = self._cancelled is not None and self._cancelled.is_set()
        return torch.full((len(input_ids),), done, device=input_ids.device)


class Listener(BaseStreamer):
    """Passes on the tokens of a single reply as they are drawn."""

    def __init__(self, on_token: Callable[[int], None]) -> None:
        self._on_token = on_token
        self._has_prompt = False

    def put(self, value: Tensor) -> None:
        """Take the prompt first, then one token at a time."""
        if self._has_prompt:
            self._on_token(int(value.flatten()[0]))
        self._has_prompt = True

    def end(self) -> None:
        """Do nothing: the reply itself says how it ended."""
