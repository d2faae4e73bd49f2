"""The figures of the benchmark of documents, on answers whose figures are known."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks import grounding


def row(answer: str, *marks: tuple[int, int], label: str = "unwanted") -> Any:
    spans = [{"start": start, "end": end, "label": [label]} for start, end in marks]
    detectors = {"hhem-2.1": 0.5, "gpt_4o": 1}
    context = "It is oak and red. It was made in 1907."
    return {
        "answer": answer,
        "context": context,
        "spans": spans,
        "detectors": detectors,
    }


def test_a_sentence_is_unsupported_where_somebody_marked_it() -> None:
    answer = "It is oak. It is tall."
    assert grounding.unsupported(row(answer, (17, 21))) == [False, True]
    assert grounding.unsupported(row(answer, (8, 13))) == [True, True]
    assert grounding.unsupported(row(answer, (0, 5), label="benign")) == [False, False]


def test_forms_count_words_and_pairs() -> None:
    found = grounding.counted("It is tall.", "It is oak. It was tall.")
    assert found["words"] == (0, 3)
    assert found["pairs"] == (1, 4)
    assert found["content words"] == (0, 1)
    lacking = grounding.forms("It is new.", "It is old.")["pairs, less of both"]
    assert lacking == pytest.approx(2 / 3)


def test_the_tables_tell_what_ranks_rightly(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [row("It is oak and red."), row("It is of gold.", (9, 13))]
    assert grounding.faithbench(rows * 2, "two") == (1.0, 1.0)
    printed = capsys.readouterr().out
    assert "4 sentences, 2 unsupported" in printed
    assert "HHEM 2.1 and grounded        1.000" in printed


def test_falsified_copies_are_falsified() -> None:
    one, other = "It was made in 1907.", "He was born in 1880."
    made = {name: change(one, other) for name, change in grounding.FALSIFIED.items()}
    assert made["another number"] == "It was made in 4907."
    assert made["the number of another sentence"] == "It was made in 1880."
    assert made["not put in"] == "It was not made in 1907."
    assert made["spliced at a word of both"] == "It was born in 1880."
    assert sorted(made["words of two sentences, shuffled"].split()) == sorted(
        f"{one} {other}".split()
    )


def test_it_prints_from_a_fresh_clone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Any
) -> None:
    monkeypatch.setattr(grounding, "FAITHBENCH", tmp_path / "none.jsonl")
    assert grounding.main() == 0
    printed = capsys.readouterr().out
    assert "another number                        45   0.33" in printed
    assert "skipped: " in printed
