"""The guards and replies that a calibration holds for."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from snne_guard.decision import Calibration
from snne_guard.decision.calibration import SETTINGS as NAMES
from snne_guard.errors import ConfigurationError
from snne_guard.settings import GuardSettings
from tests.decision.support import covers, matches
from tests.support.calibrations import CERTIFIED, SETTINGS, calibration


def test_it_keeps_what_it_was_given() -> None:
    given_settings = dict(SETTINGS)
    made = Calibration(settings=given_settings, threshold=CERTIFIED)
    given_settings["n"] = 10
    assert made.settings["n"] == 5


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"settings": {"colour": "red"}}, r"settings among .* got \['colour'\]"),
        ({"refuse": 0.3}, "refuse to be .* of at least 0.4 and at most 1, got 0.3"),
    ],
)
def test_parts_that_make_no_sense_are_refused(
    fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        calibration(**fields)


def test_settings_like_its_own_pass() -> None:
    made = calibration(temperature=1, stop=("\n", "."))
    here = {**SETTINGS, "temperature": 1.0, "stop": (".", "\n")}
    made.check(here)
    made.check({})  # what a guard does not know is looked at in each call


def test_everything_that_differs_is_named() -> None:
    made = calibration(answer_temperature=None, top_p=None, max_tokens=32, stop=None)
    with pytest.raises(ConfigurationError) as caught:
        made.check(dict.fromkeys(NAMES, "other"))
    for name in NAMES:
        graded = made.settings.get(name)
        assert f"{name}={graded!r}, here {name}='other'" in str(caught.value)


@pytest.mark.parametrize(
    ("made", "here", "same"),
    [
        ({}, {"top_p": 0.5}, True),  # nobody knows how the graded ones were drawn
        ({"top_p": 0.9}, {}, True),
        ({"top_p": None}, {"top_p": 1.0}, False),  # servers have their own defaults
        ({"stop": None}, {"stop": []}, True),
        ({"stop": ["\n\n"]}, {"stop": "\n\n"}, True),
        ({}, {"views": []}, True),
    ],
)
def test_settings_of_the_answer_are_compared_where_both_know_them(
    made: dict[str, Any], here: dict[str, Any], *, same: bool
) -> None:
    assert matches(calibration(**made), here) is same


@pytest.mark.parametrize(
    ("changes", "covered"),
    [
        ({}, True),
        ({"n_used": 4}, False),
        ({"method": "wsnne"}, False),
        ({"similarity": "rouge_l"}, False),
        ({"temperature_set": False}, False),
        ({"models": {"m", None}}, True),
        ({"models": {"m", "other"}}, False),
    ],
)
def test_a_set_that_differs_is_not_covered(
    changes: dict[str, Any], *, covered: bool
) -> None:
    assert covers(calibration(), **changes) is covered


@pytest.mark.parametrize(
    ("made", "replies", "name", "guard", "reply"),
    [
        ("m", (), "m", True, True),
        ("m", (), "m-mini", False, False),
        ("openai:m", (), "m", True, True),
        ("m", (), "m-2025-04-14", False, True),
        ("openai:m", (), "m@20250414", False, True),
        ("m", (), None, False, True),
        # What a provider serves under one name changes: the replies' names decide.
        ("m", ("m-2025-04-14",), "m", True, False),
        ("m", ("m-2025-04-14",), "m-2025-04-14", True, True),
        ("m", ("m-2025-04-14",), "m-2026-01-01", False, False),
        ("m", ("m-2025-04-14",), None, False, False),
        (None, (), "m", False, False),
        (None, (), None, True, True),
        (None, ("m",), "m", False, True),
    ],
)
def test_which_names_are_the_models(
    made: str | None,
    replies: tuple[str, ...],
    name: str | None,
    *,
    guard: bool,
    reply: bool,
) -> None:
    found = calibration(model=made, reply_models=replies)
    assert matches(found, {"model": name}) is guard
    assert covers(found, models={name}) is reply


def test_the_probability_of_an_error_is_read_from_u() -> None:
    made = calibration()
    assert made.p_wrong(0.5) == pytest.approx(0.2363, abs=1e-4)
    assert made.p_wrong(None) is None
    assert replace(made, probability=None).p_wrong(0.5) is None


def test_the_options_of_a_guard_are_those_it_was_made_with() -> None:
    made = calibration(anchor=None)
    assert made.guard_options() == {
        "n": 5,
        "include_answer": True,
        "temperature": 1.0,
        "method": "snne",
        "similarity": "content_f1",
    }


# -- Other models ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("made", "here", "same"),
    [
        (None, ["b"], False),
        (["b"], [], False),
        (["b"], ["c"], False),
        (["b"], ["b", "c"], False),
        (["b", "c"], ["c", "b"], True),
        (None, [], True),
    ],
)
def test_a_guard_has_the_other_models_of_its_calibration(
    made: list[str] | None, here: list[str], same: bool
) -> None:
    found = calibration(other_models=made, n=9)
    settings = GuardSettings(n=9, calibration=found, other_models=here)
    if same:
        settings.check_calibration({"model": "m"})
        return
    with pytest.raises(
        ConfigurationError, match=f"other_models={re.escape(f'{here}')}"
    ):
        settings.check_calibration({"model": "m"})


@pytest.mark.parametrize(
    ("others", "covered"),
    [
        ({"b": "b-1", "c": "c"}, True),
        ({"b": "b-2", "c": "c-2025-04-14"}, True),
        ({"b": "b-1", "c": None}, True),
        ({"b": None, "c": "c"}, False),
        ({"b": "b-3", "c": "c"}, False),
        ({"b": "c", "c": "b-1"}, False),
        ({"b": "b-1", "c": "d"}, False),
        ({"b": "b-1"}, False),
        ({}, False),
        ({"b": "b-1", "c": "c", "d": "d"}, False),
    ],
)
def test_replies_of_other_models_are_those_it_was_made_from(
    others: dict[str, str | None], covered: bool
) -> None:
    of_b = {"b": ("b-1", "b-2")}
    found = calibration(other_models=["b", "c"], other_reply_models=of_b)
    assert covers(found, others=others) is covered
