"""CPU time and memory of evaluate and calibrate as a recording grows.

Generated recordings of two sizes, the larger one with ten times the rows, are evaluated
by three methods and calibrated on, each in a process of its own. Compared are the CPU
time a row and the peaks of memory of one run; what 500 rows take is subtracted.

    python -m benchmarks.scale                   # 10,000 and 100,000 rows
    python -m benchmarks.scale --rows 1000000    # 100,000 and a million

The exit status is 1 where the time a row grows by more than 30 %, memory by more than
600 bytes a row (a generated line has 1,500), or the peak is above 1 GB.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

MOST_TIME, MOST_BYTES, MOST_PEAK = 1.3, 600.0, 1e9
FEW = 500
NO_PROMISE = 3  # exit status of calibrate where few rows certify nothing
SHARE_RIGHT = 0.7
WORDS = 200  # of the context, which nothing compares
SETTINGS = {"model": "generated", "temperature": 1.0}
COMMANDS = {
    "evaluate": ("--methods", "snne[rouge_l],dse[exact],answer_length", "--draws", "5"),
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
    if done.returncode not in {0, NO_PROMISE}:
        raise RuntimeError(done.stderr)
    *_, seconds, kilobytes = done.stderr.split()
    return float(seconds), 1024 * float(kilobytes)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=100_000, help="of the larger file")
    large = parser.parse_args(arguments).rows
    small = large // 10
    print(f"{'command':<10} {'rows':>9} {'CPU s':>8} {'ms a row':>8} {'peak MB':>8}")
    met = True
    with TemporaryDirectory() as folder:
        path = Path(folder) / "recording.jsonl"
        write(path, FEW)
        base = {command: measured(command, path)[0] for command in COMMANDS}
        found: dict[tuple[str, int], tuple[float, float]] = {}
        for rows in (small, large):
            write(path, rows)
            for command in COMMANDS:
                seconds, peak = found[command, rows] = measured(command, path)
                each = 1000 * (seconds - base[command]) / (rows - FEW)
                print(
                    f"{command:<10} {rows:>9} {seconds:>8.1f} {each:>8.3f} "
                    f"{peak / 1e6:>8.0f}"
                )
    for command in COMMANDS:
        (first, low), (second, high) = found[command, small], found[command, large]
        start = base[command]
        ratio = (second - start) / (first - start) * (small - FEW) / (large - FEW)
        growth = (high - low) / (large - small)
        fits = ratio <= MOST_TIME and growth <= MOST_BYTES and high <= MOST_PEAK
        met &= fits
        print(
            f"{command}: time a row x {ratio:.2f} (at most {MOST_TIME}), "
            f"{growth:.0f} bytes a row more (at most {MOST_BYTES:.0f}): "
            f"{'ok' if fits else 'MISSED'}"
        )
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
