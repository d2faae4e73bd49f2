"""Drawing without a model: replies that tell which question they are for."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from snne_guard.evaluation import (
    BadLine,
    Drawn,
    Question,
    Recorder,
    RecordingStore,
    Tally,
    parse_questions,
    read_recordings,
)
from snne_guard.types import Cost, Sample

Row = tuple[int, Question | BadLine]
SETTINGS: dict[str, Any] = {"model": "m", "temperature": 1.0, "samples": 2}


class HttpError(Exception):
    """What a provider's client raises."""

    def __init__(self, status: int) -> None:
        super().__init__(f"status {status}")
        self.status_code = status


TOO_LONG, OVERLOADED, NO_SERVER = HttpError(400), HttpError(503), ConnectionError("x")


def question(name: str, **fields: Any) -> Question:
    return Question.from_dict({"id": name, "question": f"{name}?", **fields})


def rows(*names: str) -> list[tuple[int, Question]]:
    return [(number, question(name)) for number, name in enumerate(names, start=1)]


def lines_of(*objects: Mapping[str, Any] | bytes) -> bytes:
    """Return objects as lines."""
    whole = (o if isinstance(o, bytes) else json.dumps(o).encode() for o in objects)
    return b"".join(line + b"\n" for line in whole)


def drawn_for(name: str, *, n_samples: int = 2, tries: int = 0) -> Drawn:
    """Return the draws that ``Scripted`` gives."""
    texts = [f"{name} {tries}.{position}" for position in range(n_samples)]
    return Drawn(
        answer=Sample(text=f"{name} answers", model="m-1", finish_reason="stop"),
        samples=tuple(Sample(text=text, model="m-1") for text in texts),
        cost=Cost(calls=2, prompt_tokens=10, completion_tokens=1 + n_samples),
    )


@dataclass(slots=True, kw_only=True)
class Scripted:
    """Draws the usual at once, or what ``outcomes`` has in its place.

    Attributes:
        outcomes: For each id what comes instead, in turn: an exception, draws, or None
            for the usual; the last one stays.
        asked: The id of each question that was asked, with samples and tries.
    """

    outcomes: dict[str, list[Drawn | Exception | None]] = field(default_factory=dict)
    asked: list[tuple[str, int, int]] = field(default_factory=list)

    async def __call__(
        self, question: Question, /, *, n_samples: int, tries: int
    ) -> Drawn:
        self.asked.append((question.id, n_samples, tries))
        await asyncio.sleep(0)  # so that others draw at the same time
        left = self.outcomes.get(question.id, [None])
        outcome = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(outcome, Exception):
            raise outcome
        usual = drawn_for(question.id, n_samples=n_samples, tries=tries)
        return usual if outcome is None else outcome

    @property
    def names(self) -> list[str]:
        return [name for name, _, _ in self.asked]


async def run(
    output: Path,
    given: Iterable[Row] | bytes,
    draw: Scripted | None = None,
    *,
    settings: Mapping[str, Any] = SETTINGS,
    **options: Any,
) -> Tally:
    """Record into a file as the command does."""
    if isinstance(given, bytes):
        given = parse_questions(given.splitlines(keepends=True))
    with RecordingStore(output, settings=settings) as store:
        recorder = Recorder(store, draw or Scripted(), **{"n_samples": 2, **options})
        return await recorder.run(given)


def recorded(output: Path) -> list[str]:
    """Return the ids in a recording, checking that each line is a whole recording."""
    found = list(read_recordings(output, strict=True))
    return [row.id for _, row in found if not isinstance(row, BadLine)]


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]
