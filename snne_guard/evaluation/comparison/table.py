"""The figures of an evaluation as rows of plain values, and as a CSV file."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

from snne_guard.evaluation.results import EvaluatedSet, Evaluation, MethodResult, Metric

__all__ = ["to_csv", "to_rows"]

_WITH_INTERVAL = ("auroc", "auarc", "prr", "prr_normalised", "aupr", "e_aurc")
_THIRDS = ("short", "middling", "long")


def to_rows(evaluation: Evaluation, /) -> Iterator[dict[str, Any]]:
    """Yield a row for each method of each set, of texts, numbers, booleans and None.

    All rows have the same keys in the same order: what set and method it is, each
    metric with the ends of its interval under ``*_low`` and ``*_high``, the AUROC
    within thirds of answer length, and what it cost.

    Example:
        >>> evaluated = EvaluatedSet(
        ...     name="a",
        ...     path="a.jsonl",
        ...     methods=(
        ...         MethodResult(
        ...             name="snne[rouge_l]", method="snne", auroc=Metric(value=0.8)
        ...         ),
        ...     ),
        ... )
        >>> [row["auroc"] for row in to_rows(Evaluation(sets=(evaluated,)))]
        [0.8]
    """
    for one in evaluation.sets:
        for place, method in enumerate(one.methods, start=1):
            yield _row(one, method, place)


def to_csv(evaluation: Evaluation, /) -> str:
    r"""Return the rows as CSV with a line of names, an empty field for None.

    Example:
        >>> to_csv(Evaluation(sets=())).splitlines()
        []
    """
    rows = [*to_rows(evaluation)]
    text = io.StringIO()
    if rows:
        writer = csv.DictWriter(text, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return text.getvalue()


def _row(one: EvaluatedSet, method: MethodResult, place: int) -> dict[str, Any]:
    row: dict[str, Any] = {
        "set": one.name,
        "path": one.path,
        "answer_protocol": one.protocol,
        "grader": one.grader,
        "include_answer": one.include_answer,
        "n_samples": one.n_samples,
        "questions": len(one.ids),
        "accuracy": one.accuracy,
        "rank": place if method.status == "evaluated" else None,
        "name": method.name,
        "method": method.method,
        "similarity": method.similarity,
        "white_box": method.white_box,
        "status": method.status,
        "why": method.why,
    }
    for name in _WITH_INTERVAL:
        row |= _ends(name, getattr(method, name))
    # It is of PRR where the grader does not say which answers are right.
    graded = method.auroc is None
    row |= _ends("auroc_against_first", None if graded else method.against_first)
    row |= _ends("prr_against_first", method.against_first if graded else None)
    thirds = (*method.auroc_by_length, *(None,) * len(_THIRDS))
    for name, third in zip(_THIRDS, thirds, strict=False):
        row[f"auroc_{name}"] = None if third is None else third.value
    return row | {
        "ece": method.ece,
        "brier": method.brier,
        "milliseconds": method.milliseconds,
        "calls": method.calls,
    }


def _ends(name: str, metric: Metric | None) -> dict[str, float | None]:
    found = Metric(value=None) if metric is None else metric
    return {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}
