"""The time to import this library beside the time to import numpy.

Each import runs in a fresh process, in turn with the other; medians of five runs are
compared. What the interpreter takes to start is not counted.

    python -m benchmarks.import_time

The exit status is 1 where the target is missed, or LangChain or torch is loaded.
"""

from __future__ import annotations

import subprocess
import sys
from statistics import median

ROUNDS = 5
MOST = 2.0
HEAVY = ("langchain", "langchain_core", "torch", "transformers")
NUMPY, OURS = "import numpy", "import snne_guard"
STATEMENTS = (NUMPY, OURS, "from snne_guard import score")
PROGRAM = """
import sys, time
start = time.perf_counter()
{statement}
print(time.perf_counter() - start, *(n for n in {heavy!r} if n in sys.modules))
"""


def imported(statement: str) -> tuple[float, list[str]]:
    """Return the seconds of a statement in a fresh process, and what heavy it loads."""
    program = PROGRAM.format(statement=statement, heavy=HEAVY)
    done = subprocess.run(  # noqa: S603 - this interpreter, a fixed program
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    seconds, *heavy = done.stdout.split()
    return float(seconds), heavy


def main() -> int:
    times: dict[str, list[float]] = {statement: [] for statement in STATEMENTS}
    loaded: dict[str, list[str]] = {}
    for run in range(ROUNDS + 1):
        for statement in STATEMENTS:
            seconds, loaded[statement] = imported(statement)
            if run:  # the first reads the files from the disk
                times[statement].append(seconds)
    share = {one: median(times[one]) / median(times[NUMPY]) for one in STATEMENTS}
    for statement in STATEMENTS:
        heavy = ", ".join(loaded[statement]) or "nothing heavy"
        print(f"{share[statement]:>5.2f} of numpy  {statement:<28}  loads {heavy}")
    met = share[OURS] <= MOST and not any(loaded.values())
    print(f"target: {OURS} <= {MOST}: {'ok' if met else 'MISSED'}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
