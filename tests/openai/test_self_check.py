"""The self-check of a guarded client as a server sees it."""

from __future__ import annotations

import math
from typing import Any

import pytest

from snne_guard.self_check import SelfCheck
from tests.openai.guarded import PATHS, guarded
from tests.support.openai_clients import WAYS
from tests.support.openai_server import Answer, Asked

PROMPT = SelfCheck().prompt


def turns(asked: Asked) -> list[Any]:
    given = asked.body.get("messages") or asked.body.get("input")
    messages = given if isinstance(given, list) else [{"content": given}]
    return [message["content"] for message in messages]


def checking(word: str) -> Any:
    """Return a script that says one thing to a self-check, Paris to the rest."""
    return lambda asked: Answer(texts=[word if turns(asked)[-1] == PROMPT else "Paris"])


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("path", PATHS)
def test_the_model_is_asked_about_its_own_answer(
    path: str, way: str, stream: bool
) -> None:
    options = {"n": 3, "threshold": 0.4, "self_check": True}
    with guarded(checking("No"), way, **options) as (server, call):
        answer = call(path, stream=stream)
        record = (call.parts(answer)[-1] if stream else answer).snne_guard
        (check,) = [asked for asked in server.requests if turns(asked)[-1] == PROMPT]
    assert turns(check)[1:] == ["Paris", PROMPT]
    assert check.logprobs
    assert check.body["top_logprobs"] == 5
    assert "temperature" not in check.body
    assert not check.body.get("stream")
    # The server gives No a log-probability of -0.1, and Yes the rest.
    assert record["self_check"] == pytest.approx(1 - math.exp(-0.1))
    assert (record["n_used"], record["disagreement"]) == (2, 0.0)
