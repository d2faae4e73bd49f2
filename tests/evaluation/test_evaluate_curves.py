"""The curves of a set, and what comes of varying tau, similarity, answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from snne_guard import score
from snne_guard.evaluation.comparison.pictures import difference, roc
from snne_guard.evaluation.comparison.table import to_rows
from snne_guard.evaluation.comparison.yardstick import Yardstick
from snne_guard.evaluation.metrics.order import auroc, spearman
from snne_guard.evaluation.results import Curve, Evaluation, Metric
from tests.support.evaluating import by_name, evaluated, questions


def named(curves: tuple[Curve, ...], label: str) -> Curve:
    (found,) = [curve for curve in curves if curve.label == label]
    return found


@pytest.mark.parametrize("similarity", ["content_f1", "rouge_l"])
@pytest.mark.parametrize("include_answer", [True, False])
def test_auroc_by_number_of_answers(
    tmp_path: Path, include_answer: bool, similarity: str
) -> None:
    rows = questions(30)

    one = evaluated(
        tmp_path,
        *rows,
        methods="snne,dse,answer_length",
        ablate=["samples"],
        include_answer=include_answer,
    )

    sizes = (2.0, 3.0, 4.0, 5.0)[: 4 if include_answer else 3]
    curve = named(one.ablations["samples"], f"snne[{similarity}]")
    assert curve.x == sizes
    assert curve.counts == (30,) * len(sizes)
    for size, value in zip(sizes, curve.y, strict=True):
        u = [
            score(
                [*[fields["main_answer"]] * include_answer, *fields["samples"]][
                    : int(size)
                ],
                question=fields["question"],
                include_answer=include_answer,
                method="snne",
                similarity=similarity,
            ).value
            for fields in rows
        ]
        assert value == auroc(u, [fields["label"] for fields in rows])
    assert named(one.ablations["samples"], "dse[normalised]").x == sizes


def test_a_few_methods_have_that_curve_at_any_rate(tmp_path: Path) -> None:
    one = evaluated(tmp_path, *questions(12, n_samples=9), methods="all")

    labels = [curve.label for curve in one.auroc_by_samples]
    assert labels == ["snne[content_f1]", "dse[exact]", "lex_sim[rouge_l]"]
    assert one.auroc_by_samples[0].x == (2.0, 3.0, 5.0, 9.0, 10.0)
    assert "samples" not in one.ablations


def test_auroc_by_tau(tmp_path: Path) -> None:
    rows = questions(30)

    one = evaluated(tmp_path, *rows, methods="snne,lex_sim", ablate=["tau"])

    labels = [curve.label for curve in one.ablations["tau"]]
    assert labels == ["snne[content_f1]", "snne[rouge_l]"]
    curve = named(one.ablations["tau"], "snne[rouge_l]")
    assert curve.x == (0.1, 1.0, 10.0, 100.0)
    for tau, value in zip(curve.x, curve.y, strict=True):
        at_tau = evaluated(tmp_path, *rows, methods="snne", tau=tau)
        expected = by_name(at_tau)["snne[rouge_l]"].auroc
        assert expected is not None
        assert value == expected.value


def test_auroc_by_similarity(tmp_path: Path) -> None:
    rows = questions(30)

    one = evaluated(tmp_path, *rows, methods="snne,dse", ablate=["similarity"])

    curves = one.ablations["similarity"]
    assert [curve.label for curve in curves].count("snne[content_f1]") == 1
    assert {curve.label for curve in curves} >= {
        "snne[rouge_l]",
        "snne[rouge_l_paper]",
        "snne[structured]",
        "snne[exact]",
        "snne[normalised]",
    }
    assert [curve.x for curve in curves] == [(float(n),) for n in range(len(curves))]
    exact = by_name(evaluated(tmp_path, *rows, methods="snne[exact]"))["snne[exact]"]
    assert exact.auroc is not None
    assert named(curves, "snne[exact]").y == (exact.auroc.value,)


def test_auroc_by_temperature(tmp_path: Path) -> None:
    rows = questions(30)
    for number, fields in enumerate(rows):
        fields["settings"] = {"temperature": 0.5 + number % 2}

    one = evaluated(tmp_path, *rows, methods="snne", ablate=["temperature"])

    curve = named(one.ablations["temperature"], "snne[rouge_l]")
    assert (curve.x, curve.counts) == ((0.5, 1.5), (15, 15))
    half = by_name(evaluated(tmp_path, *rows[::2], methods="snne"))["snne[rouge_l]"]
    assert half.auroc is not None
    assert curve.y[0] == half.auroc.value
    rows[0]["settings"] = {"temperature": "warm"}
    one = evaluated(tmp_path, *rows, methods="snne", ablate=["temperature"])
    assert "temperature" not in one.ablations


GRADED = {"grader": "rouge_l", "labels_first": False}


def graded(n: int) -> list[dict[str, Any]]:
    """Return recordings whose answers are better or worse, not right or wrong."""
    return [
        {**fields, "answers": [" ".join(fields["main_answer"].split()[: 1 + at % 3])]}
        for at, fields in enumerate(questions(n))
    ]


def test_prr_is_varied_where_nothing_is_right_or_wrong(tmp_path: Path) -> None:
    rows = graded(30)
    for number, fields in enumerate(rows):
        fields["settings"] = {"temperature": 0.5 + number % 2}

    one = evaluated(tmp_path, *rows, methods="snne,lex_sim", ablate=["all"], **GRADED)

    assert one.correct == ()
    assert {*one.ablations} == {"tau", "similarity", "samples", "temperature"}
    assert {c.metric for each in one.ablations.values() for c in each} == {"prr"}
    curve = named(one.ablations["tau"], "snne[rouge_l]")
    for tau, value in zip(curve.x, curve.y, strict=True):
        at_tau = evaluated(tmp_path, *rows, methods="snne", tau=tau, **GRADED)
        expected = by_name(at_tau)["snne[rouge_l]"].prr
        assert expected is not None
        assert value == expected.value
    snne = named(one.ablations["samples"], "snne[rouge_l]")
    assert snne.y[-1] == curve.y[1]
    assert named(one.ablations["similarity"], "snne[rouge_l]").y == (curve.y[1],)
    warm = named(one.ablations["temperature"], "snne[rouge_l]")
    half = by_name(evaluated(tmp_path, *rows[::2], methods="snne", **GRADED))
    assert (half["snne[rouge_l]"].prr or Metric(value=None)).value == warm.y[0]
    assert not one.auroc_by_samples
    assert not [told for told in one.warnings if "--ablate" in told]


def test_differences_are_of_prr_where_nothing_is_right_or_wrong(tmp_path: Path) -> None:
    one = evaluated(
        tmp_path,
        *graded(30),
        methods="snne,lex_sim",
        similarity="rouge_l",
        **GRADED,
    )
    found = by_name(one)
    first, other = (found[name] for name in ("snne[rouge_l]", "lex_sim[rouge_l]"))
    assert first.against_first is None
    assert first.prr is not None
    assert other.prr is not None
    assert other.against_first is not None
    difference_of_both = (other.prr.value or 0) - (first.prr.value or 0)
    assert other.against_first.value == pytest.approx(difference_of_both)
    assert other.against_first.low is not None
    (row,) = [
        row for row in to_rows(Evaluation(sets=(one,))) if row["name"] == other.name
    ]
    assert row["prr_against_first"] == other.against_first.value
    assert row["auroc_against_first"] is None


@pytest.mark.parametrize("include_answer", [True, False])
def test_mean_length_of_the_scored_answers_and_groups(
    tmp_path: Path, include_answer: bool
) -> None:
    rows = questions(30)

    one = evaluated(tmp_path, *rows, methods="snne", include_answer=include_answer)

    lengths, groups = [], []
    for fields in rows:
        texts = [
            *([fields["main_answer"]] if include_answer else []),
            *fields["samples"],
        ]
        lengths.append(sum(len(text.split()) for text in texts) / len(texts))
        groups.append(len({*texts}))
    assert one.n_clusters == tuple(groups)
    assert one.length_clusters_rho is not None
    assert one.length_clusters_rho.value == pytest.approx(spearman(lengths, groups))
    by_answer = spearman(one.answer_length, groups)
    assert one.length_clusters_rho.value != pytest.approx(by_answer)


def test_what_could_not_be_varied_says_why(tmp_path: Path) -> None:
    rows = questions(12, n_samples=1)

    one = evaluated(
        tmp_path, *rows, methods="dse", ablate=["tau", "samples", "similarity"]
    )

    assert not {"tau", "samples", "similarity"} & {*one.ablations}
    similarity = (
        "nothing came of --ablate similarity: no method that was run works on a matrix "
        "of similarities"
    )
    assert [told for told in one.warnings if "--ablate" in told] == [
        "nothing came of --ablate tau: no ranked method has a tau",
        similarity,
        "nothing came of --ablate samples: there are only 2 answers a question",
    ]


def test_one_class_has_nothing_to_vary(tmp_path: Path) -> None:
    rows = [{**fields, "label": 1} for fields in questions(12)]
    one = evaluated(tmp_path, *rows, methods="snne", ablate=["tau"])
    assert one.ablations.get("tau") is None
    assert "nothing came of --ablate tau: there is no AUROC or PRR" in one.warnings


def test_nothing_is_varied_where_nothing_can_be_ranked(tmp_path: Path) -> None:
    rows = [{**fields, "label": None} for fields in questions(3)]

    one = evaluated(tmp_path, *rows, ablate=["tau", "samples", "similarity"])

    assert one.ablations == {}


def test_snne_less_se_by_clusters(tmp_path: Path) -> None:
    one = evaluated(tmp_path, *questions(40), methods="snne,dse")

    found = one.ablations["snne_minus_se_by_clusters"]
    assert [curve.label for curve in found] == [
        "snne[content_f1] - dse[exact]",
        "snne[content_f1] - dse[normalised]",
    ]
    assert sum(found[0].counts) == 40


def test_a_difference_exists_where_both_do() -> None:
    first = Curve(label="a", x=(1.0, 2.0), y=(0.75, None), counts=(3, 4))
    second = Curve(label="b", x=(1.0, 2.0), y=(0.25, 0.5), counts=(3, 4))
    assert difference("a - b", first, second) == Curve(
        label="a - b", x=(1.0, 2.0), y=(0.5, None), counts=(3, 4)
    )


def test_groups_of_one_kind_have_no_auroc() -> None:
    u, correct = np.array([0.1, 0.9, 0.5]), np.array([1, 0, 1])
    by = Yardstick(metric="auroc", truth=correct)
    found = by.within("a", u, np.array([2, 2, 7]))
    assert (found.x, found.y, found.counts) == ((2.0, 7.0), (1.0, None), (2, 1))


def test_long_curves_are_thinned_and_keep_their_ends() -> None:
    rng = np.random.default_rng(0)
    correct = rng.integers(0, 2, 3000)
    curve = roc("a", rng.random(3000), correct)
    assert len(curve.x) == 200
    assert (curve.x[0], curve.y[0], curve.x[-1], curve.y[-1]) == (0, 0, 1, 1)


def test_every_ranked_method_has_its_curves(tmp_path: Path) -> None:
    one = evaluated(tmp_path, *questions(40), methods="snne,dse[exact]")

    labels = ["snne[content_f1]", "snne[rouge_l]", "dse[exact]", "answer_length"]
    for curves in (one.roc, one.risk_coverage, one.reliability, one.auroc_by_clusters):
        assert [curve.label for curve in curves] == labels
    assert sum(one.reliability[0].counts) == 40
    assert one.length_clusters_rho is not None
    method = by_name(one)["snne[rouge_l]"]
    assert 0 < float(method.brier or 0) < 0.5
    assert 0 <= float(method.ece or 0) < 0.5
