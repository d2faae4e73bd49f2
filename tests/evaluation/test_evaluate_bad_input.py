"""What ``evaluate`` does with recordings that are not as they should be."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from snne_guard.errors import InputError
from snne_guard.evaluation.comparison import survey
from snne_guard.evaluation.comparison.runner import evaluate
from snne_guard.scorers import METHODS
from snne_guard.types import MethodInputs
from tests.cli.lines import write
from tests.support.evaluating import by_name, evaluated, questions, row


def test_empty_answers_leave_the_set_as_in_score(tmp_path: Path) -> None:
    rows = [
        row("a", "yes", "", "yes", "no"),
        row("b", "x", "y", "\n", "z", label=0),
        row("c", "yes", "yes", "yes", main_answer=" "),
    ]

    one = evaluated(tmp_path, *rows)

    assert one.ids == ("a", "b")
    assert one.n_samples == 3
    assert one.left_out == {"the delivered answer is empty": 1}


def test_ungraded_questions_are_left_out_and_counted(tmp_path: Path) -> None:
    rows = questions(10)
    for fields in rows[:3]:
        fields["label"] = None

    one = evaluated(tmp_path, *rows)

    assert one.left_out == {"no grade": 3}
    assert one.ids == tuple(f"q{number}" for number in range(3, 10))


def test_a_file_without_labels_leaves_the_others_alone(tmp_path: Path) -> None:
    bare = [{**fields, "label": None, "majority_label": 1} for fields in questions(5)]
    paths = [
        write(tmp_path / "bare.jsonl", *bare),
        write(tmp_path / "labelled.jsonl", *questions(12)),
    ]

    found = evaluate(paths, methods="snne", draws=5)

    unlabelled, labelled = found.sets
    assert unlabelled.left_out == {"no grade": 5}
    assert "no labels" in unlabelled.warnings[0]
    assert {method.status for method in unlabelled.methods} == {"skipped"}
    assert unlabelled.accuracy is None
    assert labelled.methods[0].auroc is not None


def test_an_empty_file_has_no_set(tmp_path: Path) -> None:
    assert evaluate(write(tmp_path / "empty.jsonl"), draws=5).sets == ()


@pytest.mark.parametrize("label", [0, 1])
def test_answers_of_one_kind_have_no_auroc(tmp_path: Path, label: int) -> None:
    rows = [{**fields, "label": label} for fields in questions(12)]

    one = evaluated(tmp_path, *rows)

    method = one.methods[0]
    assert method.status == "evaluated"
    assert method.auroc is not None
    assert method.auroc.value is None
    assert method.auarc is not None
    assert method.auarc.value == label
    assert any("nothing to tell apart" in warning for warning in one.warnings)


@pytest.mark.parametrize(("n_wrong", "there"), [(1, False), (2, True)])
def test_one_question_of_a_kind_makes_no_interval(
    tmp_path: Path, n_wrong: int, there: bool
) -> None:
    rows = [
        {**fields, "label": int(number >= n_wrong)}
        for number, fields in enumerate(questions(20))
    ]

    one = evaluated(tmp_path, *rows)

    found = by_name(one)["lex_sim[rouge_l]"]
    for metric in (found.auroc, found.prr, found.against_first):
        assert metric is not None
        assert metric.value is not None
        assert (metric.low is not None) == (metric.high is not None) == there


def test_ties_everywhere_are_a_coin_toss(tmp_path: Path) -> None:
    rows = [row(f"q{n}", "yes", "yes", label=n % 2) for n in range(20)]

    one = evaluated(tmp_path, *rows, methods="snne,dse")

    for name in ("snne[rouge_l]", "dse[exact]"):
        method = by_name(one)[name]
        assert method.auroc is not None
        assert (method.auroc.value, method.auroc.low) == (0.5, 0.5)
    assert one.hardest == ()


def test_log_probabilities_of_minus_infinity_are_no_crash(tmp_path: Path) -> None:
    rows = questions(40, logprobs=True)
    rows[1]["main_logprobs"] = [-math.inf]

    one = evaluated(tmp_path, *rows, methods="all")

    assert {len(method.uncertainty) for method in one.methods if method.auroc} <= {
        39,
        40,
    }


@pytest.mark.parametrize("field", ["main_logprobs", "token_logprobs"])
def test_a_log_probability_that_is_none_is_a_bad_line(
    tmp_path: Path, field: str
) -> None:
    rows = questions(10, logprobs=True)
    rows[3][field] = [float("nan")] if field == "main_logprobs" else [[0.5]] * 4
    told: list[int] = []

    one = evaluated(tmp_path, *rows, on_problem=lambda _, line, __: told.append(line))

    assert told == [4]
    assert one.n_read == 9


def test_broken_lines_and_ids_that_come_twice_are_told_and_skipped(
    tmp_path: Path,
) -> None:
    rows: list[Any] = [*questions(5), b'{"id": "x"', row("q1", "a"), b"", row("z", "b")]
    path = write(tmp_path / "rows.jsonl", *rows)
    told: list[tuple[str, int, str]] = []

    found = evaluate(
        path, methods="snne", draws=5, on_problem=lambda *problem: told.append(problem)
    )

    assert [(Path(where).name, line) for where, line, _ in told] == [
        ("rows.jsonl", 6),
        ("rows.jsonl", 7),
    ]
    assert 'the id "q1" has come before' in told[1][2]
    assert found.sets[0].n_read == 6


def test_strict_ends_at_the_first_broken_line(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.jsonl", *questions(3), b"{")

    with pytest.raises(InputError, match="line 4"):
        evaluate(path, strict=True)


def test_delivered_answers_that_are_samples_too_are_told_of(tmp_path: Path) -> None:
    rows = [row(f"q{n}", "yes", "no", f"w{n}", label=n % 2) for n in range(60)]

    one = evaluated(tmp_path, *rows)

    assert any("main_answer seems to be sample 0" in told for told in one.warnings)
    for fields in rows:
        fields["main_answer"] = "another"
    assert not any("seems" in told for told in evaluated(tmp_path, *rows).warnings)


def test_data_sets_that_are_mixed_are_told_of(tmp_path: Path) -> None:
    rows = questions(20)
    for number, fields in enumerate(rows):
        fields["dataset"] = ["squad", "svamp"][number % 2]

    told = evaluated(tmp_path, *rows).warnings

    assert any(text.startswith("the questions are of 2 data sets") for text in told)
    path = write(tmp_path / "apart.jsonl", *rows)
    for one in evaluate(path, methods="snne", by="dataset", draws=5).sets:
        assert not any("data sets" in text for text in one.warnings)


def test_labels_that_are_token_f1_are_told_of(tmp_path: Path) -> None:
    rows = [row(f"q{n}", "a", answers=["yes"]) for n in range(20)]
    rows += [row(f"r{n}", "a", answers=["no"], label=0) for n in range(20)]

    one = evaluated(tmp_path, *rows)

    assert any("agree with token F1 on 100% of 40" in told for told in one.warnings)


def test_a_grader_that_sees_what_the_similarity_sees_is_told_of(tmp_path: Path) -> None:
    rows = [row(f"q{n}", "a", answers=["yes", "7"], label=None) for n in range(40)]

    for grader, methods, told in (
        ("squad_f1", "snne[rouge_l],dse[exact]", "squad_f1 and rouge_l, exact look at"),
        ("squad_em", "answer_length,snne[rouge_l]", "squad_em and rouge_l look at the"),
        ("squad_f1", "snne[numeric]", ""),
        ("numeric", "snne[rouge_l]", ""),
    ):
        one = evaluated(tmp_path, *rows, grader=grader, methods=methods)
        same = [text for text in one.warnings if "look at the same words" in text]
        assert [text[: len(told)] for text in same] == ([told] if told else [])
    labelled = [{**fields, "label": n % 2} for n, fields in enumerate(rows)]
    one = evaluated(tmp_path, *labelled, grader="squad_f1", methods="snne[rouge_l]")
    assert not any("look at the same words" in text for text in one.warnings)


def test_a_second_grader_is_compared_with_the_first(tmp_path: Path) -> None:
    rows = [row(f"q{n}", "a", answers=["yes"], label=n % 2) for n in range(20)]

    one = evaluated(tmp_path, *rows, second_grader="squad_em")

    assert one.agreement is not None
    assert (one.agreement.first, one.agreement.second) == ("label", "squad_em")
    assert (one.agreement.n, one.agreement.share) == (20, 0.5)
    assert evaluated(tmp_path, *rows).agreement is None


def test_a_grader_of_qualities_alone_ranks_by_prr(tmp_path: Path) -> None:
    rows = [{**fields, "label": None} for fields in questions(20)]

    one = evaluated(tmp_path, *rows, grader=lambda row: len(row.main_answer) / 99)

    method = one.methods[0]
    assert one.accuracy is None
    assert method.auroc is None
    assert method.prr is not None
    assert method.prr.value is not None
    assert any("no AUROC" in told for told in one.warnings)


@pytest.mark.parametrize("labelled", [15, 5])
def test_grades_of_two_scales_are_not_mixed(tmp_path: Path, labelled: int) -> None:
    rows = questions(20)
    for fields in rows[labelled:]:
        fields["label"] = None

    one = evaluated(tmp_path, *rows, grader=lambda row: len(row.main_answer) / 99)

    method = one.methods[0]
    if labelled > 10:
        assert one.left_out == {"graded, but neither right nor wrong": 5}
        assert method.auroc is not None
        assert one.accuracy == 1 / 3
    else:
        assert one.left_out == {"right or wrong, where most are better or worse": 5}
        assert method.auroc is None
        assert not {0.0, 1.0} & set(one.quality)
    assert len(one.ids) == 15


def test_a_method_that_raises_now_and_then_costs_its_questions(tmp_path: Path) -> None:
    one = evaluated(tmp_path, *questions(40), methods=["snne", _failing(at="q3?")])

    assert one.left_out == {"not scored by every ranked method": 1}
    assert "q3" not in one.ids


@pytest.mark.parametrize(
    ("fault", "told"),
    [("raise", "ValueError: no such thing"), ("nan", "InputError: it gave NaN")],
)
def test_a_method_that_fails_often_is_left_out_itself(
    tmp_path: Path, fault: str, told: str
) -> None:
    method = _failing(at="", fault=fault)

    one = evaluated(tmp_path, *questions(40), methods=["snne", method])

    failing = by_name(one)["failing[rouge_l]"]
    assert failing.status == "skipped"
    assert failing.why == f"could not score 40 of 40 questions: {told}"
    assert len(one.ids) == 40


def test_methods_that_have_no_question_in_common(tmp_path: Path) -> None:
    picky = [
        replace(_failing(at=f"q{number}?"), name=f"m{number}") for number in range(20)
    ]

    one = evaluated(tmp_path, *questions(20), methods=picky, similarity="rouge_l")

    assert one.left_out == {"not scored by every ranked method": 1}
    assert (
        "questions that ranked methods could not score: m0[rouge_l] 1" in one.warnings
    )
    assert one.ids == tuple(f"q{number}" for number in range(1, 20))
    methods = by_name(one)
    assert methods["m0[rouge_l]"].status == "evaluated"
    assert {methods[f"m{n}[rouge_l]"].status for n in range(1, 20)} == {"skipped"}
    assert methods["m5[rouge_l]"].why == (
        "could not score 1 of 20 questions: ValueError: no such thing; with what other "
        "methods could not score, too few questions would be left"
    )


def test_bad_lines_need_no_listener(tmp_path: Path) -> None:
    assert evaluated(tmp_path, *questions(6), b"{").n_read == 6


def test_what_is_suspect_is_looked_for_in_the_first_recordings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [row(f"q{n}", "a", answers=["yes"]) for n in range(20)]
    rows += [row(f"r{n}", "a", answers=["no"], label=0) for n in range(20)]
    monkeypatch.setattr(survey, "_LOOKED_AT", 5)

    assert not any("F1" in told for told in evaluated(tmp_path, *rows).warnings)


def test_numbers_are_compared_where_numbers_are_asked_for(tmp_path: Path) -> None:
    numbers = [{**fields, "answers": ["1,200"]} for fields in questions(12)]
    words = [{**fields, "answers": ["12 apples"]} for fields in questions(12)]
    long = [{**fields, "answers": ["1" * 50]} for fields in questions(12)]

    assert "dse[numeric]" in by_name(evaluated(tmp_path, *numbers, methods="dse"))
    for rows in (words, long):
        assert "dse[numeric]" not in by_name(evaluated(tmp_path, *rows, methods="dse"))


def test_a_similarity_that_fails_is_asked_once_for_a_question(tmp_path: Path) -> None:
    asked: list[str | None] = []

    def failing(texts: Any, /, *, question: str | None = None) -> Any:
        del texts
        asked.append(question)
        raise OSError

    one = evaluated(
        tmp_path, *questions(10), methods="snne,lex_sim", similarity=[failing]
    )

    assert all("OSError" in str(method.why) for method in one.methods[1:])
    assert asked == [f"q{number}?" for number in range(10)]


def test_a_file_that_changes_meanwhile_is_told_of(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.jsonl", *questions(30))

    def spoil() -> None:
        path.write_bytes(b"{}\n")

    with pytest.raises(InputError, match="changed while it was read"):
        evaluate(path, methods=[_failing(at="never", on_call=spoil)], draws=5)


def _failing(*, at: str, fault: str = "raise", on_call: Any = None) -> Any:
    def function(inputs: MethodInputs) -> float:
        if on_call is not None:
            on_call()
        if at in str(inputs.question):
            if fault == "nan":
                return math.nan
            msg = "no such thing"
            raise ValueError(msg)
        return METHODS["snne"].compute(inputs)

    return replace(
        METHODS["snne"],
        name="failing",
        function=function,
        needs=frozenset({"similarity", "question"}),
    )
