"""How likely a chat API finds the first token of a reply, through the real client."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import openai
import pytest

from snne_guard.errors import ConfigurationError, InputError, SamplingError
from snne_guard.sampling.openai_likelihood import OpenAILikelihood
from snne_guard.scorers import p_true_logprob, p_true_prompt
from tests.support.chat_server import ChatServer, Reply, error
from tests.support.openai_clients import client

Likeliest = Sequence[tuple[str, float]]


def reply(likeliest: Likeliest | None, **logprobs: Any) -> Reply:
    """Return a reply of one token, with the likeliest ones in its place."""
    token: dict[str, Any] = {"token": "A", "logprob": -0.1, "bytes": None}
    if likeliest is not None:
        token["top_logprobs"] = [
            {"token": text, "logprob": logprob, "bytes": None}
            for text, logprob in likeliest
        ]
    content = {"content": [token], "refusal": None, **logprobs}
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": "A", "refusal": None},
        "logprobs": content,
        "finish_reason": "length",
    }
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "test-model",
        "choices": [choice],
    }
    return Reply(body=body)


def ask(answer: Reply, continuation: str = " A", **options: Any) -> float:
    with ChatServer([answer]) as server, client(server) as whom:
        likelihood = OpenAILikelihood(whom, model="test-model", **options)
        return likelihood("Is it?", continuation)


def test_tokens_that_read_the_same_but_for_white_space_count_together() -> None:
    likeliest = [("A", math.log(0.5)), ("B", math.log(0.2)), (" A", math.log(0.25))]

    assert ask(reply(likeliest)) == pytest.approx(math.log(0.75))
    assert ask(reply(likeliest), "B") == pytest.approx(math.log(0.2))


def test_probabilities_that_are_0_as_floats() -> None:
    assert ask(reply([("B", 0.0), ("A", -9999.0)])) == -9999.0
    assert ask(reply([("A", 1e-7)])) == 0.0


def test_what_is_asked_for() -> None:
    with ChatServer([reply([("A", -0.2)])]) as server, client(server) as whom:
        likelihood = OpenAILikelihood(
            whom,
            model="test-model",
            top=5,
            options={"user": "me", "temperature": 0, "max_tokens": 9, "seed": 1},
        )
        logprob = p_true_logprob(likelihood, "Who?", "Goethe", ["Goethe", "Marlowe"])
        (request,) = server.requests

    assert logprob == pytest.approx(-0.2)
    assert request.body == {
        "model": "test-model",
        "messages": [
            {
                "role": "user",
                "content": p_true_prompt("Who?", "Goethe", ["Goethe", "Marlowe"]),
            }
        ],
        "max_tokens": 1,
        "temperature": 1.0,
        "logprobs": True,
        "top_logprobs": 5,
        "user": "me",
    }


def test_the_other_name_of_the_limit() -> None:
    with ChatServer([reply([("A", -0.2)])]) as server, client(server) as whom:
        options = {"max_completion_tokens": 100}
        OpenAILikelihood(whom, model="test-model", options=options)("Is it?", " A")
        (request,) = server.requests

    assert request.body["max_completion_tokens"] == 1
    assert "max_tokens" not in request.body


def test_a_word_that_is_not_among_the_likeliest() -> None:
    likeliest = [("B", math.log(0.9)), ("The", math.log(0.05))]

    with pytest.raises(SamplingError, match="'A' among the 2 likeliest") as caught:
        ask(reply(likeliest))

    assert "a probability of 0.05" in str(caught.value)
    assert "The" not in str(caught.value)


@pytest.mark.parametrize(
    "answer",
    [
        reply([]),
        reply(None),
        reply([("A", -0.1)], content=None),
        reply([("A", -0.1)], content=[]),
        Reply(texts=["A"], logprobs=None),
        Reply(texts=["A"]),
        Reply(body={"id": "1", "object": "chat.completion", "choices": []}),
    ],
    ids=["empty", "absent", "none", "no tokens", "no log", "no top", "no choices"],
)
def test_a_provider_that_gives_no_likeliest_tokens(answer: Reply) -> None:
    with pytest.raises(SamplingError, match=r"no likeliest tokens \(top_logprobs\)"):
        ask(answer)


def test_what_the_request_fails_with_comes_unchanged() -> None:
    with pytest.raises(openai.BadRequestError, match="top_logprobs"):
        ask(error(400, "top_logprobs must be at most 5", param="top_logprobs"))


def test_nothing_is_stored_where_replies_would_be() -> None:
    with openai.OpenAI(api_key="none", base_url="https://api.openai.com/v1") as whom:
        likelihood = OpenAILikelihood(whom, model="gpt-4.1-mini")
        request = likelihood._request("Is it?")

    assert request["store"] is False


@pytest.mark.parametrize("continuation", ["", " \n"])
def test_a_continuation_without_a_word(continuation: str) -> None:
    with pytest.raises(InputError, match="continuation with a word in it, got"):
        ask(reply([("A", -0.1)]), continuation)


def test_options_that_make_no_sense() -> None:
    with openai.OpenAI(api_key="none") as whom:
        with pytest.raises(ConfigurationError, match="top must be"):
            OpenAILikelihood(whom, model="gpt-4.1-mini", top=0)
        with pytest.raises(ConfigurationError, match="'n' is set for each request"):
            OpenAILikelihood(whom, model="gpt-4.1-mini", options={"n": 2})
        with pytest.raises(ConfigurationError, match="model must be the name"):
            OpenAILikelihood(whom, model="")
    with pytest.raises(ConfigurationError, match="client must be OpenAI"):
        OpenAILikelihood("gpt", model="gpt-4.1-mini")  # type: ignore[arg-type]
