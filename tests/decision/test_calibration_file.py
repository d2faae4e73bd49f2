"""A calibration's file: whole, unchanged, or refused."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from snne_guard.decision import Calibration
from snne_guard.errors import ConfigurationError, InputError
from tests.support.calibrations import CERTIFIED, calibration

KIND = "snne_guard.Calibration"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "guard.json"
    calibration(reference=(0.0, 0.5), graders={"contains": 2}).save(path)
    return path


def test_a_file_of_an_older_format_says_why_it_does_not_hold(file: Path) -> None:
    file.write_text(file.read_text().replace('"format": 2', '"format": 1', 1))
    with pytest.raises(InputError, match="format 1: samples are drawn in another way"):
        Calibration.load(file)


def test_what_is_saved_is_what_is_loaded(tmp_path: Path) -> None:
    made = calibration(
        refuse=0.9,
        reference=(0.0, 0.5),
        reply_models=("m-2026-01-01",),
        other_models=["b"],
        other_reply_models={"b": ("b-1", "b-2")},
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
    text = path.read_text()
    loaded.save(path)
    assert path.read_text() == text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"value": 0.4', '"value": 0.9'),
        ('"format": 2', '"format": 1'),
        (f'"kind": "{KIND}"', '"kind": "toy"'),
        ('"content": {', '"content": 5, "x": {'),
        ('"n_labels": 300', '"n_labels": ' + "9" * 5000),
    ],
)
def test_a_file_that_was_edited_is_refused(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))
    with pytest.raises(InputError, match=r"cannot read .*guard\.json"):
        Calibration.load(file)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
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


@pytest.mark.parametrize("raw", [b"", b"[1, 2]", b"[" * 1_000_000, b"9" * 100_000])
def test_what_is_no_calibration_is_refused(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "other.json"
    path.write_bytes(raw)
    with pytest.raises(InputError):
        Calibration.load(path)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"settings": {"colour": "red"}}, "settings among"),
        ({"threshold": asdict(CERTIFIED) | {"value": 10**400}}, "threshold"),
        ({"threshold": {}}, "threshold.value: Field required"),
        ({"more": 1}, "more"),
        ({"settings": {"n": "5"}}, "n: Input should be a valid integer"),
        ({"settings": {"n": True}}, "n: "),
        ({"settings": {"temperature": [1.0]}}, "temperature: "),
        ({"settings": {"similarity": {"a": 1}}}, "similarity: "),
        ({"settings": {"method": 10**400}}, "method: "),
        ({"settings": {"views": "plain"}}, "views: "),
        ({"settings": {"stop": [["a"]]}}, "stop"),
        ({"settings": {"self_check": 5, "self_check_weight": 0.5}}, "self_check: "),
        ({"threshold": asdict(CERTIFIED) | {"n_accepted": 301}}, "n_accepted"),
        ({"threshold": asdict(CERTIFIED) | {"n_wrong": -1}}, "n_wrong"),
        ({"threshold": asdict(CERTIFIED) | {"n_labels": 10**400}}, "n_labels"),
        ({"probability": {"a": 1, "b": 1, "c": 0, "n_labels": -2}}, "n_labels"),
        ({"probability": {"a": -1, "b": 1, "c": 0, "n_labels": 60}}, "expected a to"),
    ],
)
def test_contents_that_make_no_sense_are_refused_even_when_sealed(
    tmp_path: Path, change: dict[str, Any], says: str
) -> None:
    content = asdict(calibration()) | change
    path = sealed(tmp_path, json.dumps(content, separators=(",", ":")))
    with pytest.raises(InputError, match=f"Calibration.*{says}"):
        Calibration.load(path)


@pytest.mark.parametrize("levels", [10, 200, 400, 600, 800, 900, 950, 980, 5000])
@pytest.mark.parametrize("name", ["stop", "more"])
def test_contents_that_are_deep_are_refused_even_when_sealed(
    tmp_path: Path, name: str, levels: int
) -> None:
    deep = f'{{"{name}":{"[" * levels}{"]" * levels},"settings":{{'
    text = json.dumps(asdict(calibration()), separators=(",", ":"))
    path = sealed(tmp_path, text.replace('{"settings":{', deep, 1))
    with pytest.raises(InputError, match=r"cannot read .*guard\.json"):
        Calibration.load(path)


def test_a_self_check_without_a_weight_is_refused(tmp_path: Path) -> None:
    content = asdict(calibration()) | {"settings": {"self_check": "Yes or No?"}}
    path = sealed(tmp_path, json.dumps(content, separators=(",", ":")))
    with pytest.raises(ConfigurationError, match="weight"):
        Calibration.load(path).guard_options()


def sealed(folder: Path, content: str) -> Path:
    """Write the file of a content, which is JSON without spaces."""
    checksum = "sha256:" + hashlib.sha256(content.encode()).hexdigest()
    head = f'"kind": "{KIND}", "format": 2, "checksum": "{checksum}"'
    path = folder / "guard.json"
    path.write_text(f'{{{head}, "content": {content}}}', encoding="utf-8")
    return path


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
