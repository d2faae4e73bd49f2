"""How likely a local model finds a continuation, against one token at a time."""

from __future__ import annotations

from typing import Any

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.sampling.hf_likelihood import HuggingFaceLikelihood, split_tokens
from snne_guard.sampling.huggingface import GenerationSettings, HuggingFaceModel
from snne_guard.scorers import p_true, p_true_logprob, p_true_prompt
from tests.support.hf_oracle import teacher_forced
from tests.support.tiny_llama import make_model, make_tokenizer

TOKENIZER = make_tokenizer()


@pytest.fixture(scope="module")
def tiny() -> HuggingFaceModel:
    return HuggingFaceModel(make_model(), TOKENIZER)


def ids_of(text: str) -> list[int]:
    ids: list[int] = TOKENIZER(text)["input_ids"]
    return ids


@pytest.mark.parametrize("continuation", [" A", " Paris, of course", "é", "\n"])
def test_it_is_what_one_token_after_the_other_has(
    tiny: HuggingFaceModel, continuation: str
) -> None:
    prompt = "The possible answer is:"
    slow = teacher_forced(tiny.model, ids_of(prompt), ids_of(continuation))

    likelihood = HuggingFaceLikelihood(tiny)

    assert likelihood.token_logprobs(prompt, continuation) == pytest.approx(
        slow, abs=2e-4
    )
    assert likelihood(prompt, continuation) == pytest.approx(sum(slow), abs=2e-4)


def test_it_gives_what_the_model_was_drawn_with(tiny: HuggingFaceModel) -> None:
    settings = GenerationSettings(max_tokens=12, seed=3)
    ((reply,),) = tiny.generate(["Once upon"], settings=settings)
    # Bytes that are no text would be read as other ones.
    drawn = [token.id for token in reply.tokens]
    slow = teacher_forced(tiny.model, ids_of("Once upon"), drawn)

    assert reply.token_logprobs == pytest.approx(slow, abs=2e-4)
    read = HuggingFaceLikelihood(tiny)._read(ids_of("Once upon"), drawn)
    assert read == pytest.approx(reply.token_logprobs, abs=2e-4)


def test_a_model_whose_forward_gives_all_logits() -> None:
    """Not every architecture knows which logits are wanted."""

    class Plain(GPT2LMHeadModel):
        def forward(
            self,
            input_ids: Any,
            past_key_values: Any = None,
            use_cache: Any = None,
            return_dict: Any = None,
        ) -> Any:
            return super().forward(
                input_ids,
                past_key_values=past_key_values,
                use_cache=use_cache,
                return_dict=return_dict,
            )

    config = GPT2Config(
        vocab_size=259, n_embd=32, n_layer=1, n_head=2, n_positions=64, bos_token_id=1
    )
    model: Any = Plain(config)
    model.eval()
    slow = teacher_forced(model, ids_of("abc"), ids_of(" de"))

    likelihood = HuggingFaceLikelihood(HuggingFaceModel(model, TOKENIZER))

    assert likelihood("abc", " de") == pytest.approx(sum(slow), abs=2e-4)


def merging_tokenizer() -> Any:
    """Tokens for ``a``, ``b``, ``c`` and space, and one for ``bc``."""
    vocabulary = {text: place for place, text in enumerate(["a", "b", "c", "Ġ", "bc"])}
    inner = Tokenizer(models.BPE(vocab=vocabulary, merges=[("b", "c")]))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(
        add_prefix_space=False, use_regex=False
    )
    inner.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=inner)


def test_a_prompt_keeps_its_tokens_where_the_whole_text_would_change_them() -> None:
    tokenizer = merging_tokenizer()

    assert split_tokens(tokenizer, "a", " bc") == ((0,), (3, 4))
    # "b" and "c" make one token together; the model has read "b" alone.
    assert split_tokens(tokenizer, "ab", "ca") == ((0, 1), (2, 0))


def test_a_continuation_that_cannot_be_cut_off_the_prompt() -> None:
    with pytest.raises(InputError, match="begins where a token does, got ''"):
        split_tokens(TOKENIZER, "a", "")
    with pytest.raises(InputError, match="must have at least one token"):
        split_tokens(TOKENIZER, "", " A")


def test_a_continuation_that_reads_as_another_text_by_itself() -> None:
    """As with tokenizers that lose or add a space at the beginning of a text."""

    class Swallowing:
        def __call__(self, text: str, **options: Any) -> Any:
            alone = options.get("add_special_tokens", True) is False
            ids = {"ab": [7], "abcd": [8, 9], "cd": [5]}[text]
            return {"input_ids": ids if not alone else [5]}

        def decode(self, ids: Any, **_options: Any) -> str:
            return {(7,): "ab", (7, 5): "ab cd"}[tuple(ids)]

    with pytest.raises(InputError, match="begins where a token does, got 'cd'"):
        split_tokens(Swallowing(), "ab", "cd")


def test_what_does_not_fit_into_the_window(tiny: HuggingFaceModel) -> None:
    likelihood = HuggingFaceLikelihood(tiny)

    assert likelihood("a" * 511, "b") < 0
    with pytest.raises(InputError, match="at most 512 tokens, got 513"):
        likelihood("a" * 511, "bc")


def test_a_model_that_is_none() -> None:
    with pytest.raises(ConfigurationError, match="a local model is taken from"):
        HuggingFaceLikelihood("gpt2")


def test_p_true_of_a_local_model(tiny: HuggingFaceModel) -> None:
    samples = ["Goethe", "Marlowe"]
    prompt = p_true_prompt("Who wrote Faust?", "Goethe", samples)
    slow = sum(teacher_forced(tiny.model, ids_of(prompt), ids_of(" A")))

    logprob = p_true_logprob(
        HuggingFaceLikelihood(tiny), "Who wrote Faust?", "Goethe", samples
    )

    assert logprob == pytest.approx(slow, abs=2e-4)
    assert 0 < p_true(logprob) < 1
