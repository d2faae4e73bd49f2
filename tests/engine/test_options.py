"""What a draw makes of the user's options, and what these ask for."""

from __future__ import annotations

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
        "top_p": 0.9,
        "max_tokens": 7,
        "stop": ["."],
        "tools": [{"type": "function"}],
        "response_format": {"type": "json_object"},
    }
    left_out = {
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
