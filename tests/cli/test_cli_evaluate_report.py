"""``snne-guard evaluate --html``: the report, and what a missing package does to it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from snne_guard.cli import build_app
from tests.cli.lines import write
from tests.support.evaluating import questions
from tests.support.html_reading import read


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    recordings = write(tmp_path / "labelled.jsonl", *questions(30))
    report = str(tmp_path / "report.html")
    found = ["evaluate", str(recordings), "--methods", "snne,dse", "--draws", "10"]
    return [*found, "--html", report]


def test_the_report_shows_what_the_table_says(arguments: list[str]) -> None:
    result = CliRunner().invoke(build_app(), arguments)

    assert result.exit_code == 0
    page = read(Path(arguments[-1]).read_text(encoding="utf-8"))
    [ranking] = page.all("table", **{"class": "ranking"})
    rows = [line.split() for line in result.stdout.splitlines()]
    rows = [row for row in rows if row and row[0].startswith(("snne[", "dse["))]
    assert rows
    for name, _, auroc, *_ in rows:
        assert name in ranking.text
        # The table of the terminal leaves out the zero before the dot.
        assert (auroc if auroc == "1.000" else f"0{auroc}") in ranking.text
    assert page.all("figure")


def test_without_its_packages_nothing_is_evaluated(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)

    result = CliRunner().invoke(build_app(), arguments)

    assert result.exit_code != 0
    assert 'pip install "snne-guard[eval]"' in result.stderr
    assert result.stdout == ""
    assert not Path(arguments[-1]).exists()
