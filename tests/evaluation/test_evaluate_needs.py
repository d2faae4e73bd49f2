"""Needs that recordings meet themselves, or that a model meets for them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from snne_guard.evaluation.comparison.members import common_size, materials_of
from snne_guard.evaluation.comparison.providers import embedded, judged_true, weighed
from snne_guard.evaluation.recording.recordings import Recording
from snne_guard.scorers import METHODS
from snne_guard.scorers.relation import Relation
from snne_guard.similarity import Embedding
from snne_guard.types import FloatArray
from tests.support.evaluating import by_name, evaluated, questions, row


def count(texts: list[str]) -> list[list[float]]:
    return [[float(len(text)), float(text.count("1"))] for text in texts]


def test_embeddings_take_the_place_of_hidden_states(tmp_path: Path) -> None:
    embedding = Embedding(count)

    one = evaluated(
        tmp_path,
        *questions(12),
        methods="eigen_score,snne",
        models=[embedding],
        providers={"hidden_states": embedded(embedding)},
    )

    methods = by_name(one)
    assert methods["eigen_score"].status == "evaluated"
    assert methods["snne[embedding:count]"].status == "evaluated"
    assert float(methods["eigen_score"].milliseconds or 0) > 0


def test_what_is_recorded_is_used(tmp_path: Path) -> None:
    rows = questions(12, logprobs=True)
    for number, fields in enumerate(rows):
        fields["hidden_states"] = [[1.0, float(place)] for place in range(5)]
        fields["token_importance"] = [
            [0.5] * len(text.split())
            for text in (fields["main_answer"], *fields["samples"])
        ]
        fields["p_true_logprob"] = -0.1 * number

    one = evaluated(tmp_path, *rows, methods="eigen_score,token_sar,p_true")

    methods = by_name(one)
    for name in ("eigen_score", "token_sar", "p_true"):
        assert methods[name].status == "evaluated", name
    expected = [1 - math.exp(-0.1 * number) for number in range(12)]
    assert methods["p_true"].uncertainty == pytest.approx(expected)


def test_a_model_is_asked_whether_its_answer_is_true(tmp_path: Path) -> None:
    asked: list[tuple[str, str]] = []

    def likelihood(prompt: str, continuation: str, /) -> float:
        asked.append((prompt, continuation))
        return -0.5

    one = evaluated(
        tmp_path,
        row("q0", "no"),
        row("q1", "no", label=0),
        methods="p_true",
        providers={"p_true_logprob": judged_true(likelihood)},
    )

    assert by_name(one)["p_true"].status == "evaluated"
    assert [continuation for _, continuation in asked] == [" A", " A"]
    assert "Question: q0?" in asked[0][0]
    without = Recording(id="1", question=None, main_answer="a", samples=())
    assert judged_true(likelihood)(without) is None


def test_a_provider_that_fails_is_the_reason(tmp_path: Path) -> None:
    def likelihood(prompt: str, continuation: str, /) -> float:
        del prompt, continuation
        raise TimeoutError

    one = evaluated(
        tmp_path,
        *questions(6),
        methods="p_true,snne",
        providers={"p_true_logprob": judged_true(likelihood)},
    )

    assert by_name(one)["p_true"].status == "skipped"
    assert "TimeoutError" in str(by_name(one)["p_true"].why)
    assert by_name(one)["snne[rouge_l]"].status == "evaluated"


def test_tokens_are_weighed_where_their_texts_are_recorded() -> None:
    class Weighs:
        def token_importance(
            self, question: str | None, text: str, tokens: Any
        ) -> FloatArray:
            assert question == "q?"
            assert "".join(tokens) == text
            return np.arange(float(len(tokens)))

    provide = weighed(Weighs())
    fields = row("q", "no way", main_tokens=["y", "es"], tokens=[["no", " way"]])
    found = provide(Recording.from_dict(fields))
    assert [one.tolist() for one in found] == [[0.0, 1.0], [0.0, 1.0]]
    assert provide(Recording.from_dict(row("q", "no"))) is None


def test_what_belongs_to_a_sample_goes_with_it() -> None:
    recording = Recording.from_dict(
        row(
            "q",
            *("a", " ", "b", "c"),
            main_logprobs=[-1.0],
            token_logprobs=[[-2.0], [-3.0], [-4.0], [-5.0]],
            hidden_states=[[0.0], [1.0], [2.0], [3.0], [4.0]],
        )
    )

    materials = materials_of(recording, 2)

    assert materials.texts == ("yes", "a", "b")
    nothing = Relation.of("rouge_l")
    inputs = materials.inputs(METHODS["ne"], nothing)
    assert inputs.mean_logprobs is not None
    assert inputs.mean_logprobs.tolist() == [-1.0, -2.0, -4.0]
    assert [one[0] for one in materials.part("hidden_states", nothing)] == [0, 1, 3]


@pytest.mark.parametrize("fault", [None, 5, [[1.0, 2.0]] * 3, {}, ["x"] * 5])
def test_a_field_that_cannot_be_used_costs_its_question(
    tmp_path: Path, fault: object
) -> None:
    rows = questions(40)
    for number, fields in enumerate(rows):
        fields["hidden_states"] = [[float(number), float(place)] for place in range(5)]
    rows[7]["hidden_states"] = fault

    one = evaluated(tmp_path, *rows, methods="eigen_score,snne", ablate=["samples"])

    assert by_name(one)["eigen_score"].status == "evaluated"
    assert one.ids == tuple(f"q{number}" for number in range(40) if number != 7)
    assert len(evaluated(tmp_path, *rows).ids) == 40


def test_fields_that_cannot_be_used_are_told_of(tmp_path: Path) -> None:
    rows = questions(6)
    for fields in rows:
        fields["hidden_states"] = [[1.0, 2.0]] * 3

    found = by_name(evaluated(tmp_path, *rows, methods="eigen_score,snne"))

    assert found["snne[rouge_l]"].status == "evaluated"
    assert "of the delivered answer and of 4 samples, got 3" in str(
        found["eigen_score"].why
    )


def test_the_number_of_samples_that_keeps_most() -> None:
    assert common_size([]) == 0
    assert common_size([10] * 95 + [3] * 5) == 10
    assert common_size([5] * 56 + [1] * 4) == 5
    assert common_size([4] * 10 + [19] * 90) == 19
    assert common_size([20] * 40 + [2] * 60) == 2
    assert common_size([2, 4]) == 2
    assert common_size([0, 0]) == 0
