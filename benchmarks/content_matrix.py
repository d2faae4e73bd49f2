"""The default similarity: its time beside ROUGE-L's, and how it agrees with a judge.

Times are of a set of five answers, the shortest of many rounds in which both are timed
in turn, so the ratios hold on a busy machine. The second set of rows has a number and a
hyphen in each answer, as most real ones, and no target. The judged pairs are real
answers that an LLM compared (``../shared/data``, left out where they are not at hand):
AUROC, and the share of different pairs that come out above 0.5. The exit status is 1 if
a figure misses its target.

    python -m benchmarks.content_matrix
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score

from benchmarks.rouge_matrix import Texts, answers, shortest
from snne_guard.similarity import SIMILARITIES, content_f1, rouge_l, rouge_l_paper

N = 5  # a guard's answer and its samples
QUESTION = "Who built the bridge over the river, and in which year was it opened?"
WORDS = (5, 50, 500)  # of an answer
# At most how many times the other one's time.
MOST_OVER_ROUGE_L, MOST_OVER_PAPER = 2.0, 2.5
PAIRS = Path(__file__).parents[2] / "shared" / "data" / "judged_pairs.jsonl"
LEAST_AUROC, MOST_FALSELY_ALIKE = 0.89, 0.025


def content(texts: Texts, /) -> object:
    return content_f1(texts, question=QUESTION)


def time_row(texts: Texts, words: int) -> tuple[float, float]:
    """Return content F1's time over ROUGE-L's, and that one's over the paper's."""
    best = [float("inf")] * 3
    rounds = max(20, 4000 // words)
    for _ in range(5):
        for place, run in enumerate((content, rouge_l, rouge_l_paper)):
            best[place] = min(best[place], shortest(run, texts, rounds))
    return best[0] / best[1], best[1] / best[2]


def with_number(text: str, place: int) -> str:
    """Return an answer with a number and a hyphenated word at its end."""
    return f"{text} A well-known one in {1900 + place}."


def times() -> list[bool]:
    """Print the times and say of each with a target whether it is met."""
    met = []
    print("five answers: content F1 over ROUGE-L, and that over the paper's tokens")
    for words in WORDS:
        over, tokens = time_row(answers(words)[:N], words)
        targets = f"(<= {MOST_OVER_ROUGE_L})  {tokens:>5.1f} (<= {MOST_OVER_PAPER})"
        print(f"{words:>5} words  {over:>5.1f} {targets}")
        met += [over <= MOST_OVER_ROUGE_L, tokens <= MOST_OVER_PAPER]
    for words in WORDS:
        texts = [*map(with_number, answers(words)[:N], range(N))]
        over, tokens = time_row(texts, words)
        print(f"{words:>5} and a number {over:>5.1f} {tokens:>14.1f}")
    return met


def agreement(name: str) -> tuple[float, float]:
    """Return the AUROC, and the share of different pairs above 0.5."""
    rows = [json.loads(line) for line in PAIRS.read_text(encoding="utf-8").splitlines()]
    compare = SIMILARITIES[name]
    same = np.array([row["same"] for row in rows])
    alike = np.array(
        [compare([r["a"], r["b"]], question=r["question"])[0, 1] for r in rows]
    )
    falsely = float((alike[~same] > 0.5).mean())  # noqa: PLR2004 - of [0, 1]
    return float(roc_auc_score(same, alike)), falsely


def main() -> int:
    met = times()
    if PAIRS.exists():
        print("pairs that a judge compared: AUROC, different ones above 0.5")
        for name in ("content_f1", "rouge_l", "rouge_l_paper"):
            auroc, falsely = agreement(name)
            print(f"{name:>14}  {auroc:.3f}  {falsely:.1%}")
            if name == "content_f1":
                met += [auroc >= LEAST_AUROC, falsely <= MOST_FALSELY_ALIKE]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
