"""The decode loop: one prefill for all replies to a prompt, then a token a step."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from snne_guard.sampling.hf_cache import grow_in_place
from snne_guard.sampling.hf_draw import draw
from snne_guard.sampling.hf_rows import Row
from snne_guard.types import FloatArray

__all__ = ["Weights", "decode"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """A loaded model, and what the loop has to know of it.

    Attributes:
        model: A causal language model of ``transformers``, or of PEFT around one.
        ends: Tokens that end a reply.
        accepts: Names of the arguments that its ``forward`` takes.
        padding: A token to fill up shorter prompts with; it is never attended to.
    """

    model: Any
    ends: frozenset[int]
    accepts: frozenset[str]
    padding: int = 0


def decode(
    weights: Weights,
    rows: Sequence[Row],
    *,
    max_batch_size: int,
    ended: Callable[[Row], None],
    failed: Callable[[Row, BaseException], None],
) -> None:
    """Advance rows until each of them has ended.

    A batch that does not fit into memory is halved. Its rows go on from where they
    are, so nothing that was drawn is drawn again.

    Args:
        weights: The model.
        rows: Replies, begun or not.
        max_batch_size: Rows that are advanced together at most.
        ended: Told of each row when it has ended.
        failed: Told of a row for which the memory does not suffice even alone.
    """
    size = max_batch_size
    batches = deque(rows[i : i + size] for i in range(0, len(rows), size))
    while batches:
        batch = batches.popleft()
        error = _advance(weights, batch, ended)
        if error is None:
            continue
        left = [row for row in batch if not row.is_over]
        if len(batch) == 1:
            for row in left:
                failed(row, error)
            continue
        half = (len(left) + 1) // 2
        batches.extendleft(part for part in (left[half:], left[:half]) if part)


def _advance(
    weights: Weights, rows: Sequence[Row], ended: Callable[[Row], None]
) -> BaseException | None:
    """Advance rows; return why the memory did not suffice, None if it did."""
    try:
        with torch.inference_mode():
            _run(weights, rows, ended)
    except torch.OutOfMemoryError as error:
        # Its frames hold the tensors that are to be freed.
        caught = error.with_traceback(None)
    else:
        return None
    if torch.cuda.is_available():  # pragma: no cover - needs a GPU
        torch.cuda.empty_cache()
    return caught


def _run(weights: Weights, rows: Sequence[Row], ended: Callable[[Row], None]) -> None:
    live = [row for row in rows if not row.is_over]
    if not live:
        return
    batch = _Batch(weights, live)
    read = batch.prefill(live)
    while True:
        _keep_states(live, read.states)
        _draw(weights, live, read.logits)
        places = [place for place, row in enumerate(live) if not row.is_over]
        for row in live:
            if row.is_over and row.finish_reason is not None:
                ended(row)
        if not places:
            return
        if len(places) < len(live):
            live = [live[place] for place in places]
            batch.select(places)
        read = batch.step([row.ids[-1] for row in live], live)


def _keep_states(rows: Sequence[Row], states: dict[int, FloatArray]) -> None:
    for place, row in enumerate(rows):
        if row.wants_state and row.settings.hidden_layer is not None:
            row.keep_state(states[row.settings.hidden_layer][place])


def _draw(weights: Weights, rows: Sequence[Row], logits: Tensor) -> None:
    """Draw a token for each row that has not ended; some are only read to their end."""
    places = [place for place, row in enumerate(rows) if row.finish_reason is None]
    if not places:
        return
    drawing = [rows[place] for place in places]
    drawn = draw(
        logits if len(places) == len(rows) else logits[places],
        [row.settings for row in drawing],
        [row.uniform() for row in drawing],
    )
    for row, token, own, sampling in zip(drawing, *drawn, strict=True):
        row.accept(token, own, sampling, is_end=token in weights.ends)


class _Read(NamedTuple):
    """What the model says after reading: logits of the next token, hidden states."""

    logits: Tensor
    states: dict[int, FloatArray]


class _Batch:
    """The key-value cache of some rows, and where each row stands in it."""

    def __init__(self, weights: Weights, rows: Sequence[Row]) -> None:
        self._weights = weights
        self._device = weights.model.device
        self._cache: Any = None
        self._lengths = [len(row.prefix) for row in rows]
        # None where no row is padded: attention without a mask is faster.
        self._mask: Tensor | None = None

    def prefill(self, rows: Sequence[Row]) -> _Read:
        """Read what comes before the next token of each row, each text only once."""
        prefixes = list(dict.fromkeys(row.prefix for row in rows))
        width = max(map(len, prefixes))
        padding = self._weights.padding
        ids = [[padding] * (width - len(each)) + [*each] for each in prefixes]
        if min(map(len, prefixes)) < width:
            self._mask = self._tensor(
                [[0] * (width - len(each)) + [1] * len(each) for each in prefixes]
            )
            positions = (self._mask.cumsum(dim=-1) - 1).clamp(min=0)
        else:
            positions = torch.arange(width, device=self._device).expand(len(ids), -1)
        read = self._forward(self._tensor(ids), positions, rows)
        grow_in_place(self._cache)
        index = {prefix: place for place, prefix in enumerate(prefixes)}
        places = [index[row.prefix] for row in rows]
        if places != list(range(len(prefixes))):
            self._reorder(places)
            states = {layer: state[places] for layer, state in read.states.items()}
            read = _Read(read.logits[places], states)
        return read

    def step(self, ids: Sequence[int], rows: Sequence[Row]) -> _Read:
        """Read one more token of each row."""
        positions = self._tensor([[length] for length in self._lengths])
        self._lengths = [length + 1 for length in self._lengths]
        if self._mask is not None:
            more = self._mask.new_ones((len(rows), 1))
            self._mask = torch.cat([self._mask, more], dim=1)
        return self._forward(self._tensor([[each] for each in ids]), positions, rows)

    def select(self, places: Sequence[int]) -> None:
        """Go on with some of the rows."""
        self._lengths = [self._lengths[place] for place in places]
        self._reorder(places)

    def _reorder(self, places: Sequence[int]) -> None:
        index = self._tensor(places)
        self._cache.reorder_cache(index)
        if self._mask is not None:
            self._mask = self._mask[index]

    def _forward(self, ids: Tensor, positions: Tensor, rows: Sequence[Row]) -> _Read:
        layers = {
            row.settings.hidden_layer
            for row in rows
            if row.settings.hidden_layer is not None
        }
        given = {
            "position_ids": positions,
            "logits_to_keep": 1,  # of a long prompt, the last ones are all we need
        }
        output = self._weights.model(
            input_ids=ids,
            attention_mask=self._mask,
            past_key_values=self._cache,
            use_cache=True,
            output_hidden_states=bool(layers),
            return_dict=True,
            **{k: v for k, v in given.items() if k in self._weights.accepts},
        )
        self._cache = output.past_key_values
        states = {
            layer: output.hidden_states[layer][:, -1].double().cpu().numpy()
            for layer in layers
        }
        return _Read(output.logits[:, -1], states)

    def _tensor(self, values: object) -> Tensor:
        return torch.tensor(values, dtype=torch.long, device=self._device)
