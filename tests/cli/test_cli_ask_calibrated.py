"""``snne-guard ask`` with a calibration: its settings, its promise, its reading."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from snne_guard.cli import build_app
from snne_guard.cli._words import decision_in_words, p_wrong_in_words
from snne_guard.types import Assessment, Decision
from tests.support.calibrated import READS, calibration
from tests.support.chat_server import ChatServer
from tests.support.guarding import split

GOLD = "What is the chemical symbol for gold?"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    path = tmp_path / "guard.json"
    calibration(model="openai:small", n=3, probability={3: READS}).save(path)
    return path


def run(file: Path, *arguments: str) -> Result:
    with ChatServer(split("Au", ["Au", "Au"])) as server:
        given = ["--model", "openai:small", "--base-url", server.url]
        given += ["--calibration", str(file), *arguments]
        return CliRunner().invoke(build_app(), ["ask", GOLD, *given])


def test_its_settings_are_those_of_the_calibration(file: Path) -> None:
    result = run(file, "--json")
    assert result.exit_code == 0
    found = json.loads(result.stdout)["snne_guard"]
    assert (found["n_used"], found["method"]) == (3, "snne")
    assert (found["decision"], found["certified"]) == ("accept", True)
    assert found["p_wrong"] == READS(0.0)[0]


def test_the_probability_is_told_in_per_cent(file: Path) -> None:
    page = run(file).stdout
    told = f"wrong with a probability of {100 * READS(0.0)[0]:.1f} % ("
    assert told in page
    assert "threshold 0.40, certified" in page


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--n", "5"), "n was 3, here it is 5"),
        (("--similarity", "exact"), "similarity was 'content_f1', here it is 'exact'"),
        (("--prompt-version", "2"), "prompt_version was None, here it is '2'"),
        (("--threshold", "0.3"), "threshold= beside calibration="),
    ],
)
def test_other_settings_are_refused(
    file: Path, options: tuple[str, str], told: str
) -> None:
    result = run(file, *options)
    assert result.exit_code == 2
    assert told in " ".join(result.stderr.split())


def test_what_the_message_says_to_allow_a_mismatch_is_what_there_is(file: Path) -> None:
    refused = run(file, "--n", "5")
    assert "(snne-guard ask --allow-mismatch)" in " ".join(refused.stderr.split())
    result = run(file, "--n", "5", "--allow-mismatch", "--json")
    assert result.exit_code == 0
    found = json.loads(result.stdout)["snne_guard"]
    assert (found["certified"], found["reasons"]) == (False, ["calibration_mismatch"])


def test_it_means_nothing_without_a_calibration() -> None:
    with ChatServer() as server:
        where = ["--model", "openai:small", "--base-url", server.url]
        result = CliRunner().invoke(
            build_app(), ["ask", GOLD, *where, "--allow-mismatch"]
        )
    assert result.exit_code == 2
    assert "needs a calibration that something may differ" in result.stderr


def test_the_answer_is_drawn_as_the_graded_ones_were(file: Path) -> None:
    own: dict[str, Any] = {"answer_temperature": 0.3, "top_p": 0.8, "max_tokens": 77}
    own |= {"stop": ["\n", "\n\n"]}
    calibration(model="openai:small", n=3, **own).save(file)
    with ChatServer(split("Au", ["Au", "Au"])) as server:
        given = ["--model", "openai:small", "--base-url", server.url]
        given += ["--calibration", str(file), "--json"]
        result = CliRunner().invoke(build_app(), ["ask", GOLD, *given])
        asked = sorted(request.temperature or 0.0 for request in server.requests)
        ends = [
            (body["top_p"], body["max_completion_tokens"], body["stop"])
            for body in (request.body for request in server.requests)
        ]
    assert (asked, ends) == ([0.3, 1.0], [(0.8, 77, ["\n"])] * len(ends))
    assert json.loads(result.stdout)["snne_guard"]["certified"]


def test_a_file_that_was_changed_is_refused(file: Path) -> None:
    file.write_text(file.read_text().replace("0.4", "0.9"))
    result = run(file)
    assert result.exit_code == 2
    assert "changed since it was written" in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("p", "band", "told"),
    [
        (0.1234, (0.05, 0.21), "wrong with a probability of 12 % (5 to 21 %)"),
        (0.004, (0.002, 0.011), "wrong with a probability of 0.4 % (0.2 to 1 %)"),
        (0.998, (0.97, 0.999), "wrong with a probability of 99.8 % (97 to 99.9 %)"),
        (None, None, ""),
        (0.1, None, ""),
    ],
)
def test_a_probability_in_words_is_never_0_or_100(p: Any, band: Any, told: str) -> None:
    found = Assessment(id="", answer=None, p_wrong=p, p_wrong_interval=band)
    assert p_wrong_in_words(found) == told


@pytest.mark.parametrize(
    ("decision", "told"),
    [
        ("accept", "u = 0.20 is within the threshold 0.40: the answer is delivered."),
        (
            "flag",
            (
                "u = 0.20 is within the threshold 0.40, which is not for this one: "
                "the answer is delivered, marked as uncertain."
            ),
        ),
    ],
)
def test_a_threshold_that_is_not_for_this_set_is_said_so(
    decision: Decision, told: str
) -> None:
    found = Assessment(
        id="", answer=None, decision=decision, uncertainty=0.2, threshold=0.4
    )
    assert decision_in_words(found) == told
