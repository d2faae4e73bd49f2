"""Samples in other views in place of plain ones, on recorded answers.

Every recipe has the answer and three samples. Its figure is the mean over three draws
of the samples, where as many were recorded.

GPT-4, which reasons before it answers; only final answers were recorded. ``1 other`` to
``3 other``: so many of the samples were drawn behind other examples of the task.

Qwen2.5-Coder-1.5B-Instruct, drawn by ``snne-guard record --views all`` on questions
of the project, and by other prompts on published ones:

- ``views``: one plain sample, one behind examples, one that reasons. What has no final
  answer after "Answer:" does not count, as in the guard.
- ``examples``, ``reasoning``: three samples in that view alone.

    python -m benchmarks.views

The recordings of the project come with it; the others are read from `../shared/data`
if that exists. How the figures come about is said in `benchmarks/_ranking.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from benchmarks._ranking import (
    RECORDINGS,
    SHARED,
    QuestionSet,
    Score,
    by_data_set,
    disagreement,
    qwen_rows,
    ranked,
    show,
)
from snne_guard.evaluation import Recording, read_recordings
from snne_guard.views import final_answer

REPEATS = 3
PLAIN = "plain"
TURNS = (PLAIN, "examples", "reasoning")

Views = Mapping[str, Sequence[str | None]]
"""Samples by view, None for one without a final answer."""

Recipe = Callable[[Views, int], Sequence[str | None]]
"""Returns the samples to take, in one of three draws."""


def in_views(row: Recording, **views: Sequence[str | None]) -> Recording:
    return replace(row, extra={**row.extra, "views": views})


# -- GPT-4 -----------------------------------------------------------------------------


def gpt4_sets() -> Iterator[QuestionSet]:
    """Yield the sets of GPT-4; none where they are not there."""
    path = SHARED / "strong_prompts_gpt4.jsonl"
    rows = [
        in_views(row, plain=row.samples, other=row.extra["samples_other_examples"])
        for row in (read_recordings(path) if path.exists() else ())
    ]
    yield from by_data_set(rows, "GPT-4")


def with_others(count: int) -> Recipe:
    """Return the recipe in which so many samples have other examples in front."""

    def take(views: Views, draw: int) -> list[str | None]:
        turn = [(draw + place) % REPEATS for place in range(REPEATS)]
        others = [views["other"][place] for place in turn[:count]]
        return [*others, *(views[PLAIN][place] for place in turn[count:])]

    return take


GPT4: Mapping[str, Recipe] = {
    PLAIN: with_others(0),
    **{f"{count} other": with_others(count) for count in (1, 2, 3)},
}


# -- Qwen2.5 1.5B ----------------------------------------------------------------------


def own_sets() -> Iterator[QuestionSet]:
    """Yield the sets that the project drew, three samples in each view in turn."""
    for path in sorted((RECORDINGS / "views").glob("*.jsonl")):
        rows = [
            in_views(row, **{each: row.samples[at::3] for at, each in enumerate(TURNS)})
            for row in read_recordings(path)
        ]
        yield QuestionSet(path.stem, "Qwen2.5 1.5B, own questions", rows)


def published_sets() -> Iterator[QuestionSet]:
    """Yield the published sets; none where they are not there."""
    rows = [
        in_views(
            row,
            plain=row.samples,
            examples=further["shots"],
            reasoning=[*map(final_answer, further["cot"])],
        )
        for row, further in qwen_rows()
    ]
    yield from by_data_set(rows, "Qwen2.5 1.5B, published questions")


def of_view(name: str) -> Recipe:
    """Return the recipe with all samples in one view."""

    def take(views: Views, draw: int) -> Sequence[str | None]:
        start = REPEATS * draw if len(views[name]) > REPEATS else 0
        return views[name][start : start + REPEATS]

    return take


QWEN: Mapping[str, Recipe] = {
    PLAIN: of_view(PLAIN),
    "views": lambda views, draw: [views[name][draw] for name in TURNS],
    "examples": of_view("examples"),
    "reasoning": of_view("reasoning"),
}


# -- Tables ----------------------------------------------------------------------------


def scored(take: Recipe, draw: int) -> Score:
    """Return ``u`` of the answer and those samples that say something."""

    def run(row: Recording) -> float:
        samples = take(row.extra["views"], draw)
        return disagreement(row, [text for text in samples if text and text.strip()])

    return run


def compare(sets: Sequence[QuestionSet], recipes: Mapping[str, Recipe]) -> None:
    """Print the figures of recipes, and the gains over plain samples."""
    scores = {
        f"{name} {draw}": scored(take, draw)
        for name, take in recipes.items()
        for draw in range(REPEATS)
    }
    found = {
        group: [
            replace(
                one,
                figures={
                    name: np.mean(
                        [one.figures[f"{name} {draw}"] for draw in range(REPEATS)],
                        axis=0,
                    )
                    for name in recipes
                },
            )
            for one in members
        ]
        for group, members in ranked(sets, scores).items()
    }
    gains = [(name, PLAIN) for name in recipes if name != PLAIN]
    show(found, [*recipes], gains, every_set=True)


def main() -> int:
    """Print the tables; return the exit status."""
    own, published = [*own_sets()], [*published_sets()]
    compare([*gpt4_sets()], GPT4)
    compare([*own, *published], QWEN)
    for name, sets in (("own", own), ("published", published)):
        rows = [row for one in sets for row in one.rows]
        replies = [reply for row in rows for reply in row.extra["views"]["reasoning"]]
        without = sum(not reply for reply in replies)
        print(f"{name}: {without} of {len(replies)} replies have no final answer")
    return 0


if __name__ == "__main__":
    sys.exit(main())
