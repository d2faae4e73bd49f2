"""All methods that need no model, beside SNNE alone, on the same answers.

A thousand questions with ten answers of sixty words, each answer with the
log-probabilities of its tokens. Similarities are computed in both, once for a question,
as `score` and the evaluation do. Both are timed in turn on a few questions at a time,
and the shortest of several repetitions counts. The exit status is 1 if the ratio misses
its target.

    python benchmarks/methods.py
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from snne_guard.scorers import METHODS, FunctionMethod
from snne_guard.scorers.materials import Materials
from snne_guard.scorers.relation import Relation

QUESTIONS, N, WORDS = 1000, 10, 60
ROUNDS = 10
CHUNK = 20  # questions timed in turn, more than the last ones that are remembered
SHOWN = 100  # questions for the time of each method
TARGET = 3.0  # at most this many times the time of SNNE alone

# What only a model can tell of answers that are there already.
OF_A_MODEL = frozenset(
    {
        "entailment",
        "hidden_states",
        "main_entailment",
        "p_true_logprob",
        "token_importance",
    }
)
SNNE = METHODS["snne"]
WITHOUT_MODEL = [method for method in METHODS.values() if not method.needs & OF_A_MODEL]
VOCABULARY = [f"word{number}" for number in range(400)]


@dataclass(frozen=True, slots=True)
class Question:
    """The answers to one, the first of them delivered."""

    answers: list[str]
    logprobs: list[list[float]]


def questions() -> list[Question]:
    """Return the same questions in every run; some answers are equal."""
    rng = random.Random(0)  # noqa: S311 - no secret
    made = []
    for _ in range(QUESTIONS):
        base = rng.choices(VOCABULARY, k=WORDS)
        share = rng.random()
        answers = [
            " ".join(
                rng.choice(VOCABULARY) if rng.random() < share else word
                for word in base
            )
            for _ in range(N)
        ]
        for place in range(1, N):
            if rng.random() < 0.2:  # noqa: PLR2004 - a fifth are copies
                answers[place] = answers[0]
        logprobs = [[-rng.expovariate(2) for _ in range(WORDS)] for _ in answers]
        made.append(Question(answers, logprobs))
    return made


def relation_of(method: FunctionMethod, similarity: str) -> Relation:
    """Return what compares answers without a model."""
    return Relation.of("exact" if "cluster_ids" in method.needs else similarity)


def seconds(
    known: Sequence[Materials],
    methods: Sequence[FunctionMethod],
    similarity: str = "rouge_l",
) -> float:
    """Return how long the methods take for all questions."""
    plan = [(method, relation_of(method, similarity)) for method in methods]
    start = time.process_time()
    for materials in known:
        for method, relation in plan:
            method.compute(materials.inputs(method, relation))
    return time.process_time() - start


def fresh(data: Sequence[Question]) -> list[Materials]:
    """Return what is known before anything is worked out."""
    return [
        Materials(question.answers, token_logprobs=question.logprobs)
        for question in data
    ]


def after_snne(data: Sequence[Question], method: FunctionMethod) -> float:
    """Return how long a method takes once SNNE has been computed."""
    known = fresh(data)
    seconds(known, [SNNE])
    return seconds(known, [method])


def both(data: Sequence[Question], similarity: str) -> tuple[float, float]:
    """Return how long SNNE alone and all methods take, timed in turn."""
    alone = together = 0.0
    for start in range(0, len(data), CHUNK):
        some = data[start : start + CHUNK]
        turns = [
            (
                seconds(fresh(some), [SNNE], similarity),
                seconds(fresh(some), WITHOUT_MODEL, similarity),
            )
            for _ in range(ROUNDS)
        ]
        alone += min(turn[0] for turn in turns)
        together += min(turn[1] for turn in turns)
    return alone, together


def main() -> int:
    """Print the ratio and each method's share, and say whether it meets its target."""
    data = questions()
    alone, together = both(data, "rouge_l")
    own, with_own = both(data[:CHUNK], SNNE.default_similarity)
    each = {
        method.name: min(after_snne(data[:SHOWN], method) for _ in range(ROUNDS))
        for method in WITHOUT_MODEL
    }
    scale = 1e6 / QUESTIONS
    shown = 1e6 / SHOWN
    print("microseconds a question, the similarity known:")
    for name, took in sorted(each.items(), key=lambda item: -item[1]):
        print(f"  {name:<24} {took * shown:>6.0f}")
    print(f"SNNE alone, ROUGE-L included: {alone * scale:.0f}")
    ratio = together / alone
    default = f"{SNNE.default_similarity}, SNNE's default: {with_own / own:.2f}x"
    count = len(WITHOUT_MODEL)
    print(f"{count} methods on {default}")
    print(f"{count} methods on rouge_l: {ratio:.2f}x SNNE alone (<= {TARGET})")
    return 0 if ratio <= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
