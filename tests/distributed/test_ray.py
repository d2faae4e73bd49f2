"""Recording and scoring on a real Ray of this machine, with two workers."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from snne_guard import MissingExtraError, SNNEGuard, distributed
from snne_guard import score as score_answers
from snne_guard.evaluation import read_recordings
from tests.cli.support import apart, run
from tests.distributed.stub import Stub
from tests.evaluation.support import write_jsonl
from tests.support.openai_server import Answer, Asked, Server

N = 60


@pytest.fixture(scope="module")
def data() -> Iterator[Any]:
    """``ray.data`` with a cluster of two CPUs."""
    import ray
    import ray.data

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        ray.init(
            address="local",
            num_cpus=2,
            include_dashboard=False,
            log_to_driver=False,
            _node_ip_address="127.0.0.1",
        )
        yield ray.data
        ray.shutdown()


pytestmark = pytest.mark.filterwarnings("ignore")  # of Ray's own


def questions(n: int = N) -> list[dict[str, Any]]:
    return [
        {"id": str(i), "question": f"{i}?", "answers": [f"{i}"], "mine": i}
        for i in range(n)
    ]


def stub(folder: Path, **fields: Any) -> partial[Stub]:
    return partial(Stub, asked=folder / "asked.txt", **fields)


def kept(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row without what differs between two runs."""
    drawn = dict(row["drawn"])
    drawn.pop("at")
    return {**row, "drawn": {**drawn, "cost": {**drawn["cost"], "seconds": 0}}}


def by_id(path: Path) -> dict[str, Any]:
    lines = map(json.loads, path.read_text().splitlines())
    return {row["id"]: kept(row) for row in lines}


def kill_a_worker(asked: Path, *, after: int) -> None:
    until = time.monotonic() + 120
    while not asked.exists() or len(asked.read_text().splitlines()) < after:
        assert time.monotonic() < until, "the workers have not begun"
        time.sleep(0.01)
    os.kill(int(asked.read_text().split()[0]), signal.SIGKILL)


@pytest.mark.slow
def test_a_killed_worker_loses_nothing(data: Any, tmp_path: Path) -> None:
    data.from_items(questions()).write_parquet(tmp_path / "in")
    asked = tmp_path / "asked.txt"
    killer = threading.Thread(target=kill_a_worker, args=(asked,), kwargs={"after": 20})
    killer.start()
    rows = distributed.record(
        data.read_parquet(tmp_path / "in"),
        model=stub(tmp_path, seconds=0.05),
        samples=2,
        max_concurrency=2,
    )
    rows.write_parquet(tmp_path / "out")
    killer.join()
    found = data.read_parquet(tmp_path / "out").take_all()
    assert sorted(row["id"] for row in found) == sorted(str(i) for i in range(N))
    one = Stub(asked=tmp_path / "plain.txt")
    for row in found:
        plain = SNNEGuard(one, n=3).assess(row["question"])
        assert plain.answer
        assert (row["main_answer"], row["samples"]) == (
            plain.answer.text,
            [sample.text for sample in plain.samples],
        )
        assert (row["error"], row["mine"], row["answers"]) == (
            None,
            int(row["id"]),
            [row["id"]],
        )
    replies = Counter(line.split()[1] for line in asked.read_text().splitlines())
    workers = {line.split()[0] for line in asked.read_text().splitlines()}
    assert len(workers) > 2
    # What the worker had in hand is asked again, and nothing else.
    assert 0 < sum(count > 3 for count in replies.values()) <= 8 * 2


@pytest.mark.slow
def test_ids_that_are_there_are_left_out_and_lines_are_a_recording(
    data: Any, tmp_path: Path
) -> None:
    def drawn(rows: Any) -> None:
        made = distributed.record(rows, model=stub(tmp_path), samples=2, workers=1)
        made.write_parquet(tmp_path / "out")

    write_jsonl(tmp_path / "q.jsonl", questions(8))
    asked = data.read_json(tmp_path / "q.jsonl")
    drawn(asked.limit(5))
    known = {row["id"] for row in data.read_parquet(tmp_path / "out").iter_rows()}
    drawn(asked.filter(lambda row: row["id"] not in known))
    data.read_parquet(tmp_path / "out").write_json(tmp_path / "lines")
    parts = sorted((tmp_path / "lines").iterdir())
    recordings = [each for part in parts for each in read_recordings(part)]
    assert sorted(each.id for each in recordings) == [str(i) for i in range(8)]
    assert len((tmp_path / "asked.txt").read_text().splitlines()) == 8 * 3
    counts = {
        draw["cached_tokens"] for draw in recordings[0].extra["drawn"]["requests"]
    }
    assert counts == {0}
    joined = tmp_path / "all.jsonl"
    assert run("merge", *parts, "--output", joined).exit_code == 0
    result = run("evaluate", joined, "--methods", "snne", "--grader", "contains")
    assert result.exit_code == 0, result.output


@pytest.mark.slow
def test_a_question_that_fails_says_why_and_has_no_score(
    data: Any, tmp_path: Path
) -> None:
    asked = [{"question": "1?"}, {"id": "b", "question": "fail"}, {"question": " "}]
    rows = distributed.record(
        data.from_items(asked), model=stub(tmp_path), samples=2, workers=1
    )
    scored = {
        row["question"]: row
        for row in distributed.score(rows, method="snne").iter_rows()
    }
    assert scored["fail"]["error"] == "ValueError: no answer to fail"
    assert "question: String should match pattern" in scored[" "]["error"]
    assert scored["fail"]["snne_guard"] is scored[" "]["snne_guard"] is None
    good = scored["1?"]
    assert good["id"].startswith("q-")
    alone = score_answers([good["main_answer"], *good["samples"]], method="snne")
    assert good["snne_guard"]["uncertainty"] == alone.uncertainty
    assert good["snne_guard"]["similarity"] == alone.similarity


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"snne-guard\[ray\]"):
        distributed.score(object())


def command(folder: Path, server: Server, name: str, *more: str) -> list[Any]:
    at = ["--model", "openai:test-model", "--base-url", server.url]
    output = ["--output", folder / name, "--prices", "1", "4", "0.5"]
    return ["record", folder / "q.jsonl", *at, *output, "--samples", "4", *more]


def scripted(asked: Asked) -> Answer:
    question = asked.body["messages"][-1]["content"]
    status = 400 if question == "3?" else 200
    return Answer(texts=[f"{question} {i % 3}" for i in range(asked.n)], status=status)


@pytest.mark.slow
@pytest.mark.usefixtures("data")
def test_the_command_writes_the_same_file_on_ray(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("snne_guard.cli.record.SECONDS_BETWEEN_LINES", 0.0)
    rows = questions(12)
    rows[2]["mine"] = {"of": "another kind"}
    write_jsonl(tmp_path / "q.jsonl", rows)
    with Server(scripted) as server:
        limits = ("--ray", "2", "--shard", "1/1")
        first = run(
            *command(tmp_path, server, "ray.jsonl", "--max-requests", "8", *limits)
        )
        assert first.exit_code == 1, first.output
        assert "stopped at the limit of 8 requests, where a question takes 2" in (
            first.stderr
        )
        assert " tokens a second, price 0.0000" in first.stderr
        second = run(*command(tmp_path, server, "ray.jsonl", *limits))
        assert "8 recorded, 3 already there, 0 failed" in second.stderr
        assert (
            "1 not recorded: OpenAIInvalidRequestError: Error code: 400"
            in second.stderr
        )
        plain = apart(
            *map(str, command(tmp_path, server, "plain.jsonl", "--shard", "1/1"))
        )
    assert plain.returncode == 1, plain.stderr
    assert by_id(tmp_path / "ray.jsonl") == by_id(tmp_path / "plain.jsonl")
    assert len(by_id(tmp_path / "ray.jsonl")) == 11
