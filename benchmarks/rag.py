"""What the guard finds in answers from a context, and what it cannot find.

First on recorded answers of a real model: questions that the context cannot answer
among those that it can, at the guard's default settings and at the paper's, beside two
measures that take no samples. Then on the embedded model: true contexts, false ones and
none. The first part is the same in every run; the second depends on the machine.

    SNNE_GUARD_SHARED=folder python -m benchmarks.rag

The folder holds ``data/recorded_qwen15.jsonl``; without it, or without the embedded
model, that part is left out. The exit status is 1 if the guard does notice that a
context is false: then the page about retrieval is wrong.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.certificate import SHARED, WITH_LOGPROBS, recordings
from snne_guard import MissingExtraError, SNNEGuard, score
from snne_guard.evaluation import Recording
from snne_guard.types import Assessment, FloatArray

DATASET = "squad_ctx"
ORDERS = 50  # choices of four of the ten samples
DRAWS = 4  # samples beside the answer at the guard's default, n=5
LEAST = 3  # members that a scored set must have, at the guard's default
RESAMPLES = 5000
THRESHOLDS = (0.2, 0.4, 0.6, 0.8)

GUARD = "guard: WSNNE, the answer and 4 samples"
PLAIN = "guard without log-probabilities: SNNE"
PAPER = "paper: SNNE, 10 samples without the answer"
LIKELIHOOD = "answer's mean log-probability, no samples"
LENGTH = "answer's length in words, no samples"


Mask = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class Task:
    """What is to be told apart.

    Attributes:
        name: In the tables.
        positive: Of every question, whether a good measure is high there.
        among: Of every question, whether it counts.
    """

    name: str
    positive: Mask
    among: Mask


def known() -> list[Recording]:
    rows = recordings(WITH_LOGPROBS)
    return [row for row in rows if row.extra.get("dataset") == DATASET]


def tasks(rows: list[Recording]) -> list[Task]:
    unanswerable = np.array([bool(row.extra["is_impossible"]) for row in rows])
    wrong = np.array([row.label == 0 for row in rows])
    every = np.ones(len(rows), bool)
    return [
        Task(name="no answer in the context", positive=unanswerable, among=every),
        Task(name="answer is wrong", positive=wrong, among=every),
        Task(
            name="wrong, of those with an answer", positive=wrong, among=~unanswerable
        ),
    ]


def uncertainty(
    row: Recording,
    chosen: Iterable[int],
    *,
    weighted: bool = False,
    paper: bool = False,
) -> float:
    """Return u of some samples, with the answer or without, as a guard scores it."""
    limit = (row.settings or {})["max_tokens"]
    given = row.token_logprobs or ()
    members = [
        (row.samples[place], given[place] or ())
        for place in chosen
        if len(given[place] or ()) < limit  # a cut-off sample leaves the set
    ]
    if not paper:
        members.insert(0, (row.main_answer, row.main_logprobs or ()))
    if len(members) < LEAST:
        return 1.0  # unscored, and by default treated like an uncertain one
    texts, logprobs = zip(*members, strict=True)
    found = score(
        texts,
        token_logprobs=logprobs if weighted else None,
        question=row.question,
        include_answer=not paper,
        similarity="rouge_l_paper" if paper else None,
    )
    return round(found.uncertainty or 0.0, 12)


def measures(rows: Sequence[Recording]) -> dict[str, FloatArray]:
    """Return what each measure says: ``(choices, questions)``, high is uncertain."""
    rng = np.random.default_rng(0)
    some = [rng.permutation(10)[:DRAWS].tolist() for _ in range(ORDERS)]

    def u(choices: Sequence[Iterable[int]], **how: bool) -> FloatArray:
        return np.array([[uncertainty(row, c, **how) for row in rows] for c in choices])

    return {
        GUARD: u(some, weighted=True),
        PLAIN: u(some),
        PAPER: u([range(10)], paper=True),
        LIKELIHOOD: np.array([[-np.mean(row.main_logprobs or 0) for row in rows]]),
        LENGTH: np.array([[float(len(row.main_answer.split())) for row in rows]]),
    }


def auroc(
    values: FloatArray, task: Task, weights: FloatArray | None = None
) -> FloatArray:
    """Return the chance that a positive is above a negative, ties half.

    Args:
        values: ``(choices, questions)``; the mean over the choices is taken.
        task: What is told apart.
        weights: ``(resamples, questions)`` how often each question counts.
    """
    if weights is None:
        weights = np.ones((1, values.shape[1]))
    positive, negative = (task.among & kind for kind in (task.positive, ~task.positive))
    high, low = values[:, positive, None], values[:, None, negative]
    above = ((high > low) + 0.5 * (high == low)).mean(axis=0)
    first, second = weights[:, positive], weights[:, negative]
    pairs = first.sum(axis=1) * second.sum(axis=1)
    return np.asarray(np.einsum("rp,pn,rn->r", first, above, second) / pairs)


def resampled(questions: int) -> FloatArray:
    """Return weights of a paired bootstrap: the same questions for every measure."""
    rng = np.random.default_rng(0)
    shares = np.full(questions, 1 / questions)
    return np.asarray(rng.multinomial(questions, shares, size=RESAMPLES), float)


def interval(values: FloatArray, *, signed: bool = False) -> str:
    low, high = np.quantile(values, (0.025, 0.975))
    return f"{low:+z.2f} to {high:+z.2f}" if signed else f"{low:.2f} to {high:.2f}"


def report_auroc(rows: list[Recording], found: Mapping[str, FloatArray]) -> None:
    weights, told = resampled(len(rows)), tasks(rows)
    print("AUROC (95 % interval of a bootstrap over questions)\n")
    header(["measure", *(task.name for task in told)])
    for name, values in found.items():
        line(
            name,
            (
                f"{auroc(values, task)[0]:.2f} "
                f"({interval(auroc(values, task, weights))})"
                for task in told
            ),
        )
    print("\nAUROC less that of another measure (paired)\n")
    header(("less", *(task.name for task in told)))
    for name, other in (
        (GUARD, LENGTH),
        (GUARD, LIKELIHOOD),
        (GUARD, PLAIN),
        (PAPER, LENGTH),
        (PAPER, LIKELIHOOD),
        (PAPER, GUARD),
    ):
        line(
            f"{name.split(':')[0]}, less {other.split(':')[0].split(',')[0]}",
            (
                f"{less(found, name, other, task):+z.2f} "
                f"({interval(paired(found, name, other, task, weights), signed=True)})"
                for task in told
            ),
        )
    print()


def less(found: Mapping[str, FloatArray], name: str, other: str, task: Task) -> float:
    value = (auroc(found[name], task) - auroc(found[other], task))[0]
    return round(float(value), 2) + 0.0  # so that none is shown as -0.00


def paired(
    found: Mapping[str, FloatArray],
    name: str,
    other: str,
    task: Task,
    weights: FloatArray,
) -> FloatArray:
    return auroc(found[name], task, weights) - auroc(found[other], task, weights)


def report_accepted(rows: list[Recording], u: FloatArray) -> None:
    unanswerable, wrong, _ = tasks(rows)
    kinds = {
        "right": ~wrong.positive,
        "wrong, the context has the answer": wrong.positive & ~unanswerable.positive,
        "the context has no answer": unanswerable.positive,
    }
    print("Answers that the guard accepts at its defaults, mean over the choices\n")
    counts = (f"{name} ({kind.sum()})" for name, kind in kinds.items())
    header(("threshold", *counts, "right among the accepted"))
    weights = resampled(len(rows))
    for threshold in (*THRESHOLDS, 1.0):
        taken = (u <= threshold).mean(axis=0)
        shares = (f"{taken[kind].mean():.0%}" for kind in kinds.values())
        sums = weights @ np.stack([taken * kinds["right"], taken], axis=1)
        low, high = np.quantile(sums[:, 0] / sums[:, 1], (0.025, 0.975))
        right = (taken * kinds["right"]).sum() / taken.sum()
        line(f"{threshold:g}", (*shares, f"{right:.0%} ({low:.0%} to {high:.0%})"))
    print()


def report_recorded() -> None:
    if not (SHARED / "data" / WITH_LOGPROBS).is_file():
        print(f"not measured: {WITH_LOGPROBS} not found; set SNNE_GUARD_SHARED\n")
        return
    rows = known()
    print("## Questions that the context cannot answer\n")
    found = measures(rows)
    report_auroc(rows, found)
    report_accepted(rows, found[GUARD])


FACTS = [
    ("What is the capital of France?", "The capital of France is {}.", "Paris", "Lyon"),
    ("What is the capital of Japan?", "The capital of Japan is {}.", "Tokyo", "Osaka"),
    ("What is the capital of Italy?", "The capital of Italy is {}.", "Rome", "Milan"),
    (
        "What is the chemical symbol for gold?",
        "The chemical symbol for gold is {}.",
        "Au",
        "Ag",
    ),
    ("How many days are in a week?", "A week has {} days.", "seven", "nine"),
    ("How many legs does a spider have?", "A spider has {} legs.", "eight", "six"),
    ("Who wrote Hamlet?", "Hamlet was written by {}.", "Shakespeare", "Marlowe"),
    (
        "Who painted the Mona Lisa?",
        "The Mona Lisa was painted by {}.",
        "Leonardo",
        "Raphael",
    ),
    (
        "What is the largest planet of the solar system?",
        "The largest planet of the solar system is {}.",
        "Jupiter",
        "Mars",
    ),
    (
        "What is the largest ocean?",
        "The largest ocean is the {} Ocean.",
        "Pacific",
        "Arctic",
    ),
    (
        "In which year did the Second World War end?",
        "The Second World War ended in {}.",
        "1945",
        "1950",
    ),
    (
        "What gas do plants take from the air?",
        "Plants take {} from the air.",
        "carbon dioxide",
        "helium",
    ),
]
"""Question, context, what is true, what is false."""
PROMPT = "Text: {}\nQuestion: {}\nAnswer with a few words from the text."
ALONE = "Question: {}\nAnswer with a few words."


def prompt(question: str, text: str | None) -> str:
    return ALONE.format(question) if text is None else PROMPT.format(text, question)


def says(assessment: Assessment, value: str) -> bool:
    """Return whether the answer holds a word or name."""
    text = "" if assessment.answer is None else assessment.answer.text
    return re.search(rf"\b{value}\b", text, re.IGNORECASE) is not None


def report_false(guard: SNNEGuard) -> bool:
    """Print what comes of true and false contexts; return whether false ones pass."""
    contexts: dict[str, Callable[[str, str, str], str | None]] = {
        "true": lambda text, true, _false: text.format(true),
        "false": lambda text, _true, false: text.format(false),
        "none": lambda _text, _true, _false: None,
    }
    print("## A false context (embedded model, guard at its defaults, threshold 0.5)\n")
    header(
        ("context", "true answers", "accepted", "false answers", "accepted", "mean u")
    )
    passed = 0
    for name, context in contexts.items():
        found = [
            (guard.assess(prompt(question, context(text, true, false))), true, false)
            for question, text, true, false in FACTS
        ]
        right = [one for one, true, _ in found if says(one, true)]
        wrong = [one for one, _, false in found if says(one, false)]
        passed = sum(accepted(one) for one in wrong) if name == "false" else passed
        u = [1.0 if one.uncertainty is None else one.uncertainty for one, *_ in found]
        line(
            name,
            (
                f"{len(right)} of {len(FACTS)}",
                f"{sum(map(accepted, right))}",
                f"{len(wrong)}",
                f"{sum(map(accepted, wrong))}",
                f"{np.mean(u):.2f}",
            ),
        )
    print()
    return passed >= len(FACTS) // 3


def accepted(assessment: Assessment) -> bool:
    return assessment.decision == "accept"


def header(cells: Sequence[str]) -> None:
    print(f"| {' | '.join(cells)} |")
    print("|---" * len(cells) + "|")


def line(first: str, cells: Iterable[str]) -> None:
    print(f"| {first} | {' | '.join(cells)} |")


def main() -> int:
    report_recorded()
    try:
        from snne_guard.langchain.embedded import embedded_model

        model = embedded_model(temperature=0, seed=1, max_tokens=24, stop=["\n"])
    except MissingExtraError as error:
        print(f"not measured: {error}")
        return 0
    return 0 if report_false(SNNEGuard(model, threshold=0.5)) else 1


if __name__ == "__main__":
    sys.exit(main())
