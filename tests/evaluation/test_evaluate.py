"""``evaluate``: every method over the same questions, each set apart."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from snne_guard import score
from snne_guard.errors import ConfigurationError, InputError
from snne_guard.evaluation.comparison.runner import evaluate
from snne_guard.evaluation.metrics.order import auroc
from snne_guard.evaluation.results import Evaluation
from tests.cli.lines import write
from tests.support.evaluating import by_name, evaluated, questions, row


@pytest.mark.parametrize("include_answer", [True, False])
def test_a_method_says_what_score_says(tmp_path: Path, include_answer: bool) -> None:
    rows = questions(30)

    one = evaluated(tmp_path, *rows, include_answer=include_answer, tau=0.5)

    for name, similarity in (
        ("snne", "content_f1"),
        ("snne", "rouge_l"),
        ("lex_sim", "rouge_l"),
    ):
        expected = [
            score(
                [fields["main_answer"], *fields["samples"]]
                if include_answer
                else fields["samples"],
                question=fields["question"],
                include_answer=include_answer,
                method=name,
                similarity=similarity,
                tau=0.5,
            ).value
            for fields in rows
        ]
        found = by_name(one)[f"{name}[{similarity}]"]
        assert found.uncertainty == tuple(expected)
        assert found.auroc is not None
        assert found.auroc.value == auroc(expected, [one["label"] for one in rows])


def test_what_a_guard_runs_by_default_has_a_row(tmp_path: Path) -> None:
    rows = questions(12)
    found = by_name(evaluated(tmp_path, *rows, methods="snne"))
    expected = [
        score(
            [fields["main_answer"], *fields["samples"]], question=fields["question"]
        ).value
        for fields in rows
    ]
    assert {*found} == {"snne[content_f1]", "snne[rouge_l]", "answer_length"}
    assert found["snne[content_f1]"].uncertainty == tuple(expected)


@pytest.mark.parametrize("similarity", ["rouge_l", "content_f1", "rouge_l_paper"])
def test_a_similarity_that_is_named_runs_alone(tmp_path: Path, similarity: str) -> None:
    one = evaluated(
        tmp_path, *questions(12), methods="snne,lex_sim", similarity=similarity
    )
    assert {*by_name(one)} == {
        f"snne[{similarity}]",
        f"lex_sim[{similarity}]",
        "answer_length",
    }


@pytest.mark.parametrize(
    ("methods", "options", "expected"),
    [
        ("snne", {}, ["content_f1", "rouge_l"]),
        ("snne,dse", {}, ["content_f1", "exact", "normalised", "rouge_l"]),
        ("snne[exact]", {}, ["exact"]),
        ("snne", {"similarity": ["rouge_l", "exact"]}, ["exact", "rouge_l"]),
        ("answer_length", {}, []),
    ],
)
def test_the_settings_say_all_that_compared_answers(
    tmp_path: Path, methods: str, options: dict[str, Any], expected: list[str]
) -> None:
    path = write(tmp_path / "a.jsonl", *questions(12))
    found = evaluate(path, methods=methods, draws=10, **options)
    assert found.settings["similarity"] == expected


def test_a_mixture_is_evaluated_by_its_name(tmp_path: Path) -> None:
    rows = questions(12)
    mixture = "snne+anchored_snne"
    found = by_name(evaluated(tmp_path, *rows, methods=mixture))
    expected = [
        score(
            [fields["main_answer"], *fields["samples"]],
            question=fields["question"],
            method=mixture,
            similarity="rouge_l",
        ).value
        for fields in rows
    ]
    assert found[f"{mixture}[rouge_l]"].uncertainty == tuple(expected)


def test_the_best_come_first_and_length_is_among_them(tmp_path: Path) -> None:
    one = evaluated(tmp_path, *questions(60), methods="all")

    ranked = [method for method in one.methods if method.status == "evaluated"]
    values = [method.auroc.value for method in ranked if method.auroc is not None]
    assert all(before >= after for before, after in pairwise(map(float, values)))  # type: ignore[arg-type]
    assert one.methods[: len(ranked)] == tuple(ranked)
    assert by_name(one)["answer_length"].status == "evaluated"
    assert all(len(method.uncertainty) == 60 for method in ranked)


def test_enough_questions_need_no_warning(tmp_path: Path) -> None:
    assert evaluated(tmp_path, *questions(100), methods="snne").warnings == ()


def test_every_figure_has_an_interval_around_it(tmp_path: Path) -> None:
    one = evaluated(tmp_path, *questions(60), draws=200)

    for method in one.methods:
        for metric in (method.auroc, method.auarc, method.prr, method.aupr):
            assert metric is not None
            assert metric.low is not None
            assert metric.value is not None
            assert metric.high is not None
            assert metric.low < metric.value < metric.high


def test_methods_are_compared_with_the_first_on_the_same_draws(tmp_path: Path) -> None:
    one = evaluated(
        tmp_path, *questions(60), methods=["snne[rouge_l]", "snne[normalised]"]
    )

    methods = by_name(one)
    first, other = methods["snne[rouge_l]"], methods["snne[normalised]"]
    assert first.against_first is None
    assert other.against_first is not None
    assert other.against_first.value is not None
    assert first.auroc is not None
    assert other.auroc is not None
    assert other.against_first.value == pytest.approx(
        float(other.auroc.value or 0) - float(first.auroc.value or 0)
    )


def test_each_protocol_is_a_set_of_its_own(tmp_path: Path) -> None:
    rows = questions(20)
    for number, fields in enumerate(rows):
        fields["answer_protocol"] = "draw" if number % 4 else "near greedy"
    path = write(tmp_path / "mixed.jsonl", *rows)

    found = evaluate(path, methods="snne", draws=5)

    assert [(one.name, one.protocol, len(one.ids)) for one in found.sets] == [
        ("mixed · near greedy", "near greedy", 5),
        ("mixed · draw", "draw", 15),
    ]


def test_a_file_is_split_by_a_field_or_a_setting(tmp_path: Path) -> None:
    rows = questions(9)
    for number, fields in enumerate(rows[:6]):
        fields["settings"] = {"model": "ab"[number % 2]}
    path = write(tmp_path / "models.jsonl", *rows)

    found = evaluate(path, methods="snne", by="model", draws=5)

    assert {one.name: len(one.ids) for one in found.sets} == {
        "models · a": 3,
        "models · b": 3,
        "models · no model": 3,
    }


def test_thirds_of_answer_length_are_ranked_apart(tmp_path: Path) -> None:
    rows = questions(90)

    one = evaluated(tmp_path, *rows, methods="snne")

    method = by_name(one)["snne[rouge_l]"]
    lengths, u = np.array(one.answer_length), np.array(method.uncertainty)
    assert lengths.tolist() == [len(fields["main_answer"].split()) for fields in rows]
    short = lengths <= np.quantile(lengths, 1 / 3, method="inverted_cdf")
    correct = np.array(one.correct)
    assert len(method.auroc_by_length) == 3
    assert method.auroc_by_length[0].value == auroc(u[short], correct[short])


def test_groups_of_equal_answers_are_counted(tmp_path: Path) -> None:
    one = evaluated(
        tmp_path,
        row("a", "Yes.", "no"),
        row("b", "x", "y", label=0),
        similarity="rouge_l",
    )

    assert one.clusters_by == "normalised"
    assert one.n_clusters == (2, 3)
    assert [curve.x for curve in one.auroc_by_clusters] == [(2.0, 3.0)] * 3


def test_the_hardest_questions_come_with_their_answers(tmp_path: Path) -> None:
    rows = [row(f"right{n}", "yes", "yes") for n in range(6)]
    rows += [row(f"wrong{n}", "a", "b", label=0) for n in range(6)]
    rows.insert(3, row("sure and wrong", "yes", " ", "yes", label=0, answers=["no"]))
    rows.append(row("unsure and right", "c", "d"))

    one = evaluated(tmp_path, *rows, methods="snne")

    assert one.hardest_by == "snne[content_f1]"
    worst, next_worst, *_ = one.hardest
    assert (worst.id, worst.correct, worst.rank) == ("sure and wrong", False, 0.0)
    assert worst.samples == ("yes", "yes")
    assert worst.references == ("no",)
    assert (next_worst.id, next_worst.correct) == ("unsure and right", True)
    assert next_worst.rank == pytest.approx(7 / 13)


def test_progress_counts_the_questions(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []

    evaluated(
        tmp_path,
        *questions(3),
        on_progress=lambda _, done, total: told.append((done, total)),
    )

    assert told == [(1, 3), (2, 3), (3, 3)]


def test_an_evaluation_goes_to_json(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", *questions(12))

    found = evaluate([path], methods="all", models=[], draws=5, seed=3)

    assert isinstance(found, Evaluation)
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["settings"]["methods"] == "all"
    assert plain["settings"]["seed"] == 3
    assert plain["sets"][0]["ids"] == [f"q{number}" for number in range(12)]


def test_options_that_make_no_sense_are_refused_before_a_file_is_read() -> None:
    for wrong, told in (
        ({"tau": 0.0}, "tau"),
        ({"samples": 0}, "samples of at least 1, got 0"),
        ({"methods": "snne,sne"}, "'sne'"),
        ({"methods": "snne[rouge"}, "name or name"),
        ({"ablate": ["taus"]}, "'taus'"),
        ({"draws": 0}, "draws"),
        ({"level": 1.0}, "level"),
    ):
        with pytest.raises(ConfigurationError, match=told):
            evaluate("nowhere.jsonl", **wrong)


def test_a_file_that_cannot_be_read_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        evaluate(tmp_path / "none.jsonl")
    with pytest.raises(InputError, match="read twice"):
        evaluate(tmp_path)
