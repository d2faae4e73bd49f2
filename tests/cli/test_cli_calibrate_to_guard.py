"""From questions to a running guard: what is calibrated is what the guard does."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from snne_guard import ConfigurationError, SNNEGuard
from snne_guard.cli import build_app
from snne_guard.decision import Calibration
from snne_guard.evaluation import Promise, run_calibration
from tests.cli.lines import write
from tests.cli.record_command import run_on
from tests.support.chat_server import ChatServer, Reply, Request, chat_openai
from tests.support.guarding import is_sample, record, split

N = 60


def word(request: Request) -> int:
    """Return the number of the question that is asked."""
    [*numbers] = re.findall(r"number (\d+)", request.prompt)
    return int(numbers[-1])


def texts_of(number: int) -> tuple[str, ...]:
    """Return the answer to a question, and its samples."""
    right = f"name{number}"
    kept = 4 if number % 5 else number % 3
    others = tuple(f"other{n} {number}" for n in range(4 - kept))
    return ("wrong" if number % 5 == 0 else right, *((right,) * kept), *others)


def answer(request: Request) -> Reply:
    return Reply(texts=texts_of(word(request))[:1])


def samples(request: Request) -> Reply:
    return Reply(texts=texts_of(word(request))[1:])


def test_the_guard_decides_as_the_calibration_says(tmp_path: Path) -> None:
    asked = [
        {
            "id": f"q{number}",
            "question": f"Who is number {number}?",
            "answers": [f"name{number}"],
            **({"context": "A list of names."} if number % 2 else {}),
        }
        for number in range(1, N + 1)
    ]
    questions = write(tmp_path / "questions.jsonl", *asked)
    recorded, out = tmp_path / "answers.jsonl", tmp_path / "guard.json"
    options = ["--samples", "4", "--prompt-version", "v1", "--max-concurrency", "8"]
    with ChatServer(split(answer, samples)) as server:
        assert run_on(server, questions, recorded, *options).exit_code == 0
        command = [str(recorded), "--error-rate", "0.2", "--grader", "squad_em"]
        result = CliRunner().invoke(
            build_app(), ["calibrate", *command, "--out", str(out)]
        )
        assert result.exit_code == 0, result.output
        made = Calibration.load(out)
        assert made.graders == {"squad_em": N}
        run = run_calibration(recorded, Promise(error_rate=0.2), grader="squad_em")
        known = dict(zip(run.ids, run.uncertainty.tolist(), strict=True))

        model = chat_openai(server, model="small")
        guard = SNNEGuard.from_calibration(model, out, prompt_version="v1")
        for number in (2, 3, 5, 10, 15):
            fields = asked[number - 1]
            prompt = str(fields["question"])
            if "context" in fields:
                prompt = f"Context: {fields['context']}\n\nQuestion: {prompt}"
            said = record(guard.invoke(prompt))
            assert said["uncertainty"] == known[f"q{number}"]
            assert said["certified"], said["reasons"]
            accepted = said["decision"] == "accept"
            assert accepted == (known[f"q{number}"] <= made.threshold.value)
            assert said["p_wrong"] == made.probability[5](said["uncertainty"])[0]
        assert guard.invoke("Who is number 3?").text == "name3"

        with pytest.raises(ConfigurationError, match="prompt_version was 'v1'"):
            SNNEGuard.from_calibration(model, out)
        with pytest.raises(ConfigurationError, match="model was 'openai:small'"):
            SNNEGuard.from_calibration(
                chat_openai(server, model="large"), out, prompt_version="v1"
            )
        assert any(map(is_sample, server.requests))


def test_a_plan_of_rounds_runs_as_it_was_certified(tmp_path: Path) -> None:
    """The guard stops where the plan says so, and accepts what was counted."""
    recorded = write(tmp_path / "answers.jsonl", *map(row, range(1, 401)))
    out = tmp_path / "guard.json"
    command = ["calibrate", str(recorded), "--error-rate", "0.2", "--rounds", "2,5"]
    result = CliRunner().invoke(build_app(), [*command, "--out", str(out)])
    assert result.exit_code == 0, result.output
    plan = Calibration.load(out).cascade
    assert plan is not None
    with ChatServer(split(answer, samples)) as server:
        guard = SNNEGuard.from_calibration(chat_openai(server, model="small"), out)
        for number in (2, 3, 5, 10):
            said = record(guard.invoke(f"Who is number {number}?"))
            limit = plan.accept_at_most[[2, 5].index(said["n_used"])]
            accepted = limit is not None and said["uncertainty"] <= limit
            assert (said["decision"] == "accept") == accepted
            assert said["certified"], said["reasons"]


def row(number: int) -> dict[str, Any]:
    """Return what a recording of a question holds."""
    return {
        "id": f"q{number}",
        "question": f"Who is number {number}?",
        "main_answer": texts_of(number)[0],
        "samples": list(texts_of(number)[1:]),
        "label": int(number % 5 > 0),
        "settings": {"model": "openai:small", "temperature": 1.0},
        "drawn": {"models": ["small"]},
    }
