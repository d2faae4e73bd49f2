"""A guard on models that are quantised, adapted, or placed by ``device_map``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import peft
import pytest
import torch
from torchao.quantization import Int8Tensor, Int8WeightOnlyConfig
from transformers import GenerationConfig, TorchAoConfig, pipeline

from snne_guard import Assessment, SNNEGuard, TransformersChatModel
from snne_guard.sampling.huggingface import GenerationSettings
from tests.support.hf_oracle import teacher_forced
from tests.support.tiny_llama import make_model, make_tokenizer

TOKENIZER = make_tokenizer()
OPTIONS: dict[str, Any] = {"temperature": 0.7, "max_tokens": 60, "seed": 3}
# Many ends, so that replies end by themselves, after ten tokens or so.
ENDS = GenerationConfig(eos_token_id=[1, *range(3, 259, 10)], pad_token_id=0)

Load = Callable[[Path], TransformersChatModel]


def plain_model() -> Any:
    model = make_model()
    model.generation_config = ENDS
    return model


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tiny")
    plain_model().save_pretrained(path)
    TOKENIZER.save_pretrained(path)
    return path


def placed(folder: Path) -> TransformersChatModel:
    return TransformersChatModel.from_pretrained(
        str(folder), dtype="float32", load={"device_map": "auto"}, **OPTIONS
    )


def quantised(folder: Path) -> TransformersChatModel:
    config = TorchAoConfig(Int8WeightOnlyConfig())
    chat = TransformersChatModel.from_pretrained(
        str(folder), dtype="float32", load={"quantization_config": config}, **OPTIONS
    )
    weights = chat.model.model.model.layers[0].mlp.up_proj.weight
    assert isinstance(weights, Int8Tensor)
    return chat


def quantised_in_a_pipeline(folder: Path) -> TransformersChatModel:
    held = quantised(folder).model
    pipe = pipeline("text-generation", model=held.model, tokenizer=held.tokenizer)
    return TransformersChatModel.of(pipe, **OPTIONS)


def adapted_in_a_pipeline(_folder: Path) -> TransformersChatModel:
    config = peft.LoraConfig(
        task_type="CAUSAL_LM", r=2, target_modules=["q_proj"], init_lora_weights=False
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(4)
        adapted: Any = peft.get_peft_model(plain_model(), config).eval()
    pipe = pipeline("text-generation", model=adapted, tokenizer=TOKENIZER)
    return TransformersChatModel.of(pipe, **OPTIONS)


def assessed(chat: TransformersChatModel) -> Assessment:
    return SNNEGuard(chat, n=5).assess("hi")


def texts_of(assessment: Assessment) -> list[str]:
    assert assessment.answer is not None
    return [assessment.answer.text, *(sample.text for sample in assessment.samples)]


@pytest.mark.parametrize(
    ("load", "as_it_was"),
    [
        (placed, True),
        (quantised, False),
        (quantised_in_a_pipeline, False),
        (adapted_in_a_pipeline, False),
    ],
)
# PEFT asks transformers for a name that this is about to give up.
@pytest.mark.filterwarnings("ignore:.is_gradient_check:FutureWarning")
def test_a_guard_draws_scores_and_repeats_itself(
    folder: Path, load: Load, *, as_it_was: bool
) -> None:
    chat = load(folder)
    first, again = assessed(chat), assessed(chat)
    assert first.method == "wsnne"
    assert first.uncertainty is not None
    assert 0 < first.uncertainty < 1
    assert not {"samples_failed", "logprobs_missing"} & {*first.reasons}
    assert len(first.samples) == 4
    assert all(sample.token_logprobs for sample in first.samples)
    assert len(set(texts_of(first))) > 1
    assert texts_of(again) == texts_of(first)
    plain = TransformersChatModel.from_pretrained(str(folder), **OPTIONS)
    assert (texts_of(assessed(plain)) == texts_of(first)) is as_it_was


@pytest.mark.parametrize("load", [placed, quantised])
def test_log_probabilities_are_those_of_the_model_as_it_is(
    folder: Path, load: Load
) -> None:
    local = load(folder).model
    prompts = ["ab", "a longer one"]
    settings = GenerationSettings(max_tokens=6, seed=1)
    for prompt, replies in zip(
        prompts, local.generate(prompts, n=2, settings=settings), strict=True
    ):
        for reply in replies:
            drawn = [token.id for token in reply.tokens]
            expected = teacher_forced(
                local.model, TOKENIZER(prompt)["input_ids"], drawn
            )
            assert reply.token_logprobs == pytest.approx(expected, abs=2e-4)
