"""Draw replies with ``generate`` of transformers, many to a prompt from one prefill.

The prompts are read once without their last tokens, the key-value cache is repeated for
every reply, and ``generate`` goes on from there.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers import (
    LogitsProcessor,
    LogitsProcessorList,
    StoppingCriteria,
    StoppingCriteriaList,
)
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

from snne_guard.huggingface.settings import (
    Completion,
    GenerationSettings,
    Model,
    Tokenizer,
)

_INCOMPLETE = "\N{REPLACEMENT CHARACTER}"
"""What tokenizers show for a character of which tokens are missing."""


@torch.no_grad()
def token_logprobs(model: Model, ids: Sequence[int], count: int) -> list[float]:
    """Return the log-probabilities of the last ``count`` of some tokens."""
    # The last token is predicted but never read.
    read = torch.tensor([ids[:-1]], device=model.device)
    output = model(input_ids=read, use_cache=False, logits_to_keep=count)
    logprobs = torch.log_softmax(output.logits[0, -count:].float(), dim=-1)
    chosen = torch.tensor(ids[-count:], device=logprobs.device)[:, None]
    # Rounding may leave a probability slightly above 1.
    values: list[float] = logprobs.gather(1, chosen)[:, 0].clamp(max=0.0).tolist()
    return values


@contextmanager
def seeded(seed: int | None, prompts: Sequence[tuple[int, ...]]) -> Iterator[None]:
    """Seed torch's generators for a while, then put them back."""
    if seed is None:
        yield
        return
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        # The prompts count too: else all questions would draw with the same numbers.
        torch.manual_seed(zlib.crc32(repr((seed, prompts)).encode()))
        yield


@torch.no_grad()
def draw(
    model: Model,
    tokenizer: Tokenizer,
    prompts: Sequence[tuple[int, ...]],
    *,
    n: int,
    settings: GenerationSettings,
    is_over: Callable[[], bool],
) -> list[Completion]:
    """Draw ``n`` replies to each prompt, in one batch; return them in turn."""
    ends = _end_ids(model, tokenizer)
    padding = tokenizer.pad_token_id
    if padding is None:
        padding = ends[0] if ends else 0
    ids, mask = _padded(prompts, model, side="left", padding=padding)
    width = ids.shape[1]
    cache = None
    if n > 1 and width > 1:  # the last token has to be left to ``generate``
        cache = _repeated_cache(model, ids[:, :-1], mask[:, :-1], n)
    logprobs = _Logprobs()
    own: str | list[str] = model.generation_config.stop_strings or []
    stop = (*settings.stop, *([own] if isinstance(own, str) else own))
    ending = _Ending(tokenizer, stop, width, is_over)
    options = _options(settings, model)
    options |= {"eos_token_id": list(ends) or None, "pad_token_id": padding}
    drawn = model.generate(
        **options,
        input_ids=ids.repeat_interleave(n, dim=0),
        attention_mask=mask.repeat_interleave(n, dim=0),
        past_key_values=cache,
        logits_processor=LogitsProcessorList([logprobs]),
        stopping_criteria=StoppingCriteriaList([ending]),
    )
    rows = [prompt for prompt in prompts for _ in range(n)]
    texts = zip(rows, drawn[:, width:].tolist(), logprobs.of(drawn), strict=True)
    replies = [_completion(tokenizer, *text, ends=ends, stop=stop) for text in texts]
    if settings.hidden_layer is not None:
        replies = _with_states(model, rows, replies, settings.hidden_layer)
    return replies


_NOT_HERE: dict[str, Any] = {
    "cache_implementation": None,
    "penalty_alpha": None,
    "prompt_lookup_num_tokens": None,
    "return_dict_in_generate": False,
    "stop_strings": None,  # ``_Ending`` looks for them
    "token_healing": False,
}
"""What a model's configuration may ask for, and a batch of replies cannot have."""


def _options(settings: GenerationSettings, model: Model) -> dict[str, Any]:
    """Return the settings as options of ``generate``."""
    temperature = settings.temperature
    limits = {"top_k": settings.top_k, "top_p": settings.top_p}
    options: dict[str, Any]
    if temperature is None:
        options = {name: value for name, value in limits.items() if value is not None}
    else:
        # Penalties and the like would keep samples from the model's own distribution.
        options = dict.fromkeys(model.generation_config.to_dict())
        options["do_sample"] = temperature > 0
        if temperature > 0:
            options |= {"temperature": temperature, **limits}
    return {
        **options,
        **_NOT_HERE,
        "max_length": None,
        "max_new_tokens": settings.max_tokens,
        "num_beams": 1,
        "num_return_sequences": 1,
        "use_cache": True,
    }


def _padded(
    texts: Sequence[Sequence[int]],
    model: Model,
    *,
    side: Literal["left", "right"],
    padding: int = 0,
) -> tuple[Tensor, Tensor]:
    """Return the tokens of texts and their attention mask, ``(texts, width)``."""
    rows = [torch.tensor(text, device=model.device) for text in texts]
    ones = [torch.ones_like(row) for row in rows]
    return (
        pad_sequence(rows, batch_first=True, padding_value=padding, padding_side=side),
        pad_sequence(ones, batch_first=True, padding_side=side),
    )


def _repeated_cache(model: Model, ids: Tensor, mask: Tensor, n: int) -> Any:  # noqa: ANN401 - of transformers
    """Return the cache of prompts ``n`` times, None if it cannot be repeated."""
    # One token is drawn and thrown away: ``generate`` knows how to read a padded batch.
    options = _options(GenerationSettings(temperature=0, max_tokens=1), model)
    options["return_dict_in_generate"] = True
    output = model.generate(**options, input_ids=ids, attention_mask=mask)
    cache: Any = getattr(output, "past_key_values", None)
    layers = getattr(cache, "layers", None) or [None]
    known = (DynamicLayer, DynamicSlidingWindowLayer)
    if any(type(layer) not in known for layer in layers):
        return None
    cache.batch_repeat_interleave(n)
    return cache


class _Logprobs(LogitsProcessor):
    """Collects log-probabilities as they are before temperature, top-k and top-p."""

    def __init__(self) -> None:
        self._next: Tensor | None = None  # of every token that may come, by row
        self._drawn: list[Tensor] = []

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """Return the scores as they are."""
        self._note(input_ids)
        self._next = torch.log_softmax(scores.float(), dim=-1)
        return scores

    def of(self, drawn: Tensor) -> list[list[float]]:
        """Return the log-probabilities of all drawn tokens, by row."""
        self._note(drawn)
        # Rounding may leave a probability slightly above 1.
        values: Any = torch.cat(self._drawn, dim=1).cpu().clamp(max=0.0)
        rows: list[list[float]] = values.tolist()
        return rows

    def _note(self, ids: Tensor) -> None:
        if self._next is not None:
            self._drawn.append(self._next.gather(1, ids[:, -1:]))


@dataclass
class _Ending(StoppingCriteria):
    """Ends a row at a stop text, and all rows once ``is_over`` returns True.

    ``stop_strings`` of transformers would prepare the whole vocabulary for each
    request, which takes a second for a large one.
    """

    tokenizer: Tokenizer
    stop: Sequence[str]
    width: int
    is_over: Callable[[], bool]

    def __call__(self, input_ids: Tensor, scores: Any, **_: Any) -> Any:  # noqa: ANN401, ARG002 - theirs
        """Return a mask of the rows that have ended."""
        ended = [self.is_over()] * len(input_ids)
        if self.stop and not any(ended):
            # A token has at least one byte, and a character at most four.
            reach = 4 * max(map(len, self.stop)) + 4
            tails = input_ids[:, max(self.width, input_ids.shape[1] - reach) :].tolist()
            texts = [_decode(self.tokenizer, tail) for tail in tails]
            ended = [any(stop in text for stop in self.stop) for text in texts]
        return torch.tensor(ended, device=input_ids.device)


def _completion(
    tokenizer: Tokenizer,
    prompt: Sequence[int],
    drawn: list[int],
    logprobs: list[float],
    *,
    ends: Sequence[int],
    stop: Sequence[str],
) -> Completion:
    """Return a reply up to what ended it; padding may follow that."""
    end = next((k for k, token in enumerate(drawn) if token in ends), None)
    ids = drawn[:end]
    count = len(ids) + (end is not None)
    texts = token_texts(tokenizer, ids)
    text = "".join(texts)
    stops = [(text.find(s), text.find(s) + len(s)) for s in stop if s in text]
    if stops:
        starts = [0, *accumulate(map(len, texts))]
        # The draw ended with the token that completed the first of them.
        over = min(stop_end for _, stop_end in stops)
        count = sum(start < over for start in starts)
        cut = min(stop_start for stop_start, _ in stops)
        text = text[:cut]
        kept = [pair for pair in zip(texts, starts, strict=False) if pair[1] < cut]
        texts = [piece[: cut - start] for piece, start in kept]
    return Completion(
        text=text,
        tokens=tuple(texts),
        token_ids=tuple(ids[: len(texts)]),
        token_logprobs=tuple(logprobs[: len(texts)]),
        finish_reason="stop" if stops or end is not None else "length",
        prompt_tokens=len(prompt),
        completion_tokens=count,
    )


def _with_states(
    model: Model,
    prompts: Sequence[tuple[int, ...]],
    replies: Sequence[Completion],
    layer: int,
) -> list[Completion]:
    """Add the hidden state of each reply's last token, by one more forward pass."""
    sequences = [
        [*prompt, *reply.token_ids]
        for prompt, reply in zip(prompts, replies, strict=True)
    ]
    # Padding on the right is never attended to, and leaves positions as they are.
    ids, mask = _padded(sequences, model, side="right")
    options = {"use_cache": False, "output_hidden_states": True, "logits_to_keep": 1}
    output = model(input_ids=ids, attention_mask=mask, **options)
    states = output.hidden_states[layer].float().cpu().double().numpy()
    return [
        replace(reply, hidden_state=state[len(each) - 1]) if reply.tokens else reply
        for reply, state, each in zip(replies, states, sequences, strict=True)
    ]


# -- The text of tokens ----------------------------------------------------------------


def _decode(tokenizer: Tokenizer, ids: Sequence[int]) -> str:
    """Return the text of tokens; special ones have none."""
    text: str = tokenizer.decode(
        ids, skip_special_tokens=True, clean_up_tokenization_spaces=False
    )
    return text


def token_texts(tokenizer: Tokenizer, ids: Sequence[int]) -> list[str]:
    """Return the text that each token adds.

    Where a character takes several tokens, the last of them adds it.
    """
    texts: list[str] = []
    # The text of a token may depend on those before it, so new tokens are decoded
    # together with the last ones that have added a text, from ``context`` to ``read``.
    context = read = 0
    for end in range(1, len(ids) + 1):
        known = _decode(tokenizer, ids[context:read])
        text = _decode(tokenizer, ids[context:end])
        if text.endswith(_INCOMPLETE) and end < len(ids):
            texts.append("")
            continue
        texts.append(text[len(known) :])
        if texts[-1]:
            context, read = read, end
    return texts


def _end_ids(model: Model, tokenizer: Tokenizer) -> tuple[int, ...]:
    """Return the tokens that end a reply; chat models often have several."""
    configured = model.generation_config.eos_token_id
    several = configured if isinstance(configured, list) else [configured]
    ids = [*several, tokenizer.eos_token_id]
    return tuple(dict.fromkeys(int(each) for each in ids if each is not None))
