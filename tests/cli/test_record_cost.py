"""What a recording costs is known beforehand, limited, and shown while it runs."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from snne_guard.cli import record
from tests.cli.support import apart, record_command, run
from tests.support.openai_server import Answer, Asked, Server, always, split

MAX = ("--max-tokens", "10")
PRICES = ("--prices", "1", "4", "0.5")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with Server(split("Paris", "Paris", "Rome")) as server:
        yield server


def fields(text: str) -> dict[str, str]:
    lines = (line.split("  ", 1) for line in text.splitlines())
    return {name: value.strip() for name, value in lines}


def test_a_dry_run_asks_nothing_and_prints_what_it_would_take(
    tmp_path: Path, server: Server
) -> None:
    result = run(*record_command(tmp_path, server.url, "--dry-run", *MAX, *PRICES, n=8))
    assert result.exit_code == 0, result.output
    assert not server.requests
    assert not (tmp_path / "r.jsonl").exists()
    assert fields(result.stdout) == {
        "questions to ask": "8",
        "requests": "16 (2 per question)",
        "input tokens": "about 16 (characters / 4)",
        "output tokens": "at most 400",
        "money": "at most about 0.001616, none of it cached",
    }


@pytest.mark.parametrize("known", [MAX, PRICES])
def test_a_dry_run_says_what_it_does_not_know(
    tmp_path: Path, server: Server, known: tuple[str, ...]
) -> None:
    result = run(*record_command(tmp_path, server.url, "--dry-run", *known))
    money = fields(result.stdout)["money"]
    assert money == "unknown without --max-tokens and --prices"


@pytest.mark.parametrize(
    ("options", "requests"),
    [
        ((), 2),
        (("--views", "all", "--self-check"), 5),
    ],
)
def test_a_dry_run_counts_what_a_run_requests(
    tmp_path: Path, server: Server, options: tuple[str, ...], requests: int
) -> None:
    arguments = record_command(tmp_path, server.url, *options, *MAX, n=1)
    planned = fields(run(*arguments, "--dry-run").stdout)
    assert planned["requests"] == f"{requests} ({requests} per question)"
    assert run(*arguments).exit_code == 0
    assert len(server.requests) == requests
    left = fields(run(*arguments, "--dry-run").stdout)
    assert left["questions to ask"] == "0"


@pytest.mark.parametrize("concurrency", ["1", "4"])
def test_a_limit_of_requests_is_kept_and_gone_on_from(
    tmp_path: Path, server: Server, concurrency: str
) -> None:
    arguments = record_command(
        *(tmp_path, server.url, "--max-requests", "5"),
        *("--max-concurrency", concurrency),
        n=8,
    )
    first = run(*arguments)
    assert first.exit_code == 1
    assert len(server.requests) == 4
    assert "stopped at the limit of 5 requests, where a question takes 2" in (
        first.stderr
    )
    rows = (tmp_path / "r.jsonl").read_text().splitlines()
    assert len(rows) == 2
    assert not (tmp_path / "r.failed.jsonl").exists()
    second = apart(*arguments)
    assert second.returncode == 1, second.stderr
    assert "2 recorded, 2 already there, 0 failed" in second.stderr
    assert len(server.requests) == 8


def test_a_limit_below_one_question_is_refused(tmp_path: Path, server: Server) -> None:
    result = run(*record_command(tmp_path, server.url, "--max-requests", "1"))
    assert result.exit_code == 2
    assert "one question takes 2 requests, but the limit is 1" in result.stderr
    assert not server.requests
    assert not (tmp_path / "r.jsonl").exists()


def test_a_limit_of_requests_holds_where_a_server_ignores_n(tmp_path: Path) -> None:
    with Server(always("Paris", choices=1)) as server:
        limits = ("--max-requests", "6", "--max-concurrency", "1")
        result = run(*record_command(tmp_path, server.url, *limits, n=4))
    assert result.exit_code == 1
    assert "1 recorded, 0 already there, 0 failed; 5 requests" in result.stderr
    assert "stopped at the limit of 6 requests" in result.stderr


def test_pace_and_money_are_shown_while_it_runs(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record, "SECONDS_BETWEEN_LINES", 0.0)
    result = run(*record_command(tmp_path, server.url, *PRICES, n=2))
    assert result.exit_code == 0, result.output
    model, first, _, last = result.stderr.splitlines()
    assert model == "snne-guard: asking openai:test-model"
    assert "1 of 2 asked, 0:00:" in first
    assert " left: 1 recorded, 0 already there, 0 failed; " in first
    assert " questions and " in first
    assert " tokens a second, price 0.0000" in first
    assert ", price 0.0000" in last
    assert json.loads((tmp_path / "r.jsonl").read_text().splitlines()[0])["drawn"][
        "cost"
    ]["money"]


def test_what_failed_and_why_is_said_at_the_end(tmp_path: Path) -> None:
    statuses = {"1": 400, "2": 400, "3": 403}

    def script(asked: Asked) -> Answer:
        last = asked.body["messages"][-1]["content"][0]
        return Answer(texts=["Paris"] * asked.n, status=statuses.get(last, 200))

    with Server(script) as server:
        result = run(
            *record_command(tmp_path, server.url, "--max-concurrency", "1", n=4)
        )
    assert result.exit_code == 1
    assert "1 recorded, 0 already there, 3 failed" in result.stderr
    assert re.search(r"2 not recorded: \w+Error: Error code: 400", result.stderr)
    assert re.search(r"1 not recorded: \w+Error: Error code: 403", result.stderr)
    assert "r.failed.jsonl; --retry-failed asks them again" in result.stderr


@pytest.mark.parametrize(
    ("answers", "samples", "warned"),
    [
        ("stop", "length", True),
        ("length", "stop", True),  # a fifth of the replies
        ("length", "length", True),
        ("stop", "stop", False),
        ("stop", "content_filter", False),
        ("stop", "max_tokens", True),
    ],
)
def test_replies_that_are_cut_off_are_told_while_it_runs(
    tmp_path: Path, answers: str, samples: str, *, warned: bool
) -> None:
    def script(asked: Asked) -> Answer:
        finish = samples if asked.is_sample else answers
        return Answer(texts=["Paris"] * asked.n, finish=finish)

    with Server(script) as server:
        result = run(*record_command(tmp_path, server.url, n=4))
    lines = [line for line in result.stderr.splitlines() if "were cut off" in line]
    assert bool(lines) is warned, result.stderr
    if warned:
        assert "with a larger --max-tokens" in lines[0]
        assert lines[-1].startswith("snne-guard: warning: ")
        # The first came as soon as ten replies had.
        assert int(lines[0].split(" of ")[1].split()[0]) == 10


def test_the_seconds_are_those_of_the_wall(tmp_path: Path) -> None:
    began = time.monotonic()
    with Server(lambda asked: Answer(texts=["Paris"] * asked.n, delay=0.3)) as server:
        result = run(*record_command(tmp_path, server.url, n=4))
    last = result.stderr.splitlines()[-1]
    [seconds] = re.findall(r"([\d.]+) s$", last)
    # Eight requests of .3 s, up to four at once.
    assert 0.5 < float(seconds) <= time.monotonic() - began + 0.05


def test_a_csv_file_is_recorded(tmp_path: Path, server: Server) -> None:
    command = record_command(tmp_path, server.url)
    asked = tmp_path / "q.csv"
    asked.write_text("Frage;gold;topic\nHauptstadt?;Paris;geo\nWo?;;geo\n")
    columns = ["--column", "question=Frage", "--column", "answers=gold"]
    command[1] = str(asked)
    result = run(*command, *columns)
    assert result.exit_code == 0, result.output
    rows = [json.loads(line) for line in (tmp_path / "r.jsonl").open()]
    by_question = {row["question"]: row for row in rows}
    assert by_question["Hauptstadt?"]["answers"] == ["Paris"]
    assert "answers" not in by_question["Wo?"]
    assert {row["topic"] for row in rows} == {"geo"}
    assert "Hauptstadt?" in json.dumps(
        [request.body["messages"] for request in server.requests], ensure_ascii=False
    )
    wrong = run(*command, "--column", "question")
    assert wrong.exit_code == 2
    assert "expected --column FIELD=COLUMN, got 'question'" in wrong.stderr
