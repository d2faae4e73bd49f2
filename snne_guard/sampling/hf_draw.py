"""From logits to drawn tokens: what may be drawn, and the draw itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from snne_guard.sampling.hf_settings import GenerationSettings

__all__ = ["Drawn", "draw", "sampling_logprobs"]


class Drawn(NamedTuple):
    """What one step drew, an entry a row.

    Attributes:
        ids: The tokens.
        logprobs: Their log-probabilities under the model's own distribution.
        sampling_logprobs: And under the one that they were drawn from.
    """

    ids: list[int]
    logprobs: list[float]
    sampling_logprobs: list[float]


def draw(
    logits: Tensor, settings: Sequence[GenerationSettings], uniforms: Sequence[float]
) -> Drawn:
    """Draw a token a row.

    Args:
        logits: ``(rows, vocabulary)``, in any precision.
        settings: How each row is drawn.
        uniforms: A random number in [0, 1) for each row. The token is the first one
            at which the cumulated probability exceeds it, so that what a row draws
            depends on its own number only.
    """
    own = torch.log_softmax(logits.float(), dim=-1)
    sampled = sampling_logprobs(own, settings)
    ids = _first_above(sampled, uniforms)
    # One transfer to the CPU for all three; ids are exact in float64.
    columns = [
        ids.double(),
        own.gather(1, ids[:, None])[:, 0].double(),
        sampled.gather(1, ids[:, None])[:, 0].double(),
    ]
    stacked: Any = torch.stack(columns)  # whose tolist() says no more than "a list"
    chosen, logprobs, sampling = stacked.tolist()
    return Drawn(list(map(int, chosen)), logprobs, sampling)


def sampling_logprobs(own: Tensor, settings: Sequence[GenerationSettings]) -> Tensor:
    """Return the log-probabilities that tokens are drawn with.

    Temperature first, then top-k, then top-p, as ``generate`` of ``transformers`` has
    them. At temperature 0 the likeliest token has all the probability.

    Args:
        own: ``(rows, vocabulary)`` log-probabilities of the model's own distribution.
        settings: How each row is drawn.
    """
    if all(each.is_plain for each in settings):
        return own
    scale = _column(own, [each.temperature or 1.0 for each in settings])
    scores = torch.log_softmax(own / scale, dim=-1)
    if any(each.top_k is not None or each.top_p is not None for each in settings):
        scores = _likeliest(scores, settings)
    greedy = _column(own, [float(each.temperature == 0) for each in settings]).bool()
    if bool(greedy.any()):
        best = torch.full_like(scores, -torch.inf)
        best.scatter_(1, own.argmax(dim=-1, keepdim=True), 0.0)
        scores = torch.where(greedy, best, scores)
    return scores


def _likeliest(scores: Tensor, settings: Sequence[GenerationSettings]) -> Tensor:
    """Leave only the tokens that top-k and top-p admit."""
    ordered, order = scores.sort(dim=-1, descending=True, stable=True)
    size = scores.shape[-1]
    places = torch.arange(size, device=scores.device)
    most = _column(scores, [float(each.top_k or size) for each in settings])
    # Ties with the last of the top-k are admitted, as in ``transformers``.
    smallest = ordered.gather(1, (most.long().clamp(max=size) - 1))
    ordered = ordered.masked_fill(ordered < smallest, -torch.inf)
    share = _column(scores, [each.top_p or 1.0 for each in settings])
    cumulated = torch.softmax(ordered, dim=-1).cumsum(dim=-1)
    before = cumulated - torch.softmax(ordered, dim=-1)
    outside = (before >= share) & (share < 1) & (places > 0)
    ordered = ordered.masked_fill(outside, -torch.inf)
    admitted = torch.empty_like(scores).scatter_(1, order, ordered)
    return torch.log_softmax(admitted, dim=-1)


def _first_above(logprobs: Tensor, uniforms: Sequence[float]) -> Tensor:
    cumulated = logprobs.double().exp_().cumsum(dim=-1)
    total = cumulated[:, -1:].contiguous()
    reached = torch.tensor(uniforms, dtype=torch.float64, device=logprobs.device)
    found = torch.searchsorted(cumulated, reached[:, None] * total, right=True)
    # Rounding must not lead past the last token that has any probability.
    last = torch.searchsorted(cumulated, total)
    return torch.minimum(found, last)[:, 0]


def _column(like: Tensor, values: Sequence[float]) -> Tensor:
    return torch.tensor(values, dtype=like.dtype, device=like.device)[:, None]
