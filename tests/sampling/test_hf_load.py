"""Models that are loaded, handed in, adapted or placed elsewhere; and what is none."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import peft
import pytest
import torch
from langchain_huggingface import ChatHuggingFace, HuggingFacePipeline
from transformers import (
    MambaConfig,
    MambaForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
    pipeline,
)

from snne_guard.errors import ConfigurationError, MissingExtraError
from snne_guard.sampling.hf_load import Loaded, ends_of
from snne_guard.sampling.huggingface import GenerationSettings, HuggingFaceModel
from tests.support.hf_oracle import teacher_forced
from tests.support.tiny_llama import make_model, make_tokenizer

TOKENIZER = make_tokenizer()
SETTINGS = GenerationSettings(max_tokens=6, seed=1)
QUESTION = [{"role": "user", "content": "hi"}]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tiny")
    make_model().save_pretrained(path)
    TOKENIZER.save_pretrained(path)
    return path


def text_of(local: HuggingFaceModel) -> str:
    ((reply,),) = local.generate([QUESTION], settings=SETTINGS)
    text: str = reply.text
    return text


EXPECTED = text_of(HuggingFaceModel(make_model(), TOKENIZER))


def test_a_model_from_a_folder(folder: Path) -> None:
    local = HuggingFaceModel.from_pretrained(str(folder), max_batch_size=2)
    assert text_of(local) == EXPECTED
    assert local.name == str(folder)
    assert repr(local) == f"HuggingFaceModel({str(folder)!r})"
    assert local.model.dtype == torch.float32
    assert not local.model.training
    assert local.tokenizer.chat_template


def test_a_precision_and_a_place(folder: Path) -> None:
    half = HuggingFaceModel.from_pretrained(str(folder), dtype=torch.bfloat16)
    assert half.model.dtype == torch.bfloat16
    assert len(text_of(half)) > 0
    placed = HuggingFaceModel.from_pretrained(
        str(folder), device_map={"": "cpu"}, dtype="float32"
    )
    assert text_of(placed) == EXPECTED
    with pytest.raises(ConfigurationError, match="device or device_map, not both"):
        HuggingFaceModel.from_pretrained(str(folder), device="cpu", device_map="auto")


def test_no_such_model(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="nothing-here"):
        HuggingFaceModel.from_pretrained(str(tmp_path / "nothing-here"))


def test_code_that_comes_with_a_model_is_not_run(folder: Path, tmp_path: Path) -> None:
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    config = tmp_path / "config.json"
    text = config.read_text(encoding="utf-8")
    told = '{"auto_map": {"AutoConfig": "evil.Evil", "AutoModelForCausalLM": "evil.E"},'
    text = text.replace("{", told, 1).replace(
        '"model_type": "llama"', '"model_type": "evil"'
    )
    config.write_text(text, encoding="utf-8")
    mark = tmp_path / "ran"
    (tmp_path / "evil.py").write_text(f"open({str(mark)!r}, 'w')", encoding="utf-8")
    with pytest.raises(ValueError, match="trust_remote_code"):
        HuggingFaceModel.from_pretrained(str(tmp_path))
    assert not mark.exists()


# PEFT asks transformers for a name that this is about to give up.
peft_asks = pytest.mark.filterwarnings("ignore:.is_gradient_check:FutureWarning")


@peft_asks
def test_a_lora_adapter() -> None:
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
            drawn = [token.id for token in reply.tokens]
            ids = TOKENIZER(prompt)["input_ids"]
            expected = teacher_forced(adapted, ids, drawn)
            assert reply.token_logprobs == pytest.approx(expected, abs=2e-4)
    assert text_of(local) != EXPECTED


@peft_asks
def test_an_adapter_that_learns_a_prompt() -> None:
    config = peft.PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=2)
    adapted = peft.get_peft_model(make_model(), config).eval()
    with pytest.raises(ConfigurationError, match="LoRA and its kin work"):
        HuggingFaceModel(adapted, TOKENIZER)


def test_a_pipeline_keeps_its_weights() -> None:
    pipe = pipeline("text-generation", model=make_model(), tokenizer=TOKENIZER)
    local = HuggingFaceModel.of(pipe)
    assert local.model is pipe.model
    assert text_of(local) == EXPECTED
    assert HuggingFaceModel.of(local) is local


def test_the_model_in_what_langchain_has() -> None:
    pipe = pipeline("text-generation", model=make_model(), tokenizer=TOKENIZER)
    llm = HuggingFacePipeline(pipeline=pipe)
    tokenizer = make_tokenizer(chat_template="{{ messages[0]['content'] }}")
    chat = ChatHuggingFace(llm=llm, tokenizer=tokenizer, model_id="tiny")
    assert HuggingFaceModel.of(llm).tokenizer is TOKENIZER
    local = HuggingFaceModel.of(chat)
    assert local.model is pipe.model
    assert local.tokenizer is tokenizer


@pytest.mark.parametrize("thing", ["a name", None, object()])
def test_what_holds_no_model(thing: object) -> None:
    with pytest.raises(ConfigurationError, match=f"got {type(thing).__name__}"):
        HuggingFaceModel.of(thing)


def test_what_is_no_causal_model() -> None:
    with pytest.raises(ConfigurationError, match=r"a causal language model .* got str"):
        HuggingFaceModel("a name", TOKENIZER)
    config = T5Config(
        vocab_size=9, d_model=8, d_ff=8, num_layers=1, num_heads=1, d_kv=8
    )
    with pytest.raises(ConfigurationError, match="is an encoder-decoder model"):
        HuggingFaceModel(T5ForConditionalGeneration(config).eval(), TOKENIZER)


def test_a_model_without_a_cache_that_replies_could_share() -> None:
    config = MambaConfig(
        vocab_size=9, hidden_size=8, num_hidden_layers=1, state_size=2, conv_kernel=2
    )
    with pytest.raises(ConfigurationError, match="MambaForCausalLM has no key-value"):
        HuggingFaceModel(MambaForCausalLM(config).eval(), TOKENIZER)


def test_a_model_in_training_mode_is_refused_and_left_as_it_is() -> None:
    model = make_model().train()
    with pytest.raises(ConfigurationError, match=r"call model\.eval\(\) first"):
        HuggingFaceModel(model, TOKENIZER)
    assert model.training


def test_a_batch_of_no_size() -> None:
    with pytest.raises(
        ConfigurationError, match="max_batch_size must be a whole number from 1 on"
    ):
        HuggingFaceModel(make_model(), TOKENIZER, max_batch_size=0)


def test_a_template_of_the_users_own() -> None:
    local = HuggingFaceModel(
        make_model(),
        make_tokenizer(chat_template=None),
        chat_template="{{ messages[0]['content'] }}",
    )
    ((reply,),) = local.generate([QUESTION], settings=SETTINGS)
    ((plain,),) = local.generate(["hi"], settings=SETTINGS)
    assert reply.text == plain.text


@pytest.mark.parametrize(
    ("config", "settings"),
    [
        ({}, {"temperature": 0.0}),
        ({"do_sample": True}, {}),
        (
            {"do_sample": True, "temperature": 0.6, "top_p": 0.9, "top_k": 0},
            {"temperature": 0.6, "top_p": 0.9},
        ),
    ],
)
def test_the_settings_that_a_model_comes_with(
    config: dict[str, Any], settings: dict[str, Any]
) -> None:
    model = make_model()
    for name, value in config.items():
        setattr(model.generation_config, name, value)
    local = HuggingFaceModel(model, TOKENIZER)
    assert local.defaults == GenerationSettings(**settings)


@pytest.mark.parametrize(
    ("of_config", "of_tokenizer", "ends"),
    [(None, None, set()), (5, 1, {5, 1}), ([5, 6], 6, {5, 6})],
)
def test_what_ends_a_reply(of_config: Any, of_tokenizer: Any, ends: set[int]) -> None:
    model, tokenizer = make_model(), make_tokenizer()
    model.generation_config.eos_token_id = of_config
    tokenizer.eos_token_id = of_tokenizer
    assert ends_of(Loaded(model, tokenizer)) == ends


@pytest.mark.parametrize("package", ["torch", "transformers"])
def test_a_missing_package(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=rf"{package} .*snne-guard\[hf\]"):
        HuggingFaceModel.from_pretrained("any")
