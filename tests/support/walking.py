"""Recorded questions, and guarded calls that draw their samples from these again."""

from __future__ import annotations

import contextvars

import numpy as np

from snne_guard.assess import Assessor, Brief, Session
from snne_guard.evaluation import Recording
from snne_guard.sampling import Draw, Reply
from snne_guard.types import Assessment, Sample

ROUNDS = (3, 5, 10)
NAMES = ["Paris", "Lyon", "Nice", "Lille", "Metz", "Brest", "Caen", "Tours"]


def recorded(count: int, seed: int) -> list[Recording]:
    """Graded questions that a model knows or guesses; now and then a sample is empty.

    Args:
        count: How many.
        seed: Fixes the draws.
    """
    rng = np.random.default_rng(seed)
    rows: list[Recording] = []
    for number in range(count):
        sure = rng.beta(0.6, 0.6)
        drawn = [
            ""
            if rng.random() < 0.01
            else str(rng.choice(NAMES[: 1 if rng.random() < sure else 8]))
            for _ in range(9)
        ]
        rows.append(
            Recording(
                id=str(number),
                question="?",
                main_answer="Paris",
                samples=tuple(drawn),
                label=1 if rng.random() < 0.3 + 0.68 * sure else 0,
            )
        )
    return rows


def guarded(recording: Recording, assessor: Assessor) -> Assessment:
    """Put a recorded question through a guarded call."""

    def send(draw: Draw) -> Reply:
        texts = recording.samples[draw.index : draw.index + draw.n]
        return Reply(samples=tuple(Sample(text=text) for text in texts))

    brief = Brief(batch=9, question="?", context=contextvars.copy_context())
    with Session(assessor, brief, send) as session:
        return session.finish(Sample(text=recording.main_answer))[0]
