"""A key-value cache that grows in place, where that of ``transformers`` is copied."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import DynamicLayer

__all__ = ["GrowingLayer", "grow_in_place"]

_LEAST_ROOM = 64


def grow_in_place(cache: Any) -> None:  # noqa: ANN401 - a cache of ``transformers``
    """Have the layers of a cache keep room for tokens to come.

    ``transformers`` copies keys and values of all rows to append one token to each. For
    ten rows and a long prompt that takes more time than the rest of a step. Layers of
    other kinds, such as those of a sliding window, are left as they are.
    """
    cache.layers[:] = [
        GrowingLayer(layer)
        if type(layer) is DynamicLayer and layer.is_initialized
        else layer
        for layer in cache.layers
    ]


class GrowingLayer(DynamicLayer):
    """A layer whose keys and values are the front of larger tensors.

    Args:
        layer: A layer of the usual kind, whose content it takes over.
    """

    keys: Tensor
    values: Tensor

    def __init__(self, layer: DynamicLayer) -> None:
        vars(self).update(vars(layer))
        self._buffers: tuple[Tensor, Tensor] | None = None

    def update(
        self,
        key_states: Tensor,
        value_states: Tensor,
        *_args: object,
        **_kwargs: object,
    ) -> tuple[Tensor, Tensor]:
        """Append keys and values ``(rows, heads, tokens, d)``; return all of them."""
        start = self.get_seq_length()
        end = start + key_states.shape[-2]
        if self._buffers is None or end > self._buffers[0].shape[-2]:
            self._buffers = _roomy(self.keys, end), _roomy(self.values, end)
        keys, values = self._buffers
        keys[:, :, start:end] = key_states
        values[:, :, start:end] = value_states
        self.keys, self.values = keys[:, :, :end], values[:, :, :end]
        return self.keys, self.values

    def reorder_cache(self, beam_idx: Any) -> None:  # noqa: ANN401 - a LongTensor
        """Take rows, each as often as it is named."""
        self._buffers = None
        super().reorder_cache(beam_idx)


def _roomy(states: Tensor, length: int) -> Tensor:
    """Return a larger tensor that begins with these states."""
    rows, heads, filled, size = states.shape
    room = length + max(_LEAST_ROOM, length // 4)
    roomy = torch.empty(
        (rows, heads, room, size), dtype=states.dtype, device=states.device
    )
    roomy[:, :, :filled] = states
    return roomy
