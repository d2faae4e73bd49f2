"""Two models' recordings of the same questions, joined without a call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from snne_guard.errors import InputError
from snne_guard.evaluation.recorded_calls import how_drawn
from snne_guard.evaluation.recordings import Recording


class OtherRecording:
    """Another model's answers to the same questions, each to stand for a sample.

    Attributes:
        name: What the model is called, by the settings of its recordings.
        matched: How many questions have been joined.
        unmatched: How many were left out, since it has none of their id and text.
        unused: How many of its own were left out.
    """

    def __init__(self, rows: Iterable[Recording], /) -> None:
        self._answers = {row.id: row for row in rows}
        settings = [row.settings or {} for row in self._answers.values()]
        if not settings or not settings[0].get("model"):
            msg = "expected the other recording's settings to name the model, got none"
            raise InputError(msg)
        self.name = str(settings[0]["model"])
        self.matched = self.unmatched = self.unused = 0

    def joined(self, recordings: Iterable[Recording]) -> Iterator[Recording]:
        """Yield those whose question it has too, with its answer as the last sample."""
        self.matched = self.unmatched = 0
        for row in recordings:
            if self.name in ((row.settings or {}).get("model"), *row.other_models):
                msg = f"recording {row.id!r} has replies of {self.name!r} already"
                raise InputError(msg)
            other = self._answers.get(row.id)
            if other is None or other.prompt != row.prompt:
                self.unmatched += 1
            else:
                self.matched += 1
                yield _joined(row, other, self.name)
        self.unused = len(self._answers) - self.matched
        if not self.matched:
            msg = f"no question has its id and text in the recording of {self.name!r}"
            raise InputError(msg)


def _joined(row: Recording, other: Recording, name: str) -> Recording:
    n = len(row.samples)
    return replace(
        row,
        samples=(*row.samples, other.main_answer),
        token_logprobs=row.token_logprobs and (*row.token_logprobs, None),
        sample_models=(*(row.sample_models or (None,) * n), name),
        extra={**row.extra, "drawn": _drawn(row, other, name)},
    )


def _drawn(row: Recording, other: Recording, name: str) -> Mapping[str, Any]:
    """Return how both were drawn: what each reply is, and what each request took."""
    here, there = how_drawn(row), how_drawn(other)
    unknown = (None,) * (1 + len(row.samples))
    answers = [
        {**one.to_dict(), "role": "sample", "other_model": name}
        for one in there.requests
        if one.role == "answer"
    ]
    given = row.extra.get("drawn")
    return {
        **(given if isinstance(given, dict) else {}),
        "finish_reasons": [
            *(here.finish_reasons or unknown),
            there.finish_reasons[0] if there.finish_reasons else None,
        ],
        "kinds": [*(here.kinds or unknown), there.kinds[0] if there.kinds else None],
        "requests": [*(one.to_dict() for one in here.requests), *answers],
        "other_models": {**here.other_models, name: there.models},
    }
