"""The bench of the server runs, at a small size, and sees a target that is missed."""

from __future__ import annotations

import pytest

from benchmarks import server

pytestmark = pytest.mark.slow


def test_it_runs_and_sees_what_is_missed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    small = {"SECONDS": 0.02, "AT_ONCE": 3, "ROUNDS": 1, "REQUESTS": 15, "STREAMS": 3}
    for name, value in {**small, "STREAM_SECONDS": 0.4, "MOST": 1000.0}.items():
        monkeypatch.setattr(server, name, value)
    assert server.main() == 0
    monkeypatch.setattr(server, "MOST", 0.0)
    assert server.main() == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[-1] for line in lines[-4:]] == ["MISSED", "MISSED", "ok", "ok"]
