"""The speed benches run, at a small size, and would see a target that is missed."""

from __future__ import annotations

import pytest

from benchmarks import cost_model, guard_overhead, import_time
from benchmarks._server import served
from benchmarks.guard_overhead import Case


def test_cost_of_a_guarded_call() -> None:
    assert cost_model.table().splitlines()[2:4] == [
        "| 100, 20 | 5.0 | 3.9 | 3.0 | 3.3 |",
        "| 1500, 50 | 5.0 | 3.2 | 1.8 | 2.4 |",
    ]


@pytest.mark.parametrize("by_tasks", [False, True], ids=["threads", "tasks"])
def test_guarded_and_bare_calls(
    *, by_tasks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard_overhead, "ROUNDS", 1)
    case = Case(calls=2, by_tasks=by_tasks, takes_n=False)
    with served(seconds=0.02, takes_n=False) as url:
        guarded, bare = case.run(url)
    assert guarded >= 0.02
    assert bare >= 0.02


def test_a_missed_target_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(self: Case, url: str) -> tuple[float, float]:
        return (1.04, 1.0) if self.calls == 1 else (1.2, 1.0)

    monkeypatch.setattr(Case, "run", run)
    monkeypatch.setattr(guard_overhead, "with_self_check", lambda _: (1.0, 1.0))
    monkeypatch.setattr(guard_overhead, "CASES", guard_overhead.CASES[-1:])
    assert guard_overhead.main() == 0
    one = Case(calls=1, by_tasks=False, takes_n=True)
    monkeypatch.setattr(guard_overhead, "CASES", [one])
    assert guard_overhead.main() == 1
    assert capsys.readouterr().out.splitlines()[-1].endswith("MISSED")


@pytest.mark.parametrize(
    "statement",
    [
        "import snne_guard",
        "from snne_guard import guard_client",
        "from snne_guard.similarity import content_f1; content_f1(['a', 'b'])",
        "import snne_guard.sampling.huggingface",
    ],
)
def test_importing_loads_nothing_heavy(statement: str) -> None:
    seconds, heavy = import_time.imported(statement)
    assert seconds > 0
    assert heavy == []
