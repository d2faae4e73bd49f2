"""How uncertain the fields of structured answers are, and how many are wrong."""

from __future__ import annotations

import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from snne_guard.errors import InputError
from snne_guard.evaluation.metrics import auroc
from snne_guard.evaluation.recordings import Recording
from snne_guard.fields.scoring import labelled_fields, read_value, value_at
from snne_guard.types import Field

UNSURE = 0.5
"""Uncertainty above which a field counts as unsure, as ``render_fields`` marks it."""

_SHOWN = 50  # paths; where a model invents the keys, there are very many


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldSummary:
    """What is known of one field over all answers.

    Attributes:
        path: Its JSON Pointer, with ``*`` for the index of a row of a list.
        answers: Answers that have it, or of which a sample has.
        values: Its values; more than answers where it stands in rows.
        uncertainty: Their mean uncertainty.
        unsure: Share of values with an uncertainty above 0.5.
        labelled: Values with a label.
        wrong: Share of wrong ones among these; NaN without any.
        auroc: How well their uncertainty finds the wrong ones; NaN unless some are
            right and some wrong.
    """

    path: str
    answers: int
    values: int
    uncertainty: float
    unsure: float
    labelled: int
    wrong: float
    auroc: float


class FieldTable:
    """The fields of structured answers, collected answer by answer."""

    def __init__(self) -> None:
        self._answers: Counter[str] = Counter()
        self._found: defaultdict[str, array[float]] = defaultdict(_floats)
        self._labels: defaultdict[str, array[float]] = defaultdict(_floats)

    def add(self, recording: Recording, /) -> None:
        """Add an answer; one that is no JSON or has no samples adds nothing.

        Raises:
            InputError: It has labels all the same, or labels of what is no field.
        """
        paths: set[str] = set()
        for path, each, label in _fields(recording):
            paths.add(path)
            self._found[path].append(each.uncertainty)
            self._labels[path].append(label)
        self._answers.update(paths)

    def summaries(self) -> tuple[FieldSummary, ...]:
        """The fields that most answers have, the most uncertain first."""
        most = [self._summary(path) for path, _ in self._answers.most_common(_SHOWN)]
        return tuple(sorted(most, key=lambda each: -each.uncertainty))

    def _summary(self, path: str) -> FieldSummary:
        u, labels = np.array(self._found[path]), np.array(self._labels[path])
        known = ~np.isnan(labels)
        return FieldSummary(
            path=path,
            answers=self._answers[path],
            values=len(u),
            uncertainty=float(u.mean()),
            unsure=float((u > UNSURE).mean()),
            labelled=int(known.sum()),
            wrong=float(1 - labels[known].mean()) if known.any() else math.nan,
            auroc=auroc(u[known], labels[known]) if known.any() else math.nan,
        )


def _floats() -> array[float]:
    return array("d")


def _fields(recording: Recording) -> Iterator[tuple[str, Field, float]]:
    """Yield the folded path, the field and its label, NaN without one."""
    try:
        found, labels = labelled_fields(recording.to_dict())
    except InputError:  # no JSON, for one
        if recording.extra.get("field_labels"):
            raise
        return
    value = read_value(recording.main_answer)
    for each in found:
        yield _folded(value, each.path), each, labels.get(each.path, math.nan)


def _folded(value: object, path: str) -> str:
    """The path with ``*`` for places in lists; ``-`` stays, for what is in none."""
    steps: list[str] = []
    for step in path.split("/")[1:]:
        steps.append("*" if isinstance(value, list) and step != "-" else step)
        value = value_at(value, f"/{step}")
    return "".join(f"/{step}" for step in steps)
