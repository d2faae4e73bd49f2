"""Recordings are scored as a guard scores: the anchor lies on the delivered answer."""

from __future__ import annotations

import math

import pytest

from snne_guard.evaluation import Recording, uncertainty_paths
from snne_guard.evaluation.comparison.members import materials_of
from snne_guard.scorers import METHODS, snne, uncertainty
from snne_guard.scorers.relation import Relation
from snne_guard.similarity import content_f1

RECORDING = Recording(
    id="1",
    question="Capital of France?",
    main_answer="Lyon",
    samples=("Paris", "", "Paris", "Paris, France", "Rome"),
)
SAMPLES = ["Paris", "Paris", "Paris, France", "Rome"]


def u(members: list[str], anchor: float) -> float | None:
    matrix = content_f1(members, question="Capital of France?")
    return uncertainty(snne(matrix, anchor=anchor), len(members))


@pytest.mark.parametrize("include_answer", [True, False])
def test_the_materials_of_a_recording(*, include_answer: bool) -> None:
    relation, method = Relation.of("content_f1"), METHODS["snne"]
    materials = materials_of(RECORDING, 4, include_answer=include_answer)
    members = ["Lyon", *SAMPLES] if include_answer else SAMPLES
    anchor = 0.7 if include_answer else 0.0
    for n in (len(members), 3):
        part = materials.first(n)
        inputs = part.inputs(method, relation)
        assert (part.members, inputs.anchor) == (tuple(members[:n]), anchor)
        found = method.uncertainty(method.compute(inputs), n)
        assert found == u(members[:n], anchor)


@pytest.mark.parametrize("include_answer", [True, False])
def test_the_paths_that_a_stopping_rule_is_learnt_from(*, include_answer: bool) -> None:
    found = uncertainty_paths([RECORDING], rounds=(3, 5), include_answer=include_answer)
    # The empty sample takes its place, and one is missing after the first round.
    expected = u(["Lyon", *SAMPLES[:3]], 0.7) if include_answer else u(SAMPLES, 0.0)
    assert math.isnan(found[0, 0])
    assert found[0, 1] == expected
