"""A set that grows is compared as if it had come at once, and each pair once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snne_guard.similarity import lexical, rouge_l, rouge_l_paper, structured
from snne_guard.similarity import structured as structured_similarity
from snne_guard.similarity.growth import Growth
from snne_guard.types import FloatArray, Similarity

OWN = pytest.mark.parametrize("similarity", [rouge_l, rouge_l_paper, structured])
TEXTS = st.lists(
    st.sampled_from(
        ["Paris", "paris!", "It is Paris", "", "-5", '{"a": 1}', '{"a": 2, "b": "x"}']
    ),
    max_size=7,
)


@OWN
@given(texts=TEXTS, cuts=st.lists(st.integers(0, 7), max_size=3))
def test_however_it_grew_it_is_the_matrix_of_the_whole(
    similarity: Similarity, texts: list[str], cuts: list[int]
) -> None:
    compare = Growth().over(similarity)
    for cut in sorted(cuts):
        compare(texts[:cut])
    assert np.array_equal(compare(texts), similarity(texts))


@OWN
def test_a_set_that_changed_is_compared_anew(similarity: Similarity) -> None:
    compare = Growth().over(similarity)
    compare(["Paris", "Lyon"])
    changed = ["Paris", "Nice", "Lyon"]
    assert np.array_equal(compare(changed), similarity(changed))
    assert np.array_equal(compare(["Paris"]), [[1.0]])


def test_a_text_that_joins_costs_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    compare = Growth().over(rouge_l)
    compare(["a b", "b c", "c d"])
    pairs: list[tuple[int, int]] = []
    whole = lexical._lcs

    def counting(queries: Sequence[str], choices: Sequence[str]) -> FloatArray:
        pairs.append((len(queries), len(choices)))
        return whole(queries, choices)

    monkeypatch.setattr(lexical, "_lcs", counting)
    compare(["a b", "b c", "c d", "d e", "e f"])
    compare(["a b", "b c", "c d", "d e", "e f"])
    assert pairs == [(1, 3), (1, 4)]


def test_a_pair_of_structures_is_compared_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = __import__(structured_similarity.__module__, fromlist=["_compare"])
    compared: list[tuple[object, object]] = []
    whole = module._compare

    def counting(one: object, other: object, strings: object) -> float:
        compared.append((one, other))
        return float(whole(one, other, strings))

    monkeypatch.setattr(module, "_compare", counting)
    compare = Growth().over(structured)
    compare(["1", "2"])
    compare(["1", "2", "3"])
    compare(["3", "2", "1"])
    assert len(compared) == 3


def test_any_other_similarity_gets_the_same_set_once() -> None:
    asked: list[tuple[list[str], str | None]] = []

    class Own:
        __hash__ = None  # type: ignore[assignment]  # a dataclass has none either

        def __call__(
            self, texts: Sequence[str], /, *, question: str | None = None
        ) -> FloatArray:
            asked.append((list(texts), question))
            return np.eye(len(texts))

    growth, own = Growth(), Own()
    for _ in range(2):
        growth.over(own)(["a", "b"], question="q")
    growth.over(own)(["a", "b"], question="r")
    growth.over(own)(["a", "b", "c"], question="r")
    assert asked == [
        (["a", "b"], "q"),
        (["a", "b"], "r"),
        (["a", "b", "c"], "r"),
    ]
