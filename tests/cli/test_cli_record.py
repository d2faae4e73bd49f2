"""``snne-guard record``: what is asked, written, told and returned."""

from __future__ import annotations

import json
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from langchain_openai import ChatOpenAI
from typer.testing import CliRunner

from snne_guard.cli import build_app
from snne_guard.cli._drawing import DrawSettings, guard_draw
from snne_guard.evaluation import Recording, read_recordings
from tests.cli.record_command import (
    arguments_for,
    ask_for,
    questions,
    read,
    run,
    run_on,
)
from tests.examples.doc_pages import DOCS, blocks
from tests.support.chat_server import (
    ChatServer,
    Reply,
    Request,
    Script,
    always,
    chat_openai,
    error,
    failing,
    ignoring_n,
)
from tests.support.guarding import is_sample, split

TWO = (ask_for("a", answers=["A"], note={"x": 1}), ask_for("b", context="All."))


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "SNNE_GUARD_DISABLED"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def two(tmp_path: Path) -> Path:
    return questions(tmp_path / "in.jsonl", *TWO)


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "out.jsonl"


def about(name: str, request: Request) -> bool:
    return f"What is {name}?" in request.prompt


def except_for(name: str, then: Reply, otherwise: Script) -> Script:
    """Answer what is about one question by a reply of its own."""
    return lambda request: then if about(name, request) else otherwise(request)


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
    }
    drawn = rows["a"]["drawn"]
    assert drawn["models"] == ["small"]
    assert drawn["finish_reasons"] == ["stop"] * 4
    assert drawn["reasons"] == []
    assert drawn["cost"]["calls"] == 2
    assert result.stdout.splitlines() == [
        "recorded     2",
        "failed       0",
        "took         0:00:00",
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
    source = questions(
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
    source = questions(tmp_path / "in.jsonl", *TWO) if limit else tmp_path / "empty"
    source.touch()
    with ChatServer() as server:
        result = run_on(server, source, output, *limit)
    assert result.exit_code == 0
    assert result.stdout.startswith("recorded     0\n")
    assert output.read_bytes() == b""


def test_bad_lines_are_named_and_skipped(tmp_path: Path, output: Path) -> None:
    source = questions(
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
    source = questions(tmp_path / "in.jsonl", ask_for("a"), b"nonsense", ask_for("b"))
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


def test_what_fails_is_kept_aside_and_drawn_again_when_asked_to(
    two: Path, output: Path
) -> None:
    broken = except_for("b", error(400, "too long"), always("Au"))
    failed = output.parent / "out.failed.jsonl"
    with ChatServer(broken) as server:
        result = run_on(server, two, output)
        assert result.exit_code == 1
        assert "snne-guard: b failed: OpenAIInvalidRequestError: " in result.stderr
        assert "--retry-failed draws again what failed" in result.stderr
        assert result.stdout.splitlines()[:2] == ["recorded     1", "failed       1"]
        [row] = read(failed)
        assert row["id"] == "b"
        assert "too long" in row["failed"]["error"]

        server.script = always("Au")
        before = len(server.requests)
        result = run_on(server, two, output)
        assert (result.exit_code, len(server.requests)) == (1, before)
        assert "failed       1" in result.stdout

        result = run_on(server, two, output, "--retry-failed")
    assert result.exit_code == 0, result.output
    assert sorted(row["id"] for row in read(output)) == ["a", "b"]
    assert not failed.exists()


def test_samples_that_were_paid_are_kept_and_the_others_get_other_seeds(
    tmp_path: Path, output: Path
) -> None:
    source = questions(tmp_path / "in.jsonl", ask_for("a"))
    lock, given = threading.Lock(), 0

    def two_samples_only(_: Request) -> Reply:
        nonlocal given
        with lock:
            given += 1
            if given > 2:
                return error(400, "no more")
            return Reply(texts=(f"kept {given}",), choices=1)

    options = ["--samples", "5", "--seed", "7", "--max-concurrency", "1"]
    with ChatServer(split("Au", two_samples_only)) as server:
        result = run_on(server, source, output, *options)
        assert result.exit_code == 1
        assert output.read_bytes() == b""
        before = len(server.requests)
        server.script = split("other", ignoring_n(["new"]))
        result = run_on(server, source, output, *options, "--retry-failed")
        seeds = [request.body["seed"] for request in server.requests]
    assert result.exit_code == 0, result.output
    [row] = read(output)
    assert row["main_answer"] == "Au"
    assert row["samples"] == ["kept 1", "kept 2", "new", "new", "new"]
    assert row["drawn"]["reasons"] == []
    assert max(seeds[:before]) < min(seeds[before:])
    assert sorted(set(seeds[before:])) == [13, 14, 15, 16]


def test_odd_samples_are_recorded_and_named(tmp_path: Path, output: Path) -> None:
    source = questions(tmp_path / "in.jsonl", ask_for("a"))
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
    reasons = {"empty_samples", "truncated_samples", "refused_samples"}
    assert set(row["drawn"]["reasons"]) == reasons
    assert all(f"{reason} 1" in result.stdout for reason in reasons)
    [(_, read_back)] = read_recordings(output)
    assert isinstance(read_back, Recording)


def test_the_guard_draws_every_sample_whatever_it_costs() -> None:
    settings = DrawSettings(
        model="m",
        temperature=1.0,
        answer_temperature=None,
        samples=3,
        max_tokens=None,
        system=None,
        seed=None,
    )
    with ChatServer() as server:
        guard = guard_draw(
            chat_openai(server),
            settings,
            max_concurrency=1,
            max_attempts=1,
            timeout=None,
            prices=None,
        ).guard
    assert (guard.n, guard.include_answer, guard.sample_rate) == (4, True, 1.0)
    brakes = (guard.breaker, guard.budget, guard.sample_when, guard.rounds)
    assert brakes == (None, None, None, None)


def test_random_failures_cost_no_question(tmp_path: Path, output: Path) -> None:
    names = [f"q{number}" for number in range(40)]
    source = questions(tmp_path / "in.jsonl", *map(ask_for, names))
    flaky = failing(split("Au", ["Au", "Ag"]), rate=0.2, seed=3)
    with ChatServer(flaky) as server:
        result = run_on(
            server, source, output, "--samples", "2", "--max-concurrency", "16"
        )
        requests, billed = server.requests, server.billed
    assert result.exit_code == 0, result.output
    assert sorted(row["id"] for row in read(output)) == sorted(names)
    assert billed.requests == 80 < len(requests)
    assert f"requests     {billed.requests}" in result.stdout
    tokens = f"{billed.prompt_tokens} read, {billed.completion_tokens} written"
    assert f"tokens       {tokens}" in result.stdout
    each = Counter((request.prompt, is_sample(request)) for request in requests)
    assert max(each.values()) <= 4


@pytest.mark.parametrize(("failures", "status"), [(1, 0), (2, 1)])
def test_one_layer_retries_the_answer(
    tmp_path: Path, output: Path, failures: int, status: int
) -> None:
    source = questions(tmp_path / "in.jsonl", ask_for("a"))

    def script(request: Request) -> Reply:
        return error(503) if request.index < failures else Reply(texts=("Au",))

    with ChatServer(script) as server:
        result = run_on(server, source, output, "--max-attempts", "2")
        assert len(server.requests) == (2 if status else 3)
    assert result.exit_code == status, result.output


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        (["--temperature", "0.5"], "was drawn with temperature 1.0, and now it is 0.5"),
        (["--samples", "3"], "was drawn with samples 10, and now it is 3"),
        (["--system", "x"], 'was drawn with system null, and now it is "x"'),
        (["--seed", "1"], "was drawn with seed null, and now it is 1"),
    ],
)
def test_other_settings_are_refused(
    two: Path, output: Path, changed: list[str], told: str
) -> None:
    with ChatServer(always("Au")) as server:
        run_on(server, two, output, "--limit", "1")
        result = run_on(server, two, output, *changed)
        assert result.exit_code == 2
        assert told in result.stderr
        assert (
            "record into another file, or mix them with --mix-settings" in result.stderr
        )
        assert len(read(output)) == 1
        result = run_on(server, two, output, *changed, "--mix-settings")
    assert result.exit_code == 0
    assert len(read(output)) == 2


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["none.jsonl"], "none.jsonl: No such file or directory"),
        (["in.jsonl", "-o", "in.jsonl"], "is the input itself"),
        (["in.jsonl", "-o", "no/such.jsonl"], "No such file or directory"),
        (["out.failed.jsonl"], "out.failed.jsonl is the input itself"),
        (["in.jsonl", "--temperature", "-1"], "temperature must be 0 or more"),
        (["in.jsonl", "--timeout", "0"], "timeout must be seconds above 0"),
        (["in.jsonl", "--prices", "much"], "prices must be PROMPT,COMPLETION"),
        (["in.jsonl", "--model", "nobody:small"], "'nobody:small' cannot be set up"),
        (["in.jsonl", "--samples", "0"], "Invalid value for '--samples'"),
        (["in.jsonl", "--max-concurrency", "0"], "'--max-concurrency'"),
    ],
)
def test_wrong_usage_is_told(
    two: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], told: str
) -> None:
    monkeypatch.chdir(two.parent)
    questions(two.parent / "out.failed.jsonl", ask_for("a"))
    before = two.read_bytes()
    options = [] if "--model" in arguments else ["--model", "openai:small"]
    options += ["--base-url", "http://127.0.0.1:1/v1"]
    given: list[str] = [] if "-o" in arguments else ["-o", "out.jsonl"]
    result = run(*arguments, *given, *options)
    assert result.exit_code == 2
    assert told in " ".join(result.stderr.replace("│", "").split())
    assert two.read_bytes() == before


def test_guards_that_are_switched_off_would_draw_no_samples(
    two: Path, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SNNE_GUARD_DISABLED", "1")
    with ChatServer() as server:
        result = run_on(server, two, output)
    assert result.exit_code == 2
    assert "SNNE_GUARD_DISABLED is set" in result.stderr


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
    source = questions(tmp_path / "in.jsonl", france, ask_for("b"))
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
