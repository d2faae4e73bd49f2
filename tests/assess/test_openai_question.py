"""Guards for the ``openai`` package: what the score is told that the question is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from snne_guard.similarity import rouge_l
from snne_guard.types import FloatArray
from tests.support.chat_server import ChatServer, always
from tests.support.openai_clients import BOTH, assessing

MESSAGES = [{"role": "user", "content": "Some context.\n\nQuestion: Its capital?"}]
both = pytest.mark.parametrize("way", BOTH)


def after_the_mark(messages: list[Any]) -> str:
    return str(messages[-1]["content"]).rpartition("Question: ")[2]


@both
def test_a_function_or_the_call_says_what_the_question_is(way: str) -> None:
    heard: list[str | None] = []

    def similarity(
        texts: Sequence[str], /, *, question: str | None = None
    ) -> FloatArray:
        heard.append(question)
        return rouge_l(texts)

    settings = {"similarity": similarity, "question": after_the_mark}
    with (
        ChatServer(always("Paris")) as server,
        assessing(server, way, threshold=0.4, **settings) as assess,
    ):
        found = assess(MESSAGES)
        assert (found.question, found.reasons) == ("Its capital?", ())
        assert assess(MESSAGES, question="France's?").question == "France's?"
        assert not any("question" in request.body for request in server.requests)
    assert heard == ["Its capital?", "France's?"]


@both
def test_where_neither_does_the_last_message_of_the_user_is_taken(way: str) -> None:
    with (
        ChatServer(always("Paris")) as server,
        assessing(server, way, threshold=0.4) as assess,
    ):
        assert assess(MESSAGES).question == MESSAGES[-1]["content"]
        found = assess(MESSAGES, question="")
    assert found.question == MESSAGES[-1]["content"]
    assert found.reasons == ("question_failed",)
    assert found.decision == "accept"


@both
def test_a_function_that_fails_loses_nothing(way: str) -> None:
    with (
        ChatServer(always("Paris")) as server,
        assessing(
            server, way, threshold=0.4, question=lambda messages: messages[9]
        ) as assess,
    ):
        found = assess("The capital of France?")
    assert found.question == "The capital of France?"
    assert (found.reasons, found.decision) == (("question_failed",), "accept")
