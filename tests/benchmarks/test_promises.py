"""The bench of promises runs, and would see one that is broken."""

from __future__ import annotations

import pytest

from benchmarks import promises


def test_it_prints_a_row_for_each_case(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(promises, "LABELS", (100,))
    assert promises.main(["--draws", "20"]) == 0
    rows = capsys.readouterr().out.splitlines()[4:]
    assert len(rows) == 16
    assert rows[0].startswith("| AUROC 0.80, 30% wrong | 0.1 | 100 |")


def test_a_search_without_a_promise_is_found_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def careless(u: object, wrong: object, *, alpha: float, delta: float) -> float:
        del delta
        return promises.naive(u, wrong, alpha)  # type: ignore[arg-type] # what search is given

    monkeypatch.setattr(promises, "LABELS", (100,))
    monkeypatch.setattr(promises, "search", careless)
    assert promises.main(["--draws", "40"]) == 1
    assert "BROKEN" in capsys.readouterr().out
