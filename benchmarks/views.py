"""Samples in three views in place of three plain ones, on recorded answers.

AUROC says how well an uncertainty ranks wrong answers above right ones within a set of
questions; figures are means over the three sets. Gains are paired over the questions of
each set, with a 90 % interval from 1,000 draws of them.

- ``plain``: the answer and three plain samples.
- ``views``: the answer and three samples, one plain, one behind examples, one that
  reasons. What has no final answer after "Answer:" is no member, as in the guard.
- ``last line``: the same, where the last line stands for a missing final answer.
- ``examples``, ``reasoning``: three samples in that view alone.
- ``paper``: SNNE of ten plain samples alone.

    python -m benchmarks.views

The recordings are of Qwen2.5-Coder-1.5B-Instruct, read from `../shared/data`. Each view
was drawn three times, and three plain samples are taken from the first nine: a figure
is the mean over the three draws.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.scores import DRAWS, SHARED, show
from benchmarks.self_check import auroc_draws
from snne_guard import score
from snne_guard.evaluation import Recording, read_recordings
from snne_guard.types import FloatArray
from snne_guard.views import final_answer

REPEATS = 3
RECIPES = ("paper", "plain", "views", "last line", "examples", "reasoning")
GAINS = ("views", "last line", "examples", "reasoning")


@dataclass(frozen=True)
class Viewed:
    """A labelled answer with its plain samples, and three in each other view."""

    row: Recording
    examples: Sequence[str]
    reasoning: Sequence[str]

    def samples(self, recipe: str, draw: int) -> list[str]:
        """Return the members beside the answer, in one of three draws."""
        last_line = recipe == "last line"
        finals = [final(reply, last_line=last_line) for reply in self.reasoning]
        plain = list(self.row.samples)
        drawn: Mapping[str, list[str | None]] = {
            "plain": [*plain[3 * draw : 3 * draw + 3]],
            "views": [plain[draw], self.examples[draw], finals[draw]],
            "last line": [plain[draw], self.examples[draw], finals[draw]],
            "examples": [*self.examples],
            "reasoning": [*finals],
        }
        return [text for text in drawn[recipe] if text is not None and text.strip()]


def final(reply: str, *, last_line: bool) -> str | None:
    """Return what is compared of a reply that reasons."""
    found = final_answer(reply)
    if found is None and last_line:
        return (reply.strip().splitlines() or [""])[-1]
    return found


def viewed_sets() -> dict[str, list[Viewed]]:
    """Return the sets that were drawn in views; none where they are not there."""
    path = SHARED / "recorded_qwen15_views.jsonl"
    if not path.exists():
        return {}
    lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    views = {line["id"]: line for line in lines}
    sets: defaultdict[str, list[Viewed]] = defaultdict(list)
    for row in read_recordings(SHARED / "recorded_qwen15.jsonl"):
        if row.id in views and row.label is not None:
            line = views[row.id]
            viewed = Viewed(row, line["shots"], line["cot"])
            sets[str(row.extra["dataset"])].append(viewed)
    return sets


def uncertainties(rows: Sequence[Viewed], recipe: str) -> list[FloatArray]:
    """Return a recipe's uncertainty of each answer, in each of its draws."""
    if recipe == "paper":
        return [np.array([paper(viewed.row) for viewed in rows])]
    draws = 1 if recipe in {"examples", "reasoning"} else REPEATS
    return [
        np.array(
            [disagreement(viewed, viewed.samples(recipe, draw)) for viewed in rows]
        )
        for draw in range(draws)
    ]


def paper(row: Recording) -> float:
    similarity = "rouge_l_paper"
    found = score(
        row.samples, include_answer=False, method="snne", similarity=similarity
    )
    return found.value


def disagreement(viewed: Viewed, samples: Sequence[str]) -> float:
    row = viewed.row
    found = score([row.main_answer, *samples], question=row.question, method="snne")
    # A set that cannot be scored is never taken for certainty.
    return 1.0 if found.uncertainty is None else found.uncertainty


def main() -> int:
    """Print the tables; return the exit status."""
    sets = viewed_sets()
    if not sets:
        print("no recordings in views: nothing to compare")
        return 0
    random = np.random.default_rng(0)
    # The first draw has each question once; its AUROC is the figure itself.
    found: dict[str, dict[str, FloatArray]] = {}
    for name, rows in sets.items():
        count = len(rows)
        picks = random.multinomial(count, np.full(count, 1 / count), size=DRAWS)
        times = np.concatenate([np.ones((1, count)), picks])
        wrong = np.array([viewed.row.label == 0 for viewed in rows])
        found[name] = {
            recipe: np.mean(
                [auroc_draws(u, wrong, times) for u in uncertainties(rows, recipe)],
                axis=0,
            )
            for recipe in RECIPES
        }
    found["mean"] = {
        recipe: np.mean([each[recipe] for each in found.values()], axis=0)
        for recipe in RECIPES
    }
    show(
        [
            ["set", "questions", *RECIPES],
            *(
                [
                    name,
                    len(sets[name]) if name in sets else sum(map(len, sets.values())),
                    *(f"{each[recipe][0]:.3f}" for recipe in RECIPES),
                ]
                for name, each in found.items()
            ),
        ]
    )
    print()
    show(
        [
            ["over plain", *GAINS],
            *(
                [name, *(gain(each[recipe] - each["plain"]) for recipe in GAINS)]
                for name, each in found.items()
            ),
        ]
    )
    without = [
        final_answer(reply) is None
        for rows in sets.values()
        for viewed in rows
        for reply in viewed.reasoning
    ]
    print(f"\n{sum(without)} of {len(without)} replies have no final answer")
    return 0


def gain(differences: FloatArray) -> str:
    low, high = np.nanquantile(differences[1:], [0.05, 0.95])
    return f"{differences[0]:+.3f} [{low:+.3f}, {high:+.3f}]"


if __name__ == "__main__":
    sys.exit(main())
