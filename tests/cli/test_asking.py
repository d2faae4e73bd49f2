"""The commands that ask a model: on the embedded one, and on a scripted server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from snne_guard.self_check import SelfCheck
from tests.cli.support import record_command, run
from tests.evaluation.support import write_jsonl
from tests.support.openai_server import Answer, Scripted, Server, always, split

APART = ("Rome", "Oslo", "Bern", "Lima")


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Start a server and return the options that name it."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with ExitStack() as stack:

        def start(script: Scripted) -> list[str]:
            server = stack.enter_context(Server(script))
            return ["--model", "openai:test-model", "--base-url", server.url]

        yield start


# -- ask -------------------------------------------------------------------------------


def test_ask_shows_answer_replies_and_decision(serve: Any) -> None:
    at = serve(split("Paris", "Paris"))
    result = run("ask", "Capital of France?", *at, "--threshold", "0.4")
    assert result.exit_code == 0, result.output
    assert "ACCEPTED" in result.output
    assert "A ×5 Paris" in result.output  # noqa: RUF001 - the sign
    assert "threshold 0.40, uncalibrated" in result.output
    assert "snne-guard: asking openai:test-model\n" in result.stderr


def test_ask_shows_the_self_check(serve: Any) -> None:
    def script(asked: Any) -> Answer:
        check = asked.body["messages"][-1]["content"] == SelfCheck().prompt
        return Answer(texts=["No" if check else "Paris"], logprobs=False)

    result = run("ask", "x?", *serve(script), "--self-check")
    assert "P(Yes) 0.00, where the replies alone have u = 0.00" in result.output
    assert "A ×4 Paris" in result.output  # noqa: RUF001 - the sign


def test_ask_shows_each_sentence(serve: Any, tmp_path: Path) -> None:
    answer = "It is oak. It was made\x1b[2J in 1907."
    at = serve(split(answer, "It is oak."))
    picture = tmp_path / "ask.svg"
    result = run("ask", "x?", *at, "--spans", "--save-svg", picture)
    assert "in&#160;1907." in picture.read_text()
    lines = [" ".join(line.split()) for line in result.output.splitlines()]
    assert "Sentences u said by" in lines
    assert "0.00 4 It is oak." in lines
    assert [line for line in lines if line.endswith("0 It was made␛[2J in 1907.")]
    refused = run(
        *("ask", "x?", *at, "--spans", "--threshold", "0.0", "--on-uncertain", "refuse")
    )
    assert refused.exit_code == 3
    assert "Sentences" not in refused.output


def test_ask_holds_an_uncertain_answer_back(serve: Any) -> None:
    at = serve(split("Paris", *APART))
    result = run(
        "ask", "x?", *at, "--threshold", "0.4", "--on-uncertain", "refuse", "--json"
    )
    assert result.exit_code == 3
    told = json.loads(result.stdout)
    assert told["answer"] is None
    assert told["snne_guard"]["decision"] == "refuse"
    assert told["samples"] == list(APART)
    assert "Paris" not in result.stdout


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--n", "1"], "n to be a whole number of at least 2"),
        (["--on-uncertain", "refuse"], "needs a threshold"),
        (["--save-svg", "missing/a.svg"], "cannot write missing/a.svg"),
        (["--model", ""], "provider:name, hf:NAME or embedded, got ''"),
        (["--model", "nobody:x"], "the model 'nobody:x' cannot be set up: "),
    ],
)
def test_wrong_options_end_with_one_line(
    arguments: list[str], told: str, serve: Any
) -> None:
    at = [] if "--model" in arguments else serve(always("Paris"))
    result = run("ask", "x?", *at, *arguments)
    assert result.exit_code == 2
    [line] = result.stderr.splitlines()
    assert told in line


def test_the_demo_asks_nothing_if_its_picture_cannot_be_saved() -> None:
    result = run("demo", "--save-svg", "missing/a.svg")
    assert result.exit_code == 2
    assert "cannot write missing/a.svg" in result.stderr
    assert result.stdout == ""


def test_a_provider_that_fails_ends_with_one_line_without_a_key(serve: Any) -> None:
    error = {"message": "Incorrect API key provided: hunter2", "code": "invalid"}
    at = serve(always(status=401, body={"error": error}))
    result = run("ask", "x?", *at)
    assert result.exit_code == 1
    assert "AuthenticationError: Error code: 401" in result.stderr
    assert "API key provided: ***" in result.stderr
    assert "hunter2" not in result.output + result.stderr


# -- doctor ----------------------------------------------------------------------------


def test_the_doctor_trusts_a_model_whose_replies_differ(serve: Any) -> None:
    villages = [f"Village {number}" for number in range(20)]
    result = run("doctor", *serve(split("x", *villages)))
    assert result.exit_code == 0, result.output
    assert "Samples of this model can be trusted." in result.stdout


def test_the_doctor_finds_a_server_that_is_always_the_same(serve: Any) -> None:
    result = run("doctor", *serve(always("The village of Ash.")))
    assert result.exit_code == 1
    assert "cannot be trusted" in result.output
    assert "To do:" in result.output


# -- record ----------------------------------------------------------------------------


def test_record_writes_what_calibrate_and_evaluate_read(
    serve: Any, tmp_path: Path
) -> None:
    *_, url = serve(split("Paris", "Paris", "Rome"))
    arguments = record_command(tmp_path, url, "--max-tokens", "9", n=3)
    first = run(*arguments, "--stop", "\\n")
    assert first.exit_code == 0, first.output
    output = tmp_path / "r.jsonl"
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    assert {row["main_answer"] for row in rows} == {"Paris"}
    assert {len(row["samples"]) for row in rows} == {4}
    settings = rows[0]["settings"]
    assert settings["model"] == "openai:test-model"
    assert (settings["max_tokens"], settings["stop"]) == (9, ["\n"])
    assert "3 recorded" in first.stderr
    other = run(*arguments)
    assert other.exit_code == 2
    assert "other settings" in other.stderr


def test_what_is_recorded_in_all_views_with_a_check_is_compared(
    serve: Any, tmp_path: Path
) -> None:
    def script(asked: Any) -> Answer:
        *_, last = asked.body["messages"]
        if last["content"] == SelfCheck().prompt:
            return Answer(texts=["Yes"], logprobs=False)
        if "Answer:" in last["content"]:
            return Answer(texts=["So. Answer: Paris"] * asked.n)
        number = int(last["content"].split("?")[0])
        return Answer(texts=["Paris" if number % 2 else "Rome"] * asked.n)

    *_, url = serve(script)
    more = ("--samples", "6", "--self-check", "--views", "all")
    result = run(*record_command(tmp_path, url, *more, n=48))
    output = tmp_path / "r.jsonl"
    assert result.exit_code == 0, result.output
    row = json.loads(output.read_text().splitlines()[0])
    assert row["settings"]["views"] == ["plain", "examples", "reasoning"]
    options = ("--methods", "snne", "--resamples", "9", "--grader", "contains")
    money = ("--prices", "1", "4", "0.5", "--calls", "3")
    found = run("evaluate", output, *options, *money)
    assert found.exit_code == 0, found.output
    # A wrong answer is repeated in all views but the one that reasons.
    assert "Best at 3 calls: reasoning with 3 calls" in found.stdout
    assert "AUROC 1.000 (1.000 to 1.000), +0.500 (+0.500 to +0.500)" in found.stdout
    assert "Best for no more money: plain" in found.stdout
    for title in ("requests", "read", "written", "money"):
        assert title in found.stdout


def test_a_bad_line_is_found_before_anything_is_asked(
    serve: Any, tmp_path: Path
) -> None:
    def script(asked: Any) -> Answer:
        raise AssertionError(asked)

    *_, url = serve(script)
    arguments = record_command(tmp_path, url, n=2)
    with (tmp_path / "q.jsonl").open("a") as questions:
        questions.write("nonsense")
    result = run(*arguments)
    assert result.exit_code == 2
    assert "line 3: expected a JSON object" in result.stderr
    assert not (tmp_path / "r.jsonl").exists()


# -- The embedded model ----------------------------------------------------------------


@pytest.mark.usefixtures("embedded")
def test_the_demo_guards_prepared_questions(tmp_path: Path) -> None:
    picture = tmp_path / "demo.svg"
    result = run("demo", "What is the capital of France?", "--save-svg", picture)
    assert result.exit_code == 0, result.output
    assert "uncalibrated" in result.output
    assert "Decision" in result.output
    svg = picture.read_text()
    assert "@font-face" not in svg
    assert "http" not in svg.replace("http://www.w3.org", "").replace(
        "https://www.textualize.io", ""
    )


@pytest.mark.usefixtures("embedded")
def test_embedded_means_the_embedded_model_everywhere(tmp_path: Path) -> None:
    file = write_jsonl(tmp_path / "q.jsonl", [{"question": "0?"}])
    output = tmp_path / "r.jsonl"
    for extra in ([], ["--model", "embedded"]):
        result = run("record", file, "--output", output, "--samples", "2", *extra)
        assert result.exit_code == 0, result.output
    [row] = map(json.loads, output.read_text().splitlines())
    assert row["settings"]["model"] == "SmolLM2-135M-Instruct"
    assert row["main_logprobs"]
    asked = run("ask", "Capital of Spain?", "--n", "3", "--json")
    assert json.loads(asked.stdout)["snne_guard"]["method"] == "wsnne"
    assert "asking the embedded SmolLM2-135M, a toy to try things with" in asked.stderr
