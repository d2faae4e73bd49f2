"""The default score beside the paper's SNNE with as many calls, on recorded answers.

- ``paper``: SNNE of the samples alone, ROUGE-L with rouge-score's tokens. The answer
  costs a call as well, so it takes as many calls as the default.
- ``default``: ``score`` of the answer and all samples.
- ``five``: the same with five calls, the answer and four samples.
- ``logprobs``: WSNNE, the default where log-probabilities are known.
- ``length``: the number of words of the answer.

    python -m benchmarks.scores [--calls | --others] [--sets]

With ``--calls``, numbers of calls are compared, with a self-check and without; with
``--others``, samples of another model (`benchmarks/other_models.py`). How the
figures come about is said in `benchmarks/_ranking.py`.

The 2,280 questions in `benchmarks/recordings` come with the project. "Near greedy"
answers were drawn at temperature 0.1; for "drawn" the last sample takes the answer's
place. Other sets are read from `../shared/data` if that exists.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace

from benchmarks._ranking import (
    RECORDINGS,
    SHARED,
    QuestionSet,
    Score,
    by_data_set,
    disagreement,
    paper,
    ranked,
    show,
)
from snne_guard import score
from snne_guard.evaluation import Recording, numeric_match, read_recordings
from snne_guard.evaluation.grade import contains, squad_normalised

SAMPLES = 10
FEW = 4  # samples beside the answer: five calls


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


def first_choice(answer: str, row: Recording) -> bool:
    """Return whether the right one of the choices is the first that is named."""
    words = f" {squad_normalised(answer)} "
    places: dict[str, int] = {
        one: words.find(f" {squad_normalised(one)} ") for one in row.extra["choices"]
    }
    named = [one for one, place in places.items() if place >= 0]
    chosen = min(named, key=lambda one: places[one], default="")
    return chosen in (row.answers or ())


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
    if name in NUMBER or (name in NUMBER_OF_SUM and "=" in answer):
        return last_number(answer, row)
    return contains(answer, row.answers or ()) == 1


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
        if (SHARED / file).exists():
            read = read_recordings(SHARED / file)
            rows = [row for row in read if row.label is not None and row.samples]
            yield from by_data_set(rows, group, default=file)


# -- Scores ----------------------------------------------------------------------------


def default(row: Recording) -> float:
    return disagreement(row, row.samples[:SAMPLES])


def five(row: Recording) -> float:
    return disagreement(row, row.samples[:FEW]) if len(row.samples) >= FEW else math.nan


def logprobs(row: Recording) -> float:
    texts = [row.main_answer, *row.samples[:SAMPLES]]
    known = [row.main_logprobs, *(row.token_logprobs or ())][: len(texts)]
    if row.main_logprobs is None or len(known) < len(texts):
        return math.nan
    return score(texts, question=row.question, token_logprobs=known).value


def length(row: Recording) -> float:
    return score([row.main_answer], method="answer_length").value


SCORES: Mapping[str, Score] = {
    "paper": lambda row: paper(row.samples[:SAMPLES]),
    "default": default,
    "five": five,
    "logprobs": logprobs,
    "length": length,
}
GAINS = [("default", "paper"), ("five", "paper")]


def main() -> int:
    """Print the tables; return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", action="store_true", help="print every set too")
    parser.add_argument(
        "--calls", action="store_true", help="3 to 7 calls, with a self-check and not"
    )
    parser.add_argument(
        "--others", action="store_true", help="a sample of another model, with targets"
    )
    options = parser.parse_args()
    if options.others:
        from benchmarks import other_models

        return other_models.main(every_set=options.sets)
    if options.calls:
        from benchmarks import _self_check

        found = ranked(_self_check.checked_sets(), _self_check.SCORES)
        names, gains = [*_self_check.SCORES], _self_check.GAINS
    else:
        found = ranked([*own_sets(), *shared_sets()], SCORES)
        names, gains = [*SCORES], GAINS
    show(found, names, gains, every_set=options.sets)
    return 0


if __name__ == "__main__":
    sys.exit(main())
