"""What a model can do, and whether a further draw would do more than answer."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel, FakeListChatModel
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from snne_guard.sampling.langchain_effects import side_effects
from snne_guard.sampling.langchain_models import (
    Candidate,
)
from tests.sampling.models import fake, gpt

# --- side effects, abilities -------------------------------------------------------

FUNCTION = {"type": "function", "function": {"name": "f"}}
SEARCH = {"type": "web_search"}


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({}, False),
        ({"tools": None}, False),
        ({"tools": [FUNCTION, {"name": "own", "input_schema": {}}]}, False),
        ({"tools": [{"type": "custom", "name": "own"}]}, False),
        ({"tools": [object()]}, False),
        ({"tools": [FUNCTION, SEARCH]}, True),
        ({"tools": [{"type": "code_execution_20250825", "name": "x"}]}, True),
        ({"conversation": "conv_1"}, True),
        ({"conversation": None}, False),
    ],
)
@pytest.mark.parametrize("place", ["bound", "call", "model_kwargs", "extra_body"])
def test_what_a_further_draw_would_do_is_known(
    place: str, options: dict[str, Any], *, found: bool
) -> None:
    in_model = {place: options} if place in {"model_kwargs", "extra_body"} else {}
    bound = options if place == "bound" else {}
    candidate = Candidate(model=gpt(**in_model), kwargs=bound)
    assert side_effects(candidate, options if place == "call" else {}) is found


def test_the_options_of_the_call_stand_before_those_bound() -> None:
    candidate = Candidate(model=fake(), kwargs={"tools": [SEARCH]})
    assert side_effects(candidate, {"tools": []}) is False


class Compatible(ChatOpenAI):
    """A provider's class that is built on langchain-openai's."""


@pytest.mark.parametrize(
    ("model", "kwargs", "speaks"),
    [
        (gpt(), {}, True),
        (Compatible(model="m", api_key=SecretStr("test")), {}, True),
        (gpt(use_responses_api=True), {}, False),
        (gpt(use_responses_api=False), {"tools": [SEARCH]}, True),
        (gpt(), {"tools": [SEARCH]}, False),
        (gpt(model_kwargs={"tools": [SEARCH]}), {}, False),
        (gpt(), {"tools": [FUNCTION]}, True),
        (fake(), {}, False),
    ],
)
def test_whether_n_and_log_probabilities_may_work_is_known(
    model: BaseChatModel, kwargs: dict[str, Any], *, speaks: bool
) -> None:
    row = Candidate(model=model, kwargs=kwargs).provider
    assert row.supports_batch is row.supports_logprobs is speaks


class BaseChatOpenAI(FakeListChatModel):
    """Has the name of langchain-openai's class, of a version without the choice."""

    use_responses_api: bool = False


def test_another_version_of_the_class_is_asked_by_its_field() -> None:
    model = BaseChatOpenAI(responses=["x"])
    assert Candidate(model=model).provider.supports_batch
    other = BaseChatOpenAI(responses=["x"], use_responses_api=True)
    assert not Candidate(model=other).provider.supports_batch


@pytest.mark.parametrize(
    ("model", "kwargs", "asked"),
    [
        (gpt(), {}, False),
        (gpt(logprobs=True), {}, True),
        (gpt(), {"logprobs": True}, True),
        (gpt(logprobs=True), {"logprobs": False}, False),
        (fake(), {}, False),
    ],
)
def test_what_the_user_asked_for_is_known(
    model: BaseChatModel, kwargs: dict[str, Any], *, asked: bool
) -> None:
    assert Candidate(model=model, kwargs=kwargs).asked("logprobs") is asked
