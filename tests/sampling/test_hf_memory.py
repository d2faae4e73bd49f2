"""When the memory is out, the batch is halved and goes on where it was."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
import torch

from snne_guard.sampling import hf_decode
from snne_guard.sampling.hf_cache import grow_in_place
from snne_guard.sampling.hf_draw import draw
from snne_guard.sampling.huggingface import GenerationSettings, HuggingFaceModel
from tests.support.tiny_llama import make_model, make_tokenizer

TOKENIZER = make_tokenizer()
SETTINGS = GenerationSettings(max_tokens=12, seed=1, hidden_layer=-1)


class Cramped:
    """A model whose memory is out whenever ``is_out`` says so of a forward."""

    def __init__(self, is_out: Callable[[int, int], bool]) -> None:
        self.model = make_model()
        self.sizes: list[int] = []
        self._forward = self.model.forward
        self._is_out = is_out

        def forward(input_ids: Any, **options: Any) -> Any:
            self.sizes.append(len(input_ids))
            if self._is_out(len(self.sizes), len(input_ids)):
                msg = "CUDA out of memory. Tried to allocate 1.00 GiB."
                raise torch.OutOfMemoryError(msg)
            return self._forward(input_ids=input_ids, **options)

        self.model.forward = functools.wraps(self._forward)(forward)


def replies_of(model: Any, prompts: tuple[str, ...], n: int) -> list[Any]:
    local = HuggingFaceModel(model, TOKENIZER)
    return [
        [(reply.text, reply.finish_reason) for reply in replies]
        for replies in local.generate(prompts, n=n, settings=SETTINGS)
    ]


EXPECTED = replies_of(make_model(), ("ab", "third"), 4)


def test_the_memory_may_be_out_while_drawing(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def cramped(logits: Any, settings: Any, uniforms: Any) -> Any:
        calls.append(len(settings))
        if len(calls) == 5:
            raise torch.OutOfMemoryError
        return draw(logits, settings, uniforms)

    monkeypatch.setattr(hf_decode, "draw", cramped)
    assert replies_of(make_model(), ("ab", "third"), 4) == EXPECTED
    assert calls[4:6] == [8, 4]


@pytest.mark.parametrize("fails", [1, 2, 7, 13])
def test_a_batch_goes_on_where_it_was(fails: int) -> None:
    cramped = Cramped(lambda call, _rows: call == fails)
    assert replies_of(cramped.model, ("ab", "third"), 4) == EXPECTED


def test_a_batch_is_halved_until_it_fits() -> None:
    cramped = Cramped(lambda _call, rows: rows > 3)
    assert replies_of(cramped.model, ("ab", "third"), 4) == EXPECTED
    assert set(cramped.sizes) <= {1, 2, 3, 4, 8}
    drawn = [rows for rows in cramped.sizes if rows <= 3]
    # Nothing is drawn twice: four batches of two rows, 12 tokens each; the first of
    # each was drawn before all eight rows were too many for the second.
    assert len(drawn) <= 1 + 4 * 13


def test_a_reply_that_does_not_fit_alone_fails_alone() -> None:
    long = "a very long prompt"
    cramped = Cramped(lambda _call, _rows: False)
    inner = cramped.model.forward

    def forward(input_ids: Any, **options: Any) -> Any:
        if input_ids.shape[1] >= len(long):
            msg = "out of memory"
            raise torch.OutOfMemoryError(msg)
        return inner(input_ids=input_ids, **options)

    cramped.model.forward = functools.wraps(inner)(forward)
    local = HuggingFaceModel(cramped.model, TOKENIZER)
    futures = [local.submit(prompt, n=2, settings=SETTINGS) for prompt in ("ab", long)]
    assert [reply.text for reply in futures[0].result(30)] == [
        text for text, _ in EXPECTED[0][:2]
    ]
    with pytest.raises(torch.OutOfMemoryError):
        futures[1].result(30)


def test_one_row_is_left_of_a_batch() -> None:
    """The last of several rows gets a try of its own."""
    texts = [text for text, _ in EXPECTED[0]]
    stop = texts[0][2]
    settings = GenerationSettings(max_tokens=12, seed=1, stop=(stop,))
    free = HuggingFaceModel(make_model(), TOKENIZER)
    ((first, second),) = free.generate(["ab"], n=2, settings=settings)
    assert first.completion_tokens != second.completion_tokens
    # In the middle of what only the longer one still draws.
    at = min(first.completion_tokens, second.completion_tokens) + 1
    cramped = Cramped(lambda call, _rows: call == at)
    local = HuggingFaceModel(cramped.model, TOKENIZER)
    ((again, other),) = local.generate(["ab"], n=2, settings=settings)
    assert (again.text, other.text) == (first.text, second.text)


def test_a_large_request_is_drawn_in_several_batches() -> None:
    cramped = Cramped(lambda _call, _rows: False)
    local = HuggingFaceModel(cramped.model, TOKENIZER, max_batch_size=3)
    (replies,) = local.generate(["ab"], n=4, settings=SETTINGS)
    assert [(reply.text, reply.finish_reason) for reply in replies] == EXPECTED[0]
    assert max(cramped.sizes) == 3


def test_a_cache_grows_in_place_and_holds_what_the_usual_one_holds() -> None:
    model = make_model()
    ids = torch.tensor([TOKENIZER("a" * 90)["input_ids"]])
    with torch.inference_mode():
        usual = model(input_ids=ids[:, :10], use_cache=True).past_key_values
        growing = model(input_ids=ids[:, :10], use_cache=True).past_key_values
        grow_in_place(growing)
        index = torch.tensor([0, 0, 0])
        for place in range(10, 90):
            if place in (12, 80):
                usual.reorder_cache(index[: 3 if place == 12 else 2])
                growing.reorder_cache(index[: 3 if place == 12 else 2])
            rows = usual.layers[0].keys.shape[0]
            token = ids[:, place : place + 1].expand(rows, -1)
            one = model(input_ids=token, past_key_values=usual).logits
            other = model(input_ids=token, past_key_values=growing).logits
            torch.testing.assert_close(one, other)
    for here, there in zip(usual.layers, growing.layers, strict=True):
        assert torch.equal(here.keys, there.keys)
        assert torch.equal(here.values, there.values)


def test_layers_of_other_kinds_stay() -> None:
    class Other:
        is_initialized = True

    class Cache:
        def __init__(self) -> None:
            self.layers = [Other()]

    cache = Cache()
    grow_in_place(cache)
    assert isinstance(cache.layers[0], Other)
