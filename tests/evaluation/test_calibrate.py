"""From recordings to a calibration: the promise, bad input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from snne_guard.decision import Calibration, Threshold
from snne_guard.errors import (
    ConfigurationError,
    InputError,
    MissingExtraError,
    ScoringError,
)
from snne_guard.evaluation import Recording, calibrate, run_calibration
from snne_guard.evaluation.calibrating.calibrate import counted
from snne_guard.evaluation.calibrating.promise import Promise
from snne_guard.scorers import Combination, score
from snne_guard.types import FloatArray
from tests.cli.lines import write
from tests.support.calibrating import asked, recordings, rows

ROWS = recordings(300)
TEN = Promise(error_rate=0.15)


def test_the_threshold_is_that_of_the_scores_and_labels() -> None:
    run = run_calibration(ROWS, TEN)
    u = [
        score(
            (row.main_answer, *row.samples), method="snne", question=row.question
        ).uncertainty
        for row in ROWS
    ]
    correct = np.array([row.label for row in ROWS], dtype=np.float64)
    expected = Threshold.for_error_rate(
        np.array(u, float), correct, alpha=0.15, method="snne"
    )
    assert run.calibration.threshold == expected
    assert expected.certified
    assert run.uncertainty.tolist() == u
    assert run.calibration.reference == tuple(u)  # what a monitor compares with
    assert run.correct.tolist() == correct.tolist()
    assert run.calibration.probability[5].n_labels == 300
    assert run.graders == {"label": 300}
    assert run.warnings == ()
    assert calibrate(ROWS, error_rate=0.15).threshold == expected


def test_how_far_it_is_can_be_watched() -> None:
    told: list[tuple[int, int]] = []

    def on_progress(done: int, total: int) -> None:
        told.append((done, total))

    calibrate(ROWS[:30], joint_error=0.2, on_progress=on_progress)
    assert told == [(done, 30) for done in range(1, 31)]


@pytest.mark.parametrize("kind", ["joint_error", "false_refusal", "coverage"])
def test_other_promises(kind: str) -> None:
    made = run_calibration(ROWS, Promise(**{kind: 0.2})).calibration
    assert (made.threshold.kind, made.threshold.level) == (kind, 0.2)
    assert made.threshold.certified
    assert made.refuse is None


def test_two_thresholds() -> None:
    made = calibrate(ROWS, error_rate=0.15, false_refusal=0.05)
    assert made.refuse is not None
    assert made.refuse.kind == "false_refusal"
    assert made.threshold.value <= made.refuse.value
    # One that nothing is promised of refuses nothing.
    assert calibrate(ROWS[:60], error_rate=0.3, false_refusal=0.01).refuse is None


def test_a_coverage_needs_no_labels() -> None:
    bare = recordings(50, label=None)
    run = run_calibration(bare, Promise(coverage=0.6))
    assert run.calibration.threshold.certified
    assert (run.calibration.labels, len(run.correct), run.exploration) == (None, 0, ())
    assert len(run.uncertainty) == 50
    assert run_calibration(ROWS, Promise(coverage=0.6)).exploration


def test_grades_of_some_answers_are_nothing_to_a_coverage() -> None:
    some = [*recordings(30), *recordings(30, seed=4, label=None)]
    run = run_calibration(some, Promise(coverage=0.5))
    assert (run.calibration.labels, run.graders, run.warnings) == (None, {}, ())
    assert run.calibration.threshold.n_labels == 60


def test_what_can_never_be_accepted_counts_as_such() -> None:
    odd = [
        asked("empty", samples=["a"] * 3 + [""]),
        asked(
            "cut",
            samples=["a"] * 4,
            drawn={"finish_reasons": [*["stop"] * 4, "length"]},
        ),
        asked("refused", samples=["a"] * 4, drawn={"kinds": ["refused", *[None] * 4]}),
    ]
    fields = {"label": 1, "settings": {"model": "openai:m", "temperature": 1.0}}
    odd = [
        Recording.from_dict(
            {
                "id": row.id,
                "question": row.question,
                "main_answer": "a",
                "samples": list(row.samples),
                **row.extra,
                **fields,
            }
        )
        for row in odd
    ]
    run = run_calibration([*ROWS, *odd], TEN)
    assert np.isinf(run.uncertainty[-3:]).all()
    assert run.unacceptable == {
        "empty_samples": 1,
        "truncated_samples": 1,
        "answer_refused": 1,
    }
    assert run.calibration.threshold.n_labels == 303
    assert len(run.calibration.reference) == 300


def test_log_probabilities_settle_auto() -> None:
    known = {"main_logprobs": [-0.1], "token_logprobs": [[-0.2]] * 4}
    assert calibrate(ROWS, error_rate=0.15, method="auto").settings["method"] == "snne"
    white = recordings(300, **known)
    made = calibrate(white, error_rate=0.15, method="auto")
    assert made.settings["method"] == made.threshold.method == "wsnne"


def test_a_method_that_lacks_what_it_needs() -> None:
    told = (
        "no recording could be scored as a guard would score it: logprobs_missing 300"
    )
    with pytest.raises(InputError, match=told):
        calibrate(ROWS, error_rate=0.15, method="wsnne")
    # What nothing stands in for is no failure of the similarity either.
    with pytest.raises(InputError, match=f"{told}, scoring_failed 300"):
        calibrate(ROWS, error_rate=0.15, method="mean_sequence_probability")


def test_a_similarity_that_fails_ends_it() -> None:
    # Its answers would be missing for another reason than their u.
    def broken(answers: Sequence[str], *, question: str | None = None) -> FloatArray:
        if "b9" in answers:
            msg = f"a secret of {question}"
            raise ValueError(msg)
        return np.eye(len(answers))

    rows_ = [replace(row, samples=("b9", *row.samples[1:])) for row in ROWS[:20]]
    told = f"{rows_[0].id!r} could not be scored: the similarity or the method raised"
    with pytest.raises(ScoringError, match=f"{told} ValueError") as caught:
        calibrate(rows_, error_rate=0.3, similarity=broken)
    assert "secret" not in str(caught.value)

    def lacking(answers: Sequence[str], *, question: str | None = None) -> FloatArray:
        package = f"what reads {len(answers)} answers to {question}"
        raise MissingExtraError(package, extra="transformers")

    with pytest.raises(MissingExtraError):
        calibrate(rows_, error_rate=0.3, similarity=lacking)


def test_a_combination_is_learnt_from_one_half_and_certified_on_the_other() -> None:
    run = run_calibration(ROWS, TEN, method="calibrated")
    made = run.calibration
    assert made.combination is not None
    method = Combination.from_dict(made.combination)
    assert made.settings["method"] == made.threshold.method == method.name
    assert (run.n_fitted, method.n_labels, made.threshold.n_labels) == (150, 150, 150)
    # Other labels of what it is certified on change nothing of what was learnt.
    tested = set(run.ids)
    assert len(tested) == 150
    turned = [
        Recording.from_dict({**_fields(row), "label": int(row.id > "s3q2")})
        if row.id in tested
        else row
        for row in ROWS
    ]
    other = run_calibration(turned, TEN, method="calibrated").calibration
    assert other.combination == made.combination
    assert other.threshold != made.threshold
    # And those that it is learnt from are not among what it is certified on.
    fitted = [row for row in ROWS if row.id not in tested]
    wrong = [Recording.from_dict({**_fields(row), "label": 0}) for row in fitted[:75]]
    kept = [row for row in ROWS if row not in fitted[:75]]
    third = run_calibration([*wrong, *kept], TEN, method="calibrated")
    assert set(third.ids) == tested
    assert third.calibration.combination != made.combination


def _fields(row: Recording) -> dict[str, Any]:
    return next(fields for fields in rows(300) if fields["id"] == row.id)


def test_incomplete_sets_teach_a_combination_nothing() -> None:
    some = [Recording.from_dict({**_fields(r), "samples": [""] * 4}) for r in ROWS[:40]]
    run = run_calibration([*some, *ROWS[40:]], TEN, method="calibrated")
    assert run.calibration.combination is not None
    assert run.n_fitted == 150
    assert run.calibration.combination["n_labels"] < 150


def test_a_pilot_says_where_the_tests_start() -> None:
    pilot = recordings(200, seed=9, label=None)
    run = run_calibration(ROWS, TEN, pilot=pilot)
    assert run.n_pilot == 200
    assert run.calibration.threshold.sequence == "pilot"


def test_a_pilot_that_is_none() -> None:
    with pytest.raises(
        InputError, match="of other questions; 300 of its ids are among"
    ):
        run_calibration(ROWS, TEN, pilot=ROWS)
    with pytest.raises(InputError, match="recordings in the pilot, got none"):
        run_calibration(ROWS, TEN, pilot=[])
    other = recordings(20, seed=9, settings={"model": "k"})
    with pytest.raises(
        InputError, match=r'they differ in model: "k" \(20\), "openai:m"'
    ):
        run_calibration(ROWS, TEN, pilot=other)
    with pytest.raises(
        ConfigurationError, match="pilot is for error_rate; joint_error"
    ):
        run_calibration(ROWS, Promise(joint_error=0.1), pilot=recordings(20, seed=9))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "got none"),
        ({"error_rate": 0.1, "coverage": 0.5}, "got error_rate and coverage"),
        ({"error_rate": 0.0}, "error_rate must be above 0 and below 1"),
        ({"coverage": 1.0}, "coverage must be above 0 and below 1"),
        ({"error_rate": 0.1, "delta": 1.0}, "delta must be above 0 and below 1"),
    ],
)
def test_promises_that_are_none(given: dict[str, float], told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        Promise(**given)


def test_labels_that_can_promise_nothing() -> None:
    with pytest.raises(InputError, match="make a calibration of, got none"):
        calibrate([], error_rate=0.1)
    with pytest.raises(InputError, match="at least 10 graded answers, got 0 among 20"):
        calibrate(recordings(20, label=None), error_rate=0.1)
    with pytest.raises(InputError, match="at least 10 graded answers, got 9 among 9"):
        calibrate(ROWS[:9], error_rate=0.1)
    for label in (0, 1):
        with pytest.raises(
            InputError, match="of both kinds, correct and wrong; all 100"
        ):
            calibrate(recordings(100, label=label), error_rate=0.1)


def test_too_few_labels_and_ones_that_do_not_allow_it() -> None:
    few = calibrate(ROWS[:15], error_rate=0.1).threshold
    assert (few.status, few.value) == ("too_few_labels", -1.0)
    hard = calibrate(ROWS, error_rate=0.01).threshold
    assert (hard.status, hard.value) == ("infeasible", -1.0)


def test_settings_that_differ_are_refused() -> None:
    mixed = [*ROWS[:20], *recordings(20, seed=4, settings={"model": "k"})]
    with pytest.raises(InputError, match="they differ in model"):
        calibrate(mixed, error_rate=0.1)
    with pytest.raises(
        InputError, match="at least 9 samples of each question; 300 have"
    ):
        calibrate(ROWS, error_rate=0.1, n=10)
    with pytest.raises(
        ConfigurationError, match="n must be a whole number of at least 2"
    ):
        calibrate(ROWS, error_rate=0.1, n=1)


def test_what_a_reader_must_know_is_said() -> None:
    some = [
        Recording.from_dict({**fields, "label": None if n % 2 else fields["label"]})
        for n, fields in enumerate(
            rows(120, drawn={"models": ["m-1", "m-2"]}, settings=None, question="Who?")
        )
    ]
    run = run_calibration(some, Promise(error_rate=0.3))
    told = " ".join(run.warnings)
    for part in (
        "60 of the recordings have no label and nobody says how the others were picked",
        "59 questions were asked before",
        "do not say which model answered",
        "several names of models (m-1, m-2)",
    ):
        assert part in told
    by_program = run_calibration(some, Promise(error_rate=0.3), grader="squad_em")
    assert "grades of a program (squad_em 60)" in " ".join(by_program.warnings)
    assert (run.n_read, run.ungraded, by_program.ungraded) == (120, 60, 0)


def test_answers_that_were_taken_from_their_samples_are_told() -> None:
    taken = [
        Recording.from_dict({**fields, "main_answer": fields["samples"][0]})
        for fields in rows(100, seed=5)
    ]
    [told] = run_calibration(taken, Promise(error_rate=0.3)).warnings
    assert "main_answer seems to be sample 0" in told


def test_tries_are_counted_by_labels(tmp_path: Path) -> None:
    first = calibrate(ROWS, error_rate=0.15)
    again = calibrate(ROWS, error_rate=0.15)
    assert counted(first, None).tries == 1
    assert counted(again, first).tries == 1
    second = counted(calibrate(ROWS, error_rate=0.2), first)
    third = counted(calibrate(ROWS, error_rate=0.2, similarity="rouge_l"), second)
    assert (second.tries, third.tries) == (2, 3)
    third.save(tmp_path / "guard.json")
    assert Calibration.load(tmp_path / "guard.json").tries == 3
    # The same again is no other try, and other labels are other evidence.
    assert counted(calibrate(ROWS, error_rate=0.2), second).tries == 2
    assert counted(calibrate(ROWS[:200], error_rate=0.2), second).tries == 1


def test_several_files_are_one_set(tmp_path: Path) -> None:
    paths = [
        write(tmp_path / "1.jsonl", *rows(300)[:150]),
        write(tmp_path / "2.jsonl", *rows(300)[150:]),
    ]
    made = calibrate(paths, error_rate=0.15)
    assert made.threshold == calibrate(ROWS, error_rate=0.15).threshold
    assert calibrate(paths[0], error_rate=0.3).threshold.n_labels == 150
