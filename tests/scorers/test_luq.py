"""LUQ, LUQ-Pair and LUQ by sentences."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snne_guard.errors import InputError
from snne_guard.scorers import entailment_ratio, luq, luq_pair, luq_sentences
from snne_guard.scorers.luq import split_sentences
from snne_guard.types import FloatArray


@st.composite
def supports(draw: st.DrawFn) -> FloatArray:
    n = draw(st.integers(1, 6))
    cells = draw(st.lists(st.floats(0, 1), min_size=n * n, max_size=n * n))
    return np.array(cells).reshape(n, n)


@given(supports(), st.data())
def test_methods_are_their_formulas(s: FloatArray, data: st.DataObject) -> None:
    n = len(s)
    others = [[j for j in range(n) if j != i] for i in range(n)]
    if n == 1:
        assert [luq(s), luq_pair(s), luq_sentences(s, [0])] == [1, 1, 1]
        return
    mean = sum(sum(s[i, j] for j in others[i]) / (n - 1) for i in range(n)) / n
    assert luq(s) == pytest.approx(1 - mean)
    best = sum(max(s[min(i, j), max(i, j)] for j in others[i]) for i in range(n)) / n
    assert luq_pair(s) == pytest.approx(1 - best)

    owners = data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    answers = sorted(set(owners))
    if len(answers) == 1:
        return
    total = 0.0
    for answer in answers:
        mine = [i for i in range(n) if owners[i] == answer]
        for sentence in mine:
            for other in answers:
                theirs = [k for k in range(n) if owners[k] == other]
                if other != answer:
                    share = 1 / len(mine) / (len(answers) - 1) / len(answers)
                    total += share * max(s[k, sentence] for k in theirs)
    assert luq_sentences(s, owners) == pytest.approx(1 - total)


@given(supports())
def test_one_sentence_each_is_luq(s: FloatArray) -> None:
    assert luq_sentences(s, np.arange(len(s))) == pytest.approx(luq(s))


def test_support_of_entailment() -> None:
    ratio = entailment_ratio(
        np.array([[[0, 0, 1], [0.1, 0.6, 0.3]], [[0, 1, 0], [0, 0, 1]]])
    )
    assert ratio.tolist() == [[1, pytest.approx(0.75)], [0.5, 1]]


@pytest.mark.parametrize(
    "s", [[], [[1, 2], [0, 1]], [[1, -0.1], [0, 1]], [[math.nan]], [[1, 0]]]
)
def test_no_support(s: list[list[float]]) -> None:
    for function in (luq, luq_pair):
        with pytest.raises(InputError, match="support"):
            function(s)
    with pytest.raises(InputError, match="support"):
        luq_sentences(s, [0, 0])


def test_no_owners() -> None:
    with pytest.raises(InputError, match="expected 2 cluster ids"):
        luq_sentences(np.eye(2), [0])


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        (
            "He won. Did she? Yes, 3.5 times!",
            ["He won.", "Did she?", "Yes, 3.5 times!"],
        ),
        ('"Go." He went.', ['"Go."', "He went."]),
        ("他赢了。她呢？", ["他赢了。", "她呢？"]),  # noqa: RUF001 - that is the point
        ("one\n\ntwo", ["one", "two"]),
        ("", [""]),
        ("  ", ["  "]),
    ],
)
def test_sentences(text: str, sentences: list[str]) -> None:
    assert [*split_sentences(text)] == sentences


def test_sentences_of_a_long_text_take_linear_time() -> None:
    assert len(split_sentences("." * 100_000 + " a" * 100_000)) == 2
