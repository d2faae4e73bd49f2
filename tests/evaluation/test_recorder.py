"""Recordings are drawn once, whatever ends a run."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from snne_guard.cost import Cost
from snne_guard.engine.reply_set import reply_set_of
from snne_guard.errors import ConfigurationError, InputError
from snne_guard.evaluation.recorded_calls import recorded_replies
from snne_guard.evaluation.recorder import RecordingRun, record
from snne_guard.evaluation.recordings import Question, read_recordings
from snne_guard.types import Assessment, Reply

SETTINGS = {"model": "m", "temperature": 1.0}


def question(number: int, **fields: Any) -> Question:
    return Question.from_dict({"id": str(number), "question": f"{number}?", **fields})


def drawn(text: str, samples: int = 2) -> Assessment:
    one = Reply(
        text=text,
        token_logprobs=(-0.5,),
        tokens=(text,),
        finish_reason="stop",
        model="m",
    )
    cost = Cost(calls=1, prompt_tokens=3, completion_tokens=1, money=0.0)
    return Assessment(id="a", answer=one, samples=(one,) * samples, cost=cost)


async def ask(asked: Question) -> Assessment:
    return drawn(f"answer {asked.id}")


def run(
    path: Path,
    numbers: range,
    asking: Callable[..., Any] = ask,
    *,
    settings: Any = None,
    max_concurrency: int = 4,
    **options: Any,
) -> RecordingRun:
    made = RecordingRun(
        path,
        map(question, numbers),
        settings=settings or SETTINGS,
        n_samples=2,
        **options,
    )
    with made:
        asyncio.run(record(made, asking, max_concurrency=max_concurrency))
    return made


def test_a_line_has_what_methods_and_calibrations_need(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    old = {"samples": ["old"], "sentences": ["old"], "p_true_logprob": -0.1}
    asked = question(1, answers=["x"], context="c", mine=7, **old)
    with RecordingRun(path, [asked], settings=SETTINGS, n_samples=2) as made:
        asyncio.run(record(made, ask))
    [row] = read_recordings(path)
    assert (row.main_answer, row.samples) == ("answer 1", ("answer 1",) * 2)
    assert (row.answers, row.context, row.settings) == (("x",), "c", SETTINGS)
    assert (row.main_logprobs, row.token_logprobs) == ((-0.5,), ((-0.5,), (-0.5,)))
    assert row.extra.keys() == {"mine", "main_tokens", "tokens", "drawn"}
    assert row.extra["drawn"]["models"] == ["m"]
    assert row.extra["drawn"]["kinds"] == [None, None, None]


def test_a_recorded_reply_with_text_and_calls_is_compared_as_the_drawn_one(
    tmp_path: Path,
) -> None:
    pay = '[{"name": "pay", "args": {"euros": 5}}]'
    answer = Reply(text="I pay.", tool_calls=pay, finish_reason="tool_calls")
    samples = (
        replace(answer, text="I should not pay."),
        replace(answer, text=""),
    )

    async def calling(asked: Question) -> Assessment:
        return replace(await ask(asked), answer=answer, samples=samples)

    run(tmp_path / "r.jsonl", range(1), calling)
    [row] = read_recordings(tmp_path / "r.jsonl")
    read = reply_set_of(*recorded_replies(row), include_answer=True)
    assert read.texts == reply_set_of(answer, samples, include_answer=True).texts
    assert len(set(read.texts)) == 3
    assert read.has_tool_calls


@pytest.mark.parametrize(
    ("reasons", "p"), [((), 0.25), (("self_check_unknown",), None)]
)
def test_a_line_has_the_self_check(
    tmp_path: Path, reasons: tuple[str, ...], p: float | None
) -> None:
    async def checked(asked: Question) -> Assessment:
        return replace(await ask(asked), self_check=0.25, reasons=reasons)

    run(tmp_path / "r.jsonl", range(1), checked)
    [row] = read_recordings(tmp_path / "r.jsonl")
    assert row.self_check == p


def test_a_second_run_draws_only_what_is_new(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    first = run(path, range(3))
    second = run(path, range(5))
    assert (first.recorded, second.recorded, second.known) == (3, 2, 3)
    assert first.cost.prompt_tokens == 9
    assert sorted(row.id for row in read_recordings(path)) == list("01234")


def test_what_fails_is_kept_aside_with_what_was_drawn(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"

    async def failing(asked: Question) -> Assessment:
        if asked.id == "0":
            raise ValueError("no")
        if asked.id == "3":
            return replace(drawn("none"), answer=None)
        return drawn("short", samples=1 if asked.id == "1" else 2)

    tally = run(path, range(4), failing)
    assert (tally.recorded, tally.failed, tally.stopped) == (1, 3, None)
    failed = tmp_path / "r.failed.jsonl"
    rows = {row["id"]: row for row in map(json.loads, failed.read_text().splitlines())}
    assert rows["0"]["error"] == "ValueError: no"
    assert rows["1"]["samples"] == ["short"]
    assert run(path, range(4)).recorded == 0  # passed over
    again = run(path, range(4), retry_failed=True)
    assert again.recorded == 3
    assert not again.failures()


def test_a_key_that_a_provider_echoes_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_API_KEY", "very-secret-value")

    async def failing(asked: Question) -> Assessment:
        # A key that is cut off could not be recognised.
        end = "x" * 920 + "very-secret-value"
        raise ValueError(f"bad key sk-abcdefgh12345678, or very-secret-value {end}")

    run(tmp_path / "r.jsonl", range(1), failing)
    failures = (tmp_path / "r.failed.jsonl").read_text()
    assert "ValueError: bad key ***, or ***" in failures
    assert "very-secret" not in failures


def test_a_run_stops_where_the_provider_is_down(tmp_path: Path) -> None:
    async def down(asked: Question) -> Assessment:
        raise ConnectionError("refused")

    tally = run(tmp_path / "r.jsonl", range(100), down, max_concurrency=2)
    assert tally.stopped == "5 questions failed in a row: ConnectionError: refused"
    assert tally.failed < 10


def test_other_settings_are_refused_and_named(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    run(path, range(1))
    with pytest.raises(ConfigurationError, match=r"temperature was 1\.0, here it is 2"):
        run(path, range(2), settings={"model": "m", "temperature": 2})


def test_a_file_that_is_no_recording_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("dear diary\nand more")
    with pytest.raises(InputError, match=r"notes\.txt, line 1"):
        run(path, range(1))
    assert path.read_text() == "dear diary\nand more"


_SLOWLY = """
import asyncio, sys
from tests.evaluation.test_recorder import SETTINGS, drawn, question
from snne_guard.evaluation.recorder import RecordingRun, record

async def ask(asked):
    await asyncio.sleep(0.02)
    return drawn("x" * 2000)

asked = map(question, range(500))
with RecordingRun(sys.argv[1], asked, settings=SETTINGS, n_samples=2) as run:
    asyncio.run(record(run, ask))
"""


def test_a_killed_run_goes_on_and_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    command = [sys.executable, "-c", _SLOWLY, str(path)]
    process = subprocess.Popen(command)  # noqa: S603 - our own program
    until = time.monotonic() + 60
    while not path.exists() or path.stat().st_size < 50_000:
        assert time.monotonic() < until
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    paid = {json.loads(line)["id"] for line in path.read_bytes().splitlines()[:-1]}
    asked: list[str] = []

    async def counting(one: Question) -> Assessment:
        asked.append(one.id)
        return drawn("x")

    tally = run(path, range(500), counting)
    assert not paid & set(asked)
    assert tally.known + tally.recorded == 500
    assert len(list(read_recordings(path))) == 500


def test_a_file_that_cannot_be_written_ends_the_run_with_its_own_error(
    tmp_path: Path,
) -> None:
    async def failing(asked: Question) -> Assessment:
        (tmp_path / "r.failed.jsonl").mkdir()
        raise ValueError(asked.id)

    with pytest.raises(IsADirectoryError):
        run(tmp_path / "r.jsonl", range(1), failing)
