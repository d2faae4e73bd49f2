"""``snne-guard evaluate --ablate``: what was varied is printed below each table."""

from __future__ import annotations

from pathlib import Path

from tests.cli.lines import write
from tests.cli.test_cli_evaluate import run
from tests.support.evaluating import evaluated, questions


def test_each_thing_that_was_varied_has_a_table(tmp_path: Path) -> None:
    rows = questions(30)
    for number, fields in enumerate(rows):
        fields["settings"] = {"temperature": 0.5 + number % 2}
    path = write(tmp_path / "labelled.jsonl", *rows)

    result = run(path, "--methods", "snne,dse", "--draws", "10", "--ablate", "all")

    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    heads = {
        "AUROC by tau": ["method", "0.1", "1", "10", "100"],
        "AUROC by number of answers": ["method", "2", "3", "4", "5"],
        "AUROC by temperature of the samples": ["method", "0.5", "1.5"],
    }
    for title, head in heads.items():
        assert lines[lines.index(title) + 1].split() == head
    at = lines.index("AUROC by similarity")
    assert {"rouge_l", "structured", "exact"} < {*lines[at + 1].split()}
    assert lines[at + 2].split()[0] == "snne"
    one = evaluated(tmp_path, *rows, methods="snne", ablate=["tau"])
    curve, *_ = one.ablations["tau"]
    shown = [f"{value or 0:.3f}".removeprefix("0") for value in curve.y]
    tau = lines[lines.index("AUROC by tau") + 2]
    assert tau.split() == ["snne[content_f1]", *shown]
    assert "] - dse" not in result.stdout


def test_what_was_not_asked_for_is_not_printed(tmp_path: Path) -> None:
    path = write(tmp_path / "labelled.jsonl", *questions(12))
    result = run(path, "--methods", "snne,dse", "--draws", "10")
    assert "AUROC by" not in result.stdout
