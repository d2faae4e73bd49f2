"""What users hold already: pipelines of ``transformers``, and LangChain around them."""

from __future__ import annotations

import functools
from typing import Any

import pytest
import torch
from langchain_huggingface import ChatHuggingFace, HuggingFacePipeline
from langchain_openai import ChatOpenAI
from pydantic import SecretStr
from transformers import pipeline

from snne_guard import ConfigurationError, SNNEGuard, TransformersChatModel
from snne_guard.sampling.langchain_providers import provider_of
from tests.support.tiny_llama import CHAT_TEMPLATE, make_model, make_tokenizer

# The pipeline of transformers warns of what the class of LangChain passes to it.
pytestmark = pytest.mark.filterwarnings("ignore:.*generation_config.*:UserWarning")


def make_pipeline(**options: Any) -> Any:
    model = make_model()
    # Many ends, so that replies end by themselves, after ten tokens or so.
    model.generation_config.eos_token_id = [1, *range(3, 259, 10)]
    return pipeline(
        "text-generation", model=model, tokenizer=make_tokenizer(), **options
    )


def make_chat(**options: Any) -> ChatHuggingFace:
    pipe = make_pipeline(return_full_text=False, **options)
    llm = HuggingFacePipeline(pipeline=pipe)
    return ChatHuggingFace(llm=llm, tokenizer=pipe.tokenizer, model_id="tiny")


@pytest.mark.parametrize(
    ("options", "fields"),
    [
        ({}, {"max_tokens": 256, "temperature": 0.7}),
        ({"max_new_tokens": 7}, {"max_tokens": 7, "temperature": 0.7}),
        ({"do_sample": False}, {"max_tokens": 256, "temperature": 0.0}),
        (
            {"temperature": 0.3, "top_p": 0.9, "top_k": 0},
            {"temperature": 0.3, "top_p": 0.9, "top_k": None},
        ),
    ],
)
def test_the_settings_of_a_pipeline_hold(
    options: dict[str, Any], fields: dict[str, Any]
) -> None:
    for held in (make_pipeline(**options), make_chat(**options)):
        chat = TransformersChatModel.of(held)
        assert {name: getattr(chat, name) for name in fields} == fields


def test_the_settings_of_the_model_hold_where_the_pipeline_has_none() -> None:
    pipe = make_pipeline()
    pipe.model.generation_config.top_k = 5
    chat = TransformersChatModel.of(pipe)
    assert (chat.top_k, chat.top_p) == (5, None)
    assert TransformersChatModel.of(pipe, top_k=2, seed=1).top_k == 2


def test_it_draws_from_the_same_weights() -> None:
    pipe = make_pipeline()
    chat = TransformersChatModel.of(pipe, max_tokens=6, temperature=0)
    assert chat.model.model is pipe.model
    assert chat.model.tokenizer is pipe.tokenizer
    theirs = pipe(
        [{"role": "user", "content": "hi"}],
        max_new_tokens=6,
        do_sample=False,
        return_full_text=False,
    )
    assert chat.invoke("hi").content == theirs[0]["generated_text"]


@pytest.mark.parametrize("stop", ["x", ["x", "y"]])
def test_the_stop_texts_of_a_chat_model_hold(stop: Any) -> None:
    chat = make_chat()
    chat.stop = stop
    assert TransformersChatModel.of(chat).stop == (["x"] if stop == "x" else stop)


def test_what_is_no_local_model() -> None:
    remote = ChatOpenAI(model="x", api_key=SecretStr("x"))
    with pytest.raises(ConfigurationError, match="got ChatOpenAI"):
        TransformersChatModel.of(remote)
    with pytest.raises(ConfigurationError, match="got str"):
        TransformersChatModel("meta-llama/Llama-3.1-8B-Instruct")


def test_a_guard_draws_its_samples_from_the_same_weights_at_once() -> None:
    chat = make_chat(max_new_tokens=60, do_sample=False)
    chat.seed = 3
    pipe = chat.llm.pipeline
    forwards: list[int] = []
    forward = pipe.model.forward

    def counted(input_ids: Any, position_ids: Any = None, **options: Any) -> Any:
        forwards.append(len(input_ids))
        return forward(input_ids=input_ids, position_ids=position_ids, **options)

    bare = chat.invoke("hi").content
    guard = SNNEGuard(chat, n=5, schedule="answer_first")
    pipe.model.forward = functools.wraps(forward)(counted)
    assessment = guard.assess("hi")
    assert assessment.answer is not None
    assert assessment.answer.text == bare
    assert assessment.method == "snne"
    assert len(assessment.samples) == 4
    assert len({sample.text for sample in assessment.samples}) == 4
    assert max(forwards) == 4
    assert assessment.cost.calls == 2
    assert {sample.model for sample in assessment.samples} == {
        TransformersChatModel.of(chat).model.name
    }


def test_options_of_the_class_do_not_reach_the_samples() -> None:
    chat = make_chat(max_new_tokens=60, do_sample=False)
    bound = chat.bind(pipeline_kwargs={"max_new_tokens": 50, "do_sample": False})
    assessment = SNNEGuard(bound, n=3, sample_max_tokens=2).assess("hi")
    assert len(assessment.samples) == 2
    assert "samples_failed" not in assessment.reasons


def test_what_cannot_be_drawn_from_alone_keeps_the_safe_path() -> None:
    chat = make_chat()
    assert provider_of(chat).n == "n"
    chat.llm.pipeline.model.train()
    assert provider_of(chat).n is None


def test_templates_of_the_users_own_are_kept() -> None:
    pipe = make_pipeline()
    pipe.tokenizer.chat_template = None
    llm = HuggingFacePipeline(pipeline=pipe)
    tokenizer = make_tokenizer(chat_template=CHAT_TEMPLATE)
    chat = ChatHuggingFace(llm=llm, tokenizer=tokenizer, model_id="tiny")
    assert TransformersChatModel.of(chat, max_tokens=3).invoke("hi").usage_metadata


def test_the_generator_of_the_device_is_left_alone() -> None:
    chat = TransformersChatModel.of(make_pipeline(), temperature=1, max_tokens=4)
    before = torch.random.get_rng_state()
    chat.invoke("hi")
    assert torch.equal(torch.random.get_rng_state(), before)
