"""ROUGE-L matrix of ten answers beside rouge-score, in one run.

Both are timed in turn and the shortest of several repetitions counts, so the ratios
hold on a busy machine. rouge-score gets the 45 pairs of different answers, each once;
this library makes the whole matrix. The exit status is 1 if a ratio misses its target.

    python -m benchmarks.rouge_matrix
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Sequence
from itertools import combinations

from rouge_score.rouge_scorer import RougeScorer

from snne_guard.similarity import rouge_l

N = 10
# Words an answer: least speed-up of tokens="rouge" over rouge-score.
TARGETS = {5: 15, 50: 250, 500: 2500}
SCORER = RougeScorer(["rougeL"])
WORDS = (  # noqa: SIM905 - a hundred words read better in one text
    "the of and to in is that it was for on are with as his they at be this from have"
    " or by one had not but what all were when we there can an your which their said"
    " if do will each about how up out them then she many some so these would other"
    " into has more her two like him see time could no make than first been its who"
    " now people my made over did down only way find use may water long little very"
    " after words called just where most know paris france capital river city north"
).split()

Texts = Sequence[str]


def answers(words: int) -> list[str]:
    """Return ten different answers that could be to one question."""
    rng = random.Random(words)  # noqa: S311 - the same texts in every run
    base = rng.choices(WORDS, k=words)
    texts: dict[str, None] = {}
    while len(texts) < N:
        kept = [word if rng.random() < 0.7 else rng.choice(WORDS) for word in base]  # noqa: PLR2004 - a third changes
        texts[" ".join(kept).capitalize() + "."] = None
    return list(texts)


def rouge_score_pairs(texts: Texts) -> object:
    return [SCORER.score(a, b)["rougeL"].fmeasure for a, b in combinations(texts, 2)]


def rouge(texts: Texts) -> object:
    return rouge_l(texts, tokens="rouge")


def shortest(run: Callable[[Texts], object], texts: Texts, rounds: int) -> float:
    """Return the shortest time in seconds."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        run(texts)
        times.append(time.perf_counter() - start)
    return min(times)


def row(words: int, least: int) -> bool:
    """Print one row and say whether it meets its target."""
    texts = answers(words)
    rounds = max(100, 10_000 // words)
    theirs = min(shortest(rouge_score_pairs, texts, 2) for _ in range(2))
    ours = shortest(rouge, texts, rounds)
    unicode = shortest(rouge_l, texts, rounds)
    theirs = min(theirs, shortest(rouge_score_pairs, texts, 2))
    met = theirs / ours >= least
    print(
        f"{words:>5}  {theirs / ours:>7.0f}x (>= {least:>4})  "
        f"{theirs / unicode:>8.0f}x  {'ok' if met else 'MISSED'}"
    )
    return met


def main() -> int:
    print(f"ROUGE-L matrix of {N} answers: times as fast as rouge-score")
    print("words  tokens='rouge'       tokens='unicode'")
    return 0 if all([row(*target) for target in TARGETS.items()]) else 1  # noqa: C419 - all rows


if __name__ == "__main__":
    sys.exit(main())
