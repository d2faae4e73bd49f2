"""All of ``snne-guard evaluate`` beside SNNE alone, and what 10,000 questions take.

A thousand questions with ten answers of sixty words and their log-probabilities, read
from a file, scored, ranked and given intervals, once with ``--methods all`` and once
with ``--methods snne``. Both are timed in turn and the shortest of several repetitions
counts; the exit status is 1 if the ratio misses its target. With ``--memory`` ten
thousand questions go through all methods, and the exit status is 1 if the process took
more than 2 GB.

    python benchmarks/evaluate.py
    python benchmarks/evaluate.py --memory
"""

from __future__ import annotations

import json
import random
import resource
import sys
import tempfile
import time
from pathlib import Path

from snne_guard.evaluation import Evaluation, evaluate

QUESTIONS, N, WORDS = 1000, 10, 60
ROUNDS = 3
TARGET = 3.0  # at most this many times the time of SNNE alone
MANY, LIMIT = 10_000, 2e9  # questions; bytes
VOCABULARY = [f"word{number}" for number in range(400)]


def write(path: Path, questions: int) -> None:
    """Write recordings, the same in every run; wrong answers scatter more."""
    rng = random.Random(0)  # noqa: S311 - no secret
    with path.open("w", encoding="utf-8") as stream:
        for number in range(questions):
            label = int(rng.random() < 0.5)  # noqa: PLR2004 - half
            base = rng.choices(VOCABULARY, k=WORDS)
            share = rng.random() * (0.5 if label else 1.0)
            answers = [
                " ".join(
                    rng.choice(VOCABULARY) if rng.random() < share else word
                    for word in base
                )
                for _ in range(N)
            ]
            logprobs = [
                [round(-rng.expovariate(2), 4) for _ in range(WORDS)] for _ in answers
            ]
            row = {
                "id": number,
                "question": f"Question {number}?",
                "main_answer": answers[0],
                "samples": answers[1:],
                "main_logprobs": logprobs[0],
                "token_logprobs": logprobs[1:],
                "label": label,
            }
            stream.write(json.dumps(row) + "\n")


def timed(path: Path, methods: str, draws: int) -> tuple[float, Evaluation]:
    """Return the seconds that an evaluation takes, and what it found."""
    began = time.perf_counter()
    found = evaluate(path, methods=methods, draws=draws)
    return time.perf_counter() - began, found


def speed(path: Path) -> int:
    """Print the ratio, with the figures' intervals and without."""
    write(path, QUESTIONS)
    ratios: list[float] = []
    for draws in (1, 1000):
        alone = every = float("inf")
        ranked = 0
        for _ in range(ROUNDS):
            alone = min(alone, timed(path, "snne", draws)[0])
            took, found = timed(path, "all", draws)
            every = min(every, took)
            (one,) = found.sets
            ranked = sum(row.status == "evaluated" for row in one.methods)
        print(
            f"{draws} draws: {ranked} methods {every:.2f} s, SNNE and length "
            f"{alone:.2f} s, {every / alone:.1f}x (<= {TARGET})"
        )
        ratios.append(every / alone)
    return 0 if max(ratios) <= TARGET else 1


def memory(path: Path) -> int:
    """Print the peak of the memory, and say whether it stays within the limit."""
    write(path, MANY)
    seconds, found = timed(path, "all", 1000)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(
        f"{len(found.sets[0].ids)} questions, {len(found.sets[0].methods)} methods: "
        f"{seconds:.0f} s, {peak / 1e6:.0f} MB at most (<= {LIMIT / 1e6:.0f})"
    )
    return 0 if peak <= LIMIT else 1


def main() -> int:
    """Run what the arguments ask for."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "recordings.jsonl"
        return memory(path) if "--memory" in sys.argv[1:] else speed(path)


if __name__ == "__main__":
    sys.exit(main())
