"""What is drawn from a local model, against the slow way that is plainly right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from transformers import (
    BloomConfig,
    BloomForCausalLM,
    Gemma2Config,
    Gemma2ForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    MistralConfig,
    MistralForCausalLM,
)

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.sampling.huggingface import (
    Completion,
    GenerationSettings,
    HuggingFaceModel,
)
from tests.support.hf_oracle import state_of, teacher_forced
from tests.support.tiny_llama import make_model, make_tokenizer

TOKENIZER = make_tokenizer()
PROMPTS = ("ab", "a longer prompt than that", "ab", "third")
TWENTY = GenerationSettings(max_tokens=20, seed=1)


@pytest.fixture(scope="module")
def llama() -> Any:
    return make_model()


@pytest.fixture(scope="module")
def tiny(llama: Any) -> HuggingFaceModel:
    return HuggingFaceModel(llama, TOKENIZER)


def ids_of(text: str) -> list[int]:
    ids: list[int] = TOKENIZER(text)["input_ids"]
    return ids


def check(model: Any, prompt: str, replies: Sequence[Completion]) -> None:
    for reply in replies:
        drawn = [token.id for token in reply.tokens]
        expected = teacher_forced(model, ids_of(prompt), drawn)
        assert reply.token_logprobs == pytest.approx(expected, abs=2e-4)
        assert reply.text == TOKENIZER.decode(drawn, skip_special_tokens=True)
        assert reply.prompt_tokens == len(ids_of(prompt))


def texts(replies: Sequence[Completion]) -> list[str]:
    return [reply.text for reply in replies]


def test_log_probabilities_are_those_of_one_sequence_without_a_cache(
    llama: Any, tiny: HuggingFaceModel
) -> None:
    sets = tiny.generate(PROMPTS, n=3, settings=TWENTY)
    for prompt, replies in zip(PROMPTS, sets, strict=True):
        check(llama, prompt, replies)
        assert all(reply.sampling_logprobs == reply.token_logprobs for reply in replies)
        assert len({reply.text for reply in replies}) == 3
    assert texts(sets[0]) == texts(sets[2])  # the same prompt and the same seed


SIZES: dict[str, Any] = {
    "vocab_size": 259,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "sliding_window": 8,
    "initializer_range": 0.3,
}


def _gpt2() -> Any:
    config = GPT2Config(vocab_size=259, n_embd=32, n_layer=2, n_head=4, n_positions=64)
    return GPT2LMHeadModel(config)


def _bloom() -> Any:
    """Return one that has neither positions nor a context window."""
    config = BloomConfig(vocab_size=259, hidden_size=32, n_layer=2, n_head=4)
    return BloomForCausalLM(config)


def _sliding() -> Any:
    return MistralForCausalLM(MistralConfig(**SIZES))


def _mixed() -> Any:
    return Gemma2ForCausalLM(Gemma2Config(**SIZES))


@pytest.mark.parametrize("make", [_gpt2, _bloom, _sliding, _mixed])
def test_other_architectures_and_caches(make: Any) -> None:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        model = make().eval()
    model.generation_config.eos_token_id = 1
    local = HuggingFaceModel(model, TOKENIZER)
    sets = local.generate(PROMPTS, n=2, settings=TWENTY)
    for prompt, replies in zip(PROMPTS, sets, strict=True):
        check(model, prompt, replies)


@pytest.mark.parametrize("prompt", PROMPTS[:2])
def test_greedy_is_generate_without_sampling(
    llama: Any, tiny: HuggingFaceModel, prompt: str
) -> None:
    ids = torch.tensor([ids_of(prompt)])
    theirs = llama.generate(
        input_ids=ids,
        attention_mask=torch.ones_like(ids),
        do_sample=False,
        max_new_tokens=40,
    )[0, ids.shape[1] :].tolist()
    settings = GenerationSettings(temperature=0, max_tokens=40)
    ((mine,),) = tiny.generate([prompt], settings=settings)
    assert [token.id for token in mine.tokens] == [t for t in theirs if t != 1]
    assert mine.finish_reason == ("stop" if 1 in theirs else "length")
    assert set(mine.sampling_logprobs) == {0.0}
    check(llama, prompt, [mine])


def test_both_distributions_are_told(llama: Any, tiny: HuggingFaceModel) -> None:
    settings = GenerationSettings(temperature=0.5, top_k=5, max_tokens=12, seed=2)
    ((reply,),) = tiny.generate(["ab"], settings=settings)
    check(llama, "ab", [reply])
    assert reply.sampling_logprobs != reply.token_logprobs
    assert all(logprob <= 0 for logprob in reply.sampling_logprobs)


def test_a_reply_depends_on_its_seed_alone(tiny: HuggingFaceModel) -> None:
    torch.manual_seed(11)
    before = torch.random.get_rng_state(), np.random.get_state()[1].tolist()  # type: ignore[union-attr, index, unused-ignore] # noqa: NPY002 - to see that it stays
    ((alone, second),) = tiny.generate(["ab"], n=2, settings=TWENTY)
    many = tiny.generate(["x", "ab", "a longer one"], n=5, settings=TWENTY)
    assert texts(many[1][:2]) == texts([alone, second])
    assert alone.text != second.text
    ((other,),) = tiny.generate(
        ["ab"], settings=GenerationSettings(max_tokens=20, seed=2)
    )
    assert other.text not in (alone.text, second.text)
    assert torch.equal(torch.random.get_rng_state(), before[0])
    assert np.random.get_state()[1].tolist() == before[1]  # type: ignore[union-attr, index, unused-ignore] # noqa: NPY002 - see above


def test_without_a_seed_each_run_differs(tiny: HuggingFaceModel) -> None:
    settings = GenerationSettings(max_tokens=20)
    first, second = (tiny.generate(["ab"], settings=settings) for _ in range(2))
    assert first != second


def test_replies_end_where_the_model_ends_them(
    llama: Any, tiny: HuggingFaceModel
) -> None:
    settings = GenerationSettings(max_tokens=300, seed=4)
    (replies,) = tiny.generate(["ab"], n=12, settings=settings)
    ended = [reply for reply in replies if reply.finish_reason == "stop"]
    assert ended
    for reply in ended:
        # The end itself is counted and is no part of the reply.
        assert reply.completion_tokens == len(reply.tokens) + 1
        assert 1 not in [token.id for token in reply.tokens]
    check(llama, "ab", sorted(ended, key=lambda reply: len(reply.tokens))[:2])


def test_all_ends_of_a_generation_config_count() -> None:
    model = make_model()
    model.generation_config.eos_token_id = list(range(3, 259, 2))
    ((reply,),) = HuggingFaceModel(model, TOKENIZER).generate(["ab"], settings=TWENTY)
    assert reply.finish_reason == "stop"
    assert all(token.id % 2 == 0 or token.id == 1 for token in reply.tokens)


def test_a_stop_text_ends_a_reply(tiny: HuggingFaceModel) -> None:
    ((whole,),) = tiny.generate(["ab"], settings=TWENTY)
    stop = whole.text[5:7]
    settings = GenerationSettings(max_tokens=20, seed=1, stop=(stop,))
    ((cut,),) = tiny.generate(["ab"], settings=settings)
    assert cut.text == whole.text[: whole.text.find(stop)]
    assert cut.finish_reason == "stop"
    kept = whole.token_logprobs[: len(cut.tokens)]
    assert cut.token_logprobs == pytest.approx(kept, abs=1e-5)


def test_a_token_limit_ends_a_reply(tiny: HuggingFaceModel) -> None:
    ((reply,),) = tiny.generate(
        ["ab"], settings=GenerationSettings(max_tokens=3, seed=1)
    )
    assert (reply.finish_reason, reply.completion_tokens) == ("length", 3)


def test_the_context_window_ends_a_reply() -> None:
    model = make_model(max_position_embeddings=16)
    local = HuggingFaceModel(model, TOKENIZER)
    ((reply,),) = local.generate(
        ["a" * 12], settings=GenerationSettings(seed=3, max_tokens=99)
    )
    assert (reply.finish_reason, reply.completion_tokens) == ("length", 4)
    with pytest.raises(InputError, match=r"the prompt has 16 tokens; .* 16 tokens"):
        local.generate(["a" * 16])


@pytest.mark.parametrize("layer", [0, 1, 2, -1])
@pytest.mark.parametrize("stop", [(), ("e",), ("\n", "s", "t", "a", "o")])
def test_the_hidden_state_of_the_last_token(
    llama: Any, tiny: HuggingFaceModel, layer: int, stop: tuple[str, ...]
) -> None:
    settings = GenerationSettings(max_tokens=8, seed=5, hidden_layer=layer, stop=stop)
    prompts = ("ab", "a longer prompt")
    for prompt, replies in zip(
        prompts, tiny.generate(prompts, n=3, settings=settings), strict=True
    ):
        for reply in replies:
            drawn = [token.id for token in reply.tokens]
            state = state_of(llama, [*ids_of(prompt), *drawn], layer)
            assert reply.hidden_state is not None
            assert reply.hidden_state.shape == (32,)
            np.testing.assert_allclose(reply.hidden_state, state, atol=1e-4)


def test_some_rows_with_hidden_states_and_some_without(tiny: HuggingFaceModel) -> None:
    plain = GenerationSettings(max_tokens=6, seed=5)
    seen = GenerationSettings(max_tokens=6, seed=5, hidden_layer=1)
    futures = [tiny.submit("ab", settings=each) for each in (plain, seen)]
    (one,), (other,) = (future.result(30) for future in futures)
    assert one.text == other.text
    assert one.hidden_state is None
    assert other.hidden_state is not None


def test_an_empty_reply_has_no_hidden_state() -> None:
    model = make_model()
    model.generation_config.eos_token_id = list(range(259))
    settings = GenerationSettings(hidden_layer=-1)
    ((reply,),) = HuggingFaceModel(model, TOKENIZER).generate(["ab"], settings=settings)
    assert (reply.text, reply.tokens, reply.hidden_state) == ("", (), None)


@pytest.mark.parametrize("layer", [3, -4])
def test_a_layer_that_is_not_there(tiny: HuggingFaceModel, layer: int) -> None:
    with pytest.raises(ConfigurationError, match="from -3 to 2 for a model of 2 lay"):
        tiny.generate(["ab"], settings=GenerationSettings(hidden_layer=layer))


def test_as_many_replies_as_make_no_sense(tiny: HuggingFaceModel) -> None:
    with pytest.raises(
        ConfigurationError, match="n must be a whole number from 1 on; got 0"
    ):
        tiny.generate(["ab"], n=0)
    with pytest.raises(ConfigurationError, match="a listener hears one reply; got n=2"):
        tiny.submit("ab", n=2, listener=lambda tokens: None)  # noqa: ARG005 - never called
    assert tiny.generate([]) == []


async def test_the_async_twin(tiny: HuggingFaceModel) -> None:
    ((here, too),) = await tiny.agenerate(["ab"], n=2, settings=TWENTY)
    (there,) = tiny.generate(["ab"], n=2, settings=TWENTY)
    assert texts([here, too]) == texts(there)


def test_a_listener_hears_each_token_once(tiny: HuggingFaceModel) -> None:
    heard: list[Any] = []
    (reply,) = tiny.submit("ab", settings=TWENTY, listener=heard.extend).result(30)
    assert tuple(heard) == reply.tokens


def test_a_listener_hears_nothing_of_an_empty_reply(
    tiny: HuggingFaceModel,
) -> None:
    heard: list[Any] = []
    stop = (*map(chr, range(128)), "\N{REPLACEMENT CHARACTER}")
    settings = GenerationSettings(max_tokens=20, seed=1, stop=stop)
    (reply,) = tiny.submit("ab", settings=settings, listener=heard.append).result(30)
    assert (reply.text, heard) == ("", [])
