"""Recordings with samples of other models: read, scored, calibrated and compared."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from snne_guard.cost import Cost, Prices, RequestCost
from snne_guard.errors import ConfigurationError, InputError
from snne_guard.evaluation import Recording, calibrate, evaluate
from snne_guard.evaluation.recipes import Recipe, RecipeComparison
from snne_guard.evaluation.recorded_calls import (
    OtherRecording,
    drawn_fields,
    recorded_replies,
)
from snne_guard.evaluation.replaying import score_recordings
from snne_guard.scorers import score
from snne_guard.self_check import SelfCheck
from snne_guard.settings import GuardSettings
from snne_guard.types import Assessment, Reply


def row(number: int = 0, **fields: Any) -> Recording:
    """Return a recording whose second sample is of the model ``b``."""
    known: dict[str, Any] = {
        "id": str(number),
        "question": f"What is {number}?",
        "main_answer": "Paris",
        "samples": ["Paris", "Rome", "Paris"],
        "sample_models": [None, "b", None],
        "settings": {"model": "a", "other_models": ["b"]},
    }
    return Recording.from_dict(known | fields)


def u(recording: Recording, *texts: str) -> float | None:
    return score([*texts], question=recording.question, method="snne").uncertainty


# -- Reading and writing ---------------------------------------------------------------


def test_a_round_trip_keeps_whose_samples_they_are() -> None:
    known = row().to_dict()
    assert known["sample_models"] == (None, "b", None)
    assert Recording.from_dict(json.loads(json.dumps(known))) == row()
    assert (row().own_places, row().other_models) == ((0, 2), ("b",))
    assert "sample_models" not in row(sample_models=None).to_dict()
    assert row(sample_models=None).own_places == (0, 1, 2)


@pytest.mark.parametrize(
    ("models", "told"),
    [
        ([None, "b"], "sample_models: expected one name for each of 3 samples, got 2"),
        ([], "expected one name for each of 3 samples, got 0"),
        (["b"] * 4, "got 4"),
        ([None, 5, None], "sample_models.1"),
        ([None, "", None], "sample_models.1"),
        ("b", "sample_models"),
    ],
)
def test_what_does_not_say_whose_samples_they_are_is_refused(
    models: Any, told: str
) -> None:
    with pytest.raises(InputError, match=told):
        row(sample_models=models)


def test_a_drawn_recording_says_whose_samples_and_names_they_are() -> None:
    own = Reply(text="Paris", model="a-1", finish_reason="stop")
    other = Reply(text="Rome", model="b-1", finish_reason="stop", other_model="b")
    requests = (
        RequestCost(role="answer", replies=1),
        RequestCost(role="sample", replies=1, other_model="b", prompt_tokens=7),
    )
    drawn = Assessment(
        id="x", answer=own, samples=(own, other), cost=Cost(), requests=requests
    )
    known = {"id": "1", "question": "?", **drawn_fields(drawn, settings={})}
    read = Recording.from_dict(json.loads(json.dumps(known)))
    assert read.sample_models == (None, "b")
    assert read.extra["drawn"]["models"] == ["a-1"]
    assert read.extra["drawn"]["other_models"] == {"b": ["b-1"]}
    assert read.extra["drawn"]["requests"][1]["other_model"] == "b"
    _, samples = recorded_replies(read)
    assert [sample.other_model for sample in samples] == [None, "b"]


def test_other_models_take_no_turn_among_the_views() -> None:
    settings = {"model": "a", "views": ["plain", "examples"], "other_models": ["b"]}
    _, samples = recorded_replies(row(settings=settings))
    assert [sample.view for sample in samples] == ["plain", None, "examples"]


# -- Scores of the guarded model alone -------------------------------------------------


def test_methods_leave_samples_of_others_out() -> None:
    answers = ["Paris", "Rome"] * 4
    rows = [
        row(n, main_answer=one, samples=["Paris", "Oslo", one], label=int(n % 3 > 0))
        for n, one in enumerate(answers)
    ]
    alone = [
        replace(one, samples=(one.samples[0], one.samples[2]), sample_models=None)
        for one in rows
    ]
    mixed = evaluate(rows, methods="snne", resamples=5)
    plain = evaluate(alone, methods="snne", resamples=5)
    name = "snne[content_f1]"
    assert mixed.n_samples == 2
    np.testing.assert_array_equal(mixed.uncertainties[name], plain.uncertainties[name])


# -- As a guard with other models ------------------------------------------------------


def test_a_guard_with_others_compares_their_samples() -> None:
    rows = [row(0), row(1, samples=["Paris", "Paris", "Paris"])]
    found = score_recordings(rows)
    # Those of other models come last.
    assert found.uncertainty[0] == u(rows[0], "Paris", "Paris", "Paris", "Rome")
    assert found.uncertainty[1] == 0.0
    assert (found.settings["n"], found.settings["other_models"]) == (4, ["b"])
    fewer = score_recordings(rows, n=3)
    assert fewer.uncertainty[0] == u(rows[0], "Paris", "Paris", "Rome")
    without = score_recordings(rows, other_models=[])
    assert without.uncertainty[0] == 0.0
    assert (without.settings["n"], "other_models" in without.settings) == (3, False)


def test_log_probabilities_do_not_settle_the_method_of_a_mixed_set() -> None:
    logprobs = {"main_logprobs": [-0.1], "token_logprobs": [[-0.2], None, [-0.3]]}
    rows = [row(0, **logprobs)]
    assert score_recordings(rows, method="auto").settings["method"] == "snne"
    own = score_recordings(rows, method="auto", other_models=[])
    assert own.settings["method"] == "wsnne"
    with pytest.raises(ConfigurationError, match="wsnne"):
        score_recordings(rows, method="wsnne")


def test_an_answer_without_the_others_sample_is_never_accepted() -> None:
    kept = {"drawn": {"kinds": [None, None, "refused", None]}}
    rows = [row(0), row(1, samples=["Paris"] * 3, sample_models=None), row(2, **kept)]
    found = score_recordings(rows)
    assert found.uncertainty[1:].tolist() == [np.inf, np.inf]
    assert found.unscored == {"other_model_failed": 2}


def test_unknown_other_models_are_refused() -> None:
    with pytest.raises(InputError, match="expected other models among b, got c"):
        score_recordings([row()], other_models=["c"])
    with pytest.raises(InputError, match="expected other models among none, got b"):
        score_recordings([row(sample_models=None)], other_models=["b"])


def test_a_calibration_is_bound_to_the_others_and_their_names() -> None:
    drawn = {"drawn": {"models": ["a-1"], "other_models": {"b": ["b-1"]}}}
    rows = [row(n, label=int(n > 0), **drawn) for n in range(60)]
    made = calibrate(rows, error_rate=0.2).calibration
    assert made.settings["other_models"] == ["b"]
    assert (made.reply_models, dict(made.other_reply_models)) == (
        ("a-1",),
        {"b": ("b-1",)},
    )
    options = {"calibration": made, **made.guard_options()}
    GuardSettings(**options, other_models=["b"]).check_calibration({"model": "a"})
    for others in ([], ["c"]):
        with pytest.raises(ConfigurationError, match="other_models"):
            guard = GuardSettings(**options, other_models=others)
            guard.check_calibration({"model": "a"})


# -- Recipes ---------------------------------------------------------------------------

PRICES = Prices(prompt=1e6, completion=2e6)
REQUESTS = [
    {"role": "answer", "replies": 1, "calls": 1, "prompt_tokens": 10,
     "completion_tokens": 2},
    {"role": "sample", "replies": 4, "calls": 1, "prompt_tokens": 10,
     "completion_tokens": 8},
    *[{"role": "sample", "other_model": name, "replies": 1, "calls": 1,
       "prompt_tokens": 20, "completion_tokens": 5} for name in ("b", "c")],
    {"role": "self_check", "replies": 1, "calls": 1, "prompt_tokens": 12,
     "completion_tokens": 1},
]  # fmt: skip


def answered(n: int = 90, *, good: str = "b", **fields: Any) -> list[Recording]:
    """Return questions that one of two other models answers rightly, always.

    The guarded model's samples say nothing of its errors, nor does the bad other.
    """
    rows: list[Recording] = []
    for number in range(n):
        right = number % 2
        told = {good: "Paris" if right else "Oslo"}
        said = [told.get(name, "Rome") for name in ("b", "c")]
        usual: dict[str, Any] = {
            "samples": ["Paris" if number % 3 else "Rome"] * 4 + said,
            "sample_models": [None] * 4 + ["b", "c"],
            "label": right,
            "self_check": 0.5,
            "drawn": {"requests": REQUESTS},
        }
        rows.append(row(number, **usual | fields))
    return rows


def compared(rows: list[Recording], **options: Any) -> RecipeComparison:
    usual: dict[str, Any] = {"calls": 4, "resamples": 20, "prices": PRICES}
    found = evaluate(rows, methods="answer_length", **usual | options).recipes
    assert found is not None
    return found


def recipe(found: RecipeComparison, name: str, calls: int = 4) -> Recipe:
    (known,) = [r for r in found.recipes if (r.name, r.calls) == (name, calls)]
    return known


@pytest.mark.parametrize("good", ["b", "c"])
def test_the_model_that_helps_is_found(good: str) -> None:
    found = compared(answered(good=good))
    helps, bad = recipe(found, f"plain + {good}"), "c" if good == "b" else "b"
    # Wrong where own samples agree (2 of 3) and the other does not, and so on.
    assert helps.auroc.value == pytest.approx(7 / 9)
    assert helps.gain is not None
    assert helps.gain.low > 0.2
    idle = recipe(found, f"plain + {bad}")
    assert idle.gain is not None
    assert idle.gain.value == pytest.approx(0, abs=0.05)
    assert found.at_equal_calls is not None
    assert good in found.at_equal_calls.name
    assert recipe(found, "plain").gain is None


def test_each_other_alone_and_all_are_compared_with_a_self_check_and_not() -> None:
    names = [r.name for r in compared(answered()).recipes if r.calls == 4]
    mixes = ("plain", "plain + b", "plain + c", "plain + b + c")
    assert {*names} == {
        *mixes,
        *(f"{name} + self-check" for name in mixes[:3]),
    }  # of three besides the answer, one stays the model's own


def test_u_of_a_recipe_is_that_of_the_guard() -> None:
    rows = answered(12)
    found = compared(rows)
    check = SelfCheck()
    us = [
        check.uncertainty(
            disagreement=u(one, one.main_answer, one.samples[0], one.samples[4]) or 0.0,
            p_correct=0.5,
        )
        for one in rows
    ]
    wrong = np.array([one.label == 0 for one in rows])
    above = np.array(us)[wrong][:, None] - np.array(us)[~wrong]
    expected = ((above > 0) + 0.5 * (above == 0)).mean()
    assert recipe(found, "plain + b + self-check").auroc.value == pytest.approx(
        expected
    )


def test_each_model_costs_its_own_price() -> None:
    cheap = Prices(prompt=1e5, completion=2e5)
    found = compared(answered(10), other_prices={"b": cheap})
    per_question = {
        "plain": 10 + 2 * 2 + 10 + 2 * 6,
        "plain + b": 10 + 2 * 2 + 10 + 2 * 4 + 0.1 * (20 + 2 * 5),
        "plain + b + self-check": 14 + 10 + 2 * 2 + 3 + 12 + 2,
    }
    for name, money in per_question.items():
        cost = recipe(found, name).cost
        assert cost is not None
        assert cost.money == pytest.approx(10 * money)
    unpriced = recipe(found, "plain + c").cost
    assert unpriced is not None
    assert (unpriced.money, unpriced.calls) == (None, 30)


def test_a_dear_model_is_no_choice_for_no_more_money() -> None:
    dear = compared(answered(), other_prices={"b": Prices(prompt=1e9, completion=1e9)})
    cheap = compared(answered(), other_prices={"b": Prices(prompt=1.0, completion=1.0)})
    assert dear.at_equal_money is not None
    assert " b" not in dear.at_equal_money.name
    assert cheap.at_equal_money is not None
    assert "plain + b" in cheap.at_equal_money.name


# -- Joining ---------------------------------------------------------------------------


def of(name: str, answers: dict[str, str], **fields: Any) -> list[Recording]:
    """Return the recording of a model, by question id."""
    return [
        Recording.from_dict(
            {
                "id": key,
                "question": f"What is {key}?",
                "main_answer": text,
                "samples": ["x"],
                "settings": {"model": name},
            }
            | fields
        )
        for key, text in answers.items()
    ]


def test_the_others_answer_stands_as_the_last_sample() -> None:
    drawn = {
        "finish_reasons": ["length", "stop"],
        "models": ["b-1"],
        "requests": [
            {"role": "answer", "replies": 1, "prompt_tokens": 9},
            {"role": "sample", "replies": 1, "prompt_tokens": 8},
        ],
    }
    other = OtherRecording(of("b", {"1": "Rome", "2": "Oslo"}, drawn=drawn))
    mine = of("a", {"1": "Paris", "3": "Bonn"}, token_logprobs=[[-0.5]])
    (joined,) = other.joined(mine)
    assert (joined.id, joined.main_answer, joined.samples) == (
        "1",
        "Paris",
        ("x", "Rome"),
    )
    assert joined.sample_models == (None, "b")
    assert joined.token_logprobs == ((-0.5,), None)
    assert (other.matched, other.unmatched, other.unused) == (1, 1, 1)
    _, samples = recorded_replies(joined)
    assert [(one.other_model, one.truncated) for one in samples] == [
        (None, False),
        ("b", True),
    ]
    (asked,) = joined.extra["drawn"]["requests"]
    assert (asked["role"], asked["other_model"], asked["prompt_tokens"]) == (
        "sample",
        "b",
        9,
    )
    assert joined.extra["drawn"]["other_models"] == {"b": ("b-1",)}


@pytest.mark.parametrize(
    "fields", [{"question": "Where?"}, {"context": "In France."}, {"question": None}]
)
def test_another_question_of_the_same_id_is_no_match(fields: Any) -> None:
    other = OtherRecording(of("b", {"1": "Rome"}, **fields))
    with pytest.raises(InputError, match="no question has its id and text"):
        list(other.joined(of("a", {"1": "Paris"})))


def test_two_others_are_joined_one_after_the_other() -> None:
    rows: Any = of("a", {"1": "Paris"})
    for name in ("b", "c"):
        rows = OtherRecording(of(name, {"1": "Rome"})).joined(rows)
    (joined,) = rows
    assert joined.sample_models == (None, "b", "c")


def test_what_belongs_to_each_reply_stays_with_it() -> None:
    states = {"hidden_states": [[1.0, 0.0, -1.0], [0.5, -1.0, 0.5]]}
    mine = of("a", {"1": "Paris", "2": "Rome"}, label=1, **states)
    joined = OtherRecording(of("b", {"1": "Rome", "2": "Oslo"})).joined(mine)
    found = evaluate(joined, methods="eigen_score", resamples=2)
    alone = evaluate(mine, methods="eigen_score", resamples=2)
    figures = [[*one.uncertainties["eigen_score"]] for one in (found, alone)]
    assert figures[0] == figures[1]


def test_the_same_model_is_no_other() -> None:
    for name in ("a", "b"):
        other = OtherRecording(of(name, {"0": "Rome"}, question="What is 0?"))
        with pytest.raises(InputError, match=f"replies of '{name}' already"):
            list(other.joined([row()]))


@pytest.mark.parametrize("rows", [[], of("a", {"1": "Paris"}, settings=None)])
def test_a_recording_must_name_its_model(rows: list[Recording]) -> None:
    with pytest.raises(InputError, match="settings to name the model"):
        OtherRecording(rows)


def test_what_is_joined_is_ranked_as_what_was_recorded() -> None:
    rows = answered(30, self_check=None)
    alone = [
        Recording.from_dict(
            one.to_dict()
            | {"samples": one.samples[:4], "sample_models": None}
            | {"drawn": {"requests": REQUESTS[:2]}}
        )
        for one in rows
    ]
    for name, at in (("b", 4), ("c", 5)):
        told = of(name, {one.id: one.samples[at] for one in rows})
        alone = [*OtherRecording(told).joined(alone)]
    both = [
        {r.name: r.auroc.value for r in compared(each).recipes}
        for each in (rows, alone)
    ]
    assert both[0] == both[1]
