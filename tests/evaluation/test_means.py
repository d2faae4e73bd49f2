"""Means over sets, and how far the sets are from each other."""

import math

import pytest

from snne_guard.evaluation.comparison.means import Kind, comparable, method_means
from snne_guard.evaluation.results import (
    EvaluatedSet,
    Evaluation,
    MethodResult,
    Metric,
)


def row(name: str, auroc: float | None, prr: float | None = 0.5) -> MethodResult:
    figure = Metric(value=auroc)
    return MethodResult(
        name=name,
        method=name,
        white_box=name == "ne",
        auroc=figure,
        auarc=figure,
        prr=Metric(value=prr),
        prr_normalised=None if prr is None else Metric(value=prr),
    )


def of(*rows: MethodResult) -> EvaluatedSet:
    return EvaluatedSet(name="s", path="s.jsonl", methods=rows, accuracy=0.5)


def test_each_set_counts_once() -> None:
    means = method_means(
        [
            of(row("snne", 0.6), row("ne", 0.9)),
            of(row("snne", 0.8), row("ne", 0.8)),
            of(row("snne", 0.7), row("ne", 0.7)),
        ]
    )

    assert [(one.name, one.white_box, one.n_sets) for one in means] == [
        ("ne", True, 3),
        ("snne", False, 3),
    ]
    assert means[1].auroc.value == pytest.approx(0.7)
    assert means[1].auroc.deviation == pytest.approx(0.1)
    assert means[1].prr.deviation == 0.0


def test_a_method_that_is_missing_somewhere_comes_after_the_others() -> None:
    skipped = MethodResult(name="ne", method="ne", status="skipped")
    sets = [of(row("snne", 0.6), row("ne", 0.9)), of(row("snne", 0.5)), of(skipped)]
    means = method_means(sets)

    assert [(one.name, one.n_sets) for one in means] == [("snne", 2), ("ne", 1)]
    assert means[1].auroc.deviation is None


def test_figures_that_do_not_exist_are_no_zeros() -> None:
    assert method_means([of(row("snne", None))]) == ()
    (only,) = method_means([of(row("snne", 0.6, None)), of(row("snne", 0.7))])
    assert math.isnan(only.prr.value)
    assert math.isnan(only.prr_normalised.value)
    assert only.auroc.value == pytest.approx(0.65)


def test_sets_without_labels_are_averaged_with_none() -> None:
    labelled = EvaluatedSet(name="a", path="a.jsonl", accuracy=0.5, protocol="draw")
    unlabelled = EvaluatedSet(name="b", path="b.jsonl", protocol="draw")

    assert comparable([labelled, unlabelled]) == {Kind("draw", "label"): [labelled]}


def graded(*rows: MethodResult) -> EvaluatedSet:
    return EvaluatedSet(name="g", path="g.jsonl", grader="rouge_l", methods=rows)


def of_prr(name: str, value: float | None) -> MethodResult:
    return MethodResult(name=name, method=name, prr=Metric(value=value))


def test_answers_that_are_better_or_worse_are_averaged_by_prr() -> None:
    sets = [graded(of_prr("snne", 0.7), of_prr("ne", 0.9)), graded(of_prr("snne", 0.5))]
    missing = graded(of_prr("snne", None))
    right = of(row("snne", 0.6))

    assert comparable([*sets, missing, right]) == {
        Kind(None, "rouge_l", graded=True): sets,
        Kind(None, "label"): [right],
    }
    assert ([one.graded for one in sets], missing.graded) == ([True, True], False)
    first, second = method_means([*sets, missing])
    assert (first.name, first.n_sets, second.name) == ("snne", 2, "ne")
    assert first.prr.value == pytest.approx(0.6)
    assert math.isnan(first.auroc.value)
    best, other = method_means(sets[:1])
    assert (best.name, other.name) == ("ne", "snne")


def test_numbers_that_json_has_no_word_for_are_texts() -> None:
    result = MethodResult(
        name="ne", method="ne", uncertainty=(1.0, math.inf, -math.inf, math.nan)
    )

    (found,) = Evaluation(sets=(of(result),)).to_dict()["sets"]

    assert found["methods"][0]["uncertainty"] == [1.0, "inf", "-inf", "nan"]
