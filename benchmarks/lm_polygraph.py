"""lm-polygraph's LexicalSimilarity and our SNNE, on the same answers.

Questions with ten answers of 60 words: lm-polygraph scores 200 of them in ten parts,
which take turns with ours on all 1,000, ROUGE-L included; the shortest time a question
counts for each, so the ratio holds on a busy machine. lm-polygraph runs in an
environment of its own, whose interpreter ``SNNE_GUARD_LM_POLYGRAPH`` names; without it
there is nothing to compare, and the program says so. The exit status is 1 if one of the
ratios misses the target. ``benchmarks/README.md`` says how to make the environment.

    SNNE_GUARD_LM_POLYGRAPH=/path/to/python python -m benchmarks.lm_polygraph
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable

from benchmarks.rouge_matrix import WORDS
from snne_guard import score
from snne_guard.scorers import snne
from snne_guard.similarity import rouge_l, rouge_l_paper

QUESTIONS = 1_000
PARTS, PART = 10, 20
ANSWERS = 10
LENGTH = 60
LEAST = 200
VARIABLE = "SNNE_GUARD_LM_POLYGRAPH"

# Reads a list of lists of texts a line, writes seconds and values a line.
THEIRS = """
import json, sys, time
from importlib.metadata import version
from lm_polygraph.estimators.lexical_similarity import LexicalSimilarity
estimator = LexicalSimilarity("rougeL")
print(json.dumps(version("lm-polygraph")), flush=True)
for line in sys.stdin:
    texts = json.loads(line)
    start = time.perf_counter()
    values = estimator({"sample_texts": texts})
    seconds = time.perf_counter() - start
    print(json.dumps([seconds, values.tolist()]), flush=True)
"""


def questions() -> list[list[str]]:
    """Return the answers to each question: one text with three words in ten changed."""
    rng = random.Random(0)  # noqa: S311 - the same texts in every run

    def answer(base: list[str]) -> str:
        changed = (rng.choice(WORDS) if rng.random() < 0.3 else one for one in base)  # noqa: PLR2004
        return " ".join(changed).capitalize() + "."

    bases = (rng.choices(WORDS, k=LENGTH) for _ in range(QUESTIONS))
    return [[answer(base) for _ in range(ANSWERS)] for base in bases]


OURS: dict[str, Callable[[list[str]], object]] = {
    "score(answers)": lambda texts: score(
        texts, include_answer=False, similarity="rouge_l", method="snne"
    ),
    "snne(rouge_l(answers))": lambda texts: snne(rouge_l(texts)),
    "snne(rouge_l_paper(answers))": lambda texts: snne(rouge_l_paper(texts)),
}


def compare(python: str) -> bool:
    """Print the ratios and say whether the first of them meets its target."""
    asked = questions()
    theirs: list[float] = []
    ours = dict.fromkeys(OURS, float("inf"))
    with subprocess.Popen(  # noqa: S603 - the interpreter that the user named
        [python, "-c", THEIRS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin  # noqa: S101 - pipes, as asked for
        assert process.stdout  # noqa: S101 - likewise
        first = process.stdout.readline()
        if not first:
            print(f"LexicalSimilarity cannot be imported by {python}")
            return False
        for part in range(PARTS):
            texts = asked[part * PART : (part + 1) * PART]
            process.stdin.write(json.dumps(texts) + "\n")
            process.stdin.flush()
            seconds, values = json.loads(process.stdout.readline())
            assert len(values) == PART  # noqa: S101 - it scored all of them
            theirs.append(seconds / PART)
            for name, function in OURS.items():
                start = time.perf_counter()
                for one in asked:
                    function(one)
                took = (time.perf_counter() - start) / QUESTIONS
                ours[name] = min(ours[name], took)
        process.stdin.close()
    print(f"{ANSWERS} answers of {LENGTH} words; milliseconds a question")
    print(f"lm-polygraph {json.loads(first)} {min(theirs) * 1e3:20.2f}")
    for name, took in ours.items():
        print(f"{name:30} {took * 1e3:6.3f}  {min(theirs) / took:6.0f}x")
    met = min(theirs) / max(ours.values()) >= LEAST
    print(f"at least {LEAST}x each: {'ok' if met else 'MISSED'}")
    return met


def main() -> int:
    python = os.environ.get(VARIABLE)
    if not python:
        print(f"skipped: {VARIABLE} names no interpreter with lm-polygraph")
        return 0
    if shutil.which(python) is None:
        print(f"{VARIABLE} names no program: {python}")
        return 1
    return 0 if compare(python) else 1


if __name__ == "__main__":
    sys.exit(main())
