"""``snne-guard record --dataset``: the paper's questions, prompts and settings."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from snne_guard.evaluation import Question, read_dataset
from tests.cli.lines import read, write
from tests.cli.record_command import arguments_for, ask_for, run
from tests.support.chat_server import ChatServer, always

NAMES = [f"q{number}" for number in range(9)]
STOPS = ["\n", "Question:", "Context:"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    rows = [ask_for(name, answers=[name.upper()], note=1) for name in NAMES]
    return write(tmp_path / "trivia.jsonl", *rows)


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "out.jsonl"


def test_the_prompt_is_the_papers_and_so_are_the_settings(
    file: Path, output: Path
) -> None:
    with ChatServer(always(" Au")) as server:
        result = run(
            *("--dataset", "triviaqa", "--dataset-file", file, "--output", output),
            *("--samples", "2", "--limit", "3", *arguments_for(server)),
        )
        requests = server.requests
    assert result.exit_code == 0, result.output
    found = (row for _, row in read_dataset("triviaqa", path=file, limit=3))
    chosen = [row for row in found if isinstance(row, Question)]
    rows = {row["id"]: row for row in read(output)}
    assert set(rows) == {question.id for question in chosen}
    for question in chosen:
        row = rows[question.id]
        assert row["prompt"] == question.prompt
        assert row["dataset"] == "triviaqa"
        assert row["answers"] == [row["id"].upper()]
        assert row["note"] == 1
        assert (row["main_answer"], row["samples"]) == ("Au", ["Au", "Au"])
        assert row["main_logprobs"] == [-0.1]
        assert row["settings"] == {
            "model": "openai:small",
            "temperature": 1.0,
            "answer_temperature": 0.1,
            "samples": 2,
            "max_tokens": 50,
            "system": None,
            "seed": None,
            "stop": ["\n\n\n\n", "\n\n\n", "\n\n", "\n", "Question:", "Context:"],
            "dataset": {"name": "triviaqa", "shots": 5, "seed": 10},
            "completion": False,
            "prompt_version": None,
            "top_p": None,
        }
    assert {tuple(request.texts) for request in requests} == {
        (row["prompt"],) for row in rows.values()
    }
    assert all(request.body["stop"] == STOPS for request in requests)
    assert {request.temperature for request in requests} == {0.1, 1.0}
    limits = (
        request.body.get("max_tokens") or request.body["max_completion_tokens"]
        for request in requests
    )
    assert set(limits) == {50}


def test_options_go_before_the_papers(file: Path, output: Path) -> None:
    with ChatServer(always("Au; Ag")) as server:
        result = run(
            *("--dataset", "nq_open", "--dataset-file", file, "--output", output),
            *("--samples", "1", "--limit", "1", "--max-concurrency", "1"),
            *("--max-tokens", "9", "--answer-temperature", "0.2", "--shots", "1"),
            *("--dataset-seed", "3", "--stop", ";", "--stop", r"\n", "--system", "S"),
            *("--temperature", "0.8", *arguments_for(server)),
        )
        answer, sample = server.requests
    assert result.exit_code == 0, result.output
    [row] = read(output)
    assert (row["main_answer"], row["samples"]) == ("Au", ["Au"])
    assert "main_logprobs" not in row
    assert row["drawn"]["reasons"] == ["logprobs_misaligned"]
    assert row["settings"]["stop"] == [";", "\n"]
    assert row["settings"]["dataset"] == {"name": "nq_open", "shots": 1, "seed": 3}
    assert row["prompt"].count("Question:") == 2
    assert answer.texts == ["S", row["prompt"]]
    assert (answer.temperature, sample.temperature) == (0.2, 0.8)
    assert answer.body["stop"] == sample.body["stop"] == [";", "\n"]


def test_replies_can_be_cut_without_telling_the_model(file: Path, output: Path) -> None:
    with ChatServer(always("Au\n\nQuestion: Why?")) as server:
        result = run(
            *("--dataset", "squad", "--dataset-file", file, "--output", output),
            *("--samples", "1", "--limit", "1", "--no-send-stop"),
            *arguments_for(server),
        )
        requests = server.requests
    assert result.exit_code == 0, result.output
    assert not any("stop" in request.body for request in requests)
    [row] = read(output)
    assert (row["main_answer"], row["samples"]) == ("Au", ["Au"])


def test_stops_are_for_questions_of_ones_own_too(file: Path, output: Path) -> None:
    with ChatServer(always("Au. Ag.")) as server:
        run(
            *(file, "--output", output, "--limit", "1", "--samples", "1"),
            *("--stop", ". ", *arguments_for(server)),
        )
    [row] = read(output)
    assert row["main_answer"] == "Au"
    assert row["settings"]["dataset"] is None


def test_the_same_command_goes_on_and_another_choice_is_refused(
    file: Path, output: Path
) -> None:
    base = ("--dataset", "squad", "--dataset-file", file, "--output", output)
    with ChatServer(always("Au")) as server:
        few = (*base, "--samples", "1", "--max-concurrency", "1")
        assert run(*few, "--limit", "1", *arguments_for(server)).exit_code == 0
        [first] = read(output)
        assert run(*few, "--limit", "3", *arguments_for(server)).exit_code == 0
        assert read(output)[0] == first
        assert len(read(output)) == 3
        for other in (("--shots", "2"), ("--dataset-seed", "1"), ("--stop", "x")):
            result = run(*few, *other, *arguments_for(server))
            assert result.exit_code == 2
            assert "was drawn with" in result.stderr
        plain = run(file, "-o", output, "--samples", "1", *arguments_for(server))
        assert plain.exit_code == 2
        assert "and now it is null" in plain.stderr


def test_a_folder_of_the_hubs_columns(tmp_path: Path, output: Path) -> None:
    library = import_module("datasets")
    rows = [{"email_body": f"Dear {n}.", "subject_line": f"S{n}"} for n in range(2)]
    folder = tmp_path / "aeslc"
    library.DatasetDict(test=library.Dataset.from_list(rows)).save_to_disk(str(folder))
    with ChatServer(always("Hello")) as server:
        result = run(
            *("--dataset", "aeslc", "--dataset-file", folder, "--output", output),
            *("--samples", "1", *arguments_for(server)),
        )
    assert result.exit_code == 0, result.output
    assert {row["question"] for row in read(output)} == {"Dear 0.", "Dear 1."}
    assert {row["settings"]["max_tokens"] for row in read(output)} == {31}


def test_a_bad_line_is_told_or_ends_it(file: Path, output: Path) -> None:
    file.write_bytes(b"nonsense\n" + file.read_bytes())
    base = ("--dataset", "squad", "--dataset-file", file, "--output", output)
    with ChatServer(always("Au")) as server:
        strict = run(*base, "--strict", *arguments_for(server))
        assert (strict.exit_code, len(server.requests)) == (1, 0)
        assert "line 1: expected a JSON object" in strict.stderr
        result = run(*base, "--limit", "1", "--samples", "1", *arguments_for(server))
    assert result.exit_code == 1
    assert "line 1: expected a JSON object" in result.stderr
    assert len(read(output)) == 1


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "expected QUESTIONS.jsonl, or --dataset"),
        (("in.jsonl", "--dataset", "svamp"), "or --dataset, got both"),
        (("in.jsonl", "--dataset-file", "x"), "need --dataset"),
        (("in.jsonl", "--shots", "1"), "need --dataset"),
        (("in.jsonl", "--dataset-seed", "1"), "need --dataset"),
        (("--dataset", "swamp"), "expected a data set of ["),
        (("--dataset", "svamp", "--dataset-file", "none.jsonl"), "none.jsonl: No such"),
        (("-", "--completion"), "--completion needs a model that runs here"),
        (("--dataset", "bioasq"), "bioasq is not on the hub"),
    ],
)
def test_wrong_usage(arguments: tuple[str, ...], told: str, output: Path) -> None:
    result = run(*arguments, "--output", output, "--model", "openai:none")
    assert result.exit_code == 2
    assert told in result.stderr
    assert not output.exists()


def test_the_output_is_not_the_data_set(file: Path) -> None:
    before = file.read_bytes()
    result = run("--dataset", "squad", "--dataset-file", file, "--output", file)
    assert result.exit_code == 2
    assert "is the input itself" in result.stderr
    assert file.read_bytes() == before


def test_without_a_hub_a_file_is_asked_for(
    output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    result = run("--dataset", "svamp", "--output", output)
    assert result.exit_code == 2
    assert "cannot be had from the Hugging Face hub" in result.stderr
