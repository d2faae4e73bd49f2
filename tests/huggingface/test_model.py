"""Models that are loaded, handed in or adapted; what is none; known continuations."""

from __future__ import annotations

from typing import Any

import pytest
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast, T5Config, T5ForConditionalGeneration

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.huggingface import GenerationSettings, HuggingFaceModel
from tests.huggingface.support import (
    TOKENIZER,
    ids_of,
    make_model,
    smollm2,
    teacher_forced,
    tiny,
)

pytestmark = pytest.mark.slow


def test_what_is_no_causal_language_model_in_evaluation_mode() -> None:
    sizes: Any = {"d_model": 8, "d_ff": 8, "num_layers": 1, "num_heads": 1, "d_kv": 8}
    other = T5ForConditionalGeneration(T5Config(vocab_size=9, **sizes)).eval()
    training = make_model().train()
    for model in ("a name", other, training):
        with pytest.raises(ConfigurationError, match=rf"got {type(model).__name__}"):
            HuggingFaceModel(model, TOKENIZER)
    assert training.training


@pytest.mark.parametrize("continuation", [" A", " Paris, of course", "\u00e9"])
def test_the_likelihood_of_a_continuation(continuation: str) -> None:
    prompt = "The possible answer is:"
    slow = teacher_forced(tiny().model, ids_of(prompt), ids_of(continuation))
    assert tiny().likelihood(prompt, continuation) == pytest.approx(sum(slow), abs=2e-4)


@pytest.mark.parametrize(
    ("prompt", "continuation", "message"),
    [
        ("a", "", "where a token does; got one of 0 characters"),
        ("", " A", "must have at least one token"),
        ("a" * 511, "bc", "the prompt has 512 tokens"),
    ],
)
def test_continuations_that_cannot_be_read(
    prompt: str, continuation: str, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        tiny().likelihood(prompt, continuation)


def test_the_last_token_needs_no_room() -> None:
    assert tiny().likelihood("a" * 511, "b") < 0


def test_a_continuation_begins_where_a_token_does() -> None:
    vocabulary = {text: place for place, text in enumerate(["a", "b", "c", "bc"])}
    inner = Tokenizer(models.BPE(vocab=vocabulary, merges=[("b", "c")]))
    local = HuggingFaceModel(
        make_model(), PreTrainedTokenizerFast(tokenizer_object=inner)
    )
    assert local.likelihood("a", "bc") < 0
    with pytest.raises(InputError, match="where a token does; got one of 2 ch"):
        local.likelihood("ab", "ca")  # "b" and "c" make one token together


def test_a_real_model_knows_the_capital_of_france() -> None:
    local = smollm2()
    question = [{"role": "user", "content": "What is the capital of France?"}]
    greedy = GenerationSettings(max_tokens=8, temperature=0)
    ((answer,),) = local.generate([question], settings=greedy)
    assert "Paris" in answer.text
    assert "".join(answer.tokens) == answer.text
    prompt = "The capital of France is"
    assert local.likelihood(prompt, " Paris") > local.likelihood(prompt, " London")
