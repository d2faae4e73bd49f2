"""What the tests of the command line share: a clean environment, files to work on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.lines import write
from tests.cli.record_command import TWO
from tests.cli.score_command import ALIKE, APART, MIXED


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "SNNE_GUARD_DISABLED"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """Return a file of two questions."""
    return write(tmp_path / "in.jsonl", *TWO)


@pytest.fixture
def output(tmp_path: Path) -> Path:
    """Return where to write, and nothing is there yet."""
    return tmp_path / "out.jsonl"


@pytest.fixture
def recordings(tmp_path: Path) -> Path:
    """Return a file of three recordings."""
    return write(tmp_path / "in.jsonl", ALIKE, MIXED, APART)
