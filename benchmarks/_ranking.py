"""How well uncertainties rank wrong answers above right ones, on sets of questions.

AUROC is computed within each set; a group's figure is the mean over its sets with at
least ten right and ten wrong answers. Gains are paired, with a 90% interval from 1,000
resamples of the group's questions. Models that answered the same question are drawn
together.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from snne_guard import score
from snne_guard.evaluation import Recording, read_recordings
from snne_guard.types import BoolArray, FloatArray

RECORDINGS = Path(__file__).parent / "recordings"
SHARED = Path(__file__).parents[2] / "shared" / "data"
LEAST = 10  # right answers, and wrong ones, of a set that counts
DRAWS = 1000


@dataclass(frozen=True)
class QuestionSet:
    """Labelled questions of one kind, answered in one way."""

    name: str
    group: str
    rows: Sequence[Recording]

    @property
    def wrong(self) -> BoolArray:
        return np.array([row.label == 0 for row in self.rows])

    @property
    def counts(self) -> bool:
        """Whether there are enough right and enough wrong answers."""
        return bool(LEAST <= self.wrong.sum() <= len(self.rows) - LEAST)


def by_data_set(
    rows: Iterable[Recording], group: str, *, default: str = ""
) -> Iterator[QuestionSet]:
    """Yield the sets of a group, by the data set that each row names."""
    sets: defaultdict[str, list[Recording]] = defaultdict(list)
    for row in rows:
        sets[str(row.extra.get("dataset", default))].append(row)
    for name, members in sets.items():
        yield QuestionSet(name, group, members)


def qwen_rows() -> Iterator[tuple[Recording, dict[str, Any]]]:
    """Yield labelled answers of Qwen2.5 1.5B with what else was drawn, where it is."""
    path = SHARED / "recorded_qwen15_views.jsonl"
    if not path.exists():
        return
    lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    further = {line["id"]: line for line in lines}
    for row in read_recordings(SHARED / "recorded_qwen15.jsonl"):
        if row.id in further and row.label is not None:
            yield row, further[row.id]


Score = Callable[[Recording], float]
"""Returns an uncertainty, NaN where a recording lacks something for it."""


@dataclass(frozen=True)
class Ranked:
    """The AUROC of scores on one set: the figure itself, then that of each draw."""

    questions: QuestionSet
    figures: Mapping[str, FloatArray]


def disagreement(row: Recording, samples: Sequence[str]) -> float:
    """Return ``u`` of the answer and samples, 1 where a guard would have none."""
    texts = [row.main_answer, *samples]
    u = score(texts, question=row.question, method="snne").uncertainty
    return 1.0 if u is None else u


def paper(samples: Sequence[str]) -> float:
    """Return SNNE of the samples alone, on ROUGE-L with rouge-score's tokens."""
    return score(
        samples, include_answer=False, method="snne", similarity="rouge_l_paper"
    ).value


def ranked(
    sets: Iterable[QuestionSet], scores: Mapping[str, Score]
) -> dict[str, list[Ranked]]:
    """Return the sets that count, by group, with the scores that all questions have."""
    groups: defaultdict[str, list[QuestionSet]] = defaultdict(list)
    for one in sets:
        if one.counts:
            groups[one.group].append(one)
    random = np.random.default_rng(0)
    found: dict[str, list[Ranked]] = {}
    for group, members in groups.items():
        asked = [[row.question or row.id for row in one.rows] for one in members]
        places = {key: at for at, key in enumerate(sorted({*chain(*asked)}))}
        n = len(places)
        picks = random.multinomial(n, np.full(n, 1 / n), size=DRAWS)
        times = np.vstack([np.ones(n), picks])
        found[group] = [
            Ranked(one, _figures(one, scores, times[:, [places[key] for key in keys]]))
            for one, keys in zip(members, asked, strict=True)
        ]
    return found


def _figures(
    questions: QuestionSet, scores: Mapping[str, Score], times: FloatArray
) -> dict[str, FloatArray]:
    values = {
        name: np.array([run(row) for row in questions.rows])
        for name, run in scores.items()
    }
    return {
        name: resampled_auroc(u, questions.wrong, times)
        for name, u in values.items()
        if not np.isnan(u).any()
    }


def resampled_auroc(u: FloatArray, wrong: BoolArray, times: FloatArray) -> FloatArray:
    """Return the AUROC in each draw; ``times``: how often it has each question."""
    above = u[wrong][:, None] > u[~wrong]
    wins = above + 0.5 * (u[wrong][:, None] == u[~wrong])
    n_wrong, n_right = times[:, wrong], times[:, ~wrong]
    pairs = n_wrong.sum(axis=1) * n_right.sum(axis=1)
    with np.errstate(invalid="ignore"):
        value: FloatArray = ((n_wrong @ wins) * n_right).sum(axis=1) / pairs
    return value


def show(
    found: Mapping[str, Sequence[Ranked]],
    scores: Sequence[str],
    gains: Sequence[tuple[str, str]],
    *,
    every_set: bool,
) -> None:
    """Print a table in Markdown: AUROC of scores, and gains of one over another."""
    heads = [
        "answers",
        "questions",
        *scores,
        *(f"{one} over {other}" for one, other in gains),
    ]
    lines: list[list[str]] = [heads, ["---"] * len(heads)]
    for group, sets in found.items():
        parts = {group: [*sets]}
        if every_set:
            parts |= {f"{group}: {one.questions.name}": [one] for one in sets}
        for name, part in parts.items():
            size = sum(len(one.questions.rows) for one in part)
            figures = [_shown("{:.3f}", mean(part, score)) for score in scores]
            differences = [
                _shown("{:+.3f} [{:+.3f}, {:+.3f}]", *gain(part, *pair))
                for pair in gains
            ]
            lines.append([name, str(size), *figures, *differences])
    for cells in lines:
        print(f"| {' | '.join(cells)} |")
    print()


def _shown(form: str, *figures: float) -> str:
    return "-" if np.isnan(figures).any() else form.format(*figures)


def mean(sets: Sequence[Ranked], score: str) -> float:
    """Return a score's mean over sets, NaN where one of them does not have it."""
    return float(np.mean([one.figures.get(score, [math.nan])[0] for one in sets]))


def gain(sets: Sequence[Ranked], score: str, over: str) -> tuple[float, float, float]:
    """Return the mean gain of a score over another, and its 90% interval."""
    if not all({score, over} <= one.figures.keys() for one in sets):
        return math.nan, math.nan, math.nan
    gains = [one.figures[score] - one.figures[over] for one in sets]
    value, *resampled = np.mean(gains, axis=0)
    low, high = np.nanquantile(resampled, [0.05, 0.95])
    return float(value), float(low), float(high)
