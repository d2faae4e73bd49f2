"""What a user's own similarity says is checked, and asked of where it is said."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from snne_guard import score
from snne_guard.errors import InputError
from snne_guard.scorers import METHODS, score_members
from snne_guard.scorers.materials import Materials
from snne_guard.scorers.relation import Relation
from snne_guard.similarity import NLI, WithQuestion, rouge_l, rouge_l_paper
from snne_guard.types import FloatArray, Similarity

TEXTS = ["Paris", "It is Paris", "Lyon"]


class Saying:
    """Says of three texts what it was made with."""

    def __init__(self, same: Any) -> None:
        self.same = same

    def equivalent(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> Any:
        del texts, question
        return self.same

    def __call__(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> FloatArray:
        return rouge_l(texts, question=question)


class Entailing:
    """Has the probabilities of a model, and an opinion of its own of likeness."""

    def probabilities(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> FloatArray:
        del question
        yes, maybe, no = (0.1, 0.1, 0.8), (0.1, 0.8, 0.1), (0.8, 0.1, 0.1)
        return np.array(
            [[yes if b in a else maybe if a in b else no for b in texts] for a in texts]
        )

    def __call__(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> FloatArray:
        return rouge_l(texts, question=question)


def table(value: Any, dtype: Any = float) -> Any:
    """Return three texts that are unlike, but for what is said of the first two."""
    same = np.eye(3).astype(dtype)
    same[0, 1] = same[1, 0] = value
    return same


@pytest.mark.parametrize(
    ("same", "message"),
    [
        (table(0.05), "0 and 1 of which texts mean the same, got 0.05"),
        (table(math.nan), "got nan"),
        (table(math.inf), "got inf"),
        (table(2, int), "got 2"),
        (table("yes", object), "got object"),
        ([["a", "b", "c"]] * 3, "got <U1"),
        (table(1)[:2], r"expected \(3, 3\) truth values, got shape \(2, 3\)"),
        (np.triu(np.ones((3, 3))), "expected symmetric truth values"),
        (np.zeros((3, 3), dtype=bool), "the same as itself, got False"),
    ],
)
def test_what_is_no_statement_of_equal_meaning_is_refused(
    same: Any, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        score(TEXTS, method="dse", similarity=Saying(same))


@pytest.mark.parametrize("dtype", [bool, int, float, np.uint8])
def test_truth_values_and_0_and_1_are_one(dtype: Any) -> None:
    found = score(TEXTS, method="num_set", similarity=Saying(table(1, dtype)))

    assert found.value == 2.0


def test_an_entailment_of_one_s_own_needs_no_strict() -> None:
    own, relaxed = Entailing(), Entailing()
    relaxed.strict = False  # type: ignore[attr-defined]

    assert score(TEXTS, method="num_set", similarity=own).value == 3.0
    assert score(TEXTS, method="num_set", similarity=relaxed).value == 2.0


def test_an_own_similarity_is_asked_beside_its_probabilities() -> None:
    found = score(TEXTS, similarity=Entailing())

    np.testing.assert_array_equal(found.matrix, rouge_l(TEXTS))


def test_an_own_equivalence_is_asked_beside_probabilities() -> None:
    class Both(Entailing):
        def equivalent(
            self, texts: Sequence[str], /, *, question: str | None = None
        ) -> Any:
            del question
            return np.ones((len(texts),) * 2, dtype=np.bool_)

    assert score(TEXTS, method="num_set", similarity=Both()).value == 1.0


def test_all_derives_from_probabilities_where_that_is_said() -> None:
    class Derived(Entailing):
        from_probabilities = True

    found = score(TEXTS, similarity=Derived())

    assert found.matrix is not None
    assert found.matrix[0, 1] == pytest.approx(0.45)
    assert Relation.of(NLI("a model")).derives


def test_parts_of_similarities_of_one_name_are_kept_apart() -> None:
    materials = Materials(TEXTS)

    def always(value: float) -> Similarity:
        def same(texts: Sequence[str], /, *, question: str | None = None) -> FloatArray:
            del question
            return np.full((len(texts),) * 2, value)

        return same

    for value in (0.0, 1.0):
        relation = Relation.of(always(value), name="same")
        inputs = materials.inputs(METHODS["snne"], relation)
        assert inputs.similarity[0, 1] == value


@pytest.mark.parametrize(
    "similarity",
    ["rouge_l_paper+question", WithQuestion(rouge_l_paper, "rouge_l")],
)
def test_answers_in_which_no_token_is_seen_are_not_alike_for_their_question(
    similarity: Any,
) -> None:
    answers = ["東京", "大阪", "東京"]
    found = score(answers, question="The capital of Japan?", similarity=similarity)

    assert found.uncertainty == pytest.approx(1.0)
    assert found.reasons == ("tokenless_answers",)
    np.testing.assert_array_equal(found.matrix, np.eye(3))


def test_a_delivered_answer_that_is_no_member_is_not_looked_at() -> None:
    found = score_members(
        ["東京", "Tokyo", "Tokyo"],
        method=METHODS["snne"],
        relation=Relation.of("rouge_l_paper"),
        include_answer=False,
    )

    assert (found.uncertainty, found.reasons) == (0.0, ())


def test_what_is_known_of_an_empty_answer_leaves_with_it() -> None:
    states = np.array([[1.0, 2.0, 4.0], [9.0, 9.0, 1.0], [2.0, 1.0, 0.0]])
    got = score(
        ["Paris", " ", "Lyon"], method="eigen_score", known={"hidden_states": states}
    )
    expected = score(
        ["Paris", "Lyon"], method="eigen_score", known={"hidden_states": states[[0, 2]]}
    )

    assert got.value == expected.value


@pytest.mark.parametrize(
    ("states", "got"),
    [([[1.0, 2.0]] * 2, "2"), ([[1.0, 2.0]] * 4, "4"), (1.0, "float")],
)
def test_there_is_one_entry_for_each_answer(states: Any, got: str) -> None:
    with pytest.raises(InputError, match=f"for each of 3 answers, got {got}"):
        score(TEXTS, method="eigen_score", known={"hidden_states": states})


def test_what_is_not_known_is_missing() -> None:
    with pytest.raises(InputError, match="expected hidden_states for method"):
        score(TEXTS, method="eigen_score", known={"hidden_states": None})
