"""NLI probabilities of ten answers: this library, and one pair after another.

The model is a DeBERTa-v2 of four layers with random weights, in float32 on one thread:
the architecture of the paper's, several times smaller; the numbers mean nothing but the
time. One pair after another is what the authors' code does: all 90 ordered pairs of
answers, each alone through tokenizer and model. Each repetition asks another question
of the same length, so that nothing is remembered from the one before. Both sides take
turns and the shortest time counts. The exit status is 1 if a ratio misses its target or
the numbers differ by more than 1e-5.

    python benchmarks/nli_matrix.py
"""

from __future__ import annotations

import logging
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from snne_guard.similarity import NLI
from snne_guard.types import FloatArray
from tests.support.tiny_nli import WORDS, one_by_one, save_model

N = 10
REPEATS = (0.0, 0.5, 0.8)
TARGETS = {0.5: 5.0}  # share of repeats: least speed-up
ROUNDS = 3
TOLERANCE = 1e-5
LENGTHS = (3, 25)  # words of an answer
SIZE: dict[str, Any] = {
    "hidden_size": 256,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "intermediate_size": 1024,
    "initializer_range": 0.05,
}


def answers(repeats: float) -> list[str]:
    """Return ten answers of which a share says what another one says."""
    rng = random.Random(7)  # noqa: S311 - the same texts in every run
    distinct = [
        " ".join(rng.choices(WORDS, k=rng.randint(*LENGTHS)))
        for _ in range(round(N * (1 - repeats)))
    ]
    texts = [distinct[place % len(distinct)] for place in range(N)]
    rng.shuffle(texts)
    return texts


def shortest(
    candidates: Sequence[Callable[[str], FloatArray]], question: str
) -> tuple[list[float], float]:
    """Return each candidate's shortest time, timed in turn, and how far they differ."""
    best = [float("inf")] * len(candidates)
    worst = 0.0
    for turn in range(ROUNDS):
        found: list[FloatArray] = []
        for place, candidate in enumerate(candidates):
            start = time.perf_counter()
            found.append(candidate(f"what is {question} {turn}?"))
            best[place] = min(best[place], time.perf_counter() - start)
        worst = max(worst, float(np.abs(found[0] - found[1]).max()))
    return best, worst


def row(folder: str, repeats: float) -> bool:
    """Print one row and say whether it meets its targets."""
    texts = answers(repeats)
    nli = NLI(folder, device="cpu")
    # The library does not ask the model about equal texts, and has no need to.
    apart = np.array([[one != other for other in texts] for one in texts])[:, :, None]

    def ours(question: str) -> FloatArray:
        return apart * nli.probabilities(texts, question=question)

    def slow(question: str) -> FloatArray:
        found = one_by_one(folder, texts, question=question, dtype=torch.float32)
        return apart * found

    nli.load()
    (fast, plain), worst = shortest([ours, slow], f"{repeats:.1f}")
    least = TARGETS.get(repeats)
    met = worst <= TOLERANCE and (least is None or plain / fast >= least)
    target = "" if least is None else f"(>= {least:g})"
    print(
        f"{repeats:>7.0%}  {len(set(texts)):>8}  {plain / fast:>6.1f}x {target:<7}"
        f"  {worst:>9.1e} (<= {TOLERANCE:g})  {1e3 * fast:>7.0f} ms"
        f"  {'ok' if met else 'MISSED'}"
    )
    return met


def main() -> int:
    logging.getLogger("transformers").setLevel(logging.ERROR)
    print(f"NLI probabilities of {N} answers; ratios of the shortest times in one run")
    print("repeats  distinct  over one by one   largest difference      ours")
    with tempfile.TemporaryDirectory() as folder:
        path = save_model(Path(folder), **SIZE)
        return 0 if all([row(path, repeats) for repeats in REPEATS]) else 1  # noqa: C419 - all rows


if __name__ == "__main__":
    sys.exit(main())
