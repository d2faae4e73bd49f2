"""A self-check in place of one sample, at equal calls, on recorded answers.

AUROC says how well an uncertainty ranks wrong answers above right ones within a set of
questions; a group's figure is the mean over its sets with at least ten right and ten
wrong answers. Several models answer the same questions, so questions are resampled, not
rows: gains are paired, with a 90 % interval from 1,000 draws.

- ``3`` to ``7``: so many calls, the answer and samples alone.
- ``3+check`` to ``7+check``: as many calls, the last of which is the self-check.
- ``paper 7``, ``paper 11``: SNNE of six or ten samples alone; with the answer so many
  calls.
- ``check``: the self-check alone; ``logprob``: minus the mean log-probability of the
  answer's tokens, where it is known; ``length``: the number of words of the answer.

    python -m benchmarks.self_check [--sets] [--weight .5]

Recordings of strong models are read from `../shared/data` if that exists. Their check
is a yes or no in words, asked by another prompt than the guard's; for mathematics it is
P(True).
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.scores import (
    DRAWS,
    SHARED,
    QuestionSet,
    length,
    own_sets,
    show,
)
from snne_guard import score
from snne_guard.evaluation import Recording, read_recordings
from snne_guard.self_check import UNKNOWN, SelfCheck
from snne_guard.types import BoolArray, FloatArray

CALLS = (3, 4, 5, 7)
PAPER = {"paper 7": 6, "paper 11": 10}  # samples beside the answer


@dataclass(frozen=True)
class CheckedSet:
    """Labelled answers of one set, each with its self-check."""

    questions: QuestionSet
    p_correct: FloatArray


def checked_sets() -> Iterator[CheckedSet]:
    """Yield the sets whose recordings have a self-check."""
    for questions in _strong():
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


def _strong() -> Iterator[QuestionSet]:
    for file, group in (
        ("strong_short.jsonl", "strong models, short answers"),
        ("strong_math.jsonl", "strong models, mathematics"),
    ):
        by_set: defaultdict[str, list[Recording]] = defaultdict(list)
        if (SHARED / file).exists():
            for row in read_recordings(SHARED / file):
                by_set[str(row.extra["dataset"])].append(row)
        for name, rows in by_set.items():
            yield QuestionSet(name, group, rows)


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


def uncertainties(checked: CheckedSet, check: SelfCheck) -> dict[str, FloatArray]:
    """Return every recipe's uncertainty of each answer of a set."""
    rows = checked.questions.rows
    least = min(len(row.samples) for row in rows)
    found: dict[str, FloatArray] = {}
    for name, samples in PAPER.items():
        if samples <= least:
            found[name] = np.array([_paper(row, samples) for row in rows])
    for calls in CALLS:
        if calls - 1 <= least:
            found[str(calls)] = _disagreement(rows, calls - 1)
        if calls - 2 <= least:
            mixed = [
                check.uncertainty(disagreement=u, p_correct=p)
                for u, p in zip(
                    _disagreement(rows, calls - 2), checked.p_correct, strict=True
                )
            ]
            found[f"{calls}+check"] = np.array(mixed)
    found["check"] = 1.0 - checked.p_correct
    found["length"] = np.array([length(row) for row in rows])
    logprobs = [row.main_logprobs for row in rows]
    if all(logprobs):
        found["logprob"] = np.array([-np.mean(each or ()) for each in logprobs])
    return found


def _paper(row: Recording, samples: int) -> float:
    similarity = "rouge_l_paper"
    return score(
        row.samples[:samples],
        include_answer=False,
        method="snne",
        similarity=similarity,
    ).value


def _disagreement(rows: Sequence[Recording], samples: int) -> FloatArray:
    sets = ([row.main_answer, *row.samples[:samples]] for row in rows)
    asked = zip(sets, rows, strict=True)
    scored = (score(s, question=row.question, method="snne") for s, row in asked)
    # A set that cannot be scored is never taken for certainty.
    us = [1.0 if each.uncertainty is None else each.uncertainty for each in scored]
    return np.array(us)


# -- Tables ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Ranked:
    """AUROC of each recipe on a set: of all questions, and of each draw of them."""

    point: dict[str, float]
    draws: dict[str, FloatArray]


def ranked(
    checked: CheckedSet,
    found: Mapping[str, FloatArray],
    times: Mapping[str, FloatArray],
) -> Ranked:
    """Return the AUROC of each recipe; ``times``: how often a draw has a question."""
    questions = checked.questions
    weights = np.stack([times[str(row.question)] for row in questions.rows], axis=1)
    wrong = questions.right == 0
    once = np.ones((1, len(questions.rows)))
    point, draws = {}, {}
    for name, u in found.items():
        point[name] = float(auroc_draws(u, wrong, once)[0])
        draws[name] = auroc_draws(u, wrong, weights)
    return Ranked(point, draws)


def auroc_draws(u: FloatArray, wrong: BoolArray, times: FloatArray) -> FloatArray:
    """Return the AUROC in each draw; ``times``: how often it has each question."""
    above = u[wrong][:, None] > u[~wrong][None]
    wins = above + 0.5 * (u[wrong][:, None] == u[~wrong][None])
    n_wrong, n_right = times[:, wrong], times[:, ~wrong]
    pairs = n_wrong.sum(axis=1) * n_right.sum(axis=1)
    with np.errstate(invalid="ignore"):
        value: FloatArray = ((n_wrong @ wins) * n_right).sum(axis=1) / pairs
    return value


def mean(sets: Sequence[Ranked], name: str) -> str:
    """Return a recipe's mean AUROC, a dash where some set does not have it."""
    known = [each.point[name] for each in sets if name in each.point]
    return f"{np.mean(known):.3f}" if len(known) == len(sets) else "-"


def gain(sets: Sequence[Ranked], name: str, over: str) -> str:
    """Return a recipe's mean gain over another, with its interval."""
    if not all(name in each.point and over in each.point for each in sets):
        return "-"
    point = np.mean([each.point[name] - each.point[over] for each in sets])
    drawn = np.nanmean([each.draws[name] - each.draws[over] for each in sets], axis=0)
    low, high = np.quantile(drawn, [0.05, 0.95])
    return f"{point:+.3f} [{low:+.3f}, {high:+.3f}]"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", action="store_true", help="print every set too")
    parser.add_argument("--weight", type=float, default=SelfCheck().weight)
    options = parser.parse_args(arguments)
    check = SelfCheck(weight=options.weight)
    groups: defaultdict[str, list[CheckedSet]] = defaultdict(list)
    for checked in checked_sets():
        if checked.questions.counts:
            groups[checked.questions.group].append(checked)
    random = np.random.default_rng(0)
    recipes = [*PAPER, *(f"{n}{kind}" for n in CALLS for kind in ("", "+check"))]
    recipes += ["check", "logprob", "length"]
    by_group: dict[str, dict[str, Ranked]] = {}
    for group, sets in groups.items():
        asked = sorted(
            {str(row.question) for each in sets for row in each.questions.rows}
        )
        picks = random.multinomial(
            len(asked), np.full(len(asked), 1 / len(asked)), size=DRAWS
        )
        times = {
            question: picks[:, place].astype(float)
            for place, question in enumerate(asked)
        }
        by_group[group] = {
            each.questions.name: ranked(each, uncertainties(each, check), times)
            for each in sets
        }
    show(
        [
            ["answers", "sets", *recipes],
            *(
                [group, len(sets), *(mean([*sets.values()], name) for name in recipes)]
                for group, sets in by_group.items()
            ),
        ]
    )
    print()
    gains = [(f"{n}+check", str(n)) for n in CALLS]
    gains += [("4+check", "paper 7"), ("5+check", "paper 7"), ("7+check", "paper 11")]
    show(
        [
            ["answers", *(f"{name} over {over}" for name, over in gains)],
            *(
                [group, *(gain([*sets.values()], *pair) for pair in gains)]
                for group, sets in by_group.items()
            ),
        ]
    )
    if options.sets:
        print()
        show(
            [
                ["set", *recipes],
                *(
                    [f"{group}: {name}", *(mean([each], recipe) for recipe in recipes)]
                    for group, sets in by_group.items()
                    for name, each in sets.items()
                ),
            ]
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
