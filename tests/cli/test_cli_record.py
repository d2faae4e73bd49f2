"""``snne-guard record``: what is asked, written, told and returned."""

from __future__ import annotations

import json
import re
import threading
from pathlib import Path
from typing import Any

import pytest
from langchain_openai import ChatOpenAI
from typer.testing import CliRunner

from snne_guard.cli import build_app
from snne_guard.evaluation import Recording, read_recordings
from tests.cli.lines import read, write
from tests.cli.record_command import TWO, arguments_for, ask_for, run, run_on
from tests.examples.doc_pages import DOCS, blocks
from tests.support.chat_server import (
    ChatServer,
    Reply,
    always,
)
from tests.support.guarding import split


def test_answers_and_samples_are_recorded(two: Path, output: Path) -> None:
    with ChatServer(split("Au", ["Ag", "Au", "Fe"])) as server:
        result = run_on(server, two, output, "--samples", "3")
        requests, billed = server.requests, server.billed

    assert result.exit_code == 0, result.output
    assert len(requests) == 4
    rows = {row["id"]: row for row in read(output)}
    assert {name: rows["a"][name] for name in TWO[0]} == TWO[0]
    assert {name: rows["b"][name] for name in TWO[1]} == TWO[1]
    assert all(row["main_answer"] == "Au" for row in rows.values())
    assert all(sorted(row["samples"]) == ["Ag", "Au", "Fe"] for row in rows.values())
    assert rows["a"]["main_logprobs"] == [-0.1]
    assert rows["a"]["token_logprobs"] == [[-0.1]] * 3
    assert rows["a"]["settings"] == {
        "model": "openai:small",
        "temperature": 1.0,
        "answer_temperature": None,
        "samples": 3,
        "max_tokens": None,
        "system": None,
        "seed": None,
        "stop": None,
        "dataset": None,
        "completion": False,
        "prompt_version": None,
        "top_p": None,
    }
    drawn = rows["a"]["drawn"]
    assert drawn["models"] == ["small"]
    assert drawn["finish_reasons"] == ["stop"] * 4
    assert drawn["reasons"] == []
    assert drawn["cost"]["calls"] == 2
    told = result.stdout.splitlines()
    assert re.fullmatch(r"took         0:0\d:\d\d", told.pop(2))
    assert told == [
        "recorded     2",
        "failed       0",
        "requests     4",
        f"tokens       {billed.prompt_tokens} read, {billed.completion_tokens} written",
    ]
    assert result.stderr == ""
    scored = CliRunner().invoke(build_app(), ["score", str(output)])
    assert scored.exit_code == 0
    assert "methods      wsnne 2" in scored.stdout


def test_the_line_on_the_page_is_of_the_kind_that_is_written(
    tmp_path: Path, output: Path
) -> None:
    (block,) = (b for b in blocks(DOCS / "recording.md") if b.language == "json")
    shown: dict[str, Any] = json.loads(block.text)
    texts = split(shown["main_answer"], shown["samples"])
    source = write(
        tmp_path / "in.jsonl", {name: shown[name] for name in list(shown)[:3]}
    )
    with ChatServer(texts) as server:
        run_on(server, source, output, "--samples", "3")
    [row] = read(output)
    assert list(row) == list(shown)
    assert list(row["drawn"]) == list(shown["drawn"])
    assert row["drawn"]["reasons"] == shown["drawn"]["reasons"]
    assert {**row["settings"], "model": None} == {**shown["settings"], "model": None}
    assert list(row["settings"]) == list(shown["settings"])
    assert set(shown["drawn"]["cost"]) < set(row["drawn"]["cost"])


def test_a_context_stands_above_the_question(two: Path, output: Path) -> None:
    with ChatServer(always("Au")) as server:
        run_on(server, two, output, "--samples", "1", "--system", "Be brief.")
        sent = {tuple(request.texts) for request in server.requests}
    assert sent == {
        ("Be brief.", "What is a?"),
        ("Be brief.", "Context: All.\n\nQuestion: What is b?"),
    }


def test_options_reach_the_model_and_the_file(two: Path, output: Path) -> None:
    with ChatServer(always("Au")) as server:
        result = run_on(
            server,
            two,
            output,
            *("--samples", "2", "--temperature", "0.7", "--answer-temperature", "0.2"),
            *("--max-tokens", "9", "--seed", "5", "--limit", "1", "--timeout", "60"),
            *("--max-concurrency", "1", "--prices", "2,8"),
        )
        answer, samples = server.requests
    assert result.exit_code == 0, result.output
    assert (answer.temperature, samples.temperature) == (0.2, 0.7)
    assert (answer.body["seed"], samples.body["seed"]) == (5, 6)
    limits = [
        request.body.get("max_tokens") or request.body["max_completion_tokens"]
        for request in (answer, samples)
    ]
    assert limits == [9, 9]
    assert samples.n == 2
    [row] = read(output)
    assert row["settings"] == {
        "model": "openai:small",
        "temperature": 0.7,
        "answer_temperature": 0.2,
        "samples": 2,
        "max_tokens": 9,
        "system": None,
        "seed": 5,
        "stop": None,
        "dataset": None,
        "completion": False,
        "prompt_version": None,
        "top_p": None,
    }
    money = row["drawn"]["cost"]["money"]
    assert money > 0
    assert f"money        {money:.4f}" in result.stdout


def test_the_same_command_goes_on(two: Path, output: Path) -> None:
    with ChatServer(always("Au")) as server:
        assert run_on(server, two, output, "--limit", "1").exit_code == 0
        first = output.read_bytes()
        result = run_on(server, two, output)
        again = run_on(server, two, output)
        asked = [request.prompt for request in server.requests]
    assert output.read_bytes().startswith(first)
    assert [row["id"] for row in read(output)] == ["a", "b"]
    assert len(asked) == 4
    assert result.stdout.splitlines()[:2] == ["recorded     1", "before       1"]
    assert (again.exit_code, again.stdout.splitlines()[:2]) == (
        0,
        ["recorded     0", "before       2"],
    )


def test_a_torn_line_is_told(two: Path, output: Path) -> None:
    with ChatServer(always("Au")) as server:
        run_on(server, two, output)
        output.write_bytes(output.read_bytes()[:-20])
        result = run_on(server, two, output)
    assert result.exit_code == 0
    assert "bytes of a torn line are now in" in result.stderr
    assert sorted(row["id"] for row in read(output)) == ["a", "b"]
    assert (output.parent / "out.jsonl.torn").exists()


def test_a_dash_is_standard_input(two: Path, output: Path) -> None:
    with ChatServer(always("Au")) as server:
        result = run("-", "-o", output, *arguments_for(server), stdin=two.read_bytes())
    assert result.exit_code == 0
    assert len(read(output)) == 2


@pytest.mark.parametrize("limit", [[], ["--limit", "0"]])
def test_nothing_to_draw_is_no_error(
    tmp_path: Path, output: Path, limit: list[str]
) -> None:
    source = write(tmp_path / "in.jsonl", *TWO) if limit else tmp_path / "empty"
    source.touch()
    with ChatServer() as server:
        result = run_on(server, source, output, *limit)
    assert result.exit_code == 0
    assert result.stdout.startswith("recorded     0\n")
    assert output.read_bytes() == b""


def test_bad_lines_are_named_and_skipped(tmp_path: Path, output: Path) -> None:
    source = write(
        tmp_path / "in.jsonl", ask_for("a"), b"nonsense", {"id": "b"}, ask_for("a")
    )
    with ChatServer(always("Au")) as server:
        result = run_on(server, source, output)
    assert result.exit_code == 1
    assert result.stderr.splitlines() == [
        "snne-guard: line 2: expected a JSON object, Expecting value at column 1",
        'snne-guard: line 3: expected a field "question"',
        'snne-guard: line 4: the id "a" has come before in this file, on line 1',
    ]
    assert "bad lines    3" in result.stdout
    assert len(read(output)) == 1


@pytest.mark.parametrize("stdin", [False, True])
def test_strict_ends_at_the_first_bad_line(
    tmp_path: Path, output: Path, stdin: bool
) -> None:
    source = write(tmp_path / "in.jsonl", ask_for("a"), b"nonsense", ask_for("b"))
    with ChatServer(always("Au")) as server:
        if stdin:
            options = [*arguments_for(server), "--strict"]
            result = run("-", "-o", output, *options, stdin=source.read_bytes())
        else:
            result = run_on(server, source, output, "--strict")
        asked = len(server.requests)
    assert result.exit_code == 1
    assert result.stderr.count("snne-guard: line 2: expected a JSON object") == 1
    # A file is looked through before anything is paid.
    assert asked == (2 if stdin else 0)
    assert len(read(output)) == int(stdin)


def test_odd_samples_are_recorded_and_named(tmp_path: Path, output: Path) -> None:
    source = write(tmp_path / "in.jsonl", ask_for("a"))
    odd = Reply(
        texts=("", "cut", "no", "fine"),
        finish_reasons=("stop", "length", "content_filter", "stop"),
    )
    with ChatServer(split("Au", lambda _: odd)) as server:
        result = run_on(server, source, output, "--samples", "4")
    assert result.exit_code == 0, result.output
    [row] = read(output)
    assert row["samples"] == ["", "cut", "no", "fine"]
    assert row["drawn"]["finish_reasons"][1:] == list(odd.finish_reasons or ())
    assert row["drawn"]["kinds"] == [None, None, None, "refused", None]
    reasons = {"empty_samples", "truncated_samples", "refused_samples"}
    assert set(row["drawn"]["reasons"]) == reasons
    assert all(f"{reason} 1" in result.stdout for reason in reasons)
    [(_, read_back)] = read_recordings(output)
    assert isinstance(read_back, Recording)


def test_outside_the_main_thread_it_runs_as_well(two: Path, output: Path) -> None:
    results: list[Any] = []
    with ChatServer(always("Au")) as server:
        thread = threading.Thread(
            target=lambda: results.append(run_on(server, two, output))
        )
        thread.start()
        thread.join()
    assert results[0].exit_code == 0
    assert len(read(output)) == 2


def test_the_embedded_model_needs_no_option(
    tmp_path: Path, output: Path, embedded: ChatOpenAI
) -> None:
    assert embedded.max_tokens == 32
    france = {"question": "What is the capital of France?", "answers": ["Paris"]}
    source = write(tmp_path / "in.jsonl", france, ask_for("b"))
    result = run(source, "-o", output, "--samples", "3", "--seed", "7")
    assert result.exit_code == 0, result.output
    rows = {row["question"]: row for row in read(output)}
    row = rows["What is the capital of France?"]
    assert row["main_answer"] == "Paris"
    assert row["id"].startswith("q-")
    assert len(row["samples"]) == len(row["token_logprobs"]) == 3
    assert row["settings"]["model"] == "SmolLM2-135M-Instruct"
    assert row["settings"]["answer_temperature"] == 0.0
    assert row["settings"]["max_tokens"] == 32
    assert json.dumps(row)
