"""Models that are loaded, handed in or adapted; what is none; known continuations."""

from __future__ import annotations

from typing import Any

import peft
import pytest
import torch
from tokenizers import Tokenizer, models
from transformers import (
    PreTrainedTokenizerFast,
    T5Config,
    T5ForConditionalGeneration,
)

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.sampling.huggingface import GenerationSettings, HuggingFaceModel
from tests.huggingface.support import (
    make_model,
    make_tokenizer,
    smollm2,
    teacher_forced,
)

pytestmark = pytest.mark.slow

TOKENIZER = make_tokenizer()
SETTINGS = GenerationSettings(max_tokens=6, seed=1)
QUESTION = [{"role": "user", "content": "hi"}]


@pytest.fixture(scope="module")
def tiny() -> HuggingFaceModel:
    return HuggingFaceModel(make_model(), TOKENIZER)


def text_of(local: HuggingFaceModel) -> str:
    ((reply,),) = local.generate([QUESTION], settings=SETTINGS)
    return reply.text


def ids_of(text: str) -> list[int]:
    ids: list[int] = TOKENIZER(text)["input_ids"]
    return ids


# PEFT asks transformers for a name that this is about to give up.
@pytest.mark.filterwarnings("ignore:.is_gradient_check:FutureWarning")
def test_a_lora_adapter(tiny: HuggingFaceModel) -> None:
    config = peft.LoraConfig(
        task_type="CAUSAL_LM", r=2, target_modules=["q_proj"], init_lora_weights=False
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        adapted = peft.get_peft_model(make_model(), config).eval()
    local = HuggingFaceModel(adapted, TOKENIZER)
    prompts = ["ab", "a longer one"]
    for prompt, replies in zip(
        prompts, local.generate(prompts, n=2, settings=SETTINGS), strict=True
    ):
        for reply in replies:
            expected = teacher_forced(adapted, ids_of(prompt), reply.token_ids)
            assert reply.token_logprobs == pytest.approx(expected, abs=2e-4)
    assert text_of(local) != text_of(tiny)


def test_what_is_no_causal_language_model_in_evaluation_mode() -> None:
    sizes: Any = {"d_model": 8, "d_ff": 8, "num_layers": 1, "num_heads": 1, "d_kv": 8}
    other = T5ForConditionalGeneration(T5Config(vocab_size=9, **sizes)).eval()
    training = make_model().train()
    for model in ("a name", other, training):
        with pytest.raises(ConfigurationError, match=rf"got {type(model).__name__}"):
            HuggingFaceModel(model, TOKENIZER)
    assert training.training


@pytest.mark.parametrize("continuation", [" A", " Paris, of course", "\u00e9"])
def test_the_likelihood_of_a_continuation(
    tiny: HuggingFaceModel, continuation: str
) -> None:
    prompt = "The possible answer is:"
    slow = teacher_forced(tiny.model, ids_of(prompt), ids_of(continuation))
    assert tiny.likelihood(prompt, continuation) == pytest.approx(sum(slow), abs=2e-4)


def test_continuations_that_cannot_be_read(tiny: HuggingFaceModel) -> None:
    with pytest.raises(InputError, match="where a token does; got one of 0 ch"):
        tiny.likelihood("a", "")
    with pytest.raises(InputError, match="must have at least one token"):
        tiny.likelihood("", " A")
    assert tiny.likelihood("a" * 511, "b") < 0
    with pytest.raises(InputError, match="the prompt has 512 tokens"):
        tiny.likelihood("a" * 511, "bc")


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
