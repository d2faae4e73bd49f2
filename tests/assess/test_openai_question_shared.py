"""Guards for the ``openai`` package: words of the question are no agreement."""

from __future__ import annotations

import pytest

from tests.support.chat_server import ChatServer
from tests.support.guarding import split
from tests.support.openai_clients import BOTH, assessing
from tests.support.shared_words import (
    ASKED,
    DIFFERENT,
    EARLIER,
    LAST,
    THRESHOLD,
    taken_for_question,
)

MESSAGES = [{"role": role, "content": text} for role, text in ASKED]


@pytest.mark.parametrize("way", BOTH)
@pytest.mark.parametrize(
    ("similarity", "decision"), [(None, "flag"), ("rouge_l", "accept")]
)
def test_answers_that_share_the_question_s_words_alone_are_different(
    way: str, similarity: str | None, decision: str
) -> None:
    with (
        ChatServer(split(DIFFERENT[0], DIFFERENT[1:])) as server,
        assessing(
            server, way, n=4, threshold=THRESHOLD, method="snne", similarity=similarity
        ) as assess,
    ):
        found = assess(MESSAGES)
    assert found.question == LAST
    assert sorted(found.scored) == sorted(DIFFERENT)
    assert found.decision == decision
    assert found.matrix is not None
    if similarity is None:
        assert found.matrix.max(initial=0, where=found.matrix < 1) < 0.3
        expected = taken_for_question(found.scored, LAST)
        assert found.matrix.tolist() == expected.tolist()


@pytest.mark.parametrize("way", BOTH)
@pytest.mark.parametrize("earlier", EARLIER)
def test_words_of_a_context_or_of_an_earlier_turn_are_what_answers_agree_in(
    way: str, earlier: str
) -> None:
    messages = [
        {"role": "system", "content": earlier},
        {"role": "user", "content": earlier},
        {"role": "assistant", "content": "Yes."},
        {"role": "user", "content": "Tell me more."},
    ]
    texts = EARLIER[earlier]
    with (
        ChatServer(split(texts[0], texts[1:])) as server,
        assessing(server, way, n=2, method="snne") as assess,
    ):
        found = assess(messages)
    assert found.matrix is not None
    expected = taken_for_question(texts, "Tell me more.")
    assert found.matrix.tolist() == expected.tolist()
    assert taken_for_question(texts, earlier)[0, 1] < found.matrix[0, 1] - 0.1
