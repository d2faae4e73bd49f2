"""A calibration's file, and the settings that it was made for."""

from __future__ import annotations

import copy
import json
import math
import os
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from snne_guard import ConfigurationError, InputError
from snne_guard.decision import Calibration, Threshold
from snne_guard.decision.bound_settings import BOUND
from tests.support.calibrated import READS, SETTINGS, calibration, certified, plan

Change = Callable[[dict[str, Any]], object]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "guard.json"
    calibration(tries=2, labels="sha256:1").save(path)
    return path


def test_what_is_saved_is_what_is_loaded(tmp_path: Path) -> None:
    made = calibration(
        refuse=certified(0.8, kind="false_refusal", delta=None),
        combination={"parts": ["snne"]},
        rounds=(3, 5),
        cascade=plan(),
        reference=(0.0, 0.5),
        tries=3,
        labels="sha256:0f",
    )
    path = tmp_path / "guard.json"
    made.save(path)
    loaded = Calibration.load(path)
    assert loaded == made
    assert loaded.settings["rounds"] == [3, 5]
    assert loaded.cascade == plan()
    assert loaded.probability[5] == READS
    assert (loaded.threshold, loaded.tries) == (certified(), 3)
    assert loaded.statement == plan().statement
    assert calibration().statement == certified().statement
    text = path.read_text()
    loaded.save(path)
    assert path.read_text() == text
    assert json.loads(text)["kind"] == "snne_guard.Calibration"


@pytest.mark.parametrize(
    "copied",
    [copy.copy, copy.deepcopy, lambda made: pickle.loads(pickle.dumps(made))],  # noqa: S301 - our own
)
def test_it_survives_copies_and_processes(copied: Any) -> None:
    made = calibration(refuse=certified(0.8))
    assert copied(made) == made


def test_it_cannot_be_changed() -> None:
    given = dict(SETTINGS)
    made = Calibration(settings=given, threshold=certified())
    given["n"] = 10
    assert made.settings["n"] == 5
    changed: Any = made.settings
    with pytest.raises(TypeError):
        changed["n"] = 10


# --- a file that is not as it was written --------------------------------------------


def rewritten(path: Path, change: Change) -> None:
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def value_changed(content: dict[str, Any]) -> None:
    content["threshold"]["value"] = 0.9


_CHANGED = "changed since it was written"
EDITS: dict[str, tuple[Change, str]] = {
    "threshold": (value_changed, _CHANGED),
    "model": (lambda c: c["settings"].update(model="m2"), _CHANGED),
    "tries": (lambda c: c.update(tries=1), _CHANGED),
    "no checksum": (lambda c: c.pop("checksum"), _CHANGED),
    "other checksum": (lambda c: c.update(checksum="sha256:0"), _CHANGED),
    "newer": (lambda c: c.update(format=2), "format 2, .* no newer one than 1; upgr"),
    "format": (lambda c: c.update(format="1"), "number of its format, got '1'"),
    "flag": (lambda c: c.update(format=True), "number of its format, got True"),
    "kind": (lambda c: c.update(kind="snne_guard.CalibratedStop"), "got 'snne_guard.C"),
    "no kind": (lambda c: c.pop("kind"), "'snne_guard.Calibration', got None"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_a_file_that_was_edited_is_refused_and_says_why(file: Path, edit: str) -> None:
    change, told = EDITS[edit]
    rewritten(file, change)
    with pytest.raises(InputError, match=told) as caught:
        Calibration.load(file)
    assert str(file) in str(caught.value)


def test_a_file_that_was_cut_off_anywhere_is_refused(file: Path) -> None:
    whole = file.read_bytes()
    for kept in range(0, len(whole.rstrip()), 97):
        file.write_bytes(whole[:kept])
        with pytest.raises(InputError, match="no JSON, perhaps cut off"):
            Calibration.load(file)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[1, 2]", "kind 'snne_guard.Calibration', got None"),
        ("null", "got None"),
        ('{"kind": "snne_guard.Calibration", "format": NaN}', "NaN is no number"),
        ("[" * 100_000, "nested too deeply"),
        ("\xff", "no JSON"),
    ],
)
def test_what_is_no_calibration_at_all_is_refused(
    tmp_path: Path, text: str, told: str
) -> None:
    path = tmp_path / "other.json"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(InputError, match=told):
        Calibration.load(path)


def test_a_file_that_is_not_there_is_the_systems_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Calibration.load(tmp_path / "none.json")


def test_a_file_is_replaced_whole_or_not_at_all(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = file.read_bytes()

    def fail(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match=f"No space left on device: '{file}'"):
        calibration(0.1).save(file)
    assert file.read_bytes() == before
    assert [path.name for path in file.parent.iterdir()] == ["guard.json"]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"tries": 0}, "tries must be .* got 0"),
        ({"tries": True}, "another type of tries"),
        ({"tries": "1"}, "another type of tries"),
        ({"settings": []}, "another type of settings"),
        ({"settings": {"colour": "red"}}, r"got \['colour'\] as well"),
        ({"settings": {"n": {"a": 1}}}, "plain values"),
        ({"settings": {"model": 5}}, "model .* a text or None"),
        ({"settings": {"reply_models": "m"}}, "reply_models .* a list of texts"),
        ({"threshold": None}, "another type of threshold"),
        ({"threshold": {"value": 0.4}}, "missing"),
        ({"refuse": certified(0.1).to_dict()}, r"got \(0.4, 0.1\)"),
        ({"reference": [0.1, 1.1]}, r"u in \[0, 1\]; got 1.1"),
        ({"reference": ["a"]}, "expected a calibration"),
        ({"reference": [None]}, "expected a calibration"),
        ({"probability": {"five": READS.to_dict()}}, "expected a calibration"),
        ({"probability": {"5": {}}}, "missing"),
        ({"cascade": {}}, "a cascade with a promise"),
        ({"threshold": {**certified().to_dict(), "value": 10**400}}, "too large"),
        ({"created": None}, "another type of created"),
        ({"more": 1}, "unknown: \\['more'\\]"),
    ],
)
def test_contents_that_make_no_sense_are_refused(
    change: dict[str, Any], told: str
) -> None:
    with pytest.raises(InputError, match=told):
        Calibration.from_dict({**calibration().to_dict(), **change})


@pytest.mark.parametrize("number", ["1e999", "-1e999", "NaN", "Infinity"])
def test_a_number_that_is_none_is_refused(tmp_path: Path, number: str) -> None:
    file = tmp_path / "guard.json"
    calibration(0.4).save(file)
    file.write_text(file.read_text().replace('"value": 0.4', f'"value": {number}'))
    with pytest.raises(InputError, match="no JSON"):
        Calibration.load(file)


# --- what it was made for ------------------------------------------------------------


def test_settings_like_its_own_are_taken() -> None:
    made = calibration(rounds=(3, 5), cascade=plan(), temperature=1)
    here = {**SETTINGS, "rounds": [3, 5], "temperature": 1.0}
    assert made.check(here) == ()
    assert made.check({}) == ()  # what a guard cannot know is looked at in each call


def test_all_that_differs_is_listed() -> None:
    here = {
        "model": "other",
        "prompt_version": "2",
        "temperature": 0.7,
        "answer_temperature": 1.0,
        "top_p": 0.9,
        "max_tokens": 64,
        "stop": ("\n",),
        "n": 10,
        "include_answer": False,
        "rounds": (3, 10),
        "method": "dse",
        "similarity": "rouge_l",
        "anchor": 0.0,
        "tau": 0.5,
    }
    assert tuple(here) == BOUND
    made = calibration(answer_temperature=None, top_p=None, max_tokens=32, stop=None)
    with pytest.raises(ConfigurationError) as caught:
        made.check(here)
    told = str(caught.value)
    for expected in (
        "model was 'test-model', here it is 'other'",
        "prompt_version was None, here it is '2'",
        "temperature was 1.0, here it is 0.7",
        "answer_temperature was None, here it is 1.0",
        "top_p was None, here it is 0.9",
        "max_tokens was 32, here it is 64",
        "stop was None, here it is ['\\n']",
        "n was 5, here it is 10",
        "include_answer was True, here it is False",
        "rounds was None, here it is [3, 10]",
        "method was 'snne', here it is 'dse'",
        "similarity was 'content_f1', here it is 'rouge_l'",
        "anchor was 0.7, here it is 0.0",
        "tau was 1.0, here it is 0.5",
        "allow_mismatch=True",
    ):
        assert expected in told
    assert made.check(here, allow_mismatch=True) == BOUND


@pytest.mark.parametrize(
    ("made", "here", "differs"),
    [
        ({}, {"answer_temperature": 0.7}, False),  # a file of before, or of others
        ({"answer_temperature": 0.0}, {}, False),  # each call says it
        ({"answer_temperature": 0}, {"answer_temperature": 0.0}, False),
        ({"answer_temperature": None}, {"answer_temperature": None}, False),
        ({"answer_temperature": 0.0}, {"answer_temperature": None}, True),
        ({"answer_temperature": None}, {"answer_temperature": 0.0}, True),
        ({"answer_temperature": 0.0}, {"answer_temperature": 0.1}, True),
    ],
)
def test_the_answer_s_temperature_is_compared_where_both_say_it(
    made: dict[str, Any], here: dict[str, Any], *, differs: bool
) -> None:
    found = calibration(**made).differences(here)
    assert list(found) == ["answer_temperature"] * differs
    with pytest.raises(ConfigurationError, match="is a number or None; got 'warm'"):
        calibration(answer_temperature="warm")


@pytest.mark.parametrize(
    ("made", "here", "differs"),
    [
        ({}, {"top_p": 0.5}, False),  # nobody knows what the graded ones had
        ({"top_p": 0.9}, {}, False),  # each call says it
        ({"top_p": 1}, {"top_p": 1.0}, False),
        ({"top_p": None}, {"top_p": None}, False),
        ({"top_p": None}, {"top_p": 1.0}, True),  # servers have their own defaults
        ({"top_p": 1.0}, {"top_p": None}, True),
        ({"top_p": 0.9}, {"top_p": None}, True),
        ({"top_p": None}, {"top_p": 0.9}, True),
        ({"top_p": 0.9}, {"top_p": 0.8}, True),
    ],
)
def test_top_p_is_compared_where_both_say_it(
    made: dict[str, Any], here: dict[str, Any], *, differs: bool
) -> None:
    assert list(calibration(**made).differences(here)) == ["top_p"] * differs
    with pytest.raises(ConfigurationError, match="top_p of a calibration is a number"):
        calibration(top_p=True)


@pytest.mark.parametrize(
    ("made", "here", "differs"),
    [(None, 0.0, False), (None, 0.5, True), (0, 0.0, False), (0.5, 0.0, True)],
)
def test_a_calibration_from_before_anchors_had_none(
    made: float | None, here: float, *, differs: bool
) -> None:
    said = {} if made is None else {"anchor": made}
    settings = {k: v for k, v in SETTINGS.items() if k != "anchor"} | said
    older = replace(calibration(), settings=settings)
    expected = {"anchor": (made or 0.0, here)} if differs else {}
    assert older.differences({"anchor": here}) == expected


@pytest.mark.parametrize("anchor", ["half", True, -0.1, 1.1, math.nan, math.inf])
def test_an_anchor_is_a_share(anchor: object) -> None:
    with pytest.raises(
        ConfigurationError, match=r"anchor must be a number in \[0, 1\]"
    ):
        calibration(anchor=anchor)


def test_a_set_of_each_size_has_its_threshold() -> None:
    made = calibration(rounds=(3, 5), cascade=plan())
    limits = [made.threshold_of(members).value for members in (2, 3, 4, 5)]
    assert limits == [-1.0, 0.1, -1.0, 0.4]
    assert calibration().threshold_of(3) == certified()


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"rounds": (3, 5)}, r"needs the plan .* for \[3, 5\]; got one for None"),
        ({"cascade": plan()}, "has its rounds among the settings"),
        ({"rounds": (2, 5), "cascade": plan()}, r"\[2, 5\]; got one for \[3, 5\]"),
        ({"rounds": (3, 5), "cascade": plan(0.3)}, "its promise as the threshold"),
    ],
)
def test_a_plan_is_of_the_rounds_and_the_threshold(
    fields: dict[str, Any], told: str
) -> None:
    with pytest.raises(ConfigurationError, match=told):
        calibration(**fields)


@pytest.mark.parametrize(
    ("made", "replies", "name", "model", "reply"),
    [
        ("m", [], "m", True, True),
        ("m", [], "n", False, False),
        ("m", [], "m-mini", False, False),
        ("openai:m", [], "m", True, True),
        ("m", [], "m-2025-04-14", False, True),
        ("m", [], "m@20250414", False, True),
        ("openai:m", [], "m-20250414", False, True),
        ("m", [], "m-2", False, False),
        # What a provider serves under one name changes: the replies' names tell.
        ("m", ["m-2025-04-14"], "m", True, False),
        ("m", ["m-2025-04-14"], "m-2025-04-14", True, True),
        ("m", ["m-2025-04-14"], "m-2026-01-01", False, False),
        (None, [], "m", False, False),
        (None, ["m"], "m", False, True),
    ],
)
def test_which_names_are_the_models(
    made: str | None, replies: list[str], name: str, *, model: bool, reply: bool
) -> None:
    found = calibration(model=made, reply_models=replies)
    assert found.is_model(name) is model
    assert found.is_reply_of(name) is reply
    assert found.is_model(None) is (made is None)


def test_the_settings_of_a_guard_are_all_but_model_and_prompt() -> None:
    made = calibration(prompt_version="2", rounds=None)
    settings = made.guard_settings()
    assert settings.pop("calibration") is made
    assert settings == {
        "temperature": 1.0,
        "n": 5,
        "include_answer": True,
        "method": "snne",
        "similarity": "content_f1",
        "tau": 1.0,
    }
    combined = calibration(combination={"parts": ["snne"]}, method="calibrated(snne)")
    assert combined.guard_settings()["method"] == "calibrated"


def test_a_threshold_without_a_promise_may_be_bound_too() -> None:
    made = replace(calibration(), threshold=Threshold.fixed(0.4))
    assert Calibration.from_dict(made.to_dict()) == made
