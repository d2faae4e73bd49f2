"""Does the cost stay linear up to a million rows, and do two workers of Ray help?

Generated recordings of 10,000 rows and of a million are evaluated by three methods and
calibrated on, both at once, each in a process of its own. Compared are the CPU time a
row and the peaks of memory; what 500 rows take is subtracted, and of the small files
five runs give the median.

Then questions are recorded and scored in this process, by one worker of Ray, and by
two. The model answers at once, so what is measured is the work of the guard. Ray is
started before, and the time of a few questions, in which its workers start, is
subtracted; medians of five rounds. This wants two free cores.

    python -m benchmarks.scale                  # about 6 minutes, 1.6 GB on the disk
    python -m benchmarks.scale --rows 100000    # a tenth of the rows

The exit status is 1 where the time a row grows by more than 30%, memory by more than
600 bytes a row (a generated line has 1,500), the peak is above 1 GB, one worker takes
more than 1.15 times as long as this process, or two are less than 1.4 times as fast.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks._upstream import Upstream
from snne_guard import SNNEGuard
from snne_guard.distributed import record_file
from snne_guard.evaluation.recorder import RecordingRun, record
from snne_guard.evaluation.recordings import Question
from snne_guard.types import Assessment

MOST_TIME, MOST_BYTES, MOST_PEAK = 1.3, 600.0, 1e9
FEW = 500
SMALL = 10_000
MOST_ONE, LEAST_TWO = 1.15, 1.4
ROUNDS = 5
QUESTIONS, FEW_QUESTIONS, SAMPLES, IN_FLIGHT = 500, 64, 10, 16
NO_GUARANTEE = 3  # exit status of calibrate where few rows certify nothing
SHARE_RIGHT = 0.7
WORDS = 200  # of the context, which nothing compares
SETTINGS = {"model": "generated", "temperature": 1.0}
COMMANDS = {
    "evaluate": (
        "--methods",
        "snne[rouge_l],dse[exact],answer_length",
        "--resamples",
        "5",
    ),
    "calibrate": ("--error-rate", "0.2", "--similarity", "rouge_l"),
}
PROGRAM = """
import resource, sys
from snne_guard.cli import main
try:
    main()
finally:
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(used.ru_utime + used.ru_stime, used.ru_maxrss, file=sys.stderr)
"""


def write(path: Path, rows: int) -> None:
    """Write a recording whose samples differ more where the answer is wrong."""
    rng = np.random.default_rng(rows)
    with path.open("w") as stream:
        for number in range(rows):
            right = bool(rng.random() < SHARE_RIGHT)
            replies = rng.integers(2 if right else 12, size=5)
            answer, *samples = (f"It was in the year {1900 + year}" for year in replies)
            row = {
                "id": str(number),
                "question": f"In which year was number {number}?",
                "context": " ".join(["context"] * WORDS),
                "main_answer": answer,
                "samples": samples,
                "label": int(right),
                "settings": SETTINGS,
            }
            stream.write(json.dumps(row) + "\n")


def measured(command: str, path: Path) -> tuple[float, float]:
    """Return the seconds of CPU of a command and its peak of memory in bytes."""
    options = [*COMMANDS[command]]
    if command == "calibrate":
        options += ["--out", str(path.with_suffix(".guard.json"))]
    done = subprocess.run(  # noqa: S603 - this interpreter, a fixed program
        [sys.executable, "-c", PROGRAM, command, str(path), *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode not in {0, NO_GUARANTEE}:
        raise RuntimeError(done.stderr)
    *_, seconds, kilobytes = done.stderr.split()
    return float(seconds), 1024 * float(kilobytes)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the large file")
    large = parser.parse_args(arguments).rows
    met = cost_of_rows(min(SMALL, large // 10), large)
    return 0 if workers() and met else 1


def cost_of_rows(small: int, large: int) -> bool:
    print(f"{'command':<10} {'rows':>9} {'CPU s':>8} {'ms a row':>8} {'peak MB':>8}")
    found: dict[int, list[tuple[float, float]]] = {}
    with TemporaryDirectory() as folder, ThreadPoolExecutor() as together:
        path = Path(folder) / "recording.jsonl"
        for rows in (FEW, small, large):
            write(path, rows)
            paths = [path] * len(COMMANDS)
            runs = 1 if rows == large else ROUNDS
            times = [[*together.map(measured, COMMANDS, paths)] for _ in range(runs)]
            found[rows] = [sorted(each)[runs // 2] for each in zip(*times, strict=True)]
            for command, (start, _), (seconds, peak) in zip(
                COMMANDS, found[FEW], found[rows], strict=True
            ):
                each = 1000 * (seconds - start) / max(1, rows - FEW)
                print(
                    f"{command:<10} {rows:>9} {seconds:>8.1f} {each:>8.3f} "
                    f"{peak / 1e6:>8.0f}"
                )
    met = True
    for command, (start, _), (first, low), (second, high) in zip(
        COMMANDS, found[FEW], found[small], found[large], strict=True
    ):
        ratio = (second - start) / (first - start) * (small - FEW) / (large - FEW)
        growth = (high - low) / (large - small)
        fits = ratio <= MOST_TIME and growth <= MOST_BYTES and high <= MOST_PEAK
        met &= fits
        print(
            f"{command}: cost linear from {small:,} to {large:,} generated rows: time "
            f"a row x {ratio:.2f} (at most {MOST_TIME}); memory flat: {growth:.0f} "
            f"bytes a row more (at most {MOST_BYTES:.0f}): {'ok' if fits else 'MISSED'}"
        )
    return met


def workers() -> bool:
    """Print how one and two workers of Ray compare with this process."""
    if (os.cpu_count() or 1) < 2:  # noqa: PLR2004 - a core for each worker
        print("Ray: not measured, for want of two cores")
        return True
    recorded(FEW_QUESTIONS, 1)  # starts Ray on this machine, once
    rounds = [
        [recorded(QUESTIONS, n) - recorded(FEW_QUESTIONS, n) for n in (0, 1, 2)]
        for _ in range(ROUNDS)
    ]
    plain, one, two = map(median, zip(*rounds, strict=True))
    fits: bool = one <= MOST_ONE * plain and two * LEAST_TWO <= one
    print(
        f"{QUESTIONS} questions: this process {plain:.1f} s; one worker of Ray "
        f"{one:.1f} s, x {one / plain:.2f} (at most {MOST_ONE}); two {two:.1f} s, "
        f"{one / two:.2f} times as fast (at least {LEAST_TWO}): "
        f"{'ok' if fits else 'MISSED'}"
    )
    return fits


def recorded(n: int, n_workers: int) -> float:
    """Return the seconds in which questions are recorded, by no worker: in here."""
    questions = [
        Question.from_dict({"id": str(number), "question": f"{number}?"})
        for number in range(n)
    ]
    guard = SNNEGuard(
        Upstream(), n=1 + SAMPLES, schedule="answer_first", max_concurrency=IN_FLIGHT
    )

    async def ask(question: Question) -> Assessment:
        return await guard.aassess(question.prompt)

    with TemporaryDirectory() as folder:
        path = Path(folder) / "recording.jsonl"
        start = time.perf_counter()
        with RecordingRun(path, questions, settings=SETTINGS, n_samples=SAMPLES) as run:
            if n_workers:
                record_file(
                    run,
                    model=Upstream,
                    workers=n_workers,
                    max_concurrency=IN_FLIGHT,
                )
            else:
                asyncio.run(record(run, ask, max_concurrency=IN_FLIGHT))
        seconds = time.perf_counter() - start
    if run.recorded != n:
        msg = f"expected {n} questions to be recorded, got {run.recorded}"
        raise RuntimeError(msg)
    return seconds


if __name__ == "__main__":
    sys.exit(main())
