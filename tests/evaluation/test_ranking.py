from __future__ import annotations

import gc
import json
import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

from snne_guard.errors import ConfigurationError, InputError, ScoringError
from snne_guard.evaluation import (
    Grade,
    Recording,
    auarc,
    auroc,
    evaluate,
    prr,
    read_recordings,
    resolve_grader,
)
from snne_guard.evaluation.calibrating import calibrate
from snne_guard.scorers import METHODS, Method, score
from snne_guard.similarity import rouge_l
from snne_guard.types import FloatArray
from tests.evaluation.support import recording, recordings

LOGPROBS: dict[str, Any] = {
    "main_logprobs": [-0.1],
    "token_logprobs": [[-0.2], [-0.3, -2.0], [-1.0]],
}


def rows(n: int = 60, /, **fields: Any) -> list[Recording]:
    """Return questions whose samples differ more where the answer is wrong."""
    rng = np.random.default_rng(5)
    made = []
    for number in range(n):
        right = bool(rng.random() < 0.6)
        words = [f"w{rng.integers(2 if right else 9)}" for _ in range(4)]
        made.append(
            recording(
                id=number,
                question=f"question {number}?",
                main_answer=words[0],
                samples=words[1:],
                label=int(right),
                **fields,
            )
        )
    return made


def unlabelled(n: int = 60, /) -> list[Recording]:
    return [recording(**{**row.to_dict(), "label": None}) for row in rows(n)]


def test_the_figures_are_those_of_score_and_the_metrics() -> None:
    made = rows()
    found = evaluate(made, methods=["snne", "dse[exact]"], resamples=20)
    assert [row.name for row in found.rows] == [
        "snne[content_f1]",
        "dse[exact]",
        "answer_length",
    ]
    correct = [row.label or 0 for row in made]
    for name, method, similarity in (
        ("snne[content_f1]", "snne", "content_f1"),
        ("dse[exact]", "dse", "exact"),
    ):
        values = [
            score(
                [row.main_answer, *row.samples],
                question=row.question,
                method=method,
                similarity=similarity,
            ).value
            for row in made
        ]
        assert found.uncertainties[name] == pytest.approx(values, abs=1e-12)
        (result,) = (row for row in found.rows if row.name == name)
        assert result.metrics["auroc"].value == auroc(values, correct)
        assert result.metrics["auarc"].value == auarc(values, correct)
        expected = prr(values, correct, normalised=True)
        assert result.metrics["prr_normalised"].value == pytest.approx(expected)
    assert found.ids == tuple(row.id for row in made)
    assert found.accuracy == np.mean(correct)
    assert found.grader == "label"


def test_reasoning_before_recorded_replies_is_not_compared() -> None:
    known: dict[str, Any] = {"label": None, "answers": ["w0", "w1"]}
    made, thought = [], []
    for row in rows():
        replies = [f"<think>a w{n}</think>{s}" for n, s in enumerate(row.samples)]
        answer = f"<think>w0</think>\n{row.main_answer}"
        made.append(recording(**row.to_dict() | known))
        told = {"main_answer": answer, "samples": replies}
        thought.append(recording(**row.to_dict() | known | told))
    grader = resolve_grader("contains")
    plain, other = (
        evaluate(each, grader=grader, methods=["snne"]) for each in (made, thought)
    )
    assert other.rows == plain.rows
    same, replayed = (calibrate(each, coverage=0.5) for each in (made, thought))
    assert list(replayed.uncertainty) == list(same.uncertainty)


def test_the_samples_alone_are_scored_if_told() -> None:
    made = rows()
    options: dict[str, Any] = {
        "similarity": "rouge_l_paper",
        "tau": 10.0,
        "include_answer": False,
    }
    found = evaluate(made, methods=["snne"], resamples=2, **options)
    values = [score(row.samples, method="snne", **options).value for row in made]
    assert found.uncertainties["snne[rouge_l_paper]"] == pytest.approx(values)
    assert not found.include_answer


def test_differences_are_to_the_method_that_was_asked_for_first() -> None:
    found = evaluate(rows(), methods="dse[exact],snne[rouge_l]", resamples=50)
    first, second, length = found.rows
    assert first.name == "dse[exact]"
    assert first.differences == {}
    for row in (second, length):
        for metric, difference in row.differences.items():
            expected = row.metrics[metric].value - first.metrics[metric].value
            assert difference.value == pytest.approx(expected)
            assert difference.low <= difference.high


def test_every_similarity_runs_once_a_reply_set() -> None:
    asked: list[int] = []

    def compare(texts: Sequence[str], /, *, question: str | None = None) -> FloatArray:
        asked.append(len(texts))
        return rouge_l(texts, question=question)

    evaluate(rows(10), similarity=compare, resamples=2)
    assert asked == [4] * 10


def test_all_methods_that_recordings_allow_are_ranked() -> None:
    made = rows(
        **LOGPROBS,
        hidden_states=[[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.5, 0.1]],
        p_true_logprob=-0.4,
        token_importance=[[0.5], [0.5], [0.2, 0.9], [0.5]],
    )
    found = evaluate(made, resamples=2)
    ranked = {row.name.partition("[")[0] for row in found.rows}
    skipped = {name.partition("[")[0] for name in found.skipped}
    assert ranked ^ skipped == set(METHODS)
    assert {"snne", "wsnne", "ne", "lex_sim", "eigen_score", "p_true"} <= ranked
    assert "needs a similarity such as nli:MODEL" in found.skipped.values()
    assert found.rows[0].name == "snne[content_f1]"
    assert found.rows[-1].name == "answer_length"


def test_labels_of_sentences_that_are_null_are_none() -> None:
    found = evaluate(rows(8, sentence_labels=None), methods="snne", resamples=2)
    assert found.sentences is None


def test_one_similarity_is_for_all_that_it_fits() -> None:
    found = evaluate(
        rows(8), methods="snne,dse,se[exact]", similarity="rouge_l", resamples=2
    )
    assert [row.name for row in found.rows] == ["snne[rouge_l]", "answer_length"]
    assert found.skipped == {
        "dse[rouge_l]": "needs a similarity with a method 'equivalent', such as "
        "'exact', got 'rouge_l'",
        "se[exact]": "expected mean_logprobs, got none",
    }


def _failing(at: set[str]) -> Method:
    def compute(similarity: FloatArray, question: str) -> float:
        if question.split()[1].strip("?") in at:
            msg = "no number for this one"
            raise ValueError(msg)
        return float(similarity.sum())

    return Method(
        name=f"fails_{len(at)}",
        source="a test",
        function=compute,
        arguments=("similarity", "question"),
    )


def test_a_method_that_misses_a_few_questions_is_ranked() -> None:
    found = evaluate(
        rows(),
        methods=[_failing({"1", "2"}), _failing({"3", "4", "5", "6"}), "snne"],
        similarity="rouge_l",
        resamples=2,
    )
    assert found.rows[0].name == "fails_2[rouge_l]"
    assert found.skipped == {"fails_4[rouge_l]": "no number for this one"}
    assert len(found.ids) == 58
    assert found.left_out == {"not scored by every ranked method": 2}


def test_what_cannot_be_ranked_is_counted() -> None:
    made = [
        *rows(10),
        recording(id="no label", label=None),
        recording(id="empty", main_answer=" ", label=1),
        recording(id="short", samples=["a", " ", "b"], label=1),
    ]
    found = evaluate(made, methods=["snne"], resamples=2)
    assert found.n_read == 13
    assert found.left_out == {
        "no label and nothing to grade by": 1,
        "an empty answer": 1,
        "fewer than 3 samples with text": 1,
    }


@pytest.mark.parametrize(("sizes", "n"), [([3, 3, 1], 3), ([2, 3, 3], 2)])
def test_the_first_question_says_how_many_samples_count(
    sizes: list[int], n: int
) -> None:
    made = [
        recording(id="ungraded", samples=["a"], label=None),
        *(
            recording(id=str(at), samples=["a", "b", "c"][:size], label=at % 2)
            for at, size in enumerate(sizes)
        ),
    ]
    found = evaluate(made, methods=["snne[rouge_l]"], resamples=2)
    assert (found.n_samples, len(found.ids)) == (n, sum(size >= n for size in sizes))
    found = evaluate(made, methods=["snne[rouge_l]"], samples=1, resamples=2)
    assert (found.n_samples, len(found.ids)) == (1, len(sizes))


def test_empty_samples_and_what_belongs_to_them_leave_the_set() -> None:
    plain = rows(**LOGPROBS)
    made = [
        recording(
            **row.to_dict()
            | {
                "samples": ["", *row.samples],
                "token_logprobs": [None, *LOGPROBS["token_logprobs"]],
            }
        )
        for row in plain
    ]
    with_empty = evaluate(made, methods=["wsnne[rouge_l]"], samples=3, resamples=2)
    without = evaluate(plain, methods=["wsnne[rouge_l]"], resamples=2)
    for name, values in without.uncertainties.items():
        assert with_empty.uncertainties[name] == pytest.approx(values, abs=0)


def test_grades_without_right_and_wrong_have_no_auroc() -> None:
    def grade(found: Sequence[Recording]) -> list[Grade | None]:
        return [
            Grade(quality=int(one.id) / 60, correct=None, grader="half")
            for one in found
        ]

    found = evaluate(unlabelled(), methods=["snne"], grader=grade, resamples=9)
    assert found.correct is None
    assert found.accuracy is None
    assert list(found.rows[0].metrics) == ["auarc", "prr", "prr_normalised"]


def test_one_class_has_no_auroc_and_is_no_error() -> None:
    made = [recording(**{**row.to_dict(), "label": 1}) for row in rows(10)]
    found = evaluate(made, methods=["snne"], resamples=9)
    assert found.accuracy == 1.0
    assert math.isnan(found.rows[0].metrics["auroc"].value)
    assert found.to_dict()["rows"][0]["metrics"]["auroc"]["value"] is None


@pytest.mark.parametrize(
    "options",
    [
        {"methods": ["nonsense"]},
        {"methods": "snne[cosine]"},
        {"similarity": "cosine"},
        {"tau": 0},
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="expected"):
        evaluate(recordings(), **options)


@pytest.mark.parametrize("made", [[], [recording()], [recording(id="1", samples=[])]])
def test_nothing_to_rank_is_an_input_error(made: list[Recording]) -> None:
    with pytest.raises(InputError, match="expected questions to rank, got none"):
        evaluate(made)


@pytest.mark.parametrize(
    "fields",
    [
        {"hidden_states": 5},
        {"hidden_states": [[float("inf")]] * 4},
        {"token_importance": {"a": 1}},
        {"p_true_logprob": "no"},
    ],
)
def test_hostile_fields_cost_their_methods_alone(fields: dict[str, Any]) -> None:
    found = evaluate(
        rows(8, **LOGPROBS, **fields),
        methods=["eigen_score", "sar[rouge_l]", "p_true", "snne[rouge_l]"],
        resamples=2,
    )
    assert [row.name for row in found.rows] == ["snne[rouge_l]", "answer_length"]
    assert len(found.ids) == 8


def test_a_model_that_fails_ends_the_evaluation() -> None:
    def compare(texts: Sequence[str], /, *, question: str | None = None) -> FloatArray:
        msg = f"the model failed on {len(texts)} texts {question is None}"
        raise ScoringError(msg)

    with pytest.raises(ScoringError):
        evaluate(rows(), methods=["snne"], similarity=compare)


@pytest.mark.parametrize(
    "use",
    [
        partial(evaluate, methods="snne", resamples=1),
        partial(calibrate, error_rate=0.5),
    ],
)
def test_recordings_that_do_not_fit_in_memory_are_read_one_by_one(use: Any) -> None:
    def in_memory() -> int:
        return sum(type(one) is Recording for one in gc.get_objects())

    def compare(texts: Sequence[str], /, *, question: str | None = None) -> FloatArray:
        if question == "question 299?":
            assert in_memory() - before <= 64  # as many as are graded at once
        return rouge_l(texts, question=question)

    lines = [json.dumps(row.to_dict()).encode() for row in rows(300)]
    before = in_memory()
    use(read_recordings(lines), similarity=compare)
