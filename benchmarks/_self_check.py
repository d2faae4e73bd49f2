"""A self-check in place of one sample, at equal calls, on recorded answers.

- ``3`` to ``7``: so many calls, the answer and samples alone.
- ``3+self-check`` to ``7+self-check``: as many calls, the last of which is the
  self-check.
- ``paper 7``, ``paper 11``: SNNE of six or ten samples alone; with the answer so many
  calls.
- ``self-check``: the self-check alone; ``logprob``: minus the mean log-probability of
  the answer's tokens, where it is known; ``length``: the number of words of the answer.

    python -m benchmarks.scores --calls [--sets]

Recordings of strong models are read from `../shared/data` if that exists. Their
self-check is a yes or no in words, asked by another prompt than the guard's; for
mathematics it is P(True).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from benchmarks._ranking import (
    QuestionSet,
    Score,
    by_data_set,
    disagreement,
    paper,
    qwen_rows,
)
from benchmarks.scores import length, own_sets, shared_sets
from snne_guard.evaluation import Recording
from snne_guard.self_check import UNKNOWN, SelfCheck

CHECK = SelfCheck()
CALLS = (3, 4, 5, 7)
PAPER = {"paper 7": 6, "paper 11": 10}  # samples beside the answer


def checked_sets() -> Iterator[QuestionSet]:
    """Yield the sets whose recordings have a self-check."""
    for questions in shared_sets():
        if questions.group.startswith("strong"):
            rows = [
                replace(row, self_check=strong_self_check(row))
                for row in questions.rows
            ]
            yield replace(questions, rows=rows)
    # The self-check of Qwen2.5 1.5B was a further turn.
    rows = [
        replace(row, self_check=_share_of_yes(further["check_turn"]))
        for row, further in qwen_rows()
    ]
    yield from by_data_set(rows, "Qwen2.5 1.5B, near greedy")
    for questions in own_sets():
        near = questions.group.endswith("near greedy")
        if near and any(row.self_check for row in questions.rows):
            yield questions


def strong_self_check(row: Recording) -> float | None:
    """Return what a strong model said of its answer."""
    if "p_true" in row.extra:
        return math.exp(row.extra["p_true"])
    unsure = row.extra["self_check_unsure"]
    return None if unsure is None else 1.0 - unsure


def _share_of_yes(first_token: Mapping[str, float]) -> float:
    mass = {"yes": 0.0, "no": 0.0}
    for token, logprob in first_token.items():
        word = token.strip().casefold()
        if word in mass:
            mass[word] += math.exp(logprob)
    return mass["yes"] / (mass["yes"] + mass["no"])


# -- Uncertainties ---------------------------------------------------------------------


def p_correct(row: Recording) -> float:
    return UNKNOWN if row.self_check is None else row.self_check


def alone(samples: int) -> Score:
    """Return ``u`` of the answer and so many samples."""

    def run(row: Recording) -> float:
        given = row.samples[:samples]
        return disagreement(row, given) if len(given) == samples else math.nan

    return run


def with_check(samples: int) -> Score:
    """Return the same with the self-check."""
    replies = alone(samples)
    return lambda row: CHECK.uncertainty(
        disagreement=replies(row), p_correct=p_correct(row)
    )


def by_paper(samples: int) -> Score:
    def run(row: Recording) -> float:
        given = row.samples[:samples]
        return paper(given) if len(given) == samples else math.nan

    return run


def logprob(row: Recording) -> float:
    return -float(np.mean(row.main_logprobs)) if row.main_logprobs else math.nan


SCORES: Mapping[str, Score] = {
    **{name: by_paper(samples) for name, samples in PAPER.items()},
    **{
        name: run
        for n in CALLS
        for name, run in (
            (f"{n}", alone(n - 1)),
            (f"{n}+self-check", with_check(n - 2)),
        )
    },
    "self-check": lambda row: 1.0 - p_correct(row),
    "logprob": logprob,
    "length": length,
}
GAINS = [
    *((f"{n}+self-check", f"{n}") for n in CALLS),
    *(
        ("4+self-check", "paper 7"),
        ("5+self-check", "paper 7"),
        ("7+self-check", "paper 11"),
    ),
]
