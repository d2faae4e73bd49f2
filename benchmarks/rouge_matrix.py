"""ROUGE-L matrix of ten answers: this library, rouge-score, and a yardstick.

All are timed in one run, in turn, and the shortest of several repetitions counts: so
the ratios hold on a busy machine, the times do not. rouge-score is given the 45 pairs
of different answers, each once, with one scorer; this library and the yardstick make
the whole matrix. The exit status is 1 if a ratio misses its target.

    python benchmarks/rouge_matrix.py
"""

from __future__ import annotations

import random
import re
import sys
import time
from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np
from rapidfuzz.distance import LCSseq
from rapidfuzz.process import cdist
from rouge_score.rouge_scorer import RougeScorer

from snne_guard.similarity import rouge_l

N = 10
# Words an answer: least speed-up over rouge-score, how often rouge-score is timed.
TARGETS = {5: (15, 20), 50: (250, 5), 500: (2500, 3)}
YARDSTICK = 1.5  # at most this much of the yardstick's time
UNICODE = 0.5  # tokens="unicode": at least this share of both ratios

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
Candidate = Callable[[Texts], object]


def answers(words: int, *, marks: bool = False) -> list[str]:
    """Return ten different answers to what could be one question."""
    rng = random.Random(words)  # noqa: S311 - the same texts in every run
    base = rng.choices(WORDS, k=words)
    extra = ["-5", "1,200", "50%", "caf\u00e9", "\u20ac5", "C++", "3-5", "\u2265"]
    texts: list[str] = []
    while len(texts) < N:
        answer = [
            rng.choice(WORDS) if rng.random() < 0.3 else word  # noqa: PLR2004 - a third
            for word in base
        ]
        if marks:
            answer[:: len(extra)] = [rng.choice(extra) for _ in answer[:: len(extra)]]
        text = " ".join(answer).capitalize() + "."
        if text not in texts:
            texts.append(text)
    return texts


def rouge_score_pairs(texts: Texts) -> object:
    return [SCORER.score(a, b)["rougeL"].fmeasure for a, b in combinations(texts, 2)]


def yardstick(texts: Texts) -> object:
    """Do the least: tokens of the distinct texts, a character each, and LCS."""
    characters: dict[str, str] = {}
    encoded = [
        "".join(
            [
                characters.setdefault(token, chr(len(characters)))
                for token in re.findall("[a-z0-9]+", text.lower())
            ]
        )
        for text in dict.fromkeys(texts)
    ]
    return cdist(encoded, encoded, scorer=LCSseq.similarity, dtype=np.int32)


def rouge(texts: Texts) -> object:
    return rouge_l(texts, tokens="rouge")


def shortest(candidates: Sequence[Candidate], texts: Texts, rounds: int) -> list[float]:
    """Return each candidate's shortest time in seconds, timed in turn."""
    best = [float("inf")] * len(candidates)
    for _ in range(rounds):
        for place, candidate in enumerate(candidates):
            start = time.perf_counter()
            candidate(texts)
            best[place] = min(best[place], time.perf_counter() - start)
    return best


def row(words: int) -> bool:
    """Print one row and say whether it meets its targets."""
    least, rounds = TARGETS[words]
    texts = answers(words)
    (reference,) = shortest([rouge_score_pairs], texts, rounds)
    fast: list[Candidate] = [yardstick, rouge, rouge_l]
    yard, paper, unicode = shortest(fast, texts, max(200, 20_000 // words))
    again = shortest([rouge_score_pairs], texts, rounds)[0]
    reference = min(reference, again)
    marked = answers(words, marks=True)
    yard_marked, unicode_marked = shortest([yardstick, rouge_l], marked, 200)
    met = (
        reference / paper >= least
        and paper / yard <= YARDSTICK
        and reference / unicode >= least * UNICODE
        and unicode / yard <= YARDSTICK / UNICODE
    )
    print(
        f"{words:>5}  {reference / paper:>7.0f}x (>= {least:>4})  "
        f"{paper / yard:>5.2f} (<= {YARDSTICK})  "
        f"{reference / unicode:>7.0f}x (>= {least * UNICODE:>6.1f})  "
        f"{unicode / yard:>5.2f} (<= {YARDSTICK / UNICODE})  "
        f"{unicode_marked / yard_marked:>5.2f}    {'ok' if met else 'MISSED'}"
    )
    return met


def main() -> int:
    print(f"ROUGE-L matrix of {N} answers; ratios of the shortest times in one run")
    print(
        "       tokens='rouge'                     tokens='unicode'\n"
        "words  over rouge-score  of yardstick     over rouge-score    of yardstick   "
        "with numbers and symbols"
    )
    return 0 if all([row(words) for words in TARGETS]) else 1  # noqa: C419 - all rows


if __name__ == "__main__":
    sys.exit(main())
