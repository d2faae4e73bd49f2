"""One forward pass over tokens that are known: log-probabilities, hidden states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from snne_guard.errors import InputError
from snne_guard.sampling.huggingface.loading import (
    Loaded,
    Model,
    Tokenizer,
    arguments_of,
    window_of,
)
from snne_guard.sampling.huggingface.prompts import encode
from snne_guard.types import FloatArray

__all__ = ["last_hidden_states", "position_ids", "split_tokens", "token_logprobs"]


def position_ids(mask: Tensor) -> Tensor:
    """Return the place of each token in its row, padding left out."""
    return (mask.cumsum(dim=-1) - 1).clamp(min=0)


@torch.no_grad()
def last_hidden_states(
    model: Model, sequences: Sequence[Sequence[int]], layer: int
) -> FloatArray:
    """Return the hidden state of each sequence's last token at a layer.

    Args:
        model: The model.
        sequences: Tokens, at least one in each.
        layer: 0 for the embeddings, 1 for the first layer, -1 for the last.

    Returns:
        ``(sequences, d)`` float64.
    """
    width = max(map(len, sequences))
    # Padding on the right is never attended to, and leaves positions as they are.
    ids = [[*each] + [0] * (width - len(each)) for each in sequences]
    mask = [[1] * len(each) + [0] * (width - len(each)) for each in sequences]
    given: dict[str, Any] = {"logits_to_keep": 1}
    output = model(
        input_ids=torch.tensor(ids, device=model.device),
        attention_mask=torch.tensor(mask, device=model.device),
        use_cache=False,
        output_hidden_states=True,
        return_dict=True,
        **{key: given[key] for key in given.keys() & arguments_of(model)},
    )
    last = torch.tensor([len(each) - 1 for each in sequences])
    states = output.hidden_states[layer].float().cpu()
    found: FloatArray = states[torch.arange(len(last)), last].double().numpy()
    return found


@torch.no_grad()
def token_logprobs(loaded: Loaded, prompt: str, continuation: str) -> tuple[float, ...]:
    """Return the natural log-probability of each token of a continuation.

    Args:
        loaded: Model and tokenizer.
        prompt: Text that the model has read before.
        continuation: Text of at least one token, which begins where a token does:
            ``" A"`` after ``"is:"``, and not ``"nd"`` after ``"a"``.

    Raises:
        InputError: The prompt or the continuation has no tokens, the continuation does
            not begin where a token does, or both are too long for the model.
    """
    model = loaded.model
    before, after = split_tokens(loaded.tokenizer, prompt, continuation)
    length, window = len(before) + len(after), window_of(model)
    if window is not None and length > window:
        msg = f"expected at most {window} tokens in all, got {length}"
        raise InputError(msg)
    # The last token is predicted but never read.
    ids = torch.tensor([[*before, *after[:-1]]], device=model.device)
    given = {"logits_to_keep": len(after)}
    output = model(
        input_ids=ids,
        use_cache=False,
        return_dict=True,
        **{key: given[key] for key in given.keys() & arguments_of(model)},
    )
    logits = output.logits[0, -len(after) :].float()
    chosen = torch.tensor(after, device=logits.device)[:, None]
    found = torch.log_softmax(logits, dim=-1).gather(1, chosen)[:, 0]
    # Rounding may leave a probability slightly above 1.
    return tuple(min(float(value), 0.0) for value in found)


def split_tokens(
    tokenizer: Tokenizer, prompt: str, continuation: str
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the tokens of a prompt and those of what follows it.

    Where the two would grow into one token, which a model that has read the prompt
    cannot say, the continuation is encoded by itself.

    Raises:
        InputError: One of them has no tokens, or the continuation encoded by itself
            is another text.
    """
    before = encode(tokenizer, prompt)
    whole = encode(tokenizer, prompt + continuation)
    if whole[: len(before)] == before and len(whole) > len(before):
        return before, whole[len(before) :]
    after = tuple(tokenizer(continuation, add_special_tokens=False)["input_ids"])
    both = _text(tokenizer, before + after)
    if not after or both != _text(tokenizer, before) + continuation:
        msg = (
            "expected a continuation of at least one token that begins where a token "
            f"does, got one of {len(continuation)} characters"
        )
        raise InputError(msg)
    return before, after


def _text(tokenizer: Tokenizer, ids: Sequence[int]) -> str:
    text: str = tokenizer.decode(
        ids, skip_special_tokens=True, clean_up_tokenization_spaces=False
    )
    return text
