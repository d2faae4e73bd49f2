"""The benches run, at a small size; importing the package loads nothing heavy."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import (
    cost_model,
    guarantees,
    guard_overhead,
    import_time,
    scale,
    server,
)
from benchmarks._server import served


def test_the_docs_have_the_costs_that_the_bench_prints() -> None:
    printed = cost_model.table().splitlines()
    page = Path(__file__).parents[2] / "docs" / "models.md"
    rows = [line for line in page.read_text("utf-8").splitlines() if line in printed]
    assert len(rows) == 5  # the heading too


@pytest.mark.parametrize("other_model", [False, True], ids=["one", "two"])
@pytest.mark.parametrize("by_tasks", [False, True], ids=["threads", "tasks"])
def test_guarded_and_bare_calls(
    *, by_tasks: bool, other_model: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard_overhead, "ROUNDS", 1)
    with served(seconds=0.02) as url:
        case = guard_overhead.Case(calls=2, by_tasks=by_tasks, other_model=other_model)
        ((guarded, bare),) = case.run(url)
    assert min(guarded, bare) >= 0.02


@pytest.mark.parametrize("command", scale.COMMANDS)
def test_a_command_is_measured(tmp_path: Path, command: str) -> None:
    path = tmp_path / "recording.jsonl"
    scale.write(path, 20)
    seconds, peak = scale.measured(command, path)
    assert seconds > 0
    assert peak > 10e6


@pytest.mark.slow
def test_the_server_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    small = {"SECONDS": 0.02, "AT_ONCE": 3, "ROUNDS": 1, "REQUESTS": 15, "STREAMS": 3}
    for name, value in {**small, "STREAM_SECONDS": 0.4, "MOST": 1000.0}.items():
        monkeypatch.setattr(server, name, value)
    assert server.main() == 0


def test_no_guarantee_of_a_threshold_is_broken(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(guarantees, "LABELS", (100,))
    assert guarantees.main(["--calibrations", "20"]) == 0
    rows = capsys.readouterr().out.splitlines()[4:]
    assert len(rows) == 16
    assert rows[0].startswith("| AUROC 0.80, 30% wrong | 0.1 | 100 |")


@pytest.mark.parametrize(
    "statement",
    [
        "import snne_guard",
        "from snne_guard import guard_client",
        "from snne_guard.similarity import content_f1; content_f1(['a', 'b'])",
        "import snne_guard.huggingface",
    ],
)
def test_importing_loads_nothing_heavy(statement: str) -> None:
    seconds, heavy = import_time.imported(statement)
    assert seconds > 0
    assert heavy == []
