"""What the page about guarantees says is what the benchmark prints."""

from __future__ import annotations

import pytest

from benchmarks import certificate, promises
from benchmarks._promise_cascade import report_cascade
from benchmarks._promise_means import EASY, report_exploring, report_means
from benchmarks._promise_recordings import report_recordings
from benchmarks._promise_truths import Binormal
from benchmarks.certificate import MissedTargets
from tests.examples.doc_pages import DOCS

PAGE = (DOCS / "guarantees.md").read_text(encoding="utf-8").splitlines()


def test_some_lines_of_its_tables_are_those_that_are_printed() -> None:
    missed = MissedTargets()
    rows = [
        promises.measured_row(EASY, 0.2, n, before, draws=promises.DRAWS, missed=missed)
        for n, before in ((100, 0.41), (200, 0.49))
    ]
    assert [row for row in rows if row not in PAGE] == []
    assert missed.missed == []


def test_it_tells_of_all_questions_that_were_tried(
    capsys: pytest.CaptureFixture[str],
) -> None:
    reports = (
        promises.report_measured,
        promises.report_broken,
        report_means,
        report_exploring,
        report_cascade,
    )
    for report in reports:
        report(MissedTargets(), draws=1)
    lines = capsys.readouterr().out.splitlines()
    heads = {line.split(" | ")[0] + " | " for line in lines if line.startswith("| ")}
    told = "\n".join(PAGE)
    assert len(heads) > 15
    assert not [head for head in heads if head not in told]


def test_a_broken_promise_is_told() -> None:
    missed = MissedTargets()
    truth = Binormal(auroc=0.8, base=0.3)
    line = promises.measured_row(truth, 0.2, 100, 0.9, draws=20, missed=missed)
    assert line.endswith("<- outside of the noise")
    assert missed.missed == ["AUROC 0.80, 30 % wrong, 100: ranks"]


@pytest.mark.skipif(
    not (certificate.SHARED / "data").is_dir(),
    reason="the recordings are not there; SNNE_GUARD_SHARED names their folder",
)
def test_the_recordings_show_what_the_page_says(
    capsys: pytest.CaptureFixture[str],
) -> None:
    report_recordings()
    lines = [line for line in capsys.readouterr().out.splitlines() if line]
    assert len(lines) > 20
    assert [line for line in lines[1:] if line not in PAGE] == []
