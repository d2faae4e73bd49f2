from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.cli.support import run
from tests.evaluation.support import EXAMPLE, ROWS, write_jsonl

EVALUATE = ("evaluate", EXAMPLE, "--grader", "contains", "--methods", "snne")
QUICK = ("--resamples", 2)


@pytest.mark.parametrize(
    ("limits", "kept"),
    [
        (["--fail-under", "auroc=.7"], [True]),
        (["--fail-under", "auroc=.9"], [False]),
        (
            ["--fail-under", "auroc=.7", "--fail-under", "prr_normalised=.9"],
            [True, False],
        ),
        (["--max-error", 0.4, "--at-coverage", 0.8], [True]),
        (["--max-error", 0.1, "--at-coverage", 0.8], [False]),
        (["--max-error", 0.99], [False]),  # two of the answers are never accepted
        (
            ["--fail-under", "auarc=.7", "--max-error", 0.2, "--at-coverage", 0.1],
            [True] * 2,
        ),
        ([], []),
    ],
)
def test_a_limit_that_is_not_kept_ends_with_status_1(
    limits: list[object], kept: list[bool], tmp_path: Path
) -> None:
    junit = tmp_path / "junit.xml"
    found = run(*EVALUATE, *QUICK, *limits, "--junit", junit)
    assert found.exit_code == (0 if all(kept) else 1), found.output
    lines = [line for line in found.stdout.splitlines() if " in " in line]
    told = [line.startswith("kept") for line in lines if "kept" in line.lower()[:8]]
    assert told == kept
    suite = ET.fromstring(junit.read_text())  # noqa: S314 - our own
    assert suite.tag == "testsuite"
    assert suite.get("tests") == str(len(kept))
    assert suite.get("failures") == str(kept.count(False))
    cases = suite.findall("testcase")
    assert [case.find("failure") is None for case in cases] == kept
    assert all(case.get("classname") == str(EXAMPLE) for case in cases)


def test_a_figure_that_does_not_exist_keeps_no_limit(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "r.jsonl", [{**row, "label": 1} for row in ROWS])
    found = run("evaluate", path, "--methods", "snne", "--fail-under", "auroc=.1")
    assert found.exit_code == 1
    assert "NOT KEPT: AUROC of snne[content_f1] at least 0.1" in found.stdout


def test_every_file_must_keep_the_limits(tmp_path: Path) -> None:
    hostile = tmp_path / 'a\x1b<&"b.jsonl'
    write_jsonl(hostile, [{**row, "label": 1 - row["label"]} for row in ROWS])
    junit = tmp_path / "junit.xml"
    found = run(
        *EVALUATE, hostile, *QUICK, "--fail-under", "auroc=.7", "--junit", junit
    )
    assert found.exit_code == 1
    assert "\x1b" not in found.stdout
    suite = ET.fromstring(junit.read_text())  # noqa: S314 - our own
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        (["--fail-under", "auroc"], "expected --fail-under NAME=NUMBER"),
        (["--fail-under", "accuracy=.7"], "expected --fail-under NAME=NUMBER"),
        (["--fail-under", "auroc=nan"], "expected --fail-under NAME=NUMBER"),
        (["--at-coverage", 0.8], "expected --max-error with --at-coverage"),
        (["--max-error", 1.5], "--max-error"),
        (["--max-error", 0.1, "--at-coverage", 0], "--at-coverage"),
    ],
)
def test_limits_that_make_no_sense_are_refused(limits: list[object], told: str) -> None:
    found = run(*EVALUATE, *limits)
    assert found.exit_code == 2
    assert told in found.stderr
