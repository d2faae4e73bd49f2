"""The default score on questions that no choice of it looked at.

Recorded answers of the embedded model to the questions in `benchmarks/recordings`: the
default beside the paper's score and what lies between, set by set, where the answer was
drawn near greedily, and where the last sample stands as the answer with a label of its
own. The protocols are in `docs/scores.md`. They were written for the defaults of then,
with 0.3 of the weight on the answer and with half of it, which are printed beside the
present one; and in the third look a softer rule for conflicts.

    python -m benchmarks.scores_unseen [--folder FOLDER ...] [--after]

With ``--folder`` the recordings there are taken too, named as the data sets of which
they are. With ``--after`` other anchors and a root are printed, on the first six sets,
which were looked at once everything else was, and which choose nothing.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np

from benchmarks.scores import (
    DEFAULT,
    FEW,
    FIVE,
    PAPER,
    SAMPLES,
    SCORES,
    Score,
    Table,
    alike,
    default,
    line_of,
    paper,
    show,
    show_gains,
)
from benchmarks.scores_search import content, of
from snne_guard.evaluation import (
    Recording,
    numeric_match,
    read_recordings,
    squad_contains,
    squad_normalised,
)
from snne_guard.scorers import snne
from snne_guard.similarity import _content_pair, content_f1
from snne_guard.types import FloatArray

# What of the weight lay on the delivered answer by the default of a protocol.
AT_FIRST, THEN = (
    "default at first: SNNE, content F1, 0.3 anchored",
    "default then: SNNE, content F1, 0.5 anchored",
)
WEIGHTS = {AT_FIRST: 0.3, THEN: 0.5}
RECORDINGS = Path(__file__).parent / "recordings"
LEAST = 10  # right answers, and wrong ones, of a set whose gain counts

Sets = Mapping[str, Sequence[Recording]]


def likeness(one: Recording, start: int, few: int) -> FloatArray:
    """Return how alike the answer and some samples are, empty ones left out."""
    texts = [one.main_answer, *one.samples[start : start + few]]
    return alike(tuple(text for text in texts if text.strip()), one.question)


def anchored(weight: float, start: int = 0, few: int = SAMPLES) -> Score:
    """Return SNNE with a weight on the answer, on all samples or on a few."""
    return lambda one: snne(likeness(one, start, few), anchor=weight)


def of_five(default: str) -> tuple[str, str]:
    """Return what a default is called on the first few samples and on the next."""
    name = default.partition(":")[0]
    return (
        f"{name}, five calls: the first samples",
        f"{name}, five calls: the next ones",
    )


DEFAULTS: Mapping[str, Sequence[str]] = {
    **{name: of_five(name) for name in WEIGHTS},
    DEFAULT: FIVE,
}
OF_NOW = (DEFAULT, *FIVE)
EVERY: Mapping[str, Score] = {
    **{name: run for name, run in SCORES.items() if name not in OF_NOW},
    **{
        called: run
        for name, weight in WEIGHTS.items()
        for called, run in zip(
            (name, *of_five(name)),
            (anchored(weight), anchored(weight, 0, FEW), anchored(weight, FEW, FEW)),
            strict=True,
        )
    },
    **{name: SCORES[name] for name in OF_NOW},
}

SOFTER = "default then with a softer rule for conflicts"


def three_quarters(found: float, signs: int) -> float:
    """Return f (3 - f) / 4 for each sign of a conflict: half of 1, more of little."""
    for _ in range(signs):
        found *= (3 - found) / 4
    return found


def softer(one: Recording) -> float:
    """Return the default of then with another rule for conflicts."""
    with patch.object(_content_pair, "conflicting", three_quarters):
        texts = [one.main_answer, *one.samples[:SAMPLES]]
        found = content_f1(
            [text for text in texts if text.strip()], question=one.question
        )
    return snne(found, anchor=WEIGHTS[THEN])


EARLIER = (AT_FIRST, *of_five(AT_FIRST))  # than the third look
LATER: Mapping[str, Score] = {
    name: run for name, run in EVERY.items() if name not in EARLIER
}

ONES = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"),
    *("ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen"),
    *("seventeen", "eighteen", "nineteen"),
)
TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
IN_WORDS = re.compile(
    rf"\b(?:({'|'.join(TENS)})(?:[- ]({'|'.join(ONES[1:10])}))?"
    rf"|({'|'.join(reversed(ONES))}))\b",
    re.IGNORECASE,
)


def in_digits(word: re.Match[str]) -> str:
    """Return a number below a hundred that is written out."""
    ten, one, alone = ((part or "").lower() for part in word.groups())
    if alone:
        return str(ONES.index(alone))
    return str(10 * (TENS.index(ten) + 2) + (ONES.index(one) if one else 0))


def contains(answer: str, one: Recording) -> float:
    """Return whether the words of a reference stand in an answer."""
    return squad_contains(answer, one.answers or ())


def first(answer: str, one: Recording) -> float:
    """Return whether the right one of the choices is the first that is named."""
    words = f" {squad_normalised(answer)} "
    found = {
        choice: words.find(f" {squad_normalised(choice)} ")
        for choice in one.extra["choices"]
    }
    named = [choice for choice, at in found.items() if at >= 0]
    return float(min(named, key=found.__getitem__, default="") in (one.answers or ()))


def number(answer: str, one: Recording) -> float:
    """Return whether the number behind the last "=", or the last one, is right."""
    digits = IN_WORDS.sub(in_digits, answer)
    behind = digits.rpartition("=")[2]
    stated = re.findall(r"-?\d[\d,]*(?:\.\d+)?", behind)
    final = stated[0 if "=" in digits else -1] if stated else ""
    return numeric_match(final, one.answers or ()) or 0.0


def computed(answer: str, one: Recording) -> float:
    """Return whether the number behind the last "=" is right, or one that is named."""
    return (number if "=" in answer else contains)(answer, one)


FIRST = ("facts", "words", "reading", "who", "sums", "choices")
SECOND = ("forms", "places", "kinds", "notes", "counts")
THIRD = ("stories", "passages", "trivia", "dialogues", "lists")
FOURTH = ("manuals", "biographies", "science", "quizzes", "changes")
OWN = (*FIRST, *SECOND, *THIRD, *FOURTH)
GRADERS: Mapping[str, Callable[[str, Recording], float]] = {
    "facts": contains,
    "words": contains,
    "reading": contains,
    "who": first,
    "sums": number,
    "choices": first,
    "forms": contains,
    "places": contains,
    "kinds": first,
    "notes": contains,
    "counts": computed,
    "stories": contains,
    "passages": contains,
    "trivia": contains,
    "dialogues": first,
    "lists": contains,
    "manuals": contains,
    "biographies": contains,
    "science": contains,
    "quizzes": first,
    "changes": contains,
    "svamp": number,
    "squad": contains,
}


def read(folders: Sequence[Path]) -> Sets:
    """Return the recordings by set, without those whose answer is empty."""
    found: dict[str, list[Recording]] = {}
    for name in GRADERS:
        for path in (folder / f"{name}.jsonl" for folder in folders):
            if path.exists():
                rows = [row for _, row in read_recordings(path, strict=True)]
                found[name] = [
                    row
                    for row in rows
                    if isinstance(row, Recording) and row.main_answer.strip()
                ]
    return found


def graded(sets: Sets, *, drawn: bool) -> Sets:
    """Return the sets with labels, also of the last sample as the answer."""
    found: dict[str, list[Recording]] = {}
    for name, rows in sets.items():
        found[name] = []
        for row in rows:
            answer = row.samples[SAMPLES] if drawn else row.main_answer
            if not answer.strip():
                continue
            right = bool(GRADERS[name](answer, row))
            found[name].append(
                replace(row, main_answer=answer, label=1 if right else 0)
            )
    return found


def counted(sets: Sets) -> list[str]:
    """Return the sets with enough right and enough wrong answers."""
    return [
        name
        for name, rows in sets.items()
        if LEAST <= sum(row.label == 1 for row in rows) <= len(rows) - LEAST
    ]


def afterwards() -> dict[str, Score]:
    """Return what was looked at when everything else had been, by name."""
    found: dict[str, Score] = {PAPER: paper, DEFAULT: default}
    for anchor in (0.0, 0.1, 0.3, 0.5, 1.0):
        found[f"content F1, anchor {anchor:g}"] = of(content, anchor=anchor)
    found["root of content F1"] = of(lambda one: content(one) ** 0.5)
    return found


def show_afterwards(both: Mapping[str, Sets]) -> None:
    """Print the gain of what was looked at after the first look, on its sets."""
    scores = afterwards()
    print(f"afterwards, gain over the paper, 5 to 95 %: {'; '.join(both)}")
    tables = [
        Table({name: sets[name] for name in FIRST}, scores) for sets in both.values()
    ]
    for name in list(scores)[1:]:
        gains = [table.gain(name, counted(table.sets)) for table in tables]
        print("".join(f"{gain:26} " for gain in gains) + f" {name}")


def show_look(kind: str, sets: Sets, scores: Mapping[str, Score]) -> Table | None:
    """Print the table of some sets and the gains; return what the scores gave."""
    if not sets:
        return None
    print(f"{kind}; AUROC of wrong answers; in brackets right, wrong\n")
    table = Table(sets, scores)
    show(table, list(scores))
    names = counted(sets)
    show_gains(
        table,
        {f"{kind} ({', '.join(names)})": names},
        scores=list(scores),
        defaults={name: DEFAULTS[name] for name in DEFAULTS if name in scores},
    )
    if AT_FIRST in scores:
        print(f"  {table.gain(THEN, names, over=AT_FIRST)}  0.5 over 0.3 of the weight")
    print(f"  {table.gain(DEFAULT, names, over=THEN)}  the default over 0.5\n")
    return table


def show_choice(tables: Sequence[Table]) -> None:
    """Print what the softer rule gains over that of then, of each and as a mean."""
    gained = [
        np.mean(
            [table.draws(SOFTER, name) - table.draws(THEN, name) for name in names],
            axis=0,
        )
        for table in tables
        for names in [counted(table.sets)]
    ]
    print("the softer rule over that of then, near greedy; drawn; the mean of both")
    for draws in (*gained, np.mean(gained, axis=0)):
        low, high = np.quantile(draws, [0.05, 0.95])
        print(f"  {np.mean(draws):+.4f} [{low:+.4f}, {high:+.4f}]")


def show_all(both: Mapping[str, Sets]) -> None:
    """Print what the default gains over all sets of our own."""
    print("\nall sets of our own, gain of the default over the paper, 5 to 95 %")
    for kind, labelled in both.items():
        sets = {name: labelled[name] for name in OWN if name in labelled}
        table = Table(sets, {PAPER: paper, **{name: SCORES[name] for name in OF_NOW}})
        names = counted(sets)
        print(line_of(table, [DEFAULT], names, kind))
        print(line_of(table, FIVE, names, f"{kind}, five calls: mean of the two"))


def main() -> int:
    """Print the tables; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, action="append", default=[])
    parser.add_argument("--after", action="store_true")
    options = parser.parse_args()
    sets = read([RECORDINGS, *options.folder])
    both = {
        "near greedy": graded(sets, drawn=False),
        "drawn": graded(sets, drawn=True),
    }
    if options.after:
        show_afterwards(both)
        return 0
    others = tuple(name for name in sets if name not in OWN)
    for look in (FIRST, SECOND, THIRD, FOURTH, others):
        scores = EVERY if look in {FIRST, SECOND} else LATER
        if look is THIRD:
            scores = {**scores, SOFTER: softer}
        tables = [
            show_look(kind, {name: rows[name] for name in look if name in sets}, scores)
            for kind, rows in both.items()
        ]
        if look is THIRD:
            show_choice([table for table in tables if table])
    show_all(both)
    return 0


if __name__ == "__main__":
    sys.exit(main())
