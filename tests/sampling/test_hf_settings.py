"""Settings that make no sense are told at once; replies show no text in their repr."""

from typing import Any

import pytest

from snne_guard.errors import ConfigurationError
from snne_guard.sampling.hf_settings import Completion, GenerationSettings, Token


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"max_tokens": 0}, "max_tokens must be a whole number from 1 on; got 0"),
        ({"max_tokens": 1.5}, "max_tokens must be a whole number from 1 on; got 1.5"),
        ({"max_tokens": True}, "max_tokens must be a whole number"),
        ({"temperature": -0.1}, "temperature must be at least 0; got -0.1"),
        ({"temperature": float("nan")}, "temperature must be a number at least 0"),
        ({"temperature": "hot"}, "temperature must be a number at least 0; got 'hot'"),
        ({"temperature": True}, "temperature must be a number"),
        ({"top_k": 0}, "top_k must be a whole number from 1 on; got 0"),
        ({"top_p": 0.0}, r"top_p must be in \(0, 1\]; got 0.0"),
        ({"top_p": 1.1}, r"top_p must be in \(0, 1\]; got 1.1"),
        ({"top_p": "all"}, r"top_p must be a number in \(0, 1\]; got 'all'"),
        ({"stop": "end"}, "stop must be texts that are not empty; got 'end'"),
        ({"stop": ("",)}, "stop must be texts that are not empty"),
        ({"stop": (1,)}, "stop must be texts that are not empty"),
        ({"stop": 1}, "stop must be texts that are not empty; got 1"),
        ({"seed": "one"}, "seed must be a whole number; got 'one'"),
        ({"hidden_layer": 0.5}, "hidden_layer must be a whole number; got 0.5"),
    ],
)
def test_a_setting_that_makes_no_sense(given: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        GenerationSettings(**given)


def test_any_whole_number_is_a_seed() -> None:
    assert GenerationSettings(seed=-1).entropy == 2**64 - 1
    assert GenerationSettings(seed=7).entropy == 7
    assert GenerationSettings().entropy is None


@pytest.mark.parametrize(
    ("given", "plain"),
    [
        ({}, True),
        ({"top_p": 1.0}, True),
        ({"temperature": 0.5}, False),
        ({"top_k": 3}, False),
        ({"top_p": 0.9}, False),
    ],
)
def test_plain_is_the_models_own_distribution(
    given: dict[str, Any], *, plain: bool
) -> None:
    assert GenerationSettings(**given).is_plain is plain


def test_the_text_of_a_reply_is_not_in_its_repr() -> None:
    token = Token(id=1, text="secret", logprob=-0.5, sampling_logprob=-0.25)
    reply = Completion(
        text="secret",
        tokens=(token,),
        finish_reason="stop",
        prompt_tokens=3,
        completion_tokens=2,
    )
    assert "secret" not in repr(reply) + repr(token)
    assert reply.token_logprobs == (-0.5,)
    assert reply.sampling_logprobs == (-0.25,)
