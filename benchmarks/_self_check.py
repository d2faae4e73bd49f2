"""A self-check in place of one sample, at equal calls, on recorded answers.

AUROC says how well an uncertainty ranks wrong answers above right ones within a set of
questions; a group's figure is the mean over its sets with at least ten right and ten
wrong answers. Several models answer the same questions, so questions are resampled, not
rows: gains are paired, with a 90% interval from 1,000 draws.

- ``3`` to ``7``: so many calls, the answer and samples alone.
- ``3+check`` to ``7+check``: as many calls, the last of which is the self-check.
- ``paper 7``, ``paper 11``: SNNE of six or ten samples alone; with the answer so many
  calls.
- ``check``: the self-check alone; ``logprob``: minus the mean log-probability of the
  answer's tokens, where it is known; ``length``: the number of words of the answer.

    python -m benchmarks.scores --calls [--sets]

Recordings of strong models are read from `../shared/data` if that exists. Their check
is a yes or no in words, asked by another prompt than the guard's; for mathematics it is
P(True).
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.scores import (
    DRAWS,
    SHARED,
    QuestionSet,
    gain,
    length,
    mean,
    own_sets,
    shared_sets,
    show,
    table_of_sets,
)
from snne_guard import score
from snne_guard.evaluation import Bootstrap, Recording, read_recordings
from snne_guard.self_check import UNKNOWN, SelfCheck
from snne_guard.types import BoolArray, FloatArray

CHECK = SelfCheck()
CALLS = (3, 4, 5, 7)
PAPER = {"paper 7": 6, "paper 11": 10}  # samples beside the answer


@dataclass(frozen=True)
class CheckedSet:
    """Labelled answers of one set, each with its self-check."""

    questions: QuestionSet
    p_correct: FloatArray


def checked_sets() -> Iterator[CheckedSet]:
    """Yield the sets whose recordings have a self-check."""
    for questions in shared_sets():
        if not questions.group.startswith("strong"):
            continue
        extra = [row.extra for row in questions.rows]
        if "p_true" in extra[0]:
            p = [math.exp(each["p_true"]) for each in extra]
        else:
            unsure = [each["self_check_unsure"] for each in extra]
            p = [UNKNOWN if each is None else 1.0 - each for each in unsure]
        yield CheckedSet(questions, np.array(p))
    yield from _qwen()
    for questions in own_sets():
        known = [row.self_check for row in questions.rows]
        if questions.group.endswith("near greedy") and any(known):
            p = [UNKNOWN if each is None else each for each in known]
            yield CheckedSet(questions, np.array(p))


def _qwen() -> Iterator[CheckedSet]:
    """Yield the sets of Qwen2.5 1.5B, whose check was a further turn."""
    path = SHARED / "recorded_qwen15_views.jsonl"
    if not path.exists():
        return
    lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    checks = {line["id"]: line["check_turn"] for line in lines}
    by_set: defaultdict[str, list[Recording]] = defaultdict(list)
    for row in read_recordings(SHARED / "recorded_qwen15.jsonl"):
        if row.id in checks and row.label is not None:
            by_set[str(row.extra["dataset"])].append(row)
    for name, rows in by_set.items():
        p = np.array([_share_of_yes(checks[row.id]) for row in rows])
        yield CheckedSet(QuestionSet(name, "Qwen2.5 1.5B, near greedy", rows), p)


def _share_of_yes(first_token: Mapping[str, float]) -> float:
    mass = {"yes": 0.0, "no": 0.0}
    for token, logprob in first_token.items():
        word = token.strip().casefold()
        if word in mass:
            mass[word] += math.exp(logprob)
    return mass["yes"] / (mass["yes"] + mass["no"])


# -- Uncertainties ---------------------------------------------------------------------


def uncertainties(checked: CheckedSet) -> dict[str, FloatArray]:
    """Return every recipe's uncertainty of each answer of a set."""
    rows = checked.questions.rows
    least = min(len(row.samples) for row in rows)
    found: dict[str, FloatArray] = {}
    for name, samples in PAPER.items():
        if samples <= least:
            found[name] = np.array([paper(row.samples[:samples]) for row in rows])
    for calls in CALLS:
        if calls - 1 <= least:
            found[str(calls)] = _disagreements(rows, calls - 1)
        if calls - 2 <= least:
            us = zip(_disagreements(rows, calls - 2), checked.p_correct, strict=True)
            mixed = [CHECK.uncertainty(disagreement=u, p_correct=p) for u, p in us]
            found[f"{calls}+check"] = np.array(mixed)
    found["check"] = 1.0 - checked.p_correct
    found["length"] = np.array([length(row) for row in rows])
    logprobs = [row.main_logprobs for row in rows]
    if all(logprobs):
        found["logprob"] = np.array([-np.mean(each or ()) for each in logprobs])
    return found


def _disagreements(rows: Sequence[Recording], samples: int) -> FloatArray:
    return np.array([disagreement(row, row.samples[:samples]) for row in rows])


def disagreement(row: Recording, samples: Sequence[str | None]) -> float:
    """Return ``u`` of the answer and those samples that say something."""
    drawn = [text for text in samples if text is not None and text.strip()]
    made = score([row.main_answer, *drawn], question=row.question, method="snne")
    # A set that cannot be scored is never taken for certainty.
    return 1.0 if made.uncertainty is None else made.uncertainty


def paper(samples: Sequence[str]) -> float:
    """Return SNNE of the samples alone."""
    return score(
        samples, include_answer=False, method="snne", similarity="rouge_l_paper"
    ).value


# -- Tables ----------------------------------------------------------------------------


def ranked(checked: CheckedSet, times: Mapping[str, FloatArray]) -> Bootstrap:
    """Return the AUROC of each recipe; ``times``: how often a draw has a question."""
    questions = checked.questions
    weights = np.stack([times[str(row.question)] for row in questions.rows], axis=1)
    wrong = questions.right == 0
    times_and_once = np.vstack([np.ones(len(questions.rows)), weights])
    return Bootstrap(
        figures={
            name: {"auroc": auroc_draws(u, wrong, times_and_once)}
            for name, u in uncertainties(checked).items()
        }
    )


def auroc_draws(u: FloatArray, wrong: BoolArray, times: FloatArray) -> FloatArray:
    """Return the AUROC in each draw; ``times``: how often it has each question."""
    above = u[wrong][:, None] > u[~wrong][None]
    wins = above + 0.5 * (u[wrong][:, None] == u[~wrong][None])
    n_wrong, n_right = times[:, wrong], times[:, ~wrong]
    pairs = n_wrong.sum(axis=1) * n_right.sum(axis=1)
    with np.errstate(invalid="ignore"):
        value: FloatArray = ((n_wrong @ wins) * n_right).sum(axis=1) / pairs
    return value


def compare_calls(*, every_set: bool) -> None:
    """Print the tables."""
    groups: defaultdict[str, list[CheckedSet]] = defaultdict(list)
    for checked in checked_sets():
        if checked.questions.counts:
            groups[checked.questions.group].append(checked)
    random = np.random.default_rng(0)
    recipes = [*PAPER, *(f"{n}{kind}" for n in CALLS for kind in ("", "+check"))]
    recipes += ["check", "logprob", "length"]
    by_group: dict[str, dict[str, Bootstrap]] = {}
    for group, sets in groups.items():
        asked = sorted(
            {str(row.question) for each in sets for row in each.questions.rows}
        )
        picks = random.multinomial(
            len(asked), np.full(len(asked), 1 / len(asked)), size=DRAWS
        )
        times = dict(zip(asked, picks.T.astype(float), strict=True))
        by_group[group] = {each.questions.name: ranked(each, times) for each in sets}
    rows: list[list[object]] = [["answers", "sets", *recipes]]
    for group, found in by_group.items():
        rows.append([group, len(found), *(mean(found.values(), r) for r in recipes)])
    show(rows)
    print()
    gains = [(f"{n}+check", str(n)) for n in CALLS]
    gains += [("4+check", "paper 7"), ("5+check", "paper 7"), ("7+check", "paper 11")]
    rows = [["answers", *(f"{name} over {over}" for name, over in gains)]]
    for group, found in by_group.items():
        rows.append([group, *(gain(found.values(), *pair) for pair in gains)])
    show(rows)
    if every_set:
        table_of_sets(by_group, recipes)
