"""Every method on one response set, each timed as if it had run alone."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from time import perf_counter
from typing import Any

import numpy as np

from snne_guard.errors import InputError
from snne_guard.evaluation.comparison.members import (
    first_samples,
    malformed,
    recorded_of,
)
from snne_guard.evaluation.comparison.plan import Planned
from snne_guard.evaluation.recording.recordings import Recording
from snne_guard.scorers.materials import Materials
from snne_guard.scorers.needs import RELATION_NEEDS
from snne_guard.scorers.relation import Relation
from snne_guard.types import FloatArray

__all__ = ["Columns", "Provided", "Provider", "Shared"]

Provider = Callable[[Recording], Any]
"""What is needed of a recording and not in it: one for the delivered answer and each
sample, or one for the recording, as the need has it; None where it cannot be had."""

_NOTHING = Relation.of("rouge_l")  # for methods that compare no answers

# What has to be worked out before a need can be met; each is timed once.
_FIRST = ("probabilities", "matrix", "equivalent")
_BASES: Mapping[str, tuple[str, ...]] = {
    "similarity": ("probabilities", "matrix"),
    "graph": ("probabilities", "matrix"),
    "main_similarity": ("probabilities", "matrix"),
    "cluster_ids": ("probabilities", "equivalent"),
    "entailment": ("probabilities",),
    "main_entailment": ("probabilities",),
}


_COMPARING = RELATION_NEEDS | frozenset(_FIRST)


@dataclass(slots=True)
class Columns:
    """What the methods of a plan say of the questions of a set.

    Attributes:
        plan: The methods.
        values: ``(methods, questions)``, NaN where a method cannot score.
        seconds: ``(methods,)`` time over all scored questions.
        scored: ``(methods,)`` questions that were scored.
        failures: For each method why questions were not scored, and how many.
    """

    plan: Sequence[Planned]
    values: FloatArray
    seconds: FloatArray
    scored: FloatArray
    failures: list[Counter[str]] = field(default_factory=list[Counter[str]])

    @classmethod
    def of(cls, plan: Sequence[Planned], n: int) -> Columns:
        """Return columns for ``n`` questions that nothing has been written into."""
        return cls(
            plan,
            np.full((len(plan), n), np.nan),
            np.zeros(len(plan)),
            np.zeros(len(plan)),
            [Counter() for _ in plan],
        )

    def fill(
        self,
        at: int,
        shared: Shared,
        *,
        tau: float,
        but: frozenset[str] = frozenset(),
    ) -> frozenset[str]:
        """Run every method on one question and return the names of those that failed.

        A method that raises, or says NaN, has not scored it.

        Args:
            at: Number of the question.
            shared: What is known of it.
            tau: Temperature of the similarity's softmax.
            but: Methods that need not be tried, since they failed before.
        """
        failed = set(but)
        for place, planned in enumerate(self.plan):
            if planned.status != "evaluated" or planned.name in but:
                continue
            try:
                value, seconds = shared.run(planned, tau=tau)
                _refuse_nan(value)
            except Exception as error:  # noqa: BLE001 - a method may be anyone's code
                self.failures[place][_told(error)] += 1
                failed.add(planned.name)
                continue
            self.values[place, at] = value
            self.seconds[place] += seconds
            self.scored[place] += 1
        return frozenset(failed)


@dataclass(frozen=True, slots=True)
class Provided:
    """What was provided for one recording.

    Attributes:
        known: Under the name of each need.
        seconds: What it took.
        failed: Why others could not be had.
    """

    known: Mapping[str, Any]
    seconds: Mapping[str, float]
    failed: Mapping[str, Exception]

    @classmethod
    def of(
        cls, recording: Recording, providers: Mapping[str, Provider], /, *, n: int
    ) -> Provided:
        """Ask all providers; one that raises, or gives too few, has nothing.

        Args:
            recording: The recording.
            providers: What meets needs; they see the samples that count, no others.
            n: How many samples those are.
        """
        shown = first_samples(recording, n)
        known: dict[str, Any] = {}
        seconds: dict[str, float] = {}
        failed: dict[str, Exception] = {}
        for need, provide in providers.items():
            began = perf_counter()
            try:
                found = provide(shown)
            except Exception as error:  # noqa: BLE001 - a model may be anyone's
                failed[need] = error
                continue
            if found is not None:
                known[need] = found
                seconds[need] = perf_counter() - began
        wrong = malformed(recording, recorded_of(recording))
        wrong = {need: error for need, error in wrong.items() if need not in known}
        wrong |= malformed(shown, known)
        known = {need: one for need, one in known.items() if need not in wrong}
        return cls(known, seconds, failed | wrong)


class Shared:
    """The parts of one response set with the time that each took.

    Args:
        materials: The response set.
        provided: What was provided for it.
    """

    def __init__(self, materials: Materials, provided: Provided) -> None:
        self._materials = materials
        self._seconds = {(need, ""): took for need, took in provided.seconds.items()}
        self._failed = {(need, ""): error for need, error in provided.failed.items()}

    def run(self, planned: Planned, *, tau: float) -> tuple[float, float]:
        """Return what a method says, and the seconds that it takes alone.

        Raises:
            Exception: Whatever the method or its relation raises.
        """
        relation = planned.relation or _NOTHING
        alone = sum(self._cost(part, relation) for part in _parts(planned.method.needs))
        began = perf_counter()
        inputs = self._materials.inputs(planned.method, relation, tau=tau)
        value = float(planned.method.compute(inputs))
        return value, alone + perf_counter() - began

    def n_clusters(self, relation: Relation, /) -> int:
        """Return the number of groups of equal answers, 0 where it is not known."""
        try:
            for part in _parts(frozenset({"cluster_ids"})):
                self._cost(part, relation)
        except Exception:  # noqa: BLE001 - a model may be anyone's
            return 0
        return len(set(self._materials.cluster_ids(relation).tolist()))

    def _cost(self, part: str, relation: Relation) -> float:
        key = (part, relation.name if part in _COMPARING else "")
        if key in self._failed:
            # Once is enough: for the other methods it would only fail again.
            raise self._failed[key]
        if key not in self._seconds:
            began, saved = perf_counter(), _saved(relation)
            try:
                self._work_out(part, relation)
            except Exception as error:
                self._failed[key] = error
                raise
            self._seconds[key] = perf_counter() - began + _saved(relation) - saved
        return self._seconds[key]

    def _work_out(self, part: str, relation: Relation) -> None:
        if part in _FIRST:
            getattr(self._materials, part)(relation)
        else:
            self._materials.part(part, relation)


def _saved(relation: Relation) -> float:
    """Return the seconds that a cache has saved so far; they are the method's too."""
    return float(getattr(relation.similarity, "saved_seconds", 0.0))


@cache
def _parts(needs: frozenset[str]) -> tuple[str, ...]:
    """Return what is worked out for some needs, in an order that can be timed."""
    first = {base for need in needs for base in _BASES.get(need, ())}
    return (*(part for part in _FIRST if part in first), *sorted(needs))


def _refuse_nan(value: float) -> None:
    if math.isnan(value):
        msg = "it gave NaN"
        raise InputError(msg)


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
