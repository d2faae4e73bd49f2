"""What ``evaluate`` does where questions have unequally many samples or logprobs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.evaluating import by_name, evaluated, questions


def test_a_few_questions_with_fewer_samples_are_left_out(tmp_path: Path) -> None:
    rows = questions(40)
    rows[7]["samples"] = rows[7]["samples"][:2]
    rows[8]["samples"] = [*rows[8]["samples"][:3], "  "]
    rows[9]["samples"] += ["one more"]

    one = evaluated(tmp_path, *rows)

    assert one.n_samples == 4
    assert one.left_out == {"fewer than 4 samples": 2}
    assert (
        "4 samples of each question count; not looked at: 1 more, in 1 of 38 questions"
        in one.warnings
    )
    assert len(one.ids) == 38
    assert one.n_read == 40


def test_many_questions_with_fewer_samples_cut_the_others(tmp_path: Path) -> None:
    rows = questions(40)
    for fields in rows[:25]:
        fields["samples"] = fields["samples"][:2]

    one = evaluated(tmp_path, *rows)

    cut = [{**fields, "samples": fields["samples"][:2]} for fields in rows]
    assert one.n_samples == 2
    assert not one.left_out
    assert any("30 more, in 15 of 40 questions" in told for told in one.warnings)
    same = by_name(evaluated(tmp_path, *cut))["snne[rouge_l]"]
    assert by_name(one)["snne[rouge_l]"].uncertainty == same.uncertainty


def test_the_number_of_samples_can_be_set(tmp_path: Path) -> None:
    rows = questions(40)
    rows[0]["samples"] = rows[0]["samples"][:2]

    one = evaluated(tmp_path, *rows, samples=3)

    assert one.n_samples == 3
    assert one.left_out == {"fewer than 3 samples": 1}


def test_more_samples_than_there_are(tmp_path: Path) -> None:
    one = evaluated(tmp_path, *questions(5), samples=9)

    assert one.left_out == {"fewer than 9 samples": 5}
    assert "no method could be ranked" in one.warnings
    assert {method.why for method in one.methods} == {"there is no question to score"}


def test_one_sample_is_compared_with_the_delivered_answer(tmp_path: Path) -> None:
    rows = questions(30, n_samples=1)

    with_answer = by_name(evaluated(tmp_path, *rows))["snne[rouge_l]"]
    alone = by_name(evaluated(tmp_path, *rows, include_answer=False))["snne[rouge_l]"]

    assert with_answer.status == "evaluated"
    assert alone.status == "skipped"
    assert "nothing to differ from" in str(alone.why)


def test_white_box_methods_need_log_probabilities_nearly_everywhere(
    tmp_path: Path,
) -> None:
    rows = questions(40, logprobs=True)
    for fields in rows[:3]:
        fields["token_logprobs"][1] = None

    methods = by_name(evaluated(tmp_path, *rows, methods="wsnne,snne"))

    assert methods["wsnne[rouge_l]"].status == "skipped"
    assert methods["wsnne[rouge_l]"].why == (
        "token log-probabilities are missing on 3 of 40 questions"
    )
    assert len(methods["snne[rouge_l]"].uncertainty) == 40


def _evaluated_of(path: Path, rows: list[dict[str, Any]], **options: Any) -> set[str]:
    methods = "wsnne,perplexity,sequence_probability,ne"
    one = evaluated(path, *rows, methods=methods, **options)
    return {method.method for method in one.methods if method.status == "evaluated"}


def test_only_the_log_probabilities_that_a_method_looks_at_must_be_there(
    tmp_path: Path,
) -> None:
    of_main = {"perplexity", "sequence_probability", "answer_length"}
    of_members = {"wsnne", "ne", "answer_length"}

    rows = questions(40, logprobs=True)
    for fields in rows:
        del fields["main_logprobs"]
    assert _evaluated_of(tmp_path, rows, include_answer=False) == of_members
    assert _evaluated_of(tmp_path, rows) == {"answer_length"}

    rows = questions(40, logprobs=True)
    for fields in rows:
        del fields["token_logprobs"]
    assert _evaluated_of(tmp_path, rows) == of_main

    rows = questions(40, logprobs=True)
    for fields in rows:
        fields["samples"][0] = ""
        fields["token_logprobs"][0] = fields["token_logprobs"][3] = None
    assert _evaluated_of(tmp_path, rows) == of_main
    assert _evaluated_of(tmp_path, rows, samples=2) == of_main | of_members


def test_all_methods_rank_what_every_one_of_them_scored(tmp_path: Path) -> None:
    rows = questions(40, logprobs=True)
    rows[5]["main_logprobs"] = []
    rows[6]["token_logprobs"] = None

    one = evaluated(tmp_path, *rows, methods="wsnne,snne")

    assert len(one.ids) == 38
    assert not {"q5", "q6"} & set(one.ids)
    assert one.left_out == {"not scored by every ranked method": 2}
    assert {len(method.uncertainty) for method in one.methods} == {38}
