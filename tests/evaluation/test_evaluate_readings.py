"""The other readings in the table: by their names, or all of them by one word."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from snne_guard.cli import build_app
from snne_guard.evaluation import evaluate
from snne_guard.evaluation.comparison.plan import Tools, plan_methods
from snne_guard.evaluation.reporting.report import to_html
from snne_guard.scorers import METHODS, READINGS, score
from snne_guard.scorers.relation import Relation
from tests.cli.lines import write
from tests.support.entailing import Contains
from tests.support.evaluating import by_name, evaluated, questions

LEXICAL = Tools(
    graded=(Relation.of("rouge_l"), Relation.of("rouge_l_paper")),
    equal=(Relation.of("exact"),),
)


def full_rows(n: int) -> list[dict[str, Any]]:
    """Return recordings that have everything that a reading may need."""
    rows = questions(n, logprobs=True)
    for number, fields in enumerate(rows):
        tokens = [fields["main_logprobs"], *fields["token_logprobs"]]
        fields["hidden_states"] = [
            [1.0, float(place), float(number)] for place in range(len(tokens))
        ]
        fields["token_importance"] = [[0.25] * len(one) for one in tokens]
        fields["p_true_logprob"] = -0.1 * number
    return rows


def test_each_says_in_the_table_what_it_says_of_the_answers(tmp_path: Path) -> None:
    rows, model = full_rows(12), Contains()

    one = evaluated(tmp_path, *rows, methods="readings", models=[model])

    ran = {row.method: row for row in one.methods if row.status == "evaluated"}
    assert {*ran} == {*READINGS, "answer_length"}
    for name in READINGS:
        row, first = ran[name], rows[int(one.ids[0].removeprefix("q"))]
        relation = {None: None, "nli:contains": model}.get(row.similarity)
        found = score(
            [first["main_answer"], *first["samples"]],
            token_logprobs=[first["main_logprobs"], *first["token_logprobs"]],
            question=first["question"],
            method=name,
            similarity=relation or row.similarity or "exact",
            known={
                need: first[need]
                for need in ("hidden_states", "token_importance", "p_true_logprob")
            },
        )
        assert row.uncertainty[0] == pytest.approx(found.value, abs=1e-12), name
        assert row.white_box == READINGS[name].white_box
        assert row.source == READINGS[name].source


def test_all_stays_what_it_is() -> None:
    every = {one.method.name for one in plan_methods("all", LEXICAL)}
    both = {one.method.name for one in plan_methods("all,readings", LEXICAL)}

    assert every == {*METHODS}
    assert both == {*METHODS, *READINGS}
    listed = plan_methods(["readings", METHODS["snne"]], LEXICAL)
    assert {one.method.name for one in listed} == {*READINGS, "snne", "answer_length"}


def test_the_question_is_in_front_of_every_similarity_of_words() -> None:
    planned = plan_methods("lex_sim_question", LEXICAL)

    assert [one.name for one in planned] == [
        "lex_sim_question[rouge_l+question]",
        "lex_sim_question[rouge_l_paper+question]",
        "answer_length",
    ]
    asked = Relation.of("rouge_l+question")
    (one, _) = plan_methods("lex_sim_question", Tools(graded=(asked,), equal=()))
    assert one.relation is asked


def test_a_reading_cannot_be_hidden_by_a_method_of_the_user() -> None:
    named = type(METHODS["snne"])(
        name="deg_over_n", source="mine", function=lambda _: 0.0
    )

    with pytest.raises(ValueError, match="of this library is named 'deg_over_n'"):
        plan_methods([named], LEXICAL)


def test_without_a_question_it_is_skipped(tmp_path: Path) -> None:
    rows = [fields | {"question": None} for fields in questions(6)]

    one = evaluated(tmp_path, *rows, methods="lex_sim_question,snne")

    found = by_name(one)["lex_sim_question[rouge_l+question]"]
    assert found.status == "skipped"
    assert "expected question for method 'lex_sim_question'" in str(found.why)


def test_the_command_takes_them(tmp_path: Path) -> None:
    path, table = write(tmp_path / "few.jsonl", *full_rows(30)), tmp_path / "t.csv"
    arguments = ["--methods", "readings,snne", "--draws", "5", "--csv", str(table)]

    result = CliRunner().invoke(build_app(), ["evaluate", str(path), *arguments])

    assert result.exit_code == 0, result.output
    assert "wsnne_printed[rouge_l]" in result.stdout
    with table.open(encoding="utf-8") as file:
        names = {row["name"] for row in csv.DictReader(file)}
    assert {"snne[rouge_l]", "deg_over_n[rouge_l]", "se_printed[exact]"} <= names
    assert "luq_sentences[nli]" in names  # verified as a formula


def test_the_report_names_them(tmp_path: Path) -> None:
    path = write(tmp_path / "few.jsonl", *full_rows(9))

    page = to_html(evaluate(path, methods="snne_without_self,p_true_code", draws=5))

    assert "snne_without_self[rouge_l]" in page
    assert "p_true_code" in page
