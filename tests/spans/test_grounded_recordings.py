"""Grounding in calibrations, evaluations and commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from snne_guard import SNNEGuard
from snne_guard.decision import Calibration
from snne_guard.errors import ConfigurationError
from snne_guard.evaluation import Recording, evaluate
from snne_guard.evaluation.calibrating import calibrate
from tests.cli.support import run as command
from tests.langchain.support import (
    chat_openai,
    guarded,
    metadata_of,
)
from tests.support.calibrations import calibration
from tests.support.openai_server import Answer, Asked, Server, always

ANSWER = "It is oak. Ida made it."
HALF, WHOLE = "The lamp: it is oak.", f"The lamp: {ANSWER}"


# -- Calibrations and recordings -------------------------------------------------------

RIGHT = {"main_answer": "It is oak.", "samples": ["It is oak."] * 2, "label": 1}
WRONG = {"main_answer": "Ida made it.", "samples": ["Ida made it."] * 2, "label": 0}


def rows(n: int = 120, **fields: Any) -> list[Recording]:
    """Every third answer is wrong, and only the documents show it."""
    known = {"question": "x?", "context": HALF, "settings": {"model": "m"}, **fields}
    return [
        Recording.from_dict({"id": str(i), **known, **(RIGHT if i % 3 else WRONG)})
        for i in range(n)
    ]


def test_a_threshold_is_certified_among_grounded_answers(tmp_path: Path) -> None:
    alone = calibrate(rows(), error_rate=0.1).calibration
    assert alone.threshold.status == "infeasible"
    result = calibrate(rows(), error_rate=0.1, min_grounded=0.5)
    made = result.calibration
    assert (made.threshold.status, made.threshold.n_accepted) == ("certified", 80)
    assert result.unscored == {"ungrounded": 40}
    bound = {"min_grounded": 0.5, "grounding": "words", "context_from": "function"}
    assert bound.items() <= made.settings.items()
    made.save(tmp_path / "guard.json")
    assert Calibration.load(tmp_path / "guard.json") == made
    nowhere = calibrate(rows(context=None), coverage=0.5).calibration
    assert nowhere.settings.get("min_grounded") is None


def test_a_recording_without_documents_is_never_accepted() -> None:
    mixed = [*rows(60), *rows(3, context=None, id="x")]
    named = [
        Recording.from_dict({**row.to_dict(), "id": str(place)})
        for place, row in enumerate(mixed)
    ]
    result = calibrate(named, error_rate=0.2, min_grounded=0.5)
    assert result.unscored == {"ungrounded": 23}
    with pytest.raises(ConfigurationError, match="asks the model, which a recording"):
        calibrate(rows(), error_rate=0.1, min_grounded=0.5, grounding="judge")
    with pytest.raises(ConfigurationError, match="context_from to be one of"):
        calibrate(rows(), error_rate=0.1, min_grounded=0.5, context_from="here")


@pytest.mark.parametrize(
    ("options", "differs"),
    [
        ({}, None),
        ({"min_grounded": 0.5, "grounding": "words"}, None),
        ({"min_grounded": 0.4}, "min_grounded"),
        ({"grounding": "judge"}, "grounding"),
        ({"context": WHOLE}, "context_from"),
        ({"context": "client"}, "context_from"),
        ({"context": "tool_messages"}, "context_from"),
    ],
)
def test_a_calibration_is_bound_to_what_grounds(options: Any, differs: Any) -> None:
    settings = {"min_grounded": 0.5, "grounding": "words", "context_from": "function"}
    made = calibration(model="test-model", **settings)
    given = {"calibration": made, "context": lambda _: WHOLE, **options}
    with Server(always(ANSWER)) as server:
        if differs is not None:
            with pytest.raises(ConfigurationError, match=differs):
                guarded(server, **given)
            return
        guard = guarded(server, **given)
        record = metadata_of(guard.invoke("x?"))
        assert (record["min_grounded"], record["decision"]) == (0.5, "accept")
        # What comes with a call comes from elsewhere.
        config: Any = {"metadata": {"snne_guard_context": WHOLE}}
        other = metadata_of(guard.invoke("x?", config))
    assert (other["grounded"], other["decision"]) == (1.0, "flag")
    assert "uncalibrated" in other["reasons"]


def test_nothing_is_guaranteed_of_an_answer_that_is_not_grounded() -> None:
    settings = {"min_grounded": 0.5, "grounding": "words", "context_from": "function"}
    made = calibration(model="test-model", **settings)
    with Server(always(ANSWER)) as server:
        for context, certified in ((WHOLE, True), (HALF, False)):
            guard = guarded(server, calibration=made, context=lambda _, c=context: c)
            record = metadata_of(guard.invoke("x?"))
            assert record["certified"] is certified
            assert (record["p_wrong"] is not None) is certified


def test_a_calibration_without_documents_takes_none() -> None:
    with Server(always(ANSWER)) as server, pytest.raises(ConfigurationError):
        made = calibration(model="test-model")
        guarded(server, calibration=made, context=WHOLE, min_grounded=0.5)


def test_grounding_is_ranked_beside_agreement() -> None:
    found = evaluate(rows(30), methods=["snne"], resamples=20)
    first, _, alone, pair = found.rows
    assert [each.name for each in (alone, pair)] == [
        "grounded",
        f"{first.name} and grounded",
    ]
    assert first.metrics["auroc"].value == 0.5
    assert alone.metrics["auroc"].value == pair.metrics["auroc"].value == 1.0
    assert alone.differences["auroc"].value == 0.5
    missing = evaluate([*rows(29), rows(1, context=None, id="z")[0]], resamples=5)
    assert not [row for row in missing.rows if "grounded" in row.name]


def test_labelled_sentences_are_ranked_by_documents_too() -> None:
    labelled = {"sentences": ["It is oak.", "Ida made it."], "sentence_labels": [1, 0]}
    row = {**labelled, "main_answer": ANSWER, "samples": [ANSWER] * 2, "label": 0}
    known = {"question": "x?", "context": HALF}
    both = [
        Recording.from_dict({"id": str(i), **known, **row, "label": i}) for i in (0, 1)
    ]
    found = evaluate(both, methods=["snne"], resamples=5).sentences
    assert found is not None
    assert (found.auroc, found.grounded) == (0.5, 1.0)
    bare = [Recording.from_dict({**each.to_dict(), "context": None}) for each in both]
    without = evaluate(bare, methods=["snne"], resamples=5).sentences
    assert without is not None
    assert without.grounded is None


# -- The command line ------------------------------------------------------------------


def test_ask_answers_from_a_file_and_shows_both_numbers(tmp_path: Path) -> None:
    def script(asked: Asked) -> Answer:
        assert HALF in asked.body["messages"][0]["content"]
        return Answer(texts=[ANSWER] * asked.n)

    file = tmp_path / "lamp.txt"
    file.write_text(HALF)
    with Server(script) as server:
        at = ("--model", "openai:test-model", "--base-url", server.url)
        found = command("ask", "x?", *at, "--context", file)
        told = command("ask", "x?", *at, "--context", file, "--json")
    assert found.exit_code == 0, found.output
    lines = [" ".join(line.split()) for line in found.output.splitlines()]
    assert "Sentences u said by grounded" in lines
    assert "0.00 4 0.25 Ida made it." in lines
    assert "Grounded 0.25 in its documents" in lines
    assert json.loads(told.stdout)["snne_guard"]["grounded"] == 0.25
    assert command("ask", "x?", "--context", tmp_path / "none.txt").exit_code == 2


def test_calibrate_declares_the_limit(tmp_path: Path) -> None:
    recording, out = tmp_path / "r.jsonl", tmp_path / "guard.json"
    lines = [json.dumps(row.to_dict()) for row in rows()]
    recording.write_text("\n".join(lines))
    found = command(
        *("calibrate", recording, "--out", out, "--error-rate", "0.1"),
        *("--min-grounded", "0.5", "--context-from", "tool_messages"),
    )
    assert found.exit_code == 0, found.output
    assert "40 of 120 answers can never be accepted: ungrounded" in found.output
    made = Calibration.load(out).guard_options()
    assert (made["min_grounded"], made["grounding"]) == (0.5, "words")
    with Server(always(ANSWER)) as server:
        model = chat_openai(server, model="m")
        guard = SNNEGuard(model, calibration=out, context="tool_messages")
        assert guard.settings.policy.min_grounded == 0.5


@pytest.mark.parametrize("source", ["function", "client"])
def test_drift_compares_with_the_same_limit(tmp_path: Path, source: str) -> None:
    recording, out = tmp_path / "r.jsonl", tmp_path / "guard.json"
    recording.write_text("\n".join(json.dumps(row.to_dict()) for row in rows()))
    options = ("--min-grounded", "0.5", "--context-from", source)
    command("calibrate", recording, "--out", out, "--error-rate", "0.1", *options)
    found = command("drift", out, recording)
    assert found.exit_code == 0, found.output
    assert "40 answers without a score were left out" in found.output
