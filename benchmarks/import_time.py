"""The time to import this library beside the time to import numpy.

Each import runs in a process of its own, in turn with the others, and the shortest of
several counts; what the interpreter takes to start is not part of it. The exit status
is 1 if a target is missed.

    python benchmarks/import_time.py
"""

from __future__ import annotations

import subprocess
import sys

ROUNDS = 15
MOST = 2.0  # `import snne_guard` takes at most this much of numpy's time
HEAVY = ("langchain", "langchain_core", "torch", "transformers")
STATEMENTS = (
    "import numpy",
    "import snne_guard",
    "import snne_guard.similarity",
    "import snne_guard; snne_guard.score",
)
PROGRAM = """
import sys, time
start = time.perf_counter()
{statement}
print(time.perf_counter() - start, *(n for n in {heavy!r} if n in sys.modules))
"""


def imported(statement: str) -> tuple[float, list[str]]:
    """Return the seconds of a statement in a fresh process, and what is heavy in it."""
    program = PROGRAM.format(statement=statement, heavy=HEAVY)
    done = subprocess.run(  # noqa: S603 - this interpreter, a fixed program
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    seconds, *heavy = done.stdout.split()
    return float(seconds), heavy


def main() -> int:
    best = dict.fromkeys(STATEMENTS, float("inf"))
    loaded: dict[str, list[str]] = {}
    for _ in range(ROUNDS):
        for statement in STATEMENTS:
            seconds, loaded[statement] = imported(statement)
            best[statement] = min(best[statement], seconds)
    numpy = best["import numpy"]
    print("import time as a share of numpy's; shortest of several fresh processes")
    for statement in STATEMENTS:
        heavy = ", ".join(loaded[statement]) or "nothing heavy"
        print(f"{best[statement] / numpy:>6.2f}  {statement:<36}  loads {heavy}")
    light = not any(loaded.values())
    met = light and best["import snne_guard"] <= MOST * numpy
    print(f"target: import snne_guard <= {MOST}: {'ok' if met else 'MISSED'}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
