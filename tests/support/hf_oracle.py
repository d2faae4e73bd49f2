"""The slow way to draw from a causal language model: all tokens anew at each step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

__all__ = ["next_logprobs", "state_of", "teacher_forced"]


def next_logprobs(model: Any, ids: Sequence[int]) -> torch.Tensor:
    """Return the log-probabilities of the token after these."""
    with torch.inference_mode():
        logits = model(input_ids=torch.tensor([list(ids)]), use_cache=False).logits
    return torch.log_softmax(logits[0, -1].float(), dim=-1)


def teacher_forced(
    model: Any, prompt: Sequence[int], reply: Sequence[int]
) -> list[float]:
    """Return the log-probability of each token of a reply, one sequence, no cache."""
    return [
        float(next_logprobs(model, [*prompt, *reply[:place]])[token])
        for place, token in enumerate(reply)
    ]


def state_of(model: Any, ids: Sequence[int], layer: int) -> Any:
    """Return the hidden state of the last token at a layer."""
    with torch.inference_mode():
        output = model(
            input_ids=torch.tensor([list(ids)]),
            use_cache=False,
            output_hidden_states=True,
        )
    return output.hidden_states[layer][0, -1].double().numpy()
