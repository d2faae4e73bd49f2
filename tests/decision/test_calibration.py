"""A calibration's file, and the guards and replies that it holds for."""

from __future__ import annotations

import copy
import json
import math
import os
import pickle
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from snne_guard.decision import Calibration
from snne_guard.decision.calibration import SETTINGS as NAMES
from snne_guard.decision.stored import read_stored, write_sealed
from snne_guard.errors import ConfigurationError, InputError
from tests.decision.support import CERTIFIED, SETTINGS, calibration

KIND = "snne_guard.Calibration"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "guard.json"
    calibration(reference=(0.0, 0.5), graders={"contains": 2}).save(path)
    return path


# --- the file -------------------------------------------------------------------------


def test_what_is_saved_is_what_is_loaded(tmp_path: Path) -> None:
    made = calibration(
        refuse=0.9,
        reference=(0.0, 0.5),
        reply_models=("m-2026-01-01",),
        temperature_set=False,
        graders={"contains": 100, "label": 200},
        stop=("\n", "."),
        max_tokens=32,
        top_p=None,
    )
    path = tmp_path / "guard.json"
    made.save(path)
    loaded = Calibration.load(path)
    assert loaded == made
    assert loaded.settings["stop"] == ["\n", "."]
    assert loaded.statement == CERTIFIED.statement
    text = path.read_text()
    loaded.save(path)
    assert path.read_text() == text


def test_it_survives_copies_and_processes() -> None:
    made = calibration()
    assert pickle.loads(pickle.dumps(made)) == copy.deepcopy(made) == made  # noqa: S301 - our own


def test_it_keeps_what_it_was_given() -> None:
    given_settings = dict(SETTINGS)
    made = Calibration(settings=given_settings, threshold=CERTIFIED)
    given_settings["n"] = 10
    assert made.settings["n"] == 5


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"value": 0.4', '"value": 0.9'),
        ('"model": "m"', '"model": "m2"'),
        ('"n_wrong": 5', '"n_wrong": 0'),
        ('"sha256:', '"sha256:0'),
        ('"checksum"', '"digest"'),
        ('"format": 1', '"format": 2'),
        ('"format": 1', '"format": "1"'),
        (f'"kind": "{KIND}"', '"kind": "toy"'),
        (f'"kind": "{KIND}"', '"kind": null'),
        ('"content": {', '"content": 5, "x": {'),
        ('"value": 0.4', '"value": NaN'),
        ('"value": 0.4', '"value": 1e999'),
        ('"value": 0.4', '"value": -Infinity'),
        ('"n_labels": 300', '"n_labels": ' + "9" * 5000),
    ],
)
def test_a_file_that_was_edited_is_refused(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))
    with pytest.raises(InputError, match=r"cannot read .*guard\.json"):
        Calibration.load(file)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_damaged_file_is_an_input_error(file: Path, data: st.DataObject) -> None:
    whole = file.read_bytes()
    damaged = file.with_name("damaged.json")
    place = data.draw(st.integers(0, len(whole) - 3))
    how = data.draw(st.sampled_from(["cut", "flip", "insert", "remove"]))
    raw = {
        "cut": whole[:place],
        "flip": whole[:place]
        + bytes([whole[place] ^ data.draw(st.integers(1, 255))])
        + whole[place + 1 :],
        "insert": whole[:place] + data.draw(st.binary(min_size=1)) + whole[place:],
        "remove": whole[:place] + whole[place + 1 :],
    }[how]
    damaged.write_bytes(raw)
    try:
        found = Calibration.load(damaged)
    except InputError:
        return
    # Only white space, or a name that nobody reads, was touched.
    assert found == Calibration.load(file)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[1, 2]",
        b"null",
        b"\xff\xfe",
        b"[" * 1_000_000,
        b'{"a":' * 1_000_000,
        b"9" * 100_000,
        b'{"kind": "\\ud800"}',
    ],
)
def test_what_is_no_calibration_is_refused(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "other.json"
    path.write_bytes(raw)
    with pytest.raises(InputError):
        Calibration.load(path)


@pytest.mark.parametrize(
    "change",
    [
        {"settings": []},
        {"settings": None},
        {"settings": {"colour": "red"}},
        {"settings": {"n": {"a": 1}}},
        {"settings": {"n": True}},
        {"settings": {"model": 5}},
        {"settings": {"stop": [1]}},
        {"settings": {"stop": {}}},
        {"settings": {"include_answer": 1}},
        {"threshold": None},
        {"threshold": {}},
        {"threshold": {"value": 0.4, "more": 1}},
        {"threshold": asdict(CERTIFIED) | {"value": 10**400}},
        {"threshold": asdict(CERTIFIED) | {"n_labels": 1.5}},
        {"threshold": asdict(CERTIFIED) | {"n_labels": -1}},
        {"threshold": asdict(CERTIFIED) | {"value": "0.4"}},
        {"threshold": asdict(CERTIFIED) | {"value": True}},
        {"threshold": asdict(CERTIFIED) | {"value": 2.0}},
        {"threshold": asdict(CERTIFIED) | {"status": "sure"}},
        {"threshold": asdict(CERTIFIED) | {"alpha": 2.0}},
        {"refuse": 0.1},
        {"refuse": 1.1},
        {"refuse": 10**400},
        {"reference": [0.1, 1.1]},
        {"reference": ["a"]},
        {"reference": [None]},
        {"reference": [10**400]},
        {"reference": {}},
        {"reply_models": "m"},
        {"probability": {}},
        {"probability": {"a": -1.0, "b": 0.0, "c": 0.0, "n_labels": 60}},
        {"probability": {"a": 1.0, "b": 0.0, "c": 0.0, "n_labels": 0}},
        {"temperature_set": 1},
        {"graders": {"a": "b"}},
        {"created": None},
        {"more": 1},
        {"settings": {"tau": 1.0, "n": [[[[]]]]}},
    ],
)
def test_contents_that_make_no_sense_are_refused_even_when_sealed(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    path = tmp_path / "guard.json"
    write_sealed(path, asdict(calibration()) | change, kind=KIND)
    with pytest.raises(InputError, match="Calibration"):
        Calibration.load(path)


def _fields(content: Any, path: tuple[str | int, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of every value in JSON, the outermost left out."""
    items: Any = ()
    if isinstance(content, dict):
        items = content.items()
    elif isinstance(content, list):
        items = enumerate(content)
    found = [path] if path else []
    return [*found, *(p for name, one in items for p in _fields(one, (*path, name)))]


_LARGE = st.sampled_from([10**400, -(10**400), 1e308, 5e-324])
_LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | _LARGE
_JSON = st.recursive(
    _LEAVES,
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2)
    ),
    max_leaves=3,
)
_WHOLE = calibration(reference=(0.5,), reply_models=("m",), stop=(".",), top_p=1.0)
_PLAIN = json.loads(json.dumps(asdict(_WHOLE)))


@settings(max_examples=200)
@given(field=st.sampled_from(_fields(_PLAIN)), value=_JSON)
def test_any_value_in_any_field_is_refused_or_can_be_used(
    field: tuple[Any, ...], value: Any
) -> None:
    content = copy.deepcopy(_PLAIN)
    inner: Any = content
    for name in field[:-1]:
        inner = inner[name]
    inner[field[-1]] = value
    try:
        found = read_stored(Calibration, content)
    except InputError:
        return
    assert found.statement
    assert found.p_wrong(0.5) is None or 0 < (found.p_wrong(0.5) or 0) < 1
    covers(found)
    found.matches(_WHOLE.settings)
    assert read_stored(Calibration, asdict(found)) == found


def test_a_missing_field_of_the_file_is_named(tmp_path: Path) -> None:
    content = asdict(calibration())
    del content["threshold"]
    path = tmp_path / "guard.json"
    write_sealed(path, content, kind=KIND)
    with pytest.raises(InputError, match="threshold: Field required"):
        Calibration.load(path)


def test_a_file_that_never_ends_is_refused(file: Path) -> None:
    with file.open("r+b") as stream:
        stream.truncate(1 << 40)  # sparse: no disk is used
    with pytest.raises(InputError, match="more than 67108864 bytes"):
        Calibration.load(file)


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
    with pytest.raises(OSError, match="No space left"):
        calibration(n=10).save(file)
    assert file.read_bytes() == before
    assert [path.name for path in file.parent.iterdir()] == ["guard.json"]


def test_a_link_stays_a_link(file: Path) -> None:
    link = file.with_name("link.json")
    link.symlink_to(file)
    calibration(n=10).save(link)
    assert link.is_symlink()
    assert Calibration.load(file).settings["n"] == 10


def test_using_one_needs_neither_scipy_nor_scikit_learn(file: Path) -> None:
    program = (
        "import sys\n"
        "sys.modules['scipy'] = sys.modules['sklearn'] = None\n"
        "from snne_guard.decision import Calibration\n"
        "made = Calibration.load(sys.argv[1])\n"
        "print(0 < made.p_wrong(0.3) < 1, made.threshold.value)\n"
    )
    found = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", program, file],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (found.stdout, found.stderr) == ("True 0.4\n", "")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"settings": {"colour": "red"}}, r"got \['colour'\] as well"),
        ({"n": "5"}, "setting n to be None or a number; got '5'"),
        ({"temperature": math.inf}, "a number; got inf"),
        ({"include_answer": 1}, "True or False; got 1"),
        ({"model": 5}, "a text; got 5"),
        ({"stop": [1]}, r"a list of texts; got \[1\]"),
        ({"refuse": 0.3}, r"from the threshold \(0.4\) to 1; got 0.3"),
        ({"refuse": math.nan}, "got nan"),
        ({"reference": (0.5, math.nan)}, r"u in \[0, 1\]; got nan"),
    ],
)
def test_parts_that_make_no_sense_are_refused(
    fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        calibration(**fields)


# --- what it was made for -------------------------------------------------------------


def test_settings_like_its_own_pass() -> None:
    made = calibration(temperature=1, stop=("\n", "."))
    here = {**SETTINGS, "temperature": 1.0, "stop": (".", "\n")}
    made.check(here)
    made.check({})  # what a guard does not know is looked at in each call
    assert made.matches(here)


def test_everything_that_differs_is_named() -> None:
    here = {
        "model": "other",
        "temperature": 0.7,
        "answer_temperature": 1.0,
        "top_p": 0.9,
        "max_tokens": 64,
        "stop": ["\n"],
        "n": 10,
        "include_answer": False,
        "method": "dse",
        "similarity": "rouge_l",
        "anchor": 0.0,
        "tau": 0.5,
    }
    assert set(here) == set(NAMES)
    made = calibration(answer_temperature=None, top_p=None, max_tokens=32, stop=None)
    with pytest.raises(ConfigurationError) as caught:
        made.check(here)
    message = str(caught.value)
    for expected in (
        "model='m', here model='other'",
        "temperature=1.0, here temperature=0.7",
        "answer_temperature=None, here answer_temperature=1.0",
        "top_p=None, here top_p=0.9",
        "max_tokens=32, here max_tokens=64",
        "stop=None, here stop=['\\n']",
        "n=5, here n=10",
        "include_answer=True, here include_answer=False",
        "method='snne', here method='dse'",
        "similarity='content_f1', here similarity='rouge_l'",
        "anchor=0.7, here anchor=0.0",
        "tau=1.0, here tau=0.5",
    ):
        assert expected in message
    assert not made.matches(here)


@pytest.mark.parametrize(
    ("made", "here", "same"),
    [
        ({}, {"top_p": 0.5}, True),  # nobody knows how the graded ones were drawn
        ({"top_p": 0.9}, {}, True),
        ({"top_p": 1}, {"top_p": 1.0}, True),
        ({"top_p": None}, {"top_p": None}, True),
        ({"top_p": None}, {"top_p": 1.0}, False),  # servers have their own defaults
        ({"top_p": 0.9}, {"top_p": None}, False),
        ({"stop": None}, {"stop": []}, True),
        ({"stop": ["\n\n"]}, {"stop": "\n\n"}, True),
        ({"stop": ["."]}, {"stop": object()}, False),
        ({"top_p": 0.9}, {"top_p": "0.9"}, False),
        ({"stop": ["."]}, {"stop": None}, False),
        ({"max_tokens": 48}, {"max_tokens": 64}, False),
        ({"anchor": None}, {"anchor": 0.0}, True),
        ({"anchor": None}, {"anchor": 0.7}, False),
    ],
)
def test_settings_of_the_answer_are_compared_where_both_know_them(
    made: dict[str, Any], here: dict[str, Any], *, same: bool
) -> None:
    assert calibration(**made).matches(here) is same


def covers(made: Calibration, **changes: Any) -> bool:
    reply: dict[str, Any] = {
        "n_used": 5,
        "method": "snne",
        "similarity": "content_f1",
        "models": {"m"},
        "temperature_set": True,
    }
    return made.covers(**reply | changes)


@pytest.mark.parametrize(
    ("changes", "covered"),
    [
        ({}, True),
        ({"n_used": 4}, False),
        ({"n_used": 6}, False),
        ({"method": "wsnne"}, False),
        ({"similarity": "rouge_l"}, False),
        ({"similarity": None}, False),
        ({"temperature_set": False}, False),
        ({"models": {"m", None}}, True),
        ({"models": {"m", "other"}}, False),
    ],
)
def test_a_set_that_differs_is_not_covered(
    changes: dict[str, Any], *, covered: bool
) -> None:
    assert covers(calibration(), **changes) is covered


def test_a_provider_that_takes_no_temperature_must_go_on_so() -> None:
    made = calibration(temperature_set=False)
    assert covers(made, temperature_set=False)
    assert not covers(made)


@pytest.mark.parametrize(
    ("made", "replies", "name", "guard", "reply"),
    [
        ("m", (), "m", True, True),
        ("m", (), "n", False, False),
        ("m", (), "m-mini", False, False),
        ("openai:m", (), "m", True, True),
        ("m", (), "m-2025-04-14", False, True),
        ("m", (), "m@20250414", False, True),
        ("openai:m", (), "m-20250414", False, True),
        ("m", (), "m-2", False, False),
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
    assert found.matches({"model": name}) is guard
    assert covers(found, models={name}) is reply


def test_the_probability_of_an_error_is_read_from_u() -> None:
    made = calibration()
    assert made.p_wrong(0.5) == pytest.approx(0.2363, abs=1e-4)
    assert made.p_wrong(None) is None
    assert made.p_wrong(math.inf) is None
    assert replace(made, probability=None).p_wrong(0.5) is None


def test_the_options_of_a_guard_are_those_it_was_made_with() -> None:
    made = calibration(tau=None)
    options = made.guard_settings()
    assert options.pop("calibration") is made
    assert options == {
        "n": 5,
        "include_answer": True,
        "temperature": 1.0,
        "method": "snne",
        "similarity": "content_f1",
    }
