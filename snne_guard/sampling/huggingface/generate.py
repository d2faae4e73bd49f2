"""Draw replies with ``generate`` of transformers, many to a prompt from one prefill.

The prompt is read once without its last token, the key-value cache is repeated for
every reply, and ``generate`` goes on from there; once a quarter of the replies have
ended, it goes on with the others alone. Tokens are drawn in a logits processor, with
random numbers of each reply's own: so torch's generators stay untouched, and a reply
does not depend on the rest of its batch.
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
from torch.nn.functional import pad
from transformers import LogitsProcessorList, StoppingCriteriaList
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
from snne_guard.sampling.huggingface.settings import Completion, GenerationSettings
from snne_guard.sampling.huggingface.steps import (
    Cancelled,
    DrawToken,
    EndRows,
    Listener,
    Row,
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
    rows = _rows(loaded, batch)
    _fill(loaded, batch, rows)
    replies = [row.completion() for row in rows]
    if batch.settings.hidden_layer is not None:
        replies = _with_states(loaded.model, rows, replies, batch.settings.hidden_layer)
    n = batch.n
    return [tuple(replies[k : k + n]) for k in range(0, len(replies), n)]


def _rows(loaded: Loaded, batch: Batch) -> list[Row]:
    """Return a row for each reply, those to one prompt side by side."""
    limit = _token_limit(batch, loaded.model)
    return [
        Row(
            prompt=prompt,
            numbers=np.random.default_rng(seed).random(limit),
            text=ReplyText(loaded.tokenizer, batch.settings.stop),
        )
        for prompt, seeds in zip(batch.prompts, batch.seeds, strict=True)
        for seed in seeds
    ]


def _fill(loaded: Loaded, batch: Batch, rows: list[Row]) -> None:
    """Draw all rows to their end, in a smaller batch once some have ended."""
    model, ends = loaded.model, eos_ids(loaded)
    padding = _padding(loaded.tokenizer, ends)
    ids, mask = _pad_left(batch.prompts, padding, model.device)
    cache = _shared_cache(model, ids, mask, batch.n) if len(rows) > 1 else None
    ids, mask = (each.repeat_interleave(batch.n, dim=0) for each in (ids, mask))
    # On MPS, generate looks a step late at which rows have ended.
    shrinks = cache is not None and model.device.type != "mps"
    limit, drawn, width = len(rows[0].numbers), 0, ids.shape[1]
    while True:
        numbers = np.stack([row.numbers[drawn:] for row in rows])
        draw = DrawToken(model, batch.settings, numbers)
        ids = model.generate(
            **_options(batch, model),
            input_ids=ids,
            attention_mask=mask,
            past_key_values=cache,
            max_new_tokens=limit - drawn,
            eos_token_id=list(ends) or None,
            pad_token_id=padding,
            logits_processor=LogitsProcessorList([draw]),
            stopping_criteria=StoppingCriteriaList(
                [EndRows(rows, ends, shrinks=shrinks), Cancelled(batch.cancelled)]
            ),
        )
        for row, logprobs in zip(rows, draw.logprobs(), strict=True):
            row.logprobs += logprobs
        drawn = ids.shape[1] - width
        live = [place for place, row in enumerate(rows) if not row.ended]
        is_cancelled = batch.cancelled is not None and batch.cancelled.is_set()
        if not live or drawn >= limit or cache is None or is_cancelled:
            return
        rows = [rows[place] for place in live]
        index = torch.tensor(live, device=ids.device)
        cache.batch_select_indices(index)
        ids, mask = ids[index], mask[index]
        mask = pad(mask, (0, ids.shape[1] - mask.shape[1]), value=1)


def _options(batch: Batch, model: Model) -> dict[str, Any]:
    """Return what is the same in all calls of ``generate`` for a batch."""
    plain = batch.settings.temperature is not None
    reset = _ALWAYS_RESET + (_PENALTIES if plain else ())
    return {
        **{name: None for name in reset if hasattr(model.generation_config, name)},
        "do_sample": False,
        "num_beams": 1,
        "num_return_sequences": 1,
        "return_dict_in_generate": False,
        "use_cache": True,
        "streamer": Listener(batch.on_token) if batch.on_token else None,
    }


def _padding(tokenizer: Tokenizer, ends: Sequence[int]) -> int:
    if tokenizer.pad_token_id is not None:
        return int(tokenizer.pad_token_id)
    return ends[0] if ends else 0


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

    None where there is nothing to read or the model's cache cannot be repeated, as
    that of a state-space model: ``generate`` then reads the prompt for each reply.
    """
    if ids.shape[1] == 1:
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


def _with_states(
    model: Model, rows: Sequence[Row], replies: Sequence[Completion], layer: int
) -> list[Completion]:
    """Add the hidden state of each reply's last token."""
    found = list(replies)
    places = [place for place, reply in enumerate(replies) if reply.tokens]
    if places:
        read = [
            [*rows[place].prompt, *(token.id for token in replies[place].tokens)]
            for place in places
        ]
        states = last_hidden_states(model, read, layer)
        for place, state in zip(places, states, strict=True):
            found[place] = replace(found[place], hidden_state=state)
    return found
