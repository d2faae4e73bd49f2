"""An LLM as judge of whole answers; tests/spans/test_models.py has the rest."""

from __future__ import annotations

import pytest

from snne_guard.errors import ScoringError
from snne_guard.similarity import EntailmentJudge


def test_all_different_answers_are_judged_in_one_request() -> None:
    prompts: list[str] = []

    def toy(prompt: str) -> str:
        prompts.append(prompt)
        return "1: S S N\n2: S S C\n3: S N S"

    judge = EntailmentJudge(toy)
    matrix = judge(["ab", "ac", "b", "ac"], question="Which?")
    # That "b" says "ab", too, is not enough: each must entail the other.
    assert matrix.tolist() == [[1, 1, 0, 1], [1, 1, 0, 1], [0, 0, 1, 0], [1, 1, 0, 1]]
    assert len(prompts) == 1
    assert prompts[0].count('"ac"') == 2
    assert judge.name.startswith("judge:")
    assert EntailmentJudge(toy, name="toy").name == "judge:toy"


def test_nothing_is_asked_about_one_answer() -> None:
    judge = EntailmentJudge(lambda _: "")
    assert judge([]).shape == (0, 0)
    assert judge(["a", "a"]).tolist() == [[1, 1], [1, 1]]


def test_half_a_surrogate_pair_can_be_sent() -> None:
    judge = EntailmentJudge(lambda prompt: "1: S S\n2: S S" if prompt.encode() else "")
    assert judge(["a", "\ud800"])[0, 1] == 1


def test_a_failure_is_named_without_a_text() -> None:
    judge = EntailmentJudge(lambda prompt: f"{1 / 0}{prompt}")
    with pytest.raises(ScoringError, match="failed with ZeroDivisionError") as caught:
        judge(["secret", "other"])
    assert "secret" not in str(caught.value)
