"""The bench of scale runs, and would see time or memory that grows too fast."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import scale


@pytest.mark.parametrize("command", scale.COMMANDS)
def test_a_command_is_measured(tmp_path: Path, command: str) -> None:
    path = tmp_path / "recording.jsonl"
    scale.write(path, 20)
    seconds, peak = scale.measured(command, path)
    assert seconds > 0
    assert peak > 10e6


@pytest.mark.parametrize(
    ("power", "each", "one", "two", "status"),
    [
        (1.0, 100, 1.1, 0.7, 0),
        (1.5, 100, 1.1, 0.7, 1),
        (1.0, 2000, 1.1, 0.7, 1),
        (1.0, 100, 1.2, 0.7, 1),
        (1.0, 100, 1.1, 0.9, 1),
    ],
)
def test_a_missed_target_fails(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *,
    power: float,
    each: float,
    one: float,
    two: float,
    status: int,
) -> None:
    def measured(command: str, path: Path) -> tuple[float, float]:
        rows = len(path.read_bytes().splitlines())
        return 1 + rows**power / 1000, 1e8 + each * rows

    def recorded(n: int, n_workers: int) -> float:
        return 5 + n * (1.0, one, two)[n_workers]

    monkeypatch.setattr(scale, "measured", measured)
    monkeypatch.setattr(scale, "recorded", recorded)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    assert scale.main(["--rows", "10000"]) == status
    assert ("MISSED" in capsys.readouterr().out) == bool(status)
