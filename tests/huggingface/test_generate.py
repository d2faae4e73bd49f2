"""What is drawn from a local model, against the slow way that is plainly right."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import hypothesis
import numpy as np
import peft
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import (
    BloomConfig,
    BloomForCausalLM,
    Gemma2Config,
    Gemma2ForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    MambaConfig,
    MambaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
)

from snne_guard.errors import InputError
from snne_guard.huggingface import Completion, GenerationSettings, HuggingFaceModel
from snne_guard.huggingface.generate import token_texts
from tests.huggingface.support import (
    TOKENIZER,
    ids_of,
    make_model,
    make_tokenizer,
    next_logprobs,
    seeded,
    state_of,
    teacher_forced,
    tiny,
)

pytestmark = pytest.mark.slow

PROMPTS = ("ab", "a longer prompt than that", "ab", "c")
TWENTY = GenerationSettings(max_tokens=20, seed=1)


def check(model: Any, prompt: str, replies: Sequence[Completion]) -> None:
    for reply in replies:
        expected = teacher_forced(model, ids_of(prompt), reply.token_ids)
        assert reply.token_logprobs == pytest.approx(expected, abs=2e-4)
        assert reply.text == TOKENIZER.decode(reply.token_ids, skip_special_tokens=True)
        assert reply.prompt_tokens == len(ids_of(prompt))


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


def with_adapter() -> Any:
    config = peft.LoraConfig(
        task_type="CAUSAL_LM", r=2, target_modules=["q_proj"], init_lora_weights=False
    )
    return peft.get_peft_model(make_model(), config)


ARCHITECTURES = {
    "fewer keys than queries": make_model,
    "a LoRA adapter": with_adapter,
    "learned positions": lambda: GPT2LMHeadModel(
        GPT2Config(vocab_size=259, n_embd=32, n_layer=2, n_head=4, n_positions=64)
    ),
    "no positions and no window": lambda: BloomForCausalLM(
        BloomConfig(vocab_size=259, hidden_size=32, n_layer=2, n_head=4)
    ),
    "sliding window": lambda: MistralForCausalLM(MistralConfig(**SIZES)),
    "two kinds of layers": lambda: Gemma2ForCausalLM(Gemma2Config(**SIZES)),
    "a state in place of a cache": lambda: MambaForCausalLM(
        MambaConfig(
            vocab_size=259,
            hidden_size=16,
            num_hidden_layers=2,
            state_size=4,
            initializer_range=0.3,
        )
    ),
}


# PEFT asks transformers for a name that this is about to give up.
@pytest.mark.filterwarnings("ignore:.is_gradient_check:FutureWarning")
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_log_probabilities_are_those_of_one_sequence_without_a_cache(name: str) -> None:
    model = seeded(ARCHITECTURES[name], seed=3)
    model.generation_config.eos_token_id = 1
    local = HuggingFaceModel(model, TOKENIZER)
    sets = local.generate(PROMPTS, n=3, settings=TWENTY)
    for prompt, replies in zip(PROMPTS, sets, strict=True):
        check(model, prompt, replies)
        assert len({reply.text for reply in replies}) == 3


def shares(model: HuggingFaceModel, settings: GenerationSettings) -> dict[int, float]:
    """Return how often each token is drawn first, of 4,000 replies."""
    (replies,) = model.generate(["ab"], n=4000, settings=settings)
    found = [reply.token_ids[0] if reply.tokens else 1 for reply in replies]
    ids, counts = np.unique(found, return_counts=True)
    return {int(k): count / 4000 for k, count in zip(ids, counts, strict=True)}


def test_tokens_are_drawn_as_often_as_they_are_likely() -> None:
    own = next_logprobs(tiny().model, ids_of("ab"))
    found = shares(tiny(), GenerationSettings(max_tokens=1, seed=1))
    for token in own.topk(5).indices.tolist():
        assert found[token] == pytest.approx(float(own[token].exp()), abs=0.02)

    cool = torch.softmax(own / 0.5, dim=-1)
    best = cool.topk(3).indices.tolist()
    settings = GenerationSettings(max_tokens=1, seed=1, temperature=0.5, top_k=3)
    found = shares(tiny(), settings)
    assert set(found) == set(best)
    share = float(cool[best[0]] / cool[best].sum())
    assert found[best[0]] == pytest.approx(share, abs=0.02)


def test_a_seed_repeats_a_call_and_leaves_torchs_generator() -> None:
    torch.manual_seed(11)
    before = torch.random.get_rng_state()
    sets = tiny().generate(["x", "ab"], n=2, settings=TWENTY)
    assert tiny().generate(["x", "ab"], n=2, settings=TWENTY) == sets
    other = GenerationSettings(max_tokens=20, seed=2)
    assert tiny().generate(["x", "ab"], n=2, settings=other) != sets
    assert torch.equal(torch.random.get_rng_state(), before)


def test_replies_end_where_the_model_ends_them() -> None:
    settings = GenerationSettings(max_tokens=300, seed=4)
    (replies,) = tiny().generate(["ab"], n=12, settings=settings)
    ended = [reply for reply in replies if reply.finish_reason == "stop"]
    assert ended
    for reply in ended:
        # The end itself is counted and is no part of the reply.
        assert reply.completion_tokens == len(reply.tokens) + 1
        assert 1 not in reply.token_ids
    check(tiny().model, "ab", sorted(ended, key=lambda reply: len(reply.tokens))[:2])


@hypothesis.settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 3)), max_size=3))
def test_a_reply_ends_at_the_first_of_several_stop_texts(
    places: list[tuple[int, int]],
) -> None:
    model, tokenizer = make_model(), make_tokenizer()  # which has no other end
    model.generation_config.eos_token_id = tokenizer.eos_token_id = None
    local = HuggingFaceModel(model, tokenizer)
    ((whole,),) = local.generate(["ab"], settings=TWENTY)
    text = whole.text
    slices = [text[start : start + length] for start, length in places]
    stop = tuple(each for each in slices if each and each.isascii())
    # The oracle: the reply ends where its beginning first holds a stop text.
    ends = [end for end in range(len(text) + 1) if any(s in text[:end] for s in stop)]
    if ends:
        text = text[: ends[0]]
        text = text[: min(text.find(s) for s in stop if s in text)]
    settings = GenerationSettings(max_tokens=20, seed=1, stop=stop)
    ((reply,),) = local.generate(["ab"], settings=settings)
    assert reply.text == text == "".join(reply.tokens)
    assert reply.finish_reason == ("stop" if ends else whole.finish_reason)
    kept = whole.token_logprobs[: len(reply.tokens)]
    assert reply.token_logprobs == pytest.approx(kept, abs=1e-5)


def test_the_context_window_ends_a_reply() -> None:
    local = HuggingFaceModel(make_model(max_position_embeddings=16), TOKENIZER)
    settings = GenerationSettings(seed=3, max_tokens=99)
    ((reply,),) = local.generate(["a" * 12], settings=settings)
    assert (reply.finish_reason, reply.completion_tokens) == ("length", 4)
    with pytest.raises(InputError, match=r"the prompt has 16 tokens; .* 16 tokens"):
        local.generate(["a" * 16])


@pytest.mark.parametrize("layer", [0, -1])
def test_the_hidden_state_of_the_last_token(layer: int) -> None:
    settings = GenerationSettings(max_tokens=8, seed=5, hidden_layer=layer, stop=("e",))
    prompts = ("ab", "a longer prompt")
    for prompt, replies in zip(
        prompts, tiny().generate(prompts, n=3, settings=settings), strict=True
    ):
        for reply in replies:
            ids = [*ids_of(prompt), *reply.token_ids]
            assert reply.hidden_state is not None
            expected = state_of(tiny().model, ids, layer)
            np.testing.assert_allclose(reply.hidden_state, expected, atol=1e-4)


def test_an_empty_reply_has_no_hidden_state() -> None:
    model = make_model()
    model.generation_config.eos_token_id = list(range(259))
    settings = GenerationSettings(hidden_layer=-1)
    ((reply,),) = HuggingFaceModel(model, TOKENIZER).generate(["ab"], settings=settings)
    assert (reply.text, reply.tokens, reply.hidden_state) == ("", (), None)


def test_replies_share_one_reading_of_the_prompt() -> None:
    model, read = make_model(), []
    model.register_forward_pre_hook(
        lambda _model, _args, kwargs: read.append(kwargs["input_ids"].numel()),
        with_kwargs=True,
    )
    settings = GenerationSettings(max_tokens=3, temperature=0)
    HuggingFaceModel(model, TOKENIZER).generate(["a" * 50], n=4, settings=settings)
    assert read == [49, 4, 4, 4]


def test_settings_of_the_generation_config_hold_without_a_temperature() -> None:
    model = make_model()
    config = model.generation_config
    config.update(do_sample=True, top_k=2, min_p=0.5, repetition_penalty=50.0)
    local = HuggingFaceModel(model, TOKENIZER)
    recommended = GenerationSettings(max_tokens=30, seed=1, temperature=None)
    ((reply,),) = local.generate(["ab"], settings=recommended)
    # Such a penalty forbids repetition.
    assert len(set(reply.token_ids)) == len(reply.token_ids)
    ((plain,),) = local.generate(["ab"], settings=TWENTY)
    assert [(plain,)] == tiny().generate(["ab"], settings=TWENTY)
    assert config.repetition_penalty == 50.0


NOT_HERE: dict[str, Any] = {
    "a dict": {"return_dict_in_generate": True, "output_scores": True},
    "a cache": {"cache_implementation": "static"},
    "healing": {"token_healing": True},
    "look-up": {"prompt_lookup_num_tokens": 3},
    "contrast": {"penalty_alpha": 0.6},
    "beams": {"num_beams": 4, "do_sample": True, "num_return_sequences": 2},
    "no cache": {"use_cache": False},
}


@pytest.mark.filterwarnings("ignore")  # of flags that have no effect here
@pytest.mark.parametrize("temperature", [None, 1.0])
@pytest.mark.parametrize("name", NOT_HERE)
def test_what_a_batch_cannot_have_is_left_out(
    name: str, temperature: float | None
) -> None:
    model, plain = make_model(), make_model()
    plain.generation_config.do_sample = NOT_HERE[name].get("do_sample", False)
    for option, value in NOT_HERE[name].items():
        setattr(model.generation_config, option, value)
    settings = GenerationSettings(max_tokens=5, seed=1, temperature=temperature)
    drawn, expected = (
        HuggingFaceModel(each, TOKENIZER).generate(["ab", "c"], n=2, settings=settings)
        for each in (model, plain)
    )
    assert drawn == expected


@pytest.mark.parametrize("temperature", [None, 1.0])
@pytest.mark.parametrize("own", ["K", ["K", "z"]])
def test_the_models_own_stop_texts_end_replies(
    own: str | list[str], temperature: float | None
) -> None:
    model = make_model()
    model.generation_config.stop_strings = own
    drawn, expected = (
        HuggingFaceModel(each, TOKENIZER).generate(
            ["ab"],
            n=8,
            settings=GenerationSettings(
                max_tokens=30, seed=1, temperature=temperature, stop=stop
            ),
        )
        for each, stop in ((model, ("q",)), (make_model(), ("q", *own)))
    )
    assert drawn == expected
    assert any(reply.finish_reason == "stop" for reply in drawn[0])


def test_threads_wait_for_one_another() -> None:
    def drawn(_: int) -> Any:
        return tiny().generate(["ab"], n=2, settings=TWENTY)

    with ThreadPoolExecutor(6) as pool:
        assert [*pool.map(drawn, range(6))] == [drawn(0)] * 6


@hypothesis.settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 258), max_size=20))
def test_any_tokens_read_as_the_tokenizer_reads_them_all(ids: list[int]) -> None:
    whole = TOKENIZER.decode(ids, skip_special_tokens=True)
    pieces = token_texts(TOKENIZER, ids)
    assert (len(pieces), "".join(pieces)) == (len(ids), whole)


def test_the_last_token_of_a_character_adds_it() -> None:
    half, rest = ids_of("\u00e9")
    assert token_texts(TOKENIZER, [half]) == ["\N{REPLACEMENT CHARACTER}"]
    assert token_texts(TOKENIZER, [half, rest]) == ["", "\u00e9"]
