"""A real model, small as it is: it reads its chat template, ends, and spreads."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator

import openai
import pytest
import torch

import tests.support.tiny_llama  # noqa: F401 - one thread
from snne_guard import MissingExtraError, SNNEGuard, TransformersChatModel
from snne_guard.langchain.embedded import MODEL_NAME, embedded_server_url
from snne_guard.sampling.hf_likelihood import HuggingFaceLikelihood
from snne_guard.sampling.huggingface import GenerationSettings, HuggingFaceModel
from snne_guard.sampling.openai_likelihood import OpenAILikelihood
from snne_guard.scorers import p_true, p_true_logprob, p_true_prompt
from tests.support.hf_oracle import next_logprobs, teacher_forced
from tests.support.smollm2 import smollm2

ASKED, SAMPLES = "What is the capital of France?", ["Paris", "It is Paris", "Lyon"]
QUESTION = [{"role": "user", "content": ASKED}]


@pytest.fixture(scope="module")
def local() -> HuggingFaceModel:
    try:
        return smollm2()
    except MissingExtraError as error:
        if os.environ.get("SNNE_GUARD_REQUIRE_EMBEDDED") == "1":
            raise
        pytest.skip(str(error))


@pytest.fixture
def client() -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=embedded_server_url(), api_key="none") as whom:
        yield whom


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


def test_the_local_model_prefers_what_is_true(local: HuggingFaceModel) -> None:
    likelihood = HuggingFaceLikelihood(local)
    prompt = "The capital of France is"
    cut = local.tokenizer(prompt)["input_ids"], local.tokenizer(" Paris")["input_ids"]

    paris = likelihood(prompt, " Paris")

    assert paris == pytest.approx(sum(teacher_forced(local.model, *cut)), abs=1e-3)
    assert paris > likelihood(prompt, " Rome") > likelihood(prompt, " a spoon")


def test_p_true_of_the_local_model(local: HuggingFaceModel) -> None:
    prompt = p_true_prompt(ASKED, "Paris", SAMPLES)
    ids = local.tokenizer(prompt)["input_ids"]
    (token,) = local.tokenizer(" A")["input_ids"]

    logprob = p_true_logprob(HuggingFaceLikelihood(local), ASKED, "Paris", SAMPLES)

    slow = float(next_logprobs(local.model, ids)[token])
    assert logprob == pytest.approx(slow, abs=1e-3)
    assert 0 < p_true(logprob) < 1


@pytest.mark.usefixtures("embedded")  # which skips where there is none
def test_the_server_says_of_a_reply_what_the_local_model_says(
    client: openai.OpenAI, local: HuggingFaceModel
) -> None:
    """The same weights, once behind the API and once in this process."""
    likelihood = OpenAILikelihood(client, model=MODEL_NAME)
    question = "Answer with one word: what is the capital of France?"
    ids = local.tokenizer.apply_chat_template(
        [{"role": "user", "content": question}], add_generation_prompt=True
    )
    ids = ids["input_ids"] if hasattr(ids, "keys") else ids
    own = next_logprobs(local.model, ids).exp()
    words = [local.tokenizer.decode([token]).strip() for token in range(len(own))]
    slow = sum(float(p) for p, word in zip(own, words, strict=True) if word == "Paris")

    got = likelihood(question, " Paris")

    # The server computes with the quantised weights.
    assert math.exp(got) == pytest.approx(slow, abs=0.1)


@pytest.mark.usefixtures("embedded")
def test_p_true_of_the_server(client: openai.OpenAI) -> None:
    likelihood = OpenAILikelihood(client, model=MODEL_NAME, top=50)

    logprob = p_true_logprob(likelihood, ASKED, "Paris", SAMPLES)

    assert 0 <= p_true(logprob) <= 1
    assert logprob == likelihood(p_true_prompt(ASKED, "Paris", SAMPLES), " A")
