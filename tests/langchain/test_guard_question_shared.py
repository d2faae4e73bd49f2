"""Guards of chat models: words of the question are no agreement."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable

from snne_guard import GuardedChatModel, SNNEGuard
from tests.support.chat_server import ChatServer, chat_openai
from tests.support.guarding import WHOLE, Witness, ask, record, split
from tests.support.shared_words import (
    ASKED,
    DIFFERENT,
    EARLIER,
    LAST,
    THRESHOLD,
    taken_for_question,
)


def as_it_is(guard: SNNEGuard) -> Runnable[Any, Any]:
    return guard


Place = Callable[[SNNEGuard], Runnable[Any, Any]]
both_places = pytest.mark.parametrize("place", [as_it_is, GuardedChatModel])
both_ways = pytest.mark.parametrize("way", WHOLE)


@both_ways
@both_places
@pytest.mark.parametrize(
    ("similarity", "decision"), [(None, "flag"), ("rouge_l", "accept")]
)
def test_answers_that_share_the_question_s_words_alone_are_different(
    way: str, place: Place, similarity: str | None, decision: str
) -> None:
    witness = Witness()
    with ChatServer(split(DIFFERENT[0], DIFFERENT[1:])) as server:
        guard = SNNEGuard(
            chat_openai(server),
            n=4,
            threshold=THRESHOLD,
            method="snne",
            similarity=similarity,
            observers=[witness],
        )
        found = record(ask(place(guard), ASKED, way))
    assert found["decision"] == decision
    seen = witness.last
    assert seen.question == LAST
    assert sorted(seen.scored) == sorted(DIFFERENT)
    assert seen.matrix is not None
    if similarity is None:
        assert seen.matrix.max(initial=0, where=seen.matrix < 1) < 0.3
        expected = taken_for_question(seen.scored, LAST)
        assert seen.matrix.tolist() == expected.tolist()


PROMPT = ChatPromptTemplate.from_messages(
    [
        ("system", "Answer from this: {earlier}"),
        ("user", "{earlier}"),
        ("assistant", "Yes."),
        ("user", "Tell me more."),
    ]
)


@both_ways
@both_places
@pytest.mark.parametrize("earlier", EARLIER)
def test_words_of_a_context_or_of_an_earlier_turn_are_what_answers_agree_in(
    way: str, place: Place, earlier: str
) -> None:
    witness, texts = Witness(), EARLIER[earlier]
    with ChatServer(split(texts[0], texts[1:])) as server:
        guard = SNNEGuard(chat_openai(server), n=2, method="snne", observers=[witness])
        ask(PROMPT | place(guard), {"earlier": earlier}, way)
    matrix = witness.last.matrix
    assert matrix is not None
    assert matrix.tolist() == taken_for_question(texts, "Tell me more.").tolist()
    assert taken_for_question(texts, earlier)[0, 1] < matrix[0, 1] - 0.1
