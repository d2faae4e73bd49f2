"""Every command of the page on reproduction, run on small recordings and models."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from snne_guard.cli import build_app
from tests.cli.lines import read, write
from tests.cli.record_command import arguments_for
from tests.examples.doc_pages import DOCS
from tests.support.chat_server import ChatServer, always
from tests.support.evaluating import questions
from tests.support.tiny_embedding import save_embedding
from tests.support.tiny_nli import save_model

ABLATED = {
    "tau": "tau",
    "similarity": "similarity",
    "samples": "number of answers",
    "temperature": "temperature of the samples",
}
PAGE = DOCS / "reproduction.md"


def commands() -> list[list[str]]:
    """Return the commands of the page that are ours, in order."""
    text = PAGE.read_text(encoding="utf-8").replace("\\\n", " ")
    lines = re.findall(r"^ {4,}(snne-guard .*)$", text, flags=re.MULTILINE)
    return [shlex.split(line)[1:] for line in lines]


def of(command: str) -> Iterator[list[str]]:
    return (words[1:] for words in commands() if words[0] == command)


def put(words: list[str], option: str, value: object) -> None:
    """Give an option that is there another value."""
    if option in words:
        words[words.index(option) + 1] = str(value)


def recordings(folder: Path, *, labelled: bool) -> list[str]:
    """Write three runs on the same questions, with references and perhaps labels."""
    paths: list[Path] = []
    for run, temperature in enumerate((0.5, 1.0, 2.0)):
        rows = questions(24, n_samples=4, seed=run, logprobs=True)
        for number, fields in enumerate(rows):
            fields["answers"] = [fields["main_answer"] if fields["label"] else "no"]
            fields["settings"] = {"temperature": temperature, "seed": run}
            fields["dataset"] = ("squad", "svamp")[number % 2]
            if not labelled:
                del fields["label"]
        paths.append(write(folder / f"run{run}.jsonl", *rows))
    return [str(path) for path in paths]


def test_there_are_commands_for_every_table_and_figure() -> None:
    assert len([*of("evaluate")]) >= 7
    assert len([*of("record")]) >= 2
    text = PAGE.read_text(encoding="utf-8").lower()
    for name in ("table 1", "table 2", "table 3", "table 4", "table 5", "table 6"):
        assert name in text
    for name in ("figure 1", "figure 2", "figure 3", "figure 4"):
        assert name in text


@pytest.mark.parametrize("number", range(len([*of("evaluate")])))
def test_evaluate(number: int, tmp_path: Path) -> None:
    words = [*of("evaluate")][number]
    first_option = next(i for i, word in enumerate(words) if word.startswith("-"))
    files = recordings(tmp_path, labelled="--grader" not in words)
    words = [*files, *words[first_option:], "--draws", "10", "--no-cache"]
    put(words, "--nli", save_model(tmp_path / "nli"))
    put(words, "--embedding", save_embedding(tmp_path / "embedding"))
    put(words, "--samples", 4)
    put(words, "--html", tmp_path / "report.html")

    kept = tmp_path / "found.json"
    words += ["--json", str(kept)]

    result = CliRunner().invoke(build_app(), ["evaluate", *words])

    assert result.exit_code == 0, result.output
    assert "snne[rouge_l_paper]" in result.stdout
    if "--nli" in words:
        assert "[nli:" in result.stdout
    sets = json.loads(kept.read_text(encoding="utf-8"))["sets"]
    graded = "--regrade" in words
    assert all((one["accuracy"] is None) is graded for one in sets)
    for one in sets:
        shown = {row["method"]: row for row in one["methods"]}["snne"]
        assert isinstance(shown["prr" if graded else "auroc"]["value"], float)
        assert isinstance(one["length_clusters_rho"]["value"], float)
    if "--mean" in words:
        assert f"mean of {len(sets)} sets" in result.stdout
    if "--html" in words:
        charts = (tmp_path / "report.html").read_text(encoding="utf-8")
        assert graded or "SNNE less semantic entropy" in charts
    if "--ablate" in words:
        metric = "prr" if graded else "auroc"
        for what in words[words.index("--ablate") + 1].split(","):
            assert f"{metric.upper()} by {ABLATED[what]}" in result.stdout
            for one in sets:
                curves = one["ablations"][what]
                snne = [each for each in curves if each["label"].startswith("snne[")]
                assert snne
                assert {each["metric"] for each in curves} == {metric}
                assert all(isinstance(y, float) for each in snne for y in each["y"])
                if what == "temperature":
                    assert snne[0]["x"] == [0.5, 1.0, 2.0]
    assert "nothing came of --ablate" not in result.stdout


@pytest.mark.parametrize("number", range(len([*of("record")])))
def test_record(number: int, tmp_path: Path) -> None:
    words = [word.replace("$temperature", "1.0") for word in [*of("record")][number]]
    rows = [
        {"id": str(k), "question": f"Which is {k}?", "answers": [str(k)]}
        for k in range(8)
    ]
    output = tmp_path / "out.jsonl"
    put(words, "--output", output)
    put(words, "--limit", 2)
    words += ["--dataset-file", str(write(tmp_path / "squad.jsonl", *rows))]

    with ChatServer(always("Paris")) as server:
        put(words, "--base-url", arguments_for(server)[-1])
        result = CliRunner().invoke(
            build_app(), ["record", *words], env={"OPENAI_API_KEY": "none"}
        )

    assert result.exit_code == 0, result.output
    recorded = read(output)
    assert len(recorded) == 2
    expected = int(words[words.index("--samples") + 1]) if "--samples" in words else 10
    assert [len(row["samples"]) for row in recorded] == [expected] * 2
