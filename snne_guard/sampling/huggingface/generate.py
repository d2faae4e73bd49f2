"""Draw replies with ``generate`` of transformers, many to a prompt from one prefill.

The prompt is read once without its last token, the key-value cache is repeated for
every reply, and ``generate`` goes on from there. Tokens are drawn in a logits
processor, with random numbers of the request's own: so the generators of torch stay
untouched, and a reply does not depend on the rest of its batch.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from threading import Event
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import LogitsProcessorList, StoppingCriteria, StoppingCriteriaList
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

from snne_guard.sampling.huggingface.forward import last_hidden_states, position_ids
from snne_guard.sampling.huggingface.loading import (
    Loaded,
    Model,
    Tokenizer,
    arguments_of,
    eos_ids,
    window_of,
)
from snne_guard.sampling.huggingface.settings import (
    Completion,
    GenerationSettings,
    Token,
)
from snne_guard.sampling.huggingface.steps import (
    Cancelled,
    DrawToken,
    Listener,
    StopTexts,
)
from snne_guard.sampling.huggingface.text import ReplyText

__all__ = ["Batch", "generate", "reply_seeds"]

_ALWAYS_RESET = (
    "assistant_early_exit",
    "cache_implementation",
    "guidance_scale",
    "max_length",
    "prompt_lookup_num_tokens",
    "stop_strings",
    "watermarking_config",
)
"""Settings of a ``generation_config`` that do not fit how replies are drawn here."""

_PENALTIES = (
    "encoder_repetition_penalty",
    "exponential_decay_length_penalty",
    "min_length",
    "min_new_tokens",
    "no_repeat_ngram_size",
    "repetition_penalty",
    "sequence_bias",
)
"""Settings that keep a model from its own distribution; reset for samples."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Batch:
    """Replies that are drawn together.

    Attributes:
        prompts: Tokens of each prompt.
        seeds: For each prompt a seed for each of its replies, equally many.
        settings: How the replies are drawn.
        on_token: Called with each token of a single reply, in the drawing thread.
        cancelled: Once set, the draw ends at the next token.
    """

    prompts: Sequence[tuple[int, ...]]
    seeds: Sequence[Sequence[np.random.SeedSequence]]
    settings: GenerationSettings
    on_token: Callable[[int], None] | None = None
    cancelled: Event | None = None

    @property
    def n(self) -> int:
        """Replies to each prompt."""
        return len(self.seeds[0])

    def halves(self) -> tuple[Batch, Batch]:
        """Split by prompts, or the replies to a single prompt."""
        if len(self.prompts) > 1:
            k = len(self.prompts) // 2
            return (
                replace(self, prompts=self.prompts[:k], seeds=self.seeds[:k]),
                replace(self, prompts=self.prompts[k:], seeds=self.seeds[k:]),
            )
        (seeds,) = self.seeds
        k = self.n // 2
        return replace(self, seeds=[seeds[:k]]), replace(self, seeds=[seeds[k:]])


def reply_seeds(
    prompts: Sequence[tuple[int, ...]], *, n: int, seed: int | None
) -> list[list[np.random.SeedSequence]]:
    """Return ``n`` seeds for each prompt, new ones each time where ``seed`` is None."""
    # The prompt counts too: else all questions would draw with the same numbers.
    return [
        np.random.SeedSequence(
            None if seed is None else (seed, zlib.crc32(np.array(prompt).tobytes()))
        ).spawn(n)
        for prompt in prompts
    ]


def generate(
    loaded: Loaded, batch: Batch, *, max_batch_size: int
) -> list[tuple[Completion, ...]]:
    """Draw the replies of a batch, in halves where it is too large.

    Returns:
        For each prompt its replies.

    Raises:
        torch.OutOfMemoryError: If the memory does not suffice for a single reply.
    """
    count = len(batch.prompts) * batch.n
    if count <= max_batch_size:
        try:
            return _draw(loaded, batch)
        except torch.OutOfMemoryError:
            if count == 1:
                raise
        if torch.cuda.is_available():  # pragma: no cover - needs a GPU
            torch.cuda.empty_cache()
    first, second = (
        generate(loaded, half, max_batch_size=max_batch_size) for half in batch.halves()
    )
    if len(batch.prompts) > 1:
        return first + second
    return [first[0] + second[0]]


@torch.no_grad()
def _draw(loaded: Loaded, batch: Batch) -> list[tuple[Completion, ...]]:
    model, tokenizer = loaded
    settings, n, ends = batch.settings, batch.n, eos_ids(loaded)
    padding = tokenizer.pad_token_id
    if padding is None:
        padding = ends[0] if ends else 0
    ids, mask = _pad_left(batch.prompts, padding, model.device)
    limit = _token_limit(batch, model)
    seeds = [seed for of_prompt in batch.seeds for seed in of_prompt]
    numbers = np.stack([np.random.default_rng(seed).random(limit) for seed in seeds])
    draw = DrawToken(model, settings, numbers)
    reset = _ALWAYS_RESET + (() if settings.temperature is None else _PENALTIES)
    sequences = model.generate(
        **dict.fromkeys(reset),
        input_ids=ids.repeat_interleave(n, dim=0),
        attention_mask=mask.repeat_interleave(n, dim=0),
        past_key_values=_shared_cache(model, ids, mask, n),
        do_sample=False,
        num_beams=1,
        num_return_sequences=1,
        return_dict_in_generate=False,
        use_cache=True,
        max_new_tokens=limit,
        eos_token_id=list(ends) or None,
        pad_token_id=padding,
        logits_processor=LogitsProcessorList([draw]),
        stopping_criteria=_stopping(batch, tokenizer),
        streamer=Listener(batch.on_token) if batch.on_token else None,
    )
    drawn: list[list[int]] = sequences[:, ids.shape[1] :].tolist()
    prompts = [prompt for prompt in batch.prompts for _ in range(n)]
    replies = [
        _completion(tokenizer, *row, ends=ends, stop=settings.stop)
        for row in zip(prompts, drawn, draw.logprobs(), strict=True)
    ]
    if settings.hidden_layer is not None:
        replies = _with_states(model, prompts, replies, settings.hidden_layer)
    return [tuple(replies[k : k + n]) for k in range(0, len(replies), n)]


def _token_limit(batch: Batch, model: Model) -> int:
    """Return how many tokens may be drawn: the longest prompt leaves the least."""
    window = window_of(model)
    if window is None:
        return batch.settings.max_tokens
    return min(batch.settings.max_tokens, window - max(map(len, batch.prompts)))


def _pad_left(
    prompts: Sequence[tuple[int, ...]], padding: int, device: torch.device
) -> tuple[Tensor, Tensor]:
    """Return the tokens of prompts and their attention mask, ``(prompts, width)``."""
    width = max(map(len, prompts))
    short = [width - len(prompt) for prompt in prompts]
    ids = [[padding] * k + [*p] for k, p in zip(short, prompts, strict=True)]
    mask = [[0] * k + [1] * (width - k) for k in short]
    return torch.tensor(ids, device=device), torch.tensor(mask, device=device)


def _shared_cache(model: Model, ids: Tensor, mask: Tensor, n: int) -> Any:  # noqa: ANN401 - a cache of transformers
    """Read all but the last tokens once; return the cache repeated for ``n`` replies.

    None where there is nothing to share or the model's cache cannot be repeated, as
    that of a state-space model: ``generate`` then reads the prompt for each reply.
    """
    if n == 1 or ids.shape[1] == 1:
        return None
    given = {"position_ids": position_ids(mask[:, :-1]), "logits_to_keep": 1}
    accepted = arguments_of(model)
    output = model(
        input_ids=ids[:, :-1],
        attention_mask=mask[:, :-1],
        use_cache=True,
        return_dict=True,
        **{key: value for key, value in given.items() if key in accepted},
    )
    cache = getattr(output, "past_key_values", None)
    layers = getattr(cache, "layers", None)
    known = (DynamicLayer, DynamicSlidingWindowLayer)
    if not layers or any(type(layer) not in known for layer in layers):
        return None
    cache.batch_repeat_interleave(n)  # type: ignore[union-attr]  # it has layers
    return cache


def _stopping(batch: Batch, tokenizer: Tokenizer) -> StoppingCriteriaList:
    criteria: list[StoppingCriteria] = []
    if batch.settings.stop:
        rows = len(batch.prompts) * batch.n
        criteria.append(StopTexts(tokenizer, batch.settings.stop, rows))
    if batch.cancelled is not None:
        criteria.append(Cancelled(batch.cancelled))
    return StoppingCriteriaList(criteria)


def _completion(
    tokenizer: Tokenizer,
    prompt: tuple[int, ...],
    drawn: Sequence[int],
    logprobs: Sequence[float],
    *,
    ends: Sequence[int],
    stop: Sequence[str],
) -> Completion:
    """Read a row up to its end; what comes after it is padding."""
    reply = ReplyText(tokenizer, stop)
    count, finish = 0, "length"
    for token in drawn:
        count += 1
        if token in ends or reply.push(token):
            finish = "stop"
            break
    if reply.finish():
        finish = "stop"
    return Completion(
        text=reply.text,
        tokens=tuple(
            Token(id=token, text=piece, logprob=logprob)
            for token, piece, logprob in zip(
                drawn, reply.pieces, logprobs, strict=False
            )
        ),
        finish_reason=finish,
        prompt_tokens=len(prompt),
        completion_tokens=count,
    )


def _with_states(
    model: Model,
    prompts: Sequence[tuple[int, ...]],
    replies: Sequence[Completion],
    layer: int,
) -> list[Completion]:
    """Add the hidden state of each reply's last token."""
    found = list(replies)
    places = [place for place, reply in enumerate(replies) if reply.tokens]
    if places:
        read = [
            [*prompts[place], *(token.id for token in replies[place].tokens)]
            for place in places
        ]
        states = last_hidden_states(model, read, layer)
        for place, state in zip(places, states, strict=True):
            found[place] = replace(found[place], hidden_state=state)
    return found
