"""``snne-guard record``: what fails, other settings, wrong usage."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path

import pytest

from tests.cli.lines import read, write
from tests.cli.record_command import ask_for, run, run_on
from tests.support.chat_server import (
    ChatServer,
    Reply,
    Request,
    Script,
    always,
    error,
    failing,
    ignoring_n,
)
from tests.support.guarding import is_sample, split


def about(name: str, request: Request) -> bool:
    return f"What is {name}?" in request.prompt


def except_for(name: str, then: Reply, otherwise: Script) -> Script:
    """Answer what is about one question by a reply of its own."""
    return lambda request: then if about(name, request) else otherwise(request)


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
    source = write(tmp_path / "in.jsonl", ask_for("a"))
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


def test_random_failures_cost_no_question(tmp_path: Path, output: Path) -> None:
    names = [f"q{number}" for number in range(40)]
    source = write(tmp_path / "in.jsonl", *map(ask_for, names))
    flaky = failing(split("Au", ["Au", "Ag"]), rate=0.2, seed=3, at_most=3)
    with ChatServer(flaky) as server:
        result = run_on(
            server, source, output, "--samples", "2", "--max-concurrency", "16"
        )
        requests, billed = server.requests, server.billed
    assert result.exit_code == 0, result.output
    assert sorted(row["id"] for row in read(output)) == sorted(names)
    assert billed.requests == 80
    assert 85 < len(requests) < 120
    assert f"requests     {billed.requests}" in result.stdout
    tokens = f"{billed.prompt_tokens} read, {billed.completion_tokens} written"
    assert f"tokens       {tokens}" in result.stdout
    each = Counter((request.prompt, is_sample(request)) for request in requests)
    assert max(each.values()) <= 4


@pytest.mark.parametrize(("failures", "status"), [(1, 0), (2, 1)])
def test_one_layer_retries_the_answer(
    tmp_path: Path, output: Path, failures: int, status: int
) -> None:
    source = write(tmp_path / "in.jsonl", ask_for("a"))

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
    write(two.parent / "out.failed.jsonl", ask_for("a"))
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
