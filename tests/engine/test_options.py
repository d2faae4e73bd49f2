"""What a draw makes of the user's options, and what these ask for."""

from __future__ import annotations

from typing import Any

import pytest

from snne_guard.engine import Draw, answer_settings, asks_for_schema, options_for
from snne_guard.views import VIEWS

SAMPLE = Draw(role="sample")
CHECK = Draw(role="self_check", turns=("Paris", "Right?"))
REASONING = Draw(role="sample", view=VIEWS["reasoning"])


def test_a_sample_is_the_user_s_request_at_another_temperature() -> None:
    body = {
        "model": "m",
        "messages": [],
        "temperature": 0,
        "max_tokens": 7,
        "frequency_penalty": 1.5,
        "logit_bias": {"7": -100},
        "stop": ["."],
        "tools": [{"type": "function"}],
        "response_format": {"type": "json_object"},
    }
    left_out = {
        "top_p": 0.9,
        "n": 1,
        "seed": 3,
        "stream": True,
        "stream_options": {},
        "logprobs": True,
        "top_logprobs": 5,
        "metadata": {"user": "7"},
        "prediction": {},
    }
    user = {**body, **left_out, "store": True}
    sample = options_for(SAMPLE, user, temperature=0.7)
    assert sample == {**body, "temperature": 0.7, "store": False}
    # Where a provider takes none, none is sent: never the user's own.
    assert "temperature" not in options_for(SAMPLE, user, temperature=None)


NARROW: dict[str, Any] = {
    "top_k": 1,
    "topK": 1,
    "top_p": 0.01,
    "topP": 0.01,
    "TopP": 0.01,
    "top-h": 0.01,
    "adaptive_target": 0.9,
    "min_p": 0.99,
    "typical_p": 0.01,
    "tfs_z": 0.01,
    "top_n_sigma": 0.1,
    "mirostat": 2,
    "mirostat_target": 0.1,
    "dynatemp_max": 0.1,
    "greed_sampling": True,
    "xtc_probability": 0.0,
    "samplers": "k",
    "num_beams": 4,
    "best_of": 20,
    "do_sample": False,
    "penalty_alpha": 0.6,
    "seed": 7,
}


@pytest.mark.parametrize("name", NARROW)
@pytest.mark.parametrize("place", [None, "extra_body", "options", "nvext", "unheard"])
def test_nothing_that_narrows_a_draw_reaches_a_sample(
    name: str, place: str | None
) -> None:
    given = {name: NARROW[name], "user": "me"}
    user = given if place is None else {place: {"deeper": 1, **given}}
    sample = options_for(SAMPLE, user, temperature=1.0)
    inner = sample if place is None else sample[place]
    assert name not in inner
    assert inner["user"] == "me"
    assert options_for(Draw(role="answer"), user, temperature=None) == user


@pytest.mark.parametrize(
    "content",
    [
        {"response_format": {"json_schema": {"properties": {"temperature": {}}}}},
        {"generationConfig": {"responseSchema": {"properties": {"k": {}, "p": {}}}}},
        {"guided_json": {"properties": {"seed": {}}}},
        {"tools": [{"parameters": {"properties": {"top_k": {}}}}]},
        {"chat_template_kwargs": {"temperature": "hot"}},
        {"documents": [{"data": {"temperature": "21"}}]},
        {"logit_bias": {"p": -100, "7": 5}},
        {"gateway": {"schema": {"k": {}}, "timeout": 5, "tags": ["k", "p"]}},
    ],
)
def test_what_is_said_wanted_or_found_is_no_option(content: dict[str, Any]) -> None:
    sample = options_for(SAMPLE, {**content, "top_p": 0.1}, temperature=None)
    assert sample == content


def test_a_self_check_has_neither_tools_nor_schema_nor_stop_texts() -> None:
    user = {
        "temperature": 0.3,
        "stop": ["."],
        "tools": [{"type": "function"}],
        "text": {"format": {"type": "json_object"}, "verbosity": "low"},
        "extra_body": {"tools": [], "structured_outputs": {}, "seed": 7, "top_k": 5},
    }
    assert asks_for_schema(user)
    assert options_for(CHECK, user, temperature=None) == {
        "temperature": 0.3,
        "text": {"verbosity": "low"},
        "extra_body": {"top_k": 5},
    }


def test_a_sample_that_reasons_has_room() -> None:
    user = {"max_tokens": 9, "stop": ".", "options": {"num_predict": -1, "seed": 3}}
    assert options_for(REASONING, user, temperature=0.7) == {
        "max_tokens": 521,
        "options": {"num_predict": -1, "temperature": 0.7},
    }

    large = {"max_tokens": 64_000, "options": {"num_predict": 2048}}
    assert options_for(REASONING, large, temperature=None) == large


def test_a_setting_without_a_value_is_known_to_have_none() -> None:
    named = answer_settings({"top_p": None, "max_tokens": None, "num_predict": 5})
    assert named == {"top_p": None, "max_tokens": 5}


def test_a_setting_inside_of_another_option_counts() -> None:
    given = {"temperature": 0.9, "extra_body": {"temperature": 0.2, "stop": "."}}
    assert answer_settings(given) == {"answer_temperature": 0.2, "stop": ["."]}
