"""Bootstrap of three metrics: this library, and a loop over scikit-learn for one.

AUROC, AUARC and PRR of one method on 1,000 draws of 10,000 questions, the draws made
too, against ``roc_auc_score`` on the same draws, which the loop is given. The loop is
timed in tenths that take turns with whole runs of ours, and the shortest of each
counts, so that the ratio holds on a busy machine. The exit status is 1 if it misses
its target, or if the two do not agree.

    python -m benchmarks.bootstrap
"""

from __future__ import annotations

import sys
import time

import numpy as np
from sklearn.metrics import roc_auc_score

from snne_guard.evaluation import bootstrap, resamples

QUESTIONS = 10_000
DRAWS = 1_000
PART = 100
LEAST = 20
METRICS = ("auroc", "auarc", "prr")
SAME = 1e-12


def main() -> int:
    generator = np.random.default_rng(0)
    uncertainty = generator.normal(size=QUESTIONS)
    right = generator.random(QUESTIONS) < 1 / (1 + np.exp(uncertainty))
    correct, wrong = right.astype(float), ~right
    draws = [one for part in resamples(QUESTIONS, draws=DRAWS) for one in part]
    loop, ours = [], []
    areas: list[float] = []
    for first in range(0, DRAWS, PART):
        start = time.perf_counter()
        areas += [
            float(roc_auc_score(wrong[one], uncertainty[one]))
            for one in draws[first : first + PART]
        ]
        loop.append(time.perf_counter() - start)
        start = time.perf_counter()
        found = bootstrap({"u": uncertainty}, correct, metrics=METRICS, draws=DRAWS)
        ours.append(time.perf_counter() - start)
    ratio = min(loop) * (DRAWS / PART) / min(ours)
    apart = float(np.abs(found.draws["u"][0] - areas).max())
    met = ratio >= LEAST and apart <= SAME
    print(f"{DRAWS} draws of {QUESTIONS} questions; ratio of the shortest times")
    print(f"loop over roc_auc_score      {min(loop) * DRAWS / PART:8.2f} s")
    print(f"{', '.join(METRICS):28} {min(ours):8.2f} s")
    print(f"ratio {ratio:.0f}x (>= {LEAST}), AUROC apart by {apart:.0e}", end="  ")
    print("ok" if met else "MISSED")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
