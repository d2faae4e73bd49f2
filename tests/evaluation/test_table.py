"""The figures of an evaluation as CSV."""

from __future__ import annotations

import csv
import io

from snne_guard.evaluation.comparison.table import to_csv, to_rows
from snne_guard.evaluation.results import (
    EvaluatedSet,
    Evaluation,
    MethodResult,
    Metric,
)

BEST = MethodResult(
    name="snne[rouge_l]",
    method="snne",
    similarity="rouge_l",
    auroc=Metric(value=0.8, low=0.7, high=0.9),
    auroc_by_length=(Metric(value=0.5), Metric(value=None), Metric(value=0.75)),
    milliseconds=0.25,
    calls=11.0,
)
SKIPPED = MethodResult(
    name="dse[nli]", method="dse", status="formula_verified", why="no, it needs NLI"
)


def test_a_row_for_each_method_of_each_set() -> None:
    one = EvaluatedSet(name="a", path="a.jsonl", methods=(BEST, SKIPPED), ids=("1",))
    other = EvaluatedSet(name="b", path="b.jsonl", methods=(SKIPPED,))
    evaluation = Evaluation(sets=(one, other))

    rows = [*csv.DictReader(io.StringIO(to_csv(evaluation)))]

    assert [(row["set"], row["name"], row["rank"]) for row in rows] == [
        ("a", "snne[rouge_l]", "1"),
        ("a", "dse[nli]", ""),
        ("b", "dse[nli]", ""),
    ]
    first = rows[0]
    assert (first["auroc"], first["auroc_low"], first["auroc_high"]) == (
        "0.8",
        "0.7",
        "0.9",
    )
    assert (first["auroc_short"], first["auroc_middling"]) == ("0.5", "")
    assert (first["auroc_long"], first["questions"]) == ("0.75", "1")
    assert rows[1]["why"] == "no, it needs NLI"
    assert rows[1]["auroc"] == rows[1]["calls"] == ""


def test_all_rows_have_the_same_names() -> None:
    one = EvaluatedSet(name="a", path="a.jsonl", methods=(BEST, SKIPPED))

    first, second = to_rows(Evaluation(sets=(one,)))

    assert [*first] == [*second]
    assert first["white_box"] is False


def test_nothing_is_an_empty_file() -> None:
    assert to_csv(Evaluation(sets=())) == ""
