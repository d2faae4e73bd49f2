"""Recordings to calibrate on: the harder a question, the more its answers scatter."""

from __future__ import annotations

import random
from typing import Any

from snne_guard.evaluation import Recording

__all__ = ["asked", "recordings", "rows"]

SETTINGS: dict[str, Any] = {"model": "openai:m", "temperature": 1.0}


def rows(
    n: int, *, seed: int = 3, n_samples: int = 4, **fields: Any
) -> list[dict[str, Any]]:
    """Return recordings of n questions with a reference, about a third wrong."""
    random_ = random.Random(seed)  # noqa: S311 - not for secrets
    found: list[dict[str, Any]] = []
    for number in range(n):
        hardness, word = random_.random(), f"name{number}"
        right = random_.random() > 0.75 * hardness
        others = [f"other{random_.randrange(5)}" for _ in range(n_samples + 1)]
        samples = [
            word if random_.random() > 0.9 * hardness else other for other in others[1:]
        ]
        found.append(
            {
                "id": f"s{seed}q{number}",
                "question": f"Who is number {number} of {seed}?",
                "main_answer": word if right else others[0],
                "samples": samples,
                "answers": [word],
                "label": int(right),
                "settings": dict(SETTINGS),
                "drawn": {"models": ["m-1"], "finish_reasons": None},
                **fields,
            }
        )
    return found


def recordings(n: int, **options: Any) -> list[Recording]:
    """Return them as recordings."""
    return [Recording.from_dict(row) for row in rows(n, **options)]


def asked(name: str, **fields: Any) -> Recording:
    """Return one recording."""
    own = {
        "id": name,
        "question": f"{name}?",
        "main_answer": "a",
        "samples": ["a", "b"],
    }
    return Recording.from_dict({**own, **fields})
