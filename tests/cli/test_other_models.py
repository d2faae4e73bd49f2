"""The commands with other models: on a scripted server, from questions to a guard."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from snne_guard.decision import Calibration
from snne_guard.self_check import SelfCheck
from tests.cli.support import apart, record_command, run
from tests.evaluation.support import write_jsonl
from tests.support.openai_server import Answer, Asked, Server

OTHERS = ("--other-model", "openai:other-model")
MAX = ("--max-tokens", "10")


def script(asked: Asked) -> Answer:
    """Answer Paris to even questions; the other model always says Paris."""
    *_, last = asked.body["messages"]
    name = asked.body["model"]
    if last["content"] == SelfCheck(form="number").prompt:
        return Answer(texts=["about 80"], logprobs=False)
    right = name == "other-model" or int(last["content"].split("?")[0]) % 2 == 0
    return Answer(texts=["Paris" if right else "Rome"], model=f"{name}-1")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with Server(script) as server:
        yield server


def recording(folder: Path, server: Server, *more: object, n: int = 4) -> list[str]:
    at = ("--other-base-url", server.url)
    return record_command(folder, server.url, *OTHERS, *at, *more, n=n)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_recording_has_a_sample_of_the_other_model(
    tmp_path: Path, server: Server
) -> None:
    result = run(*recording(tmp_path, server))
    assert result.exit_code == 0, result.output
    first = min(lines(tmp_path / "r.jsonl"), key=lambda row: str(row["id"]))
    assert first["sample_models"] == [None] * 4 + ["other-model"]
    assert first["settings"]["other_models"] == ["other-model"]
    assert first["settings"]["samples"] == 4
    assert first["drawn"]["models"] == ["test-model-1"]
    assert first["drawn"]["other_models"] == {"other-model": ["other-model-1"]}
    (asked,) = [r for r in first["drawn"]["requests"] if r["other_model"]]
    assert (asked["role"], asked["replies"]) == ("sample", 1)
    others = [r.body for r in server.requests if r.body["model"] == "other-model"]
    assert len(others) == 4
    assert all("temperature" not in body for body in others)


def test_from_questions_to_a_calibration(tmp_path: Path, server: Server) -> None:
    check = ("--self-check", "--self-check-form", "number")
    made = run(*recording(tmp_path, server, *check, "--retry-failed", n=48))
    assert made.exit_code == 0, made.output
    path, out = tmp_path / "r.jsonl", tmp_path / "guard.json"
    money = ("--prices", 1, 4, 0.5, "--other-prices", "other-model=0.1,0.4,0.05")
    options = ("--methods", "snne", "--resamples", 9, "--grader", "contains")
    found = run("evaluate", path, *options, "--calls", 3, *money)
    assert found.exit_code == 0, found.output
    # The guarded model repeats its errors; the other one makes none.
    assert "Best at 3 calls: plain + other-model with 3 calls" in found.stdout
    assert "+0.500 (+0.500 to +0.500) over plain" in found.stdout
    assert "Take plain + other-model." in found.stdout
    assert "over own" in found.stdout
    scored = run("score", path, "--method", "snne")
    assert "mean u       0.0000" in scored.stdout
    grading = ("--grader", "contains", "--error-rate", 0.3, "--out", out)
    done = run("calibrate", path, *grading, *check)
    assert done.exit_code == 0, done.output
    calibration = Calibration.load(out)
    assert calibration.settings["other_models"] == ["other-model"]
    assert calibration.settings["n"] == 7
    assert dict(calibration.other_reply_models) == {"other-model": ("other-model-1",)}
    same = run("drift", out, path)
    assert same.exit_code == 0, same.output
    alone = run("calibrate", path, *grading, "--other-models", "")
    assert "other_models" not in Calibration.load(out).settings, alone.output
    unknown = run("calibrate", path, *grading, "--other-models", "b")
    assert unknown.exit_code == 2
    assert "expected other models among other-model, got b" in unknown.stderr


def test_a_question_whose_other_model_fails_is_kept_aside(
    tmp_path: Path, server: Server
) -> None:
    down = True

    def failing(asked: Asked) -> Answer:
        if down and asked.body["model"] == "other-model":
            return Answer(status=401)
        return script(asked)

    server.script = failing
    first = run(*recording(tmp_path, server))
    assert first.exit_code == 1
    assert "4 not recorded: the answer or samples are missing" in first.stderr
    down = False
    again = apart(*recording(tmp_path, server, "--retry-failed"))
    assert again.returncode == 0, again.stderr
    assert len(lines(tmp_path / "r.jsonl")) == 4


def test_a_dry_run_counts_the_other_model(tmp_path: Path, server: Server) -> None:
    prices = (*MAX, "--prices", 1, 4, 0.5)
    own = run(*record_command(tmp_path, server.url, "--dry-run", *prices, n=8)).stdout
    both = run(*recording(tmp_path, server, "--dry-run", *prices, n=8)).stdout
    assert "requests          16 (2 per question)" in own
    assert "requests          24 (3 per question)" in both
    assert "--other-prices of each" in both
    other = ("--other-prices", "other-model=100,400")
    priced = run(*recording(tmp_path, server, "--dry-run", *prices, *other, n=8))
    # 8 prompts of a token and 8 replies of at most 10 tokens are added.
    assert "output tokens     at most 480" in priced.stdout
    money = 0.001616 + (8 * 100 + 80 * 400) / 1e6
    assert f"at most about {money:.6f}" in priced.stdout
    assert not server.requests


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (("--batch", "openai"), "--other-model does not work with --batch or --ray"),
        (("--ray", 1), "--other-model does not work with --batch or --ray"),
        (("--other-prices", "x"), "expected --other-prices as NAME=INPUT,OUTPUT"),
        (("--other-prices", "x=1"), "expected --other-prices"),
        (("--other-prices", "x=1,2,3,4"), "expected --other-prices"),
        (("--other-prices", "=1,2"), "expected --other-prices"),
        (("--other-prices", "x=1,y"), "expected --other-prices"),
        (("--other-model", "openai:test-model"), "other models than the guarded one"),
    ],
)
def test_what_does_not_go_together_is_told_first(
    tmp_path: Path, server: Server, more: tuple[object, ...], told: str
) -> None:
    result = run(*recording(tmp_path, server, *more))
    assert result.exit_code == 2
    assert told in result.stderr
    assert not server.requests


def test_two_recordings_are_joined_without_a_call(tmp_path: Path) -> None:
    mine, theirs = [], []
    for number in range(60):
        asked = {"id": str(number), "question": f"What is {number}?"}
        own = {"main_answer": "Paris", "samples": ["Paris"] * 4, "label": number % 2}
        mine.append({**asked, **own, "settings": {"model": "a"}})
        said = "Paris" if number % 2 else "Rome"
        rest = {"samples": [], "settings": {"model": "b"}}
        theirs.append({**asked, "main_answer": said, **rest})
    theirs[0]["question"] = "Something else?"
    a = write_jsonl(tmp_path / "a.jsonl", mine)
    b = write_jsonl(tmp_path / "b.jsonl", [*theirs, {**theirs[1], "id": "new"}])
    found = run("evaluate", a, "--other", b, "--methods", "snne", "--resamples", 9)
    assert found.exit_code == 0, found.output
    assert "59 of 59 questions" in found.stdout
    assert "b: its answers to 59 questions are joined; 1 here and 2 there" in (
        found.stdout
    )
    assert "Take plain + b." in found.stdout
    assert "recipe" not in run("evaluate", a, "--methods", "snne").stdout
    same = run("evaluate", a, "--other", a, "--methods", "snne")
    assert same.exit_code == 2
    assert "has replies of 'a' already" in same.stderr


@pytest.mark.parametrize(("said", "status"), [("Paris", "works"), ("Rom", "broken")])
def test_the_doctor_compares_the_words(server: Server, said: str, status: str) -> None:
    def of_both(asked: Asked) -> Answer:
        return Answer(texts=[said if asked.body["model"] == "other-model" else "Paris"])

    server.script = of_both
    at = ("--model", "openai:test-model", "--base-url", server.url)
    found = run("doctor", *at, *OTHERS, "--other-base-url", server.url)
    (line,) = [one for one in found.stdout.splitlines() if "other model" in one]
    assert status in line
    asked = [r.body for r in server.requests if r.body["model"] == "other-model"]
    assert len(asked) == 5


def test_it_is_said_where_no_other_model_helps(tmp_path: Path) -> None:
    rows = [
        {
            "id": str(number),
            "question": f"What is {number}?",
            "main_answer": "Paris",
            "samples": ["Paris" if number % 2 else "Rome"] * 4 + ["Oslo"],
            "sample_models": [None] * 4 + ["b"],
            "label": number % 2,
        }
        for number in range(60)
    ]
    path = write_jsonl(tmp_path / "r.jsonl", rows)
    found = run("evaluate", path, "--methods", "snne", "--resamples", 9)
    assert found.exit_code == 0, found.output
    assert "Keep plain samples: no gain is certain." in found.stdout
