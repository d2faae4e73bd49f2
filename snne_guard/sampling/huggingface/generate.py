"""Draw replies with ``generate`` of transformers, many to a prompt from one prefill.

The prompts are read once without their last tokens, the key-value cache is repeated for
every reply, and ``generate`` goes on from there.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from threading import Event
from typing import Any

import torch
from torch import Tensor
from transformers import (
    LogitsProcessor,
    LogitsProcessorList,
    StoppingCriteria,
    StoppingCriteriaList,
)
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

from snne_guard.sampling.huggingface.forward import last_hidden_states
from snne_guard.sampling.huggingface.loading import (
    Model,
    Tokenizer,
    accepted,
    eos_ids,
    window_of,
)
from snne_guard.sampling.huggingface.settings import (
    Completion,
    GenerationSettings,
    Token,
)
from snne_guard.sampling.huggingface.text import ReplyText, decode

__all__ = ["generate"]

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

_RESET_FOR_SAMPLES = (
    "encoder_repetition_penalty",
    "epsilon_cutoff",
    "eta_cutoff",
    "exponential_decay_length_penalty",
    "min_length",
    "min_new_tokens",
    "min_p",
    "no_repeat_ngram_size",
    "repetition_penalty",
    "sequence_bias",
    "top_h",
    "typical_p",
)
"""Settings that keep a model from its own distribution."""


@torch.no_grad()
def generate(
    model: Model,
    tokenizer: Tokenizer,
    prompts: Sequence[tuple[int, ...]],
    *,
    n: int,
    settings: GenerationSettings,
    max_batch_size: int,
    on_token: Callable[[int], None] | None = None,
    cancelled: Event | None = None,
) -> list[tuple[Completion, ...]]:
    """Draw ``n`` replies to each prompt, at most ``max_batch_size`` at a time.

    Args:
        model: The model.
        tokenizer: Its tokenizer.
        prompts: Tokens of each prompt.
        n: Replies to each prompt.
        settings: How the replies are drawn.
        max_batch_size: Most replies that are drawn together.
        on_token: Called with each token of a single reply, in this thread.
        cancelled: Once set, the draw ends at the next token.

    Returns:
        For each prompt its replies.
    """
    found: list[tuple[Completion, ...]] = []
    together = max(1, max_batch_size // n)
    with _seeded(settings.seed, prompts):
        for start in range(0, len(prompts), together):
            part = prompts[start : start + together]
            sets: list[tuple[Completion, ...]] = [()] * len(part)
            for drawn in range(0, n, max_batch_size):
                count = min(max_batch_size, n - drawn)
                watch = _Watch(tokenizer, settings.stop, on_token, cancelled)
                more = _draw(
                    model, tokenizer, part, n=count, settings=settings, watch=watch
                )
                sets = [one + two for one, two in zip(sets, more, strict=True)]
            found += sets
    return found


@contextmanager
def _seeded(seed: int | None, prompts: Sequence[tuple[int, ...]]) -> Iterator[None]:
    """Seed torch's generators for a while, then put them back."""
    if seed is None:
        yield
        return
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        # The prompts count too: else all questions would draw with the same numbers.
        torch.manual_seed(zlib.crc32(repr((seed, prompts)).encode()))
        yield


def _draw(
    model: Model,
    tokenizer: Tokenizer,
    prompts: Sequence[tuple[int, ...]],
    *,
    n: int,
    settings: GenerationSettings,
    watch: _Watch,
) -> list[tuple[Completion, ...]]:
    """Draw ``n`` replies to each prompt in one batch."""
    ends = eos_ids(model, tokenizer)
    padding = tokenizer.pad_token_id
    if padding is None:
        padding = ends[0] if ends else 0
    ids, mask = _pad_left(prompts, padding, model.device)
    cache = _shared_cache(model, ids, mask, n) if len(prompts) * n > 1 else None
    ids, mask = (each.repeat_interleave(n, dim=0) for each in (ids, mask))
    width, window = ids.shape[1], window_of(model)
    limit = settings.max_tokens
    if window is not None:  # the longest prompt leaves the least
        limit = min(limit, window - width)
    logprobs = _Logprobs(settings.temperature if _is_plain(settings) else None)
    watch.width = width
    drawn = model.generate(
        **_options(settings, model),
        input_ids=ids,
        attention_mask=mask,
        past_key_values=cache,
        max_new_tokens=limit,
        eos_token_id=list(ends) or None,
        pad_token_id=padding,
        logits_processor=LogitsProcessorList([logprobs]),
        stopping_criteria=StoppingCriteriaList([watch]),
    )
    rows = [prompt for prompt in prompts for _ in range(n)]
    replies = [
        _completion(
            ReplyText(tokenizer, settings.stop),
            tokens,
            values,
            ends=ends,
            prompt_tokens=len(prompt),
        )
        for prompt, tokens, values in zip(
            rows, drawn[:, width:].tolist(), logprobs.of(drawn), strict=True
        )
    ]
    if settings.hidden_layer is not None:
        replies = _with_states(model, rows, replies, settings.hidden_layer)
    return [tuple(replies[k : k + n]) for k in range(0, len(replies), n)]


def _is_plain(settings: GenerationSettings) -> bool:
    """Return whether tokens are drawn from all of the distribution."""
    limits = (settings.top_k, settings.top_p)
    return bool(settings.temperature) and limits == (None, None)


def _options(settings: GenerationSettings, model: Model) -> dict[str, Any]:
    """Return the options of ``generate`` that settings stand for."""
    config, temperature = model.generation_config, settings.temperature
    options: dict[str, Any] = {}
    reset: tuple[str, ...] = _ALWAYS_RESET
    if temperature is None:
        samples = bool(config.do_sample)
        if settings.top_k is not None:
            options["top_k"] = settings.top_k
        if settings.top_p is not None:
            options["top_p"] = settings.top_p
    else:
        samples = temperature > 0 and not _is_plain(settings)
        reset += _RESET_FOR_SAMPLES
        options = {"temperature": temperature}
        options |= {"top_k": settings.top_k or 0, "top_p": settings.top_p or 1.0}
    if not samples:
        options = dict.fromkeys(("temperature", "top_k", "top_p"))
    return {
        **{name: None for name in reset if hasattr(config, name)},
        **options,
        "do_sample": samples,
        "num_beams": 1,
        "num_return_sequences": 1,
        "return_dict_in_generate": False,
        "use_cache": True,
    }


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
    # Padding on the left must not move the places of what follows.
    places = (mask[:, :-1].cumsum(dim=-1) - 1).clamp(min=0)
    output = model(
        input_ids=ids[:, :-1],
        attention_mask=mask[:, :-1],
        use_cache=True,
        return_dict=True,
        **accepted(model, position_ids=places, logits_to_keep=1),
    )
    cache = getattr(output, "past_key_values", None)
    layers = getattr(cache, "layers", None)
    known = (DynamicLayer, DynamicSlidingWindowLayer)
    if not layers or any(type(layer) not in known for layer in layers):
        return None
    cache.batch_repeat_interleave(n)  # type: ignore[union-attr]  # it has layers
    return cache


class _Logprobs(LogitsProcessor):
    """Notes the log-probability of each token, before temperature, top-k and top-p.

    With a temperature it draws the token as well, from all of the distribution: by one
    random number a row, where transformers takes one for each token there is.
    """

    def __init__(self, temperature: float | None) -> None:
        self._temperature = temperature
        self._next: Tensor | None = None
        self._found: list[Tensor] = []

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """Return the scores as they are, or those of the drawn token alone."""
        self._note(input_ids)
        self._next = torch.log_softmax(scores.float(), dim=-1)
        if self._temperature is None:
            return scores
        # MPS has no float64.
        exact = torch.float32 if scores.device.type == "mps" else torch.float64
        chances = torch.softmax(self._next / self._temperature, dim=-1)
        cumulated = chances.cumsum(dim=-1, dtype=exact)
        total = cumulated[:, -1:].contiguous()
        aim = torch.rand_like(total) * total
        token = torch.searchsorted(cumulated, aim, right=True)
        # Rounding must not lead past the last token that has any probability.
        token = torch.minimum(token, torch.searchsorted(cumulated, total))
        return torch.full_like(scores, -torch.inf).scatter_(1, token, 0.0)

    def of(self, drawn: Tensor) -> list[list[float]]:
        """Return the log-probabilities of all drawn tokens, by row."""
        self._note(drawn)
        # Rounding may leave a probability slightly above 1.
        found: Any = torch.cat(self._found, dim=1).cpu().clamp(max=0.0)
        rows: list[list[float]] = found.tolist()
        return rows

    def _note(self, ids: Tensor) -> None:
        if self._next is not None:
            self._found.append(self._next.gather(1, ids[:, -1:]))


class _Watch(StoppingCriteria):
    """Passes tokens on, and ends rows at a stop text or once nobody waits for them.

    ``stop_strings`` of transformers would prepare the whole vocabulary for each
    request, which takes a second for a large one.
    """

    width = 0  # of the prompts

    def __init__(
        self,
        tokenizer: Tokenizer,
        stop: Sequence[str],
        on_token: Callable[[int], None] | None,
        cancelled: Event | None,
    ) -> None:
        self._tokenizer = tokenizer
        self._stop = stop
        # A token has at least one byte, and a character at most four.
        self._reach = 4 * max(map(len, stop), default=0) + 4
        self._on_token = on_token
        self._cancelled = cancelled

    def __call__(self, input_ids: Tensor, scores: Any, **_: Any) -> Any:  # noqa: ANN401, ARG002 - theirs
        """Return which rows have ended."""
        if self._on_token is not None:
            self._on_token(int(input_ids[0, -1]))
        is_over = self._cancelled is not None and self._cancelled.is_set()
        ended = [is_over] * len(input_ids)
        if self._stop and not is_over:
            tails = input_ids[:, max(self.width, input_ids.shape[1] - self._reach) :]
            texts = [decode(self._tokenizer, tail) for tail in tails.tolist()]
            ended = [any(stop in text for stop in self._stop) for text in texts]
        return torch.tensor(ended, device=input_ids.device)


def _completion(
    text: ReplyText,
    tokens: list[int],
    logprobs: list[float],
    *,
    ends: Sequence[int],
    prompt_tokens: int,
) -> Completion:
    """Return a reply up to what ended it; padding may follow that."""
    drawn, is_ended = 0, False
    while drawn < len(tokens) and not is_ended:
        token = tokens[drawn]
        drawn += 1
        is_ended = token in ends or text.push(token)
    is_ended = text.finish() or is_ended
    return Completion(
        text=text.text,
        tokens=tuple(
            Token(id=token, text=piece, logprob=logprob)
            for token, piece, logprob in zip(
                tokens, text.pieces, logprobs, strict=False
            )
        ),
        finish_reason="stop" if is_ended else "length",
        prompt_tokens=prompt_tokens,
        completion_tokens=drawn,
    )


def _with_states(
    model: Model,
    prompts: Sequence[tuple[int, ...]],
    replies: Sequence[Completion],
    layer: int,
) -> list[Completion]:
    """Add the hidden state of each reply's last token."""
    read = [
        [*prompt, *(token.id for token in reply.tokens)]
        for prompt, reply in zip(prompts, replies, strict=True)
    ]
    states = last_hidden_states(model, read, layer)
    return [
        replace(reply, hidden_state=state) if reply.tokens else reply
        for reply, state in zip(replies, states, strict=True)
    ]
