"""A real model, small as it is: it reads its chat template, ends, and spreads."""

from __future__ import annotations

import os

import pytest
import torch

import tests.support.tiny_llama  # noqa: F401 - one thread
from snne_guard import MissingExtraError, SNNEGuard, TransformersChatModel
from snne_guard.sampling.huggingface import GenerationSettings, HuggingFaceModel
from tests.support.hf_oracle import teacher_forced
from tests.support.smollm2 import smollm2

QUESTION = [{"role": "user", "content": "What is the capital of France?"}]


@pytest.fixture(scope="module")
def local() -> HuggingFaceModel:
    try:
        return smollm2()
    except MissingExtraError as error:
        if os.environ.get("SNNE_GUARD_REQUIRE_EMBEDDED") == "1":
            raise
        pytest.skip(str(error))


def test_it_knows_the_capital_of_france(local: HuggingFaceModel) -> None:
    settings = GenerationSettings(temperature=0, max_tokens=20)
    ((reply,),) = local.generate([QUESTION], settings=settings)
    assert reply.text == "The capital of France is Paris."
    assert (reply.finish_reason, reply.completion_tokens) == ("stop", 8)
    encoded = local.tokenizer.apply_chat_template(
        QUESTION, add_generation_prompt=True, return_tensors="pt", return_dict=True
    )
    with torch.inference_mode():
        theirs = local.model.generate(**encoded, do_sample=False, max_new_tokens=20)
    start = encoded["input_ids"].shape[1]
    assert [token.id for token in reply.tokens] == theirs[0, start:-1].tolist()
    drawn = [token.id for token in reply.tokens]
    expected = teacher_forced(local.model, encoded["input_ids"][0].tolist(), drawn)
    assert reply.token_logprobs == pytest.approx(expected, abs=1e-3)


def test_a_guard_scores_it_with_its_own_log_probabilities(
    local: HuggingFaceModel,
) -> None:
    chat = TransformersChatModel(local, temperature=0, max_tokens=48, seed=1)
    assessment = SNNEGuard(chat, n=4).assess("What is the capital of France?")
    assert assessment.method == "wsnne"
    assert assessment.n_used >= 2
    assert assessment.cost.calls == 2
    assert assessment.uncertainty is not None
    assert 0 <= assessment.uncertainty <= 1
    assert all("misaligned" not in reason for reason in assessment.reasons)
