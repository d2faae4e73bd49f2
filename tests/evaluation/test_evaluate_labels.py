"""``evaluate`` takes up the labels that people gave, from files beside recordings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from snne_guard.cli import build_app
from snne_guard.errors import ConfigurationError, InputError
from snne_guard.evaluation import Label, LabelStore, Recording, answer_digest
from snne_guard.evaluation.comparison.runner import evaluate
from snne_guard.evaluation.labelling.labels import Order, labels_path
from tests.cli.lines import write
from tests.support.evaluating import questions

ROWS = questions(30)
BARE = [{**row, "label": None} for row in ROWS]


def grade(
    path: Path, rows: Sequence[dict[str, Any]], *, order: Order = "random"
) -> None:
    """Write what a person says of each, which is what is so."""
    labels = {row["id"]: row["label"] for row in ROWS}
    with LabelStore(path) as store:
        for row in rows:
            answer = answer_digest(Recording.from_dict(row))
            label = labels[row["id"]]
            store.add(Label(id=row["id"], label=label, answer=answer, order=order))


def found(path: Path, **options: Any) -> Any:
    options = {"methods": "snne[rouge_l]", "draws": 10, **options}
    [one] = evaluate(path, **options).sets
    return one


def test_labels_beside_a_file_are_as_good_as_those_in_it(tmp_path: Path) -> None:
    inside = write(tmp_path / "inside.jsonl", *ROWS)
    beside = write(tmp_path / "beside.jsonl", *BARE)
    assert not found(beside).ids
    grade(labels_path(beside), BARE)
    one, two = found(inside), found(beside)
    assert one.correct == two.correct
    assert one.methods[0].auroc == two.methods[0].auroc
    assert (one.grader, two.grader) == ("label", "hand")


def test_people_go_before_the_field_and_that_before_the_grader(tmp_path: Path) -> None:
    rows = [
        *({**row, "label": 1} for row in ROWS[:10]),
        *ROWS[10:20],
        *({**row, "answers": ["nothing"]} for row in BARE[20:]),
    ]
    path = write(tmp_path / "r.jsonl", *rows)
    grade(labels_path(path), rows[:10])
    one = found(path, grader="squad_em")
    assert one.grader == "hand and label and squad_em"
    assert one.correct == (*(row["label"] for row in ROWS[:20]), *[0] * 10)
    # Whoever asks for the grader alone gets it.
    rows = [{**row, "answers": ["nothing"]} for row in ROWS]
    path = write(tmp_path / "r.jsonl", *rows)
    again = found(path, grader="squad_em", labels_first=False)
    assert (again.grader, set(again.correct)) == ("squad_em", {0})


def test_a_label_of_another_answer_is_nobody_s(tmp_path: Path) -> None:
    path = write(tmp_path / "r.jsonl", *BARE)
    grade(labels_path(path), [{**row, "main_answer": "another"} for row in BARE])
    assert found(path).left_out == {"no grade": 30}


def test_a_file_of_labels_may_be_named(tmp_path: Path) -> None:
    path = write(tmp_path / "r.jsonl", *BARE)
    kept = tmp_path / "mine.jsonl"
    grade(kept, BARE)
    assert found(path, labels=kept).grader == "hand"
    with pytest.raises(ConfigurationError, match="got 2 recordings"):
        evaluate([path, write(tmp_path / "s.jsonl", *BARE)], labels=kept)
    with pytest.raises(FileNotFoundError):
        found(path, labels=tmp_path / "none.jsonl")
    kept.write_text('{"id": 1}\n')
    with pytest.raises(InputError, match=r"mine\.jsonl, line 1, is no label"):
        found(path, labels=kept)


def test_labels_of_the_most_uncertain_are_told_of(tmp_path: Path) -> None:
    told = "20 labels were given with the most uncertain answers first"
    path = write(tmp_path / "r.jsonl", *ROWS)
    grade(labels_path(path), ROWS[:20], order="hardest_first")
    assert any(told in warning for warning in found(path).warnings)
    # `snne-guard label --output` writes it into the recording.
    inside = [{**row, "label_order": "hardest_first"} for row in ROWS[:20]]
    path = write(tmp_path / "s.jsonl", *inside, *ROWS[20:])
    assert any(told in warning for warning in found(path).warnings)
    regraded = found(path, grader=lambda _: True, labels_first=False)
    assert not any("uncertain answers first" in one for one in regraded.warnings)


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(build_app(), ["evaluate", *map(str, arguments)])


def test_the_command_finds_and_names_them(tmp_path: Path) -> None:
    path = write(tmp_path / "r.jsonl", *BARE)
    few = ("--methods", "snne", "--draws", "10")
    grade(labels_path(path), BARE)
    assert "30 of 30 questions, 33.3% right by hand;" in run(path, *few).stdout
    other = labels_path(path).rename(tmp_path / "mine.jsonl")
    assert run(path, *few).exit_code == 2
    assert "right by hand;" in run(path, *few, "--labels", other).stdout
    before = other.read_bytes()
    result = run(path, *few, "--labels", other, "--csv", other)
    assert result.exit_code == 2
    assert "is a file that is read" in " ".join(result.stderr.split())
    assert other.read_bytes() == before
