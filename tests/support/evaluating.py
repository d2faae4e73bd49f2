"""Recordings to evaluate: questions whose samples scatter where the answer is wrong."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from snne_guard.evaluation.comparison.runner import evaluate
from snne_guard.evaluation.results import EvaluatedSet, MethodResult
from tests.cli.lines import write

__all__ = ["by_name", "evaluated", "questions", "row"]


def row(name: str, *samples: str, **fields: Any) -> dict[str, Any]:
    """Return a recording; the delivered answer is "yes" unless the fields say more."""
    return {
        "id": name,
        "question": f"{name}?",
        "main_answer": "yes",
        "samples": list(samples),
        "label": 1,
        **fields,
    }


def questions(
    n: int, *, n_samples: int = 4, seed: int = 0, logprobs: bool = False
) -> list[dict[str, Any]]:
    """Return recordings of n questions, two of three wrong, most of those scattered."""
    random_ = random.Random(seed)  # noqa: S311 - not for secrets
    words = [f"word{number}" for number in range(50)]
    rows: list[dict[str, Any]] = []
    for number in range(n):
        label = int(number % 3 == 0)
        steady = 0.9 if label else 0.4
        answer = " ".join(random_.choices(words, k=random_.randint(1, 6)))
        samples = [
            answer
            if random_.random() < steady
            else " ".join(random_.choices(words, k=random_.randint(1, 6)))
            for _ in range(n_samples)
        ]
        fields: dict[str, Any] = {"main_answer": answer, "label": label}
        if logprobs:
            fields["main_logprobs"] = _logprobs(random_, answer)
            fields["token_logprobs"] = [_logprobs(random_, one) for one in samples]
        rows.append(row(f"q{number}", *samples, **fields))
    return rows


def _logprobs(random_: random.Random, answer: str) -> list[float]:
    return [-random_.expovariate(2) for _ in answer.split()]


def evaluated(
    path: Path, *rows: dict[str, Any] | bytes, **options: Any
) -> EvaluatedSet:
    """Write recordings to a file and return what is found on its only set."""
    options = {"methods": "snne,lex_sim", "draws": 20, **options}
    found = evaluate(write(path / "rows.jsonl", *rows), **options)
    (one,) = found.sets
    return one


def by_name(one: EvaluatedSet) -> dict[str, MethodResult]:
    """Return the methods of a set by the names of what ran."""
    return {method.name: method for method in one.methods}
