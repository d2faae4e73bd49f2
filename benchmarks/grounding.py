"""Is it in the documents? How well ``grounded`` finds what they do not say.

Protocol, written before any figure was looked at. Passages are cut in two halves by a
hash of their text: the first half chooses, the second is looked at once, at the end.
Chosen are what is counted (words or neighbouring pairs, with function words or
without), whether the count or its share decides, and how the sentences of an answer
become one number (the mean or the least); by the AUROC of sentences and of answers of
FaithBench, and of the answers of `squad_ctx`. No model's verdict takes part in it, and
nothing is chosen again after the second half was seen.

What was chosen: all words, in neighbouring pairs; the less of share and count, and the
least supported sentence. The count alone ranks as well, but says .33 of a single word
that stands nowhere, where the share says 0.

- FaithBench: summaries of passages by ten models, with human labels, chosen by its
  makers so that detectors disagree. A sentence is unsupported where it overlaps what a
  person marked as unwanted; an answer, where one of its sentences is. The half of it,
  by passage, that the project has.
- ``squad_ctx``: answers of Qwen2.5 1.5B from a passage, right or wrong. Here the
  uncertainty of four samples stands beside it: one number is never part of the other.
- Answers of small models about short texts that say half of what is asked; they come
  with the project. Their labels are by a rule that looks for names and numbers as the
  words do, so they show that it works and not how well.

AUROC with 90% intervals from 1,000 resamples of the passages. Beside two detectors, of
which the verdicts are recorded, stands what each gains from the words: the sum of
both doubts.

    python -m benchmarks.grounding
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._ranking import DRAWS, SHARED, resampled_auroc
from benchmarks.spans import OWN, own
from snne_guard import score
from snne_guard.similarity.content import WeighedWords
from snne_guard.similarity.words import FUNCTION_WORDS
from snne_guard.spans.cutting import cut
from snne_guard.spans.grounding import ground, weakest
from snne_guard.spans.matching import word_match
from snne_guard.types import FloatArray

FAITHBENCH = SHARED / "faithbench.jsonl"
QWEN = SHARED / "recorded_qwen15.jsonl"
SENTENCES, ANSWERS = 0.64, 0.60
"""What it was to reach on the shared half, without any model."""

Row = Mapping[str, Any]
Doubts = Mapping[str, Sequence[float]]


def chooses(context: str) -> bool:
    """Return whether a passage is of the half that chooses."""
    return sha256(context.encode()).digest()[0] % 2 == 0


def read(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def doubt(answer: str, context: str) -> float:
    """Return how little of an answer its documents support; 1 where it is unknown."""
    return 1 - (weakest(ground(answer, context)) or 0)


# -- What was chosen from --------------------------------------------------------------


def counted(text: str, context: str) -> dict[str, tuple[int, int]]:
    """Return how many words and pairs of a text a context lacks, of how many."""
    found: dict[str, tuple[int, int]] = {}
    for kind, left_out in (("", frozenset[str]()), ("content ", FUNCTION_WORDS)):
        here, there = (
            [word for word in WeighedWords(each).tokens if word not in left_out]
            for each in (text, context)
        )
        lacking = [word not in there for word in here]
        known = {*pairwise(there)}
        apart = [pair not in known for pair in pairwise(here)]
        ends = lacking[:1] + lacking[-1:]
        found[f"{kind}words"] = sum(lacking), len(lacking)
        found[f"{kind}pairs"] = sum(apart) + sum(ends), len(here) + 1
    return found


def forms(text: str, context: str) -> dict[str, float]:
    """Return the doubt of a sentence in every form."""
    doubts: dict[str, float] = {}
    for kind, (lacking, n) in counted(text, context).items():
        doubts[f"{kind}, count"] = float(lacking)
        doubts[f"{kind}, share"] = lacking / max(n, 1)
        doubts[f"{kind}, less of both"] = max(
            lacking / max(n, 1), 1 - 1 / (1 + lacking)
        )
    return doubts


def choose(rows: Sequence[Row], answers: Sequence[Row]) -> None:
    """Print every form on the half that chooses."""
    rows = [row for row in rows if chooses(row["context"])]
    answers = [row for row in answers if chooses(row["context"])]
    texts = [[row["answer"][a:b] for a, b in cut(row["answer"])] for row in rows]
    each = [
        [forms(text, row["context"]) for text in parts]
        for row, parts in zip(rows, texts, strict=True)
    ]
    short = [
        [
            forms(row["main_answer"][a:b], row["context"])
            for a, b in cut(row["main_answer"])
        ]
        for row in answers
    ]
    marked = [bad for row in rows for bad in unsupported(row)]
    wrong, missed = (
        [any(unsupported(row)) for row in rows],
        [row["label"] == 0 for row in answers],
    )
    print(f"the half that chooses: {len(rows)} answers, {len(answers)} of squad_ctx")
    print(f"{'':28} sentences   answers, mean   least   squad_ctx, mean   least")
    for form in each[0][0]:
        doubts = [[one[form] for one in parts] for parts in each]
        other = [[one[form] for one in parts] for parts in short]
        figures = [
            auroc([one for parts in doubts for one in parts], marked),
            auroc([float(np.mean(parts)) for parts in doubts], wrong),
            auroc([max(parts) for parts in doubts], wrong),
            auroc([float(np.mean(parts)) for parts in other], missed),
            auroc([max(parts) for parts in other], missed),
        ]
        print(f"{form:28}", *(f"{figure:9.3f}" for figure in figures))


# -- Tables ----------------------------------------------------------------------------


def auroc(doubts: Sequence[float], wrong: Sequence[bool]) -> float:
    once = np.ones((1, len(doubts)))
    return float(resampled_auroc(np.array(doubts), np.array(wrong), once)[0])


def unsupported(row: Row) -> list[bool]:
    """Return which sentences of a summary a person marked as unwanted."""
    marks = [span for span in row["spans"] if "unwanted" in span["label"]]
    return [
        any(mark["start"] < end and mark["end"] > start for mark in marks)
        for start, end in cut(row["answer"])
    ]


def table(
    doubts: Doubts, wrong: Sequence[bool], passages: Iterable[str], over: str
) -> dict[str, float]:
    """Print the AUROC of each row, and the gain of each over one of them."""
    places: dict[str, int] = {}
    at = np.array([places.setdefault(each, len(places)) for each in passages])
    random = np.random.default_rng(0)
    picks = random.multinomial(len(places), [1 / len(places)] * len(places), size=DRAWS)
    times = np.vstack([np.ones(len(places)), picks])[:, at].astype(float)
    bad = np.array(wrong)
    drawn = {
        name: resampled_auroc(np.array(values, dtype=float), bad, times)
        for name, values in doubts.items()
    }
    for name, figures in drawn.items():
        line = f"  {name:28} {interval(figures)}"
        print(
            line if name == over else f"{line}   {interval(figures - drawn[over], '+')}"
        )
    return {name: float(figures[0]) for name, figures in drawn.items()}


def interval(figures: FloatArray, sign: str = "") -> str:
    low, high = np.nanquantile(figures[1:], [0.05, 0.95])
    form = f"{sign}.3f"
    return f"{figures[0]:{form}} [{low:{form}}, {high:{form}}]"


def faithbench(rows: Sequence[Row], name: str) -> tuple[float, float]:
    """Print the tables of some answers; return sentences' and answers' figure."""
    supports = [ground(row["answer"], row["context"]) for row in rows]
    parts = [[row["answer"][a:b] for a, b in cut(row["answer"])] for row in rows]
    of_sentences: dict[str, list[float]] = {
        "grounded": [1 - (s.grounded or 0) for each in supports for s in each],
        "share of the best sentence": [
            1 - float(match)
            for row, texts in zip(rows, parts, strict=True)
            for match in word_match(texts, [row["context"]])[:, 0]
        ],
        "length": [float(len(text)) for texts in parts for text in texts],
    }
    passages = [
        row["context"] for row, texts in zip(rows, parts, strict=True) for _ in texts
    ]
    marked = [bad for row in rows for bad in unsupported(row)]
    print(
        f"\n{name}: {len(marked)} sentences, {sum(marked)} unsupported; over grounded"
    )
    sentences = table(of_sentences, marked, passages, "grounded")
    words = np.array([1 - (weakest(each) or 0) for each in supports])
    judges: dict[str, Any] = {
        model: 1 - np.array([row["detectors"][key] for row in rows], dtype=float)
        for model, key in (("HHEM 2.1", "hhem-2.1"), ("GPT-4o", "gpt_4o"))
    }
    wrong = [any(unsupported(row)) for row in rows]
    print(f"{name}: {len(rows)} answers, {sum(wrong)} with an unsupported sentence")
    found: dict[str, Any] = {"grounded": words, **judges}
    found["length"] = [float(len(row["answer"])) for row in rows]
    contexts = [row["context"] for row in rows]
    answers = table(found, wrong, contexts, "grounded")
    for model, verdicts in judges.items():
        both = {model: verdicts, f"{model} and grounded": verdicts + words}
        table(both, wrong, contexts, model)
    return sentences["grounded"], answers["grounded"]


def squad(rows: Sequence[Row]) -> None:
    """Print agreement and grounding, alone and as a pair, on answers from a passage."""
    u = np.array(
        [
            score(
                [row["main_answer"], *row["samples"][:4]],
                question=row["question"],
                method="snne",
            ).uncertainty
            for row in rows
        ],
        dtype=float,
    )
    words = np.array([doubt(row["main_answer"], row["context"]) for row in rows])
    wrong = [row["label"] == 0 for row in rows]
    print(f"\nsquad_ctx: {len(rows)} answers, {sum(wrong)} wrong; gain over agreement")
    doubts = {"agreement": u, "grounded": words, "mean of both": (u + words) / 2}
    table(doubts, wrong, [row["context"] for row in rows], "agreement")


def own_answers() -> None:
    """Print the figures of answers that come with the project."""
    for file in sorted(OWN.glob("*.jsonl")):
        rows = [own(row) for row in read(file)]
        doubts = [doubt(s, row["context"]) for row in rows for s in row["sentences"]]
        wrong = [label != "accurate" for row in rows for label in row["labels"]]
        passages = [row["context"] for row in rows for _ in row["labels"]]
        print(
            f"\n{file.stem}: {len(wrong)} sentences, {sum(wrong)} invented, by a rule"
        )
        table({"grounded": doubts}, wrong, passages, "grounded")


# -- Attacks ---------------------------------------------------------------------------


def attacks() -> None:
    """Print how far sentences that are copied and falsified are grounded."""
    contexts = sorted(
        {row["context"] for file in OWN.glob("*.jsonl") for row in read(file)}
    )
    found: dict[str, list[float]] = {}
    for context in contexts:
        sentences = [context[start:end] for start, end in cut(context)]
        for name, falsified in FALSIFIED.items():
            made = [falsified(one, other) for one, other in pairwise(sentences)]
            copies = {*made} - {*sentences, ""}
            found.setdefault(name, []).extend(1 - doubt(one, context) for one in copies)
    print("\ncopied from the documents and falsified; grounded at most")
    for name, numbers in found.items():
        low, middle, high = np.quantile(numbers, [0.1, 0.5, 1])
        figures = f"{low:.2f} to {high:.2f}, median {middle:.2f}"
        print(f"  {name:36} {len(numbers):3}   {figures}")


def other_number(one: str, _: str) -> str:
    return re.sub(r"\d", lambda digit: str((int(digit[0]) + 3) % 10), one, count=1)


def number_of_another(one: str, other: str) -> str:
    own, another = NUMBER.search(one), NUMBER.search(other)
    return one.replace(own[0], another[0], 1) if own and another else ""


def negated(one: str, _: str) -> str:
    return re.sub(r"\b(is|was|has)\b", r"\1 not", one, count=1)


def first_half_and_second(one: str, other: str) -> str:
    """Return the start of a sentence and the end of another, at a word of both."""
    for word in one.split()[1:]:
        if word in other.split()[1:-1]:
            start, _, _ = one.partition(f" {word} ")
            return f"{start} {word} {other.rpartition(f' {word} ')[2]}"
    return ""


def shuffled(one: str, other: str) -> str:
    words = f"{one} {other}".split()
    return " ".join(np.random.default_rng(0).permutation(words))


NUMBER = re.compile(r"\d[\d,.]*\d|\d")
FALSIFIED: Mapping[str, Callable[[str, str], str]] = {
    "another number": other_number,
    "the number of another sentence": number_of_another,
    "not put in": negated,
    "words of two sentences, shuffled": shuffled,
    "spliced at a word of both": first_half_and_second,
    "copied": lambda one, _: f"{one} ",
}


def main() -> int:
    own_answers()
    attacks()
    if not (FAITHBENCH.exists() and QWEN.exists()):
        print(f"\nskipped: {FAITHBENCH} or {QWEN.name} is not there")
        return 0
    rows = read(FAITHBENCH)
    answers = [row for row in read(QWEN) if row["dataset"] == "squad_ctx"]
    print()
    choose(rows, answers)
    halves: dict[str, Callable[[Row], bool]] = {
        "chosen on": lambda row: chooses(row["context"]),
        "looked at once": lambda row: not chooses(row["context"]),
    }
    for name, belongs in halves.items():
        faithbench([row for row in rows if belongs(row)], name)
    sentences, found = faithbench(rows, "all")
    squad(answers)
    print(
        f"\naimed at: {SENTENCES} sentences, {ANSWERS} answers; got {sentences:.3f}, "
        f"{found:.3f}"
    )
    return int(sentences < SENTENCES or found < ANSWERS)


if __name__ == "__main__":
    sys.exit(main())
