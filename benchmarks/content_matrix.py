"""Content F1 of ten answers beside ROUGE-L of the same answers.

Both are timed in one run, in turn, and the shortest of several repetitions counts: so
the ratios hold on a busy machine, the times do not. Content F1 weighs the words of each
pair by themselves, so it takes several times as long. The exit status is 1 if a ratio
misses its target.

    python -m benchmarks.content_matrix
"""

from __future__ import annotations

import sys

from benchmarks.guard_overhead import answers as numbered
from benchmarks.rouge_matrix import Texts, answers, shortest
from snne_guard.similarity import content_f1, rouge_l

QUESTION = "Who built the bridge over the river, and in which year was it opened?"
# Words an answer: at most how many times ROUGE-L's time.
TARGETS = {5: 25, 10: 15, 15: 15, 60: 15, 500: 100}


def content(texts: Texts) -> object:
    return content_f1(texts, question=QUESTION)


def row(name: str, texts: Texts, most: float) -> bool:
    """Print one row and say whether it meets its target."""
    lexical, weighed = shortest(
        [rouge_l, content], texts, max(10, 4000 // len(texts[0]))
    )
    met = weighed / lexical <= most
    print(
        f"{name:>14}  {weighed / lexical:>6.1f} (<= {most})  "
        f"{weighed * 1000:>7.2f} over {lexical * 1000:.2f} ms  "
        f"{'ok' if met else 'MISSED'}"
    )
    return met


def main() -> int:
    print("content F1 over ROUGE-L, a matrix of ten answers; shortest times in one run")
    rows = [(f"{words} words", answers(words), most) for words, most in TARGETS.items()]
    rows.append(("500 numbered", numbered(10, 500), TARGETS[500]))
    return 0 if all([row(*one) for one in rows]) else 1  # noqa: C419 - all rows


if __name__ == "__main__":
    sys.exit(main())
