"""One forward pass over tokens that are known: log-probabilities, hidden states."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from snne_guard.errors import InputError
from snne_guard.sampling.huggingface.loading import (
    Model,
    Tokenizer,
    accepted,
    window_of,
)
from snne_guard.sampling.huggingface.text import encode
from snne_guard.types import FloatArray

__all__ = ["last_hidden_states", "token_logprobs"]


@torch.no_grad()
def last_hidden_states(
    model: Model, sequences: Sequence[Sequence[int]], layer: int
) -> FloatArray:
    """Return the hidden state of each sequence's last token, ``(sequences, d)``."""
    width = max(map(len, sequences))
    # Padding on the right is never attended to, and leaves positions as they are.
    ids = [[*each] + [0] * (width - len(each)) for each in sequences]
    mask = [[1] * len(each) + [0] * (width - len(each)) for each in sequences]
    output = model(
        input_ids=torch.tensor(ids, device=model.device),
        attention_mask=torch.tensor(mask, device=model.device),
        use_cache=False,
        output_hidden_states=True,
        return_dict=True,
        **accepted(model, logits_to_keep=1),
    )
    last = torch.tensor([len(each) - 1 for each in sequences])
    states = output.hidden_states[layer].float().cpu()
    found: FloatArray = states[torch.arange(len(last)), last].double().numpy()
    return found


@torch.no_grad()
def token_logprobs(
    model: Model, tokenizer: Tokenizer, prompt: str, continuation: str
) -> tuple[float, ...]:
    """See ``HuggingFaceModel.token_logprobs``."""
    before = encode(tokenizer, prompt)
    whole = encode(tokenizer, prompt + continuation)
    after = whole[len(before) :]
    if not after or whole[: len(before)] != before:
        msg = (
            "expected a continuation of at least one token that begins where a token "
            f"does, got one of {len(continuation)} characters"
        )
        raise InputError(msg)
    window = window_of(model)
    if window is not None and len(whole) > window:
        msg = f"expected at most {window} tokens in all, got {len(whole)}"
        raise InputError(msg)
    # The last token is predicted but never read.
    output = model(
        input_ids=torch.tensor([whole[:-1]], device=model.device),
        use_cache=False,
        return_dict=True,
        **accepted(model, logits_to_keep=len(after)),
    )
    logits = output.logits[0, -len(after) :].float()
    chosen = torch.tensor(after, device=logits.device)[:, None]
    found = torch.log_softmax(logits, dim=-1).gather(1, chosen)[:, 0]
    # Rounding may leave a probability slightly above 1.
    return tuple(min(float(value), 0.0) for value in found)
