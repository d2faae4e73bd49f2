"""The same questions drawn at several temperatures, one file for each of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from snne_guard.evaluation.comparison.survey import Part, Row
from snne_guard.evaluation.comparison.yardstick import Yardstick
from snne_guard.evaluation.results import Curve, EvaluatedSet

__all__ = ["Drawn", "across_temperatures"]

_FREE = {"temperature", "seed", "samples"}
"""Settings in which sets may differ that are compared by temperature."""

Key = tuple[str, int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """How the ranked questions of a set were drawn.

    Attributes:
        temperature: Of all their samples, None where it is not one or not known.
        conditions: Everything else that is known of how they were drawn.
        questions: Each id with a digest of what was asked, where that is known.
    """

    temperature: float | None
    conditions: frozenset[str | None]
    questions: frozenset[Key]

    @classmethod
    def of(cls, part: Part, rows: Iterable[Row], ids: Sequence[str], /) -> Drawn:
        """Look at what a first look kept.

        Args:
            part: The set.
            rows: Its questions that were run.
            ids: Those of them that are ranked.
        """
        ranked = {*ids}
        drawn = {row.temperature for row in rows if row.id in ranked}
        asked = {one.id: hash(one.question) for one in part.first}
        settings = [
            json.dumps(
                {k: v for k, v in (one.settings or {}).items() if k not in _FREE},
                sort_keys=True,
            )
            for one in part.first
        ]
        return cls(
            temperature=drawn.pop() if len(drawn) == 1 else None,
            conditions=frozenset([part.protocol, *settings]),
            questions=frozenset((name, asked.get(name)) for name in ids),
        )


def across_temperatures(
    found: Sequence[tuple[EvaluatedSet, Drawn]], /
) -> list[EvaluatedSet]:
    """Return the sets, those that differ in temperature alone with what it changes.

    Such sets ask the same questions under the same settings; each method's metric is
    taken over the questions that all of them rank, and is the mean where several were
    drawn at one temperature. A set whose own recordings differ in temperature has its
    curve already.

    Args:
        found: Each set, and how it was drawn.
    """
    groups: list[_Group] = []
    for at, (_, drawn) in enumerate(found):
        for group in groups:
            if group.takes(drawn):
                group.add(at, drawn)
                break
        else:
            groups.append(_Group(at, drawn))
    sets = [one for one, _ in found]
    for group in groups:
        curves: tuple[Curve, ...] = ()
        alone = len(group.by_temperature) <= 1
        if not alone:
            shared = {name for name, _ in group.questions}
            by_temperature = {
                temperature: [sets[at] for at in group.by_temperature[temperature]]
                for temperature in sorted(group.by_temperature)
            }
            curves = tuple(_curves(by_temperature, shared))
        for at in group.members:
            sets[at] = _told(sets[at], found[at][1], curves, alone=alone)
    return sets


class _Group:
    """Sets that ask the same questions under the same settings."""

    def __init__(self, at: int, drawn: Drawn) -> None:
        self.conditions, self.questions = drawn.conditions, drawn.questions
        self.members: list[int] = []
        self.by_temperature: dict[float, list[int]] = {}
        self.add(at, drawn)

    def takes(self, drawn: Drawn) -> bool:
        """Whether a set belongs to these."""
        return (
            drawn.temperature is not None
            and bool(self.by_temperature)
            and drawn.conditions == self.conditions
            and not self.questions.isdisjoint(drawn.questions)
        )

    def add(self, at: int, drawn: Drawn) -> None:
        """Take a set in."""
        self.members.append(at)
        self.questions &= drawn.questions
        if drawn.temperature is not None:
            self.by_temperature.setdefault(drawn.temperature, []).append(at)


def _curves(
    by_temperature: Mapping[float, Sequence[EvaluatedSet]], shared: set[str]
) -> Iterable[Curve]:
    """Yield the metric of each method that every set ranks, by temperature."""
    sets = [one for each in by_temperature.values() for one in each]
    binary = all(one.accuracy is not None for one in sets)
    ranked = [
        {method.name for method in one.methods if method.status == "evaluated"}
        for one in sets
    ]
    for method in sets[0].methods:
        if not all(method.name in names for names in ranked):
            continue
        values = [
            [_value(one, method.name, shared, binary=binary) for one in each]
            for each in by_temperature.values()
        ]
        curve = Curve(
            label=method.name,
            x=tuple(by_temperature),
            y=tuple(_mean(each) for each in values),
            counts=(len(shared),) * len(by_temperature),
            metric="auroc" if binary else "prr",
        )
        if any(y is not None for y in curve.y):
            yield curve


def _value(
    one: EvaluatedSet, name: str, shared: set[str], *, binary: bool
) -> float | None:
    among = np.array([each in shared for each in one.ids], dtype=np.bool_)
    (method,) = (method for method in one.methods if method.name == name)
    by = (
        Yardstick(metric="auroc", truth=np.array(one.correct, dtype=np.intp))
        if binary
        else Yardstick(metric="prr", truth=np.array(one.quality, dtype=np.float64))
    )
    return by.value(np.array(method.uncertainty, dtype=np.float64), among)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _told(
    one: EvaluatedSet, drawn: Drawn, curves: tuple[Curve, ...], *, alone: bool
) -> EvaluatedSet:
    """Return a set with the curves, or with the reason why there are none."""
    if "temperature" in one.ablations or not one.ids:
        return one
    if curves:
        return replace(one, ablations={**one.ablations, "temperature": curves})
    why = "there is no AUROC or PRR of any method"
    if drawn.temperature is None:
        why = "the recordings do not say at which temperature each was drawn"
    elif alone:
        why = (
            f"all was drawn at {drawn.temperature:g}, and no other file has the same "
            "questions under the same settings at another temperature"
        )
    told = f"nothing came of --ablate temperature: {why}"
    return replace(one, warnings=(*one.warnings, told))
