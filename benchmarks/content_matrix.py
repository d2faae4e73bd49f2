"""The default similarity: its time beside ROUGE-L's, and how it agrees with a judge.

Times are of ten answers, the shortest of several repetitions in one run. The judged
pairs are real answers that an LLM compared (``../shared/data``, left out where they are
not at hand): AUROC, and the share of different pairs that come out above 0.5.

    python -m benchmarks.content_matrix
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score

from benchmarks.rouge_matrix import Texts, answers, shortest
from snne_guard.similarity import SIMILARITIES, content_f1, rouge_l

QUESTION = "Who built the bridge over the river, and in which year was it opened?"
# Words an answer: at most how many times ROUGE-L's time.
TARGETS = {5: 25, 15: 15, 60: 15, 500: 20}
PAIRS = Path(__file__).parents[2] / "shared" / "data" / "judged_pairs.jsonl"
LEAST_AUROC, MOST_FALSELY_ALIKE = 0.89, 0.025


def content(texts: Texts) -> object:
    return content_f1(texts, question=QUESTION)


def time_row(words: int, most: float) -> bool:
    texts, rounds = answers(words), max(20, 4000 // words)
    ratio = shortest(content, texts, rounds) / shortest(rouge_l, texts, rounds)
    print(f"{words:>5} words  {ratio:>6.1f} (<= {most})")
    return ratio <= most


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
    print("content F1 over ROUGE-L, a matrix of ten answers")
    met = [time_row(*target) for target in TARGETS.items()]
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
