"""A sample of another model in place of one of the model's own, at equal calls.

A set is a pair of models that answered the same questions of one data set: the target,
whose answers are judged, and the other, whose replies stand among its samples. Pairs
count that have at least ten right and ten wrong answers of the target.

- ``3``, ``5``: so many calls, the answer and own samples; ``5+self-check``:
  the last call is a self-check.
- ``paper 7``: SNNE of six samples alone; with the answer seven calls.
- ``3+other``, ``5+other``: the last sample is the other's. ``5+other+self-check``: the
  answer, two samples, one of the other, and a self-check.
- ``reworded``: the same, and the other puts its short answers into sentences.
- ``main``: the same with the other's low-temperature answer in place of its sample.

    python -m benchmarks.scores --others [--sets]

All was settled before anything was measured: the first samples are taken, and the
other's first; the score is that of `snne_guard.score` as a guard has it. Questions are
resampled, the same for all pairs. The recordings are read from `../shared/data`; the
exit status is 1 where a target is missed, 2 where they are not there.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import permutations

import numpy as np

from benchmarks._ranking import (
    SHARED,
    QuestionSet,
    Ranked,
    Score,
    disagreement,
    gain,
    mean,
    ranked,
    show,
)
from benchmarks._self_check import (
    CHECK,
    alone,
    by_paper,
    p_correct,
    strong_self_check,
    with_check,
)
from benchmarks.scores import SHARED_GROUPS
from snne_guard.evaluation import Recording, read_recordings

FILES = ("strong_short.jsonl", "strong_math.jsonl")
SHORT, MATHEMATICS = (SHARED_GROUPS[file] for file in FILES)
SENTENCES = ("The answer is {}.", "I believe that it is {}.", "{}, as far as I know.")
OTHER, OWN = "5+other+self-check", "5+self-check"
EQUAL, WEAKER = 0.03, 0.15  # differences in the share of right answers


# -- Pairs of models -------------------------------------------------------------------


def pairs() -> Iterator[QuestionSet]:
    """Yield the pairs of models, by data set; none where the recordings are missing."""
    for file in FILES:
        if not (SHARED / file).exists():
            continue
        answered: defaultdict[str, dict[str, dict[str, Recording]]]
        answered = defaultdict(lambda: defaultdict(dict))
        for row in read_recordings(SHARED / file):
            data_set, _, model = str(row.extra["dataset"]).partition("/")
            # A question that one model was asked twice counts once.
            whole = replace(row, self_check=strong_self_check(row))
            answered[data_set][model].setdefault(row.question or row.id, whole)
        for data_set, models in answered.items():
            for target, other in permutations(models, 2):
                rows = [
                    replace(row, extra={"other": models[other][asked]})
                    for asked, row in models[target].items()
                    if asked in models[other]
                ]
                name = f"{data_set}: {target} + {other}"
                yield QuestionSet(name, SHARED_GROUPS[file], rows)


def target_of(one: Ranked) -> str:
    return one.questions.name.partition(": ")[2].partition(" + ")[0]


def other_of(one: Ranked) -> str:
    return one.questions.name.partition(" + ")[2]


def strength(one: Ranked) -> str:
    """Return how strong the other is beside the target, on the pair's questions."""
    rows = one.questions.rows
    other = np.mean([row.extra["other"].label for row in rows])
    by = float(other) - float(np.mean([row.label or 0 for row in rows]))
    if abs(by) < EQUAL:
        return f"other of equal strength (within {EQUAL})"
    if by > 0:
        return "other stronger"
    return f"other weaker by {'up to' if by >= -WEAKER else 'more than'} {WEAKER}"


# -- Uncertainties ---------------------------------------------------------------------

Reply = Callable[[Recording], str]
"""Takes a recording of the other model and returns the reply that is compared."""


def first_sample(other: Recording) -> str:
    return other.samples[0]


def main_answer(other: Recording) -> str:
    return other.main_answer


def in_a_sentence(other: Recording) -> str:
    """Return the first sample in one of three sentences, by its question's length."""
    return SENTENCES[len(other.question or "") % 3].format(other.samples[0])


def with_other(samples: int, reply: Reply = first_sample) -> Score:
    """Return ``u`` of the answer, so many samples, and one reply of the other model."""

    def run(row: Recording) -> float:
        return disagreement(row, [*row.samples[:samples], reply(row.extra["other"])])

    return run


def and_check(replies: Score) -> Score:
    """Return the same with the self-check."""
    return lambda row: CHECK.uncertainty(
        disagreement=replies(row), p_correct=p_correct(row)
    )


SCORES: Mapping[str, Score] = {
    "paper 7": by_paper(6),
    "5": alone(4),
    OWN: with_check(3),
    "3+other": with_other(1),
    "5+other": with_other(3),
    OTHER: and_check(with_other(2)),
    "reworded": and_check(with_other(2, in_a_sentence)),
    "main": and_check(with_other(2, main_answer)),
}
GAINS = [
    ("5+other", "5"),
    (OTHER, "5"),
    (OTHER, "paper 7"),
    (OTHER, OWN),
    ("reworded", OTHER),
]
IN_PARTS = ["paper 7", "5", OWN, "3+other", "5+other", OTHER]
GAINS_IN_PARTS = [("5+other", "5"), (OTHER, "paper 7"), (OTHER, OWN)]


# -- Tables and targets ----------------------------------------------------------------


def parted(
    sets: Sequence[Ranked], key: Callable[[Ranked], str]
) -> dict[str, list[Ranked]]:
    """Return the pairs in parts, by a name of each."""
    parts: defaultdict[str, list[Ranked]] = defaultdict(list)
    for one in sets:
        parts[key(one)].append(one)
    return dict(sorted(parts.items()))


def worst(sets: Sequence[Ranked]) -> Ranked:
    """Return the pair that loses most by the other model."""
    return min(sets, key=lambda one: gain([one], OTHER, OWN)[0])


def met(found: Mapping[str, Sequence[Ranked]]) -> bool:
    """Print each target; return whether all are met."""
    short, mathematics = found[SHORT], found[MATHEMATICS]
    losses = {
        target: gain(part, OTHER, OWN)[0]
        for target, part in parted(short, target_of).items()
    }
    loser = min(losses, key=losses.__getitem__)
    targets = [
        (f"{SHORT}: {OTHER}", mean(short, OTHER), 0.815),
        (
            f"{SHORT}: lower bound of its gain over paper 7",
            gain(short, OTHER, "paper 7")[1],
            0.055,
        ),
        (f"{SHORT}: 3+other", mean(short, "3+other"), 0.775),
        (
            f"{SHORT}: gain over {OWN} of the worst target, {loser}",
            losses[loser],
            -0.01,
        ),
        (
            f"{MATHEMATICS}: gain of 5+other over 5",
            gain(mathematics, "5+other", "5")[0],
            0.05,
        ),
    ]
    for what, figure, least in targets:
        said = "met" if figure >= least else "MISSED"
        print(f"{figure:+.3f} (at least {least:+.3f})  {what}: {said}")
    return all(figure >= least for _, figure, least in targets)


def main(*, every_set: bool = False) -> int:
    """Print the tables and the targets; return the exit status."""
    found = ranked(pairs(), SCORES)
    if not {SHORT, MATHEMATICS} <= found.keys():
        print(f"{' and '.join(FILES)} are not in {SHARED.parent.name}/{SHARED.name}")
        return 2
    show(found, [*SCORES], GAINS, every_set=every_set)
    for group, sets in found.items():
        for what, key in (
            ("by strength", strength),
            ("by target", target_of),
            ("by other", other_of),
        ):
            print(f"{group}, {what}\n")
            parts = parted(sets, key)
            named = {f"{name}, {len(part)} pairs": part for name, part in parts.items()}
            show(named, IN_PARTS, GAINS_IN_PARTS, every_set=False)
        least = worst(sets)
        figure, low, high = gain([least], OTHER, OWN)
        print(
            f"{group}: {len(sets)} pairs. The worst: {least.questions.name}, {OTHER} "
            f"over {OWN} {figure:+.3f} [{low:+.3f}, {high:+.3f}]\n"
        )
    return 0 if met(found) else 1


if __name__ == "__main__":
    sys.exit(main())
