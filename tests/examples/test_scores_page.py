"""What the page about scores and the README say is what the command prints."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from benchmarks import certificate, scores, scores_search
from tests.examples.doc_pages import DOCS

PAGE = (DOCS / "scores.md").read_text(encoding="utf-8")
README = (DOCS.parent / "README.md").read_text(encoding="utf-8")

recorded = pytest.mark.skipif(
    not (certificate.SHARED / "data" / scores.QWEN).is_file(),
    reason="the recordings are not there; SNNE_GUARD_SHARED names their folder",
)


def printed(
    half: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> list[str]:
    monkeypatch.setattr(sys, "argv", ["scores", "--half", half])
    assert scores.main() == 0
    return [line.rstrip() for line in capsys.readouterr().out.splitlines() if line]


@recorded
def test_the_tables_are_those_that_the_command_prints(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = printed("all", monkeypatch, capsys)[1:]
    said = set(PAGE.splitlines())
    assert len(lines) == 39
    assert not [line for line in lines if line not in said]
    gains = [
        re.search(r"([+-]\d.\d+) \[(\S+), (\S+)\]", line)
        for line in lines
        if "default: SNNE" in line and "thirds" in line
    ]
    found = [one.groups() for one in gains if one is not None]
    assert len(found) == 2
    for point, low, high in found:
        assert f"{point} ({low} to {high})" in README


@recorded
def test_the_gains_on_the_odd_half_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gains = [line for line in printed("odd", monkeypatch, capsys) if "thirds" in line]
    said = set(PAGE.splitlines())
    assert len(gains) == 19
    assert not [line for line in gains if line not in said]


def test_without_recordings_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(certificate, "SHARED", tmp_path)
    for program in (scores, scores_search):
        monkeypatch.setattr(sys, "argv", ["program"])
        assert program.main() == 0
        assert "SNNE_GUARD_SHARED" in capsys.readouterr().out
