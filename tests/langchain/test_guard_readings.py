"""A guard takes the other readings by name too."""

from __future__ import annotations

import pytest

from snne_guard import ConfigurationError, SNNEGuard
from snne_guard.scorers import READINGS, score
from tests.support.chat_server import ChatServer, chat_openai
from tests.support.entailing import Contains
from tests.support.guarding import record, split

SAMPLES = ["Paris", "Lyon", "Paris. Yes.", "Rome"]
NO_GUARD_HAS = {"hidden_states", "token_importance", "p_true_logprob"}
BLACK = [
    name
    for name, method in READINGS.items()
    if not method.white_box and not method.with_question
]


@pytest.mark.parametrize("name", BLACK)
def test_a_guard_scores_by_a_reading(name: str) -> None:
    with ChatServer(split("Paris", SAMPLES)) as server:
        guard = SNNEGuard(
            chat_openai(server), method=name, similarity=Contains(), threshold=0.5
        )
        found = record(guard.invoke("Capital of France?"))

    expected = score(["Paris", *SAMPLES], method=name, similarity=Contains())
    assert found["method"] == name
    assert found["score"] == pytest.approx(expected.value, abs=1e-12)
    assert found["uncertainty"] == pytest.approx(expected.uncertainty, abs=1e-12)
    assert found["reasons"] == []


def test_with_the_question_in_front() -> None:
    with ChatServer(split("Paris", SAMPLES)) as server:
        guard = SNNEGuard(chat_openai(server), method="lex_sim_question")
        found = record(guard.invoke("Capital of France?"))

    expected = score(
        ["Paris", *SAMPLES], method="lex_sim_question", question="Capital of France?"
    )
    assert found["score"] == pytest.approx(expected.value)


def test_what_no_guard_has_is_refused_when_it_is_made() -> None:
    with ChatServer(split("Paris", SAMPLES)) as server:
        for name, method in READINGS.items():
            if method.needs & NO_GUARD_HAS:
                with pytest.raises(ConfigurationError, match="which no guard has"):
                    SNNEGuard(chat_openai(server), method=name, similarity=Contains())
