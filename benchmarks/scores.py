"""The default score beside the paper's SNNE with as many calls, on recorded answers.

AUROC says how well a score ranks wrong answers above right ones within a set of
questions. A group's figure is the mean over its sets with at least ten right and ten
wrong answers. Gains are over the paper's score on the same questions, with a 90%
interval from 1,000 draws of the questions within each set.

- ``paper``: SNNE of the samples alone, ROUGE-L with rouge-score's tokens. The answer
  costs a call as well, so it takes as many calls as the default.
- ``default``: ``score`` of the answer and all samples.
- ``five``: the same with five calls, the answer and four samples.
- ``logprobs``: WSNNE, the default where log-probabilities are known.
- ``length``: the number of words of the answer.

    python -m benchmarks.scores [--calls] [--sets]

With ``--calls``, numbers of calls are compared, with a self-check and without.

The 2,280 questions in `benchmarks/recordings` come with the project. "Near greedy"
answers were drawn at temperature 0.1; for "drawn" the last sample takes the answer's
place. Other sets are read from `../shared/data` if that exists.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from snne_guard import score
from snne_guard.evaluation import (
    Bootstrap,
    Recording,
    bootstrap,
    numeric_match,
    read_recordings,
)
from snne_guard.types import FloatArray

RECORDINGS = Path(__file__).parent / "recordings"
SHARED = Path(__file__).parents[2] / "shared" / "data"
SAMPLES = 10
FEW = 4  # samples beside the answer: five calls
LEAST = 10  # right answers, and wrong ones, of a set that counts
DRAWS = 1000


# -- Sets of recordings, labelled ------------------------------------------------------

SHARED_GROUPS: Mapping[str, str] = {
    "generations_sac3_nq.jsonl": "GPT-3.5, near greedy",
    "generations_sac3_hotpot.jsonl": "GPT-3.5, near greedy",
    "recorded_qwen15.jsonl": "Qwen2.5 1.5B, near greedy",
    "generations_uqnlg_triviaqa.jsonl": "LLaMA 13B, drawn",
    "generations_wikibio119_gpt35.jsonl": "another model's answer",
    "generations_gsm8k_4systems.jsonl": "another model's answer",
    "strong_short.jsonl": "strong models, short answers",
    "strong_math.jsonl": "strong models, mathematics",
}
# Sets that are graded by the choice that is named first, or by a number.
FIRST_CHOICE = ("who", "choices", "kinds", "dialogues", "quizzes")
NUMBER = ("sums",)
NUMBER_OF_SUM = ("counts",)

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


def contains(answer: str, row: Recording) -> bool:
    """Return whether the words of a reference stand in an answer."""
    references = filter(None, map(bare, row.answers or ()))
    return any(f" {one} " in f" {bare(answer)} " for one in references)


def first_choice(answer: str, row: Recording) -> bool:
    """Return whether the right one of the choices is the first that is named."""
    words = f" {bare(answer)} "
    places: dict[str, int] = {
        one: words.find(f" {bare(one)} ") for one in row.extra["choices"]
    }
    named = [one for one, place in places.items() if place >= 0]
    chosen = min(named, key=lambda one: places[one], default="")
    return chosen in (row.answers or ())


def bare(text: str) -> str:
    """Return a text in lower case without ASCII punctuation and articles."""
    plain = re.sub(r"[!-/:-@\[-`{-~]", "", text.lower())
    return " ".join(re.sub(r"\b(?:a|an|the)\b", " ", plain).split())


def last_number(answer: str, row: Recording) -> bool:
    """Return whether the number behind the last "=", or the last one, is right."""
    digits = IN_WORDS.sub(in_digits, answer)
    stated = re.findall(r"-?\d[\d,]*(?:\.\d+)?", digits.rpartition("=")[2])
    final = stated[0 if "=" in digits else -1] if stated else ""
    return numeric_match(final, row.answers or ()) == 1


def in_digits(word: re.Match[str]) -> str:
    """Return a number below a hundred that is written out."""
    ten, one, alone = ((part or "").lower() for part in word.groups())
    if alone:
        return str(ONES.index(alone))
    return str(10 * (TENS.index(ten) + 2) + (ONES.index(one) if one else 0))


def is_right(answer: str, row: Recording, name: str) -> bool:
    """Grade an answer as the recordings' README says of its set."""
    if name in FIRST_CHOICE:
        return first_choice(answer, row)
    by_number = name in NUMBER or (name in NUMBER_OF_SUM and "=" in answer)
    return (last_number if by_number else contains)(answer, row)


@dataclass(frozen=True)
class QuestionSet:
    """Labelled questions of one kind, answered in one way."""

    name: str
    group: str
    rows: Sequence[Recording]

    @cached_property
    def right(self) -> FloatArray:
        return np.array([row.label for row in self.rows], dtype=np.float64)

    @property
    def counts(self) -> bool:
        """Whether there are enough right and enough wrong answers."""
        return bool(LEAST <= self.right.sum() <= len(self.rows) - LEAST)


def own_sets() -> Iterator[QuestionSet]:
    """Yield the project's own recordings, with both kinds of answers."""
    for path in sorted(RECORDINGS.glob("*.jsonl")):
        rows = [row for row in read_recordings(path) if row.main_answer.strip()]
        near = [(row.main_answer, row) for row in rows]
        drawn = [(row.samples[SAMPLES], row) for row in rows]
        for kind, pairs in (("near greedy", near), ("drawn", drawn)):
            labelled = [
                replace(
                    row,
                    main_answer=text,
                    label=int(is_right(text, row, path.stem)),
                    samples=row.samples[:SAMPLES],
                )
                for text, row in pairs
                if text.strip()
            ]
            yield QuestionSet(path.stem, f"SmolLM2 135M, {kind}", labelled)


def shared_sets() -> Iterator[QuestionSet]:
    """Yield the sets of real data, a data set or model each."""
    for file, group in SHARED_GROUPS.items():
        by_name: defaultdict[str, list[Recording]] = defaultdict(list)
        if not (SHARED / file).exists():
            continue
        for row in read_recordings(SHARED / file):
            if row.label is not None and row.samples:
                name = str(row.extra.get("dataset", Path(file).stem))
                by_name[name].append(row)
        for name, rows in by_name.items():
            yield QuestionSet(name, group, rows)


# -- Scores ----------------------------------------------------------------------------


def paper(row: Recording) -> float:
    samples = row.samples[:SAMPLES]
    return score(
        samples, include_answer=False, method="snne", similarity="rouge_l_paper"
    ).value


def default(row: Recording, *, samples: int = SAMPLES) -> float:
    texts = [row.main_answer, *row.samples[:samples]]
    return score(texts, question=row.question, method="snne").value


def five(row: Recording) -> float:
    return default(row, samples=FEW) if len(row.samples) >= FEW else math.nan


def logprobs(row: Recording) -> float:
    texts = [row.main_answer, *row.samples[:SAMPLES]]
    known = [row.main_logprobs, *(row.token_logprobs or ())][: len(texts)]
    if row.main_logprobs is None or len(known) < len(texts):
        return math.nan
    return score(texts, question=row.question, token_logprobs=known).value


def length(row: Recording) -> float:
    return score([row.main_answer], method="answer_length").value


SCORES: Mapping[str, Callable[[Recording], float]] = {
    "paper": paper,
    "default": default,
    "five": five,
    "logprobs": logprobs,
    "length": length,
}


# -- Tables ----------------------------------------------------------------------------


def measured(questions: QuestionSet) -> Bootstrap:
    """Return the AUROC of each score that all questions of a set have."""
    values = {
        name: [run(row) for row in questions.rows] for name, run in SCORES.items()
    }
    known = {name: one for name, one in values.items() if not np.isnan(one).any()}
    return bootstrap(known, questions.right, metrics=("auroc",), draws=DRAWS)


def mean(sets: Iterable[Bootstrap], name: str) -> str:
    """Return the mean AUROC of a score, a dash where a set does not have it."""
    found = [*sets]
    if not all(name in one.figures for one in found):
        return "-"
    return f"{np.mean([one.figures[name]['auroc'][0] for one in found]):.3f}"


def gain(sets: Iterable[Bootstrap], name: str, over: str = "paper") -> str:
    """Return the mean gain over another score, with its interval."""
    found = [*sets]
    if not all({name, over} <= one.figures.keys() for one in found):
        return "-"
    gains = [one.figures[name]["auroc"] - one.figures[over]["auroc"] for one in found]
    value, *draws = np.mean(gains, axis=0)
    low, high = np.nanquantile(draws, [0.05, 0.95])
    return f"{value:+.3f} [{low:+.3f}, {high:+.3f}]"


def show(rows: Sequence[Sequence[object]]) -> None:
    """Print a Markdown table."""
    for place, cells in enumerate(rows):
        print("| " + " | ".join(str(cell) for cell in cells) + " |")
        if place == 0:
            print("|---" * len(cells) + "|")


def table(
    found: Mapping[str, Mapping[str, Bootstrap]], sizes: Mapping[str, int]
) -> None:
    """Print a row for each group."""
    heads = ["answers", "sets", "questions", *SCORES, "gain of default", "gain of five"]
    rows: list[Sequence[object]] = [heads]
    for group, sets in found.items():
        means = [mean(sets.values(), name) for name in SCORES]
        gains = [gain(sets.values(), name) for name in ("default", "five")]
        rows.append([group, len(sets), sizes[group], *means, *gains])
    show(rows)


def table_of_sets(
    found: Mapping[str, Mapping[str, Bootstrap]], scores: Iterable[str]
) -> None:
    """Print a row for each set."""
    names = [*scores]
    rows: list[list[object]] = [["answers", "set", *names]]
    for group, sets in found.items():
        for name, one in sets.items():
            rows.append([group, name, *(mean([one], score) for score in names)])
    print()
    show(rows)


def main() -> int:
    """Print the tables; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", action="store_true", help="print every set too")
    parser.add_argument(
        "--calls", action="store_true", help="3 to 7 calls, with a self-check and not"
    )
    options = parser.parse_args()
    if options.calls:
        from benchmarks._self_check import compare_calls

        compare_calls(every_set=options.sets)
        return 0
    found: defaultdict[str, dict[str, Bootstrap]] = defaultdict(dict)
    sizes: defaultdict[str, int] = defaultdict(int)
    for questions in (*own_sets(), *shared_sets()):
        if questions.counts:
            found[questions.group][questions.name] = measured(questions)
            sizes[questions.group] += len(questions.rows)
    table(found, sizes)
    if options.sets:
        table_of_sets(found, SCORES)
    return 0


if __name__ == "__main__":
    sys.exit(main())
