"""Recordings that do not fit in memory: read once, and only numbers kept."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from snne_guard.evaluation import (
    Grade,
    Recording,
    evaluate,
    graded,
    read_labelled,
)
from snne_guard.evaluation.calibrate import calibrate
from tests.evaluation.support import recording, write_jsonl


def rows(n: int = 200) -> Iterator[Recording]:
    rng = np.random.default_rng(3)
    for number in range(n):
        right = rng.random() < 0.7
        words = [f"w{rng.integers(2 if right else 9)}" for _ in range(4)]
        yield recording(
            id=number,
            question=f"{number}?",
            main_answer=words[0],
            samples=words[1:],
            label=int(right),
            self_check=0.9 if right else 0.3,
        )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_jsonl(tmp_path / "r.jsonl", [row.to_dict() for row in rows()])


def evaluated(recordings: object) -> object:
    found = evaluate(recordings, methods="snne", calls=3, draws=5)  # type: ignore[arg-type]
    assert found.recipes is not None
    return found.to_dict()


def calibrated(recordings: object) -> object:
    return calibrate(recordings, error_rate=0.2).calibration  # type: ignore[arg-type]


@pytest.mark.parametrize("use", [evaluated, calibrated])
def test_a_file_a_list_and_an_iterator_give_the_same(
    path: Path, use: Callable[[object], object]
) -> None:
    assert use(read_labelled(path)) == use([*rows()]) == use(rows())


def test_many_recordings_are_graded_a_few_at_a_time() -> None:
    calls: list[int] = []

    def grader(recordings: Sequence[Recording], /) -> list[Grade | None]:
        calls.append(len(recordings))
        return [Grade(quality=0.5, correct=None, grader=row.id) for row in recordings]

    made = [recording(id=n, label=1 if n % 5 == 0 else None) for n in range(301)]
    pairs = [*graded(iter(made), grader)]
    assert [row for row, _ in pairs] == made
    assert [grade and grade.grader for _, grade in pairs] == [
        "label" if n % 5 == 0 else str(n) for n in range(301)
    ]
    assert sum(calls) == 240
    assert max(calls) <= 64


_MEASURED = """
import io, resource, sys
from contextlib import redirect_stdout
from snne_guard.cli import main
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
def run(*arguments):
    sys.argv[1:] = arguments
    with redirect_stdout(io.StringIO()):
        try:
            main()
        except SystemExit as end:
            assert not end.code, end.code
small, large, command, *options = sys.argv[1:]
run(command, small, *options)
before = peak()
run(command, large, *options)
print(peak() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory is counted otherwise")
@pytest.mark.parametrize("command", ["evaluate", "calibrate"])
def test_memory_does_not_grow_with_the_texts(tmp_path: Path, command: str) -> None:
    text, out = " word" * 600, str(tmp_path / "guard.json")

    def written(name: str, n: int) -> str:
        path = tmp_path / name
        with path.open("w") as stream:
            for row in rows(n):
                changes = {"context": text, "question": f"{row.id}?{text}"}
                stream.write(json.dumps(row.to_dict() | changes) + "\n")
        return str(path)

    options = {
        "evaluate": ["--methods", "dse[exact],snne[exact]", "--draws", "2"],
        "calibrate": ["--error-rate", "0.2", "--similarity", "exact", "--out", out],
    }[command]
    small, large = written("small.jsonl", 1000), written("large.jsonl", 20_000)
    texts = Path(large).stat().st_size
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", _MEASURED, small, large, command, *options],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert texts > 100_000_000
    assert int(done.stdout) * 1024 < 20_000_000
