"""The benchmark of a sample of another model, on small sets made here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import other_models
from benchmarks._ranking import SHARED
from benchmarks.other_models import FILES, in_a_sentence, main_answer, pairs
from snne_guard.evaluation import Recording

QUESTIONS = 24


def rows(kind: str, model: str, *, good: bool) -> list[dict[str, Any]]:
    """Return answers of a model, half of them wrong; a good one's samples tell."""
    made: list[dict[str, Any]] = []
    for number in range(QUESTIONS):
        right = number % 2
        sample = "Oslo" if good and not right else "Paris"
        made.append(
            {
                "id": f"{kind}-{model}-{number}",
                "dataset": f"{kind}/{model}",
                "question": f"What is {number}?",
                "main_answer": "Paris",
                "samples": ["Paris"] * 6 if not good else [sample] * 6,
                "label": right,
                "self_check_unsure": 0,
                "p_true": -0.1,
            }
        )
    return made


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(other_models, "SHARED", tmp_path)
    return tmp_path


def write(folder: Path, *, good: bool) -> None:
    for file in FILES:
        lines = [*rows("set", "a", good=False), *rows("set", "b", good=good)]
        folder.joinpath(file).write_text("\n".join(map(json.dumps, lines)))


def test_pairs_are_of_the_same_questions(shared: Path) -> None:
    write(shared, good=True)
    found = [*pairs()]
    assert [one.name for one in found[:2]] == ["set: a + b", "set: b + a"]
    assert len(found) == 4
    for one in found:
        for row in one.rows:
            assert row.question == row.extra["other"].question
            assert row.id != row.extra["other"].id


def test_a_missed_target_is_printed_and_ends_with_status_1(
    shared: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(shared, good=False)  # nobody's samples tell anything
    assert other_models.main() == 1
    printed = capsys.readouterr().out
    assert printed.count("MISSED") == 4
    assert "2 pairs. The worst: set: " in printed
    assert "by target" in printed


def test_without_the_recordings_the_status_is_2(
    shared: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not [*shared.iterdir()]
    assert other_models.main() == 2
    assert "strong_short.jsonl" in capsys.readouterr().out


def test_the_other_is_reworded_and_nothing_else() -> None:
    other = Recording(id="1", question="?", main_answer="Rome", samples=("Paris",))
    assert in_a_sentence(other) == "I believe that it is Paris."
    assert main_answer(other) == "Rome"


@pytest.mark.slow
def test_the_targets_are_met(capsys: pytest.CaptureFixture[str]) -> None:
    if not (SHARED / FILES[0]).exists():
        pytest.skip("the recordings are not there")
    assert other_models.main() == 0
    assert capsys.readouterr().out.count(": met") == 5
