"""Samples in other views in place of plain ones, on recorded answers.

AUROC says how well an uncertainty ranks wrong answers above right ones within a set of
questions; figures are means over sets with at least ten right and ten wrong answers.
Gains over three plain samples are paired over the questions of each set, with a 90%
interval from 1,000 draws of them. Every recipe has the answer and three samples.

GPT-4, which reasons before it answers; only final answers were recorded. ``1 other`` to
``3 other``: so many of the samples were drawn behind other examples of the task.

Qwen2.5-Coder-1.5B-Instruct, drawn by ``snne-guard record --views all`` on questions
of the project, and by other prompts on published ones:

- ``views``: one plain sample, one behind examples, one that reasons. What has no final
  answer after "Answer:" is no member, as in the guard.
- ``examples``, ``reasoning``: three samples in that view alone.
- ``paper``: SNNE of ten plain samples alone.

    python -m benchmarks.views

The recordings of the project come with it; the others are read from `../shared/data`
if that exists. A figure is the mean over three draws of the samples, where as many were
recorded.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks._self_check import auroc_draws, disagreement, paper
from benchmarks.scores import DRAWS, LEAST, RECORDINGS, SHARED, show
from snne_guard.evaluation import Recording, read_recordings
from snne_guard.types import FloatArray
from snne_guard.views import final_answer

REPEATS = 3
BASELINE = "plain"
PAPER = "paper"


@dataclass(frozen=True)
class Viewed:
    """A labelled answer with its plain samples, and those in other views."""

    row: Recording
    others: Mapping[str, Sequence[str | None]]

    @property
    def plain(self) -> list[str]:
        return list(self.row.samples)


Samples = Callable[[Viewed, int], Sequence[str | None]]
"""Returns the samples of a recipe, in one of three draws."""


# -- GPT-4 -----------------------------------------------------------------------------


def gpt4_sets() -> dict[str, list[Viewed]]:
    """Return the sets of GPT-4; none where they are not there."""
    path = SHARED / "strong_prompts_gpt4.jsonl"
    sets: defaultdict[str, list[Viewed]] = defaultdict(list)
    for row in read_recordings(path) if path.exists() else ():
        others = {"other": row.extra["samples_other_examples"]}
        sets[str(row.extra["dataset"])].append(Viewed(row, others))
    return sets


def with_others(count: int) -> Samples:
    """Return the recipe in which so many samples have other examples in front."""

    def samples(viewed: Viewed, draw: int) -> list[str | None]:
        turn = [(draw + place) % REPEATS for place in range(REPEATS)]
        others = [viewed.others["other"][place] for place in turn[:count]]
        return [*others, *(viewed.plain[place] for place in turn[count:])]

    return samples


GPT4: Mapping[str, Samples] = {
    BASELINE: with_others(0),
    **{f"{count} other": with_others(count) for count in (1, 2, 3)},
}


# -- Qwen2.5 1.5B ----------------------------------------------------------------------


def own_sets() -> dict[str, list[Viewed]]:
    """Return the sets that the project drew, three samples in each view in turn."""
    sets: dict[str, list[Viewed]] = {}
    for path in sorted((RECORDINGS / "views").glob("*.jsonl")):
        rows = sets[path.stem] = []
        for row in read_recordings(path):
            plain, examples, reasoning = (row.samples[at::3] for at in range(3))
            others = {"examples": examples, "reasoning": reasoning}
            rows.append(Viewed(replace(row, samples=plain), others))
    return sets


def qwen_sets() -> dict[str, list[Viewed]]:
    """Return the published sets; none where they are not there."""
    path = SHARED / "recorded_qwen15_views.jsonl"
    if not path.exists():
        return {}
    lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    views = {line["id"]: line for line in lines}
    sets: defaultdict[str, list[Viewed]] = defaultdict(list)
    for row in read_recordings(SHARED / "recorded_qwen15.jsonl"):
        if row.id in views and row.label is not None:
            line = views[row.id]
            reasoning = [final_answer(reply) for reply in line["cot"]]
            others = {"examples": line["shots"], "reasoning": reasoning}
            sets[str(row.extra["dataset"])].append(Viewed(row, others))
    return sets


def mixed(viewed: Viewed, draw: int) -> list[str | None]:
    """Return one sample in each view."""
    others = [viewed.others[name][draw] for name in ("examples", "reasoning")]
    return [viewed.plain[draw], *others]


OWN: Mapping[str, Samples] = {
    BASELINE: lambda viewed, _: viewed.plain,
    "views": mixed,
    "examples": lambda viewed, _: viewed.others["examples"],
    "reasoning": lambda viewed, _: viewed.others["reasoning"],
}
QWEN: Mapping[str, Samples | None] = {
    PAPER: None,
    **OWN,
    BASELINE: lambda viewed, draw: viewed.plain[REPEATS * draw : REPEATS * (draw + 1)],
}


# -- Tables ----------------------------------------------------------------------------


def auroc(
    rows: Sequence[Viewed], samples: Samples | None, times: FloatArray
) -> FloatArray:
    """Return the AUROC in each draw of the questions, a mean over those of samples."""
    wrong = np.array([viewed.row.label == 0 for viewed in rows])
    if samples is None:
        u = np.array([paper(viewed.row.samples) for viewed in rows])
        return auroc_draws(u, wrong, times)
    drawn = [
        [disagreement(viewed.row, samples(viewed, draw)) for viewed in rows]
        for draw in range(REPEATS)
    ]
    figures = [auroc_draws(np.array(u), wrong, times) for u in drawn]
    mean: FloatArray = np.mean(figures, axis=0)
    return mean


def compare(
    title: str,
    sets: Mapping[str, Sequence[Viewed]],
    recipes: Mapping[str, Samples | None],
) -> None:
    """Print the figures of one model, and the gains over plain samples."""
    random = np.random.default_rng(0)
    # The first draw has each question once; its AUROC is the figure itself.
    figures: dict[str, dict[str, FloatArray]] = {}
    counts: dict[str, int] = {}
    for name, rows in sets.items():
        n, n_right = len(rows), sum(viewed.row.label == 1 for viewed in rows)
        if min(n_right, n - n_right) < LEAST:
            continue
        picks = random.multinomial(n, np.full(n, 1 / n), size=DRAWS)
        times = np.concatenate([np.ones((1, n)), picks])
        counts[name] = n
        figures[name] = {
            recipe: auroc(rows, samples, times) for recipe, samples in recipes.items()
        }
    counts["mean"] = sum(counts.values())
    figures["mean"] = {
        recipe: np.mean([each[recipe] for each in figures.values()], axis=0)
        for recipe in recipes
    }
    table = [
        [name, counts[name], *(f"{each[recipe][0]:.3f}" for recipe in recipes)]
        for name, each in figures.items()
    ]
    show([[title, "questions", *recipes], *table])
    print()
    others = [recipe for recipe in recipes if recipe not in {BASELINE, PAPER}]
    gains = [
        [name, *(gain(each[recipe] - each[BASELINE]) for recipe in others)]
        for name, each in figures.items()
    ]
    show([["over plain", *others], *gains])
    print()


def gain(differences: FloatArray) -> str:
    low, high = np.nanquantile(differences[1:], [0.05, 0.95])
    return f"{differences[0]:+.3f} [{low:+.3f}, {high:+.3f}]"


def main() -> int:
    """Print the tables; return the exit status."""
    gpt4, own, qwen = gpt4_sets(), own_sets(), qwen_sets()
    if gpt4:
        compare("GPT-4", gpt4, GPT4)
    compare("Qwen2.5 1.5B, own questions", own, OWN)
    if qwen:
        compare("Qwen2.5 1.5B", qwen, QWEN)
    for name, sets in (("own", own), ("published", qwen)):
        viewed = [each for rows in sets.values() for each in rows]
        replies = [reply for each in viewed for reply in each.others["reasoning"]]
        without = sum(not reply for reply in replies)
        print(f"{name}: {without} of {len(replies)} replies have no final answer")
    return 0


if __name__ == "__main__":
    sys.exit(main())
