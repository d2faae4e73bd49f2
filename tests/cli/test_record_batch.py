"""``record --batch``: the ordinary recording, whatever becomes of the batches."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from snne_guard.evaluation import batch
from snne_guard.self_check import SelfCheck
from tests.cli.support import record_command, run
from tests.support.batch_server import Batch, BatchServer, Fate
from tests.support.openai_server import Answer, Asked, rejecting

PRICES = ("--prices", "1", "4", "0.5")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setattr(batch, "FIRST_WAIT", 0.01)


@pytest.fixture
def serve() -> Iterator[Callable[..., BatchServer]]:
    with ExitStack() as stack:
        yield lambda *a: stack.enter_context(BatchServer(*a))


def script(asked: Asked) -> Answer:
    """Answer by what is asked alone."""
    *_, last = asked.body["messages"]
    if last["content"] == SelfCheck().prompt:
        return Answer(texts=["Yes"], tokens=["Yes"])
    number = int(last["content"].split("?")[0])
    if not asked.is_sample:
        return Answer(texts=[f"answer {number}"])
    cities = ("Rome", "Oslo", "Bonn", "Lyon", "Bern")
    return Answer(texts=[cities[(number + i) % 5] for i in range(asked.n)])


def command(folder: Path, server: BatchServer, *more: str, n: int = 4) -> list[str]:
    return record_command(folder, server.url, "--samples", "3", *more, n=n)


def by_batch(folder: Path, server: BatchServer, *more: str, **kind: Any) -> Any:
    return run(*command(folder, server, *more, "--batch", "openai", **kind))


def rows_of(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "r.jsonl").read_text().splitlines()
    rows = sorted(map(json.loads, lines), key=lambda row: row["id"])
    for row in rows:
        del row["drawn"]["at"], row["drawn"]["cost"]["seconds"]
    return rows


def first(fate: Callable[[Batch], object]) -> Fate:
    return lambda batch: fate(batch) if batch.number == 0 else None


# -- What is recorded ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "batches"),
    [
        (("--max-tokens", "9", "--stop", "\\n", "--system", "Be short.", *PRICES), 1),
        (("--self-check", "--seed", "7", "--views", "plain,examples"), 2),
    ],
)
def test_it_is_the_ordinary_recording(
    tmp_path: Path, serve: Any, more: tuple[str, ...], batches: int
) -> None:
    server = serve(script)
    ordinary = run(*command(tmp_path / "a", server, *more))
    assert ordinary.exit_code == 0, ordinary.output
    asked = len(server.requests)
    result = by_batch(tmp_path / "b", server, *more)
    assert result.exit_code == 0, result.output
    assert len(server.batches) == batches
    assert len(server.requests) == 2 * asked
    assert rows_of(tmp_path / "b") == rows_of(tmp_path / "a")
    assert rows_of(tmp_path / "b")
    counts, told = (re.sub(r", [\d.]+ s", "", r.stderr) for r in (ordinary, result))
    assert counts.splitlines()[-1] == told.splitlines()[-1]


def test_what_the_provider_does_not_take_is_left_out(
    tmp_path: Path, serve: Any
) -> None:
    server = serve(rejecting("n", script))
    assert run(*command(tmp_path / "a", server)).exit_code == 0
    result = by_batch(tmp_path / "b", server)
    assert result.exit_code == 0, result.output
    ordinary, batched = rows_of(tmp_path / "a"), rows_of(tmp_path / "b")
    for row in (*ordinary, *batched):
        del (
            row["drawn"]["cost"],
            row["drawn"]["requests"],
        )  # what is learnt saves requests
    assert batched == ordinary


def test_models_of_the_responses_api_are_asked_there(
    tmp_path: Path, serve: Any
) -> None:
    server = serve(lambda asked: Answer(texts=["Rome" if asked.is_sample else "Oslo"]))
    more = ("--model", "openai:gpt-5-codex")
    assert run(*command(tmp_path / "a", server, *more)).exit_code == 0
    result = by_batch(tmp_path / "b", server, *more)
    assert result.exit_code == 0, result.output
    [batch] = server.batches.values()
    assert batch.fields["endpoint"] == "/v1/responses"
    assert rows_of(tmp_path / "b") == rows_of(tmp_path / "a")


def test_samples_that_n_did_not_bring_are_asked_for_one_by_one(
    tmp_path: Path, serve: Any
) -> None:
    def ignoring(asked: Asked) -> Answer:
        return Answer(texts=script(asked).texts, choices=1)

    server = serve(ignoring)
    result = by_batch(tmp_path, server)
    assert result.exit_code == 0, result.output
    assert {len(row["samples"]) for row in rows_of(tmp_path)} == {3}
    assert len(server.batches) == 2
    assert len(server.asked) == len(set(server.asked)) == 4 * (1 + 1 + 2)


def test_files_are_split_at_the_limits(
    tmp_path: Path, serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve(script)
    monkeypatch.setattr(batch, "MOST_REQUESTS", 3)
    assert by_batch(tmp_path / "a", server).exit_code == 0
    assert [len(batch.lines) for batch in server.batches.values()] == [3, 3, 2]
    sizes = [len(line) for line in server.files["file-0"].splitlines(keepends=True)]
    monkeypatch.setattr(batch, "MOST_BYTES", 2 * max(sizes))
    assert by_batch(tmp_path / "b", server).exit_code == 0
    assert [len(batch.lines) for batch in [*server.batches.values()][3:]] == [2] * 4


def test_a_limit_of_requests_takes_questions_in_portions(
    tmp_path: Path, serve: Any
) -> None:
    server = serve(script)
    one = by_batch(tmp_path, server, "--max-requests", "5")
    assert one.exit_code == 1
    assert "stopped at the limit of 5 requests, where a question takes 2" in one.stderr
    assert len(server.asked) == len(rows_of(tmp_path)) * 2 == 4
    two = by_batch(tmp_path, server, "--max-requests", "5")
    assert two.exit_code == 0
    assert "2 recorded, 2 already there" in two.stderr
    assert len(server.asked) == 8


# -- What can happen to a batch --------------------------------------------------------


def expire(batch: Batch) -> None:
    batch.ending, batch.answered = "expired", 3


def overload(batch: Batch) -> None:
    batch.status = 503


def lose(batch: Batch) -> None:
    batch.ending = "lost"


def leave_out(batch: Batch) -> None:
    batch.answered = 3


@pytest.mark.parametrize("fate", [expire, overload, lose, leave_out])
def test_what_has_no_reply_is_sent_again(
    tmp_path: Path, serve: Any, fate: Callable[[Batch], object]
) -> None:
    server = serve(script, first(fate))
    assert run(*command(tmp_path / "a", server)).exit_code == 0
    result = by_batch(tmp_path / "b", server)
    assert result.exit_code == 0, result.output
    assert rows_of(tmp_path / "b") == rows_of(tmp_path / "a")
    again = server.batches["batch_1"].lines
    assert len(again) == (5 if fate in {expire, leave_out} else 8)
    assert ("batch_0 or its output is lost" in result.stderr) == (fate is lose)


def test_what_fails_each_time_is_kept_aside(tmp_path: Path, serve: Any) -> None:
    def ruin(batch: Batch) -> None:
        batch.answered = 0

    server = serve(script, ruin)
    result = by_batch(tmp_path, server)
    assert result.exit_code == 1
    assert "0 recorded, 0 already there, 4 failed" in result.stderr
    failures = (tmp_path / "r.failed.jsonl").read_text()
    assert "no batch had a reply to this request" in failures
    assert len(server.batches) == 3
    server.fate = lambda _: None
    assert by_batch(tmp_path, server).exit_code == 1  # passed over
    assert len(server.batches) == 3
    result = by_batch(tmp_path, server, "--retry-failed")
    assert result.exit_code == 0, result.output
    assert len(rows_of(tmp_path)) == 4


def test_a_request_that_is_refused_fails_alone(tmp_path: Path, serve: Any) -> None:
    def refusing(asked: Asked) -> Answer:
        bad = asked.body["messages"][-1]["content"] == "2?"
        return Answer(status=403) if bad else script(asked)

    server = serve(refusing)
    result = by_batch(tmp_path, server)
    assert result.exit_code == 1
    assert "3 recorded, 0 already there, 1 failed" in result.stderr
    assert "Error code: 403" in result.stderr
    assert len(server.batches) == 2  # it is asked once more without log-probabilities


@pytest.mark.parametrize("ending", ["failed", "cancelled"])
def test_a_batch_that_failed_or_was_cancelled_ends_the_run(
    tmp_path: Path, serve: Any, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def spoil(batch: Batch) -> None:
        batch.ending, batch.answered = ending, 2

    server = serve(script, first(spoil))
    monkeypatch.setattr(batch, "MOST_REQUESTS", 4)
    result = by_batch(tmp_path, server)
    assert result.exit_code == 1
    why = ": Enqueued too much" if ending == "failed" else ""
    again = "run the same command again to submit the rest"
    assert f"batch batch_0 {ending}{why}; {again}" in result.stderr
    assert len(rows_of(tmp_path)) == (2 if ending == "failed" else 3)
    assert len(server.batches) == 2
    result = by_batch(tmp_path, server)
    assert result.exit_code == 0, result.output
    assert len(rows_of(tmp_path)) == 4
    assert len(server.asked) == (12 if ending == "failed" else 10)


# -- Going on --------------------------------------------------------------------------

PROGRAM = "from snne_guard.cli import main; main()"


def test_a_killed_run_goes_on_without_paying_again(tmp_path: Path, serve: Any) -> None:
    def linger(batch: Batch) -> None:
        batch.polls = None

    server = serve(script, linger)
    arguments = command(tmp_path, server, "--self-check", "--batch", "openai")
    with subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-c", PROGRAM, *arguments], stderr=subprocess.DEVNULL
    ) as process:
        until = time.monotonic() + 60
        while "in_progress" not in str([b.fields for b in server.batches.values()]):
            assert time.monotonic() < until, "nothing was submitted"
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
    server.fate = lambda _: None
    server.batches["batch_0"].polls = 1
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    assert len(rows_of(tmp_path)) == 4
    assert len(server.batches) == 2
    assert len(server.asked) == len(set(server.asked)) == 12


def test_a_run_takes_nothing_from_another_one(tmp_path: Path, serve: Any) -> None:
    server = serve(script)
    assert by_batch(tmp_path / "a", server).exit_code == 0
    for more in ((), ("--temperature", "0.9"), ("--shard", "1/1")):
        (tmp_path / "b" / "r.jsonl").unlink(missing_ok=True)
        before = len(server.asked)
        assert by_batch(tmp_path / "b", server, *more).exit_code == 0
        assert len(server.asked) == before + 8
    (tmp_path / "b" / "r.jsonl").unlink()
    assert by_batch(tmp_path / "b", server).exit_code == 0
    assert len(server.asked) == before + 8  # its own replies are there still


def test_a_batch_of_which_it_is_not_known_whether_it_was_taken(
    tmp_path: Path, serve: Any
) -> None:
    def drop(batch: Batch) -> None:
        server.batches[batch.fields["id"]] = batch
        raise ConnectionAbortedError

    server = serve(script, drop)
    result = by_batch(tmp_path, server)
    assert result.exit_code == 1
    assert "the provider failed: APIConnectionError" in result.stderr
    assert len(server.batches) == 1
    server.fate = lambda _: None
    assert by_batch(tmp_path, server).exit_code == 0
    assert len(server.batches) == 1


# -- Bad input -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--batch", "openai", "--model", "embedded"), "needs --model openai:NAME"),
        (("--batch", "openai", "--ray", "2"), "does not work with --ray"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    tmp_path: Path, serve: Any, more: tuple[str, ...], message: str
) -> None:
    result = run(*command(tmp_path, serve(script)), *more)
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_missing_key_is_named(tmp_path: Path, serve: Any) -> None:
    arguments = command(tmp_path, serve(script), "--batch", "openai")
    at = arguments.index("--base-url")
    result = run(*arguments[:at], *arguments[at + 2 :])
    assert result.exit_code == 2
    assert "OPENAI_API_KEY" in result.stderr
