"""ROUGE-L as a matrix: literal cases, an oracle, rouge-score, growth."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.similarity import (
    TOKENIZERS,
    LexicalSet,
    lexical,
    rouge_l,
    rouge_l_paper,
    unicode_tokens,
)
from snne_guard.similarity.lexical import LexicalPairs
from snne_guard.types import FloatArray

Tokens = Literal["unicode", "rouge"]
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=20)
NEAR_TEXT = st.text(st.sampled_from("ab5 -.,%\u212a\u0130\u00e9\u6771$"), max_size=20)
TEXTS = st.lists(ANY_TEXT | NEAR_TEXT, max_size=6)

# text, text, similarity
PAIRS: list[tuple[str, str, float]] = [
    ("", "", 1.0),
    ("", " \n", 1.0),
    ("", "Paris", 0.0),
    ("...", "", 0.0),
    ("?", "!", 0.0),
    (":)", ":(", 0.0),
    ("Paris.", "paris", 1.0),
    ("the cat sat", "the cat ran", 2 / 3),
    ("the cat sat on the mat", "the cat", 0.5),
    ("\u6771\u4eac", "\u6771\u4eac", 1.0),
    ("\u6771\u4eac", "\u4eac\u90fd", 0.5),
    (
        "\u041c\u043e\u0441\u043a\u0432\u0430",
        "\u043c\u043e\u0441\u043a\u0432\u0430",
        1.0,
    ),
    ("\u041c\u043e\u0441\u043a\u0432\u0430", "\u041a\u0438\u0435\u0432", 0.0),
    ("\u0e01\u0e34\u0e19", "\u0e01\u0e34\u0e19\u0e02\u0e49\u0e32\u0e27", 4 / 7),
    ("\uc11c\uc6b8 \ud0c0\uc6cc", "\uc11c\uc6b8", 2 / 3),
    ("S\u00e3o Paulo", "Sa\u0303o Paulo", 1.0),
    ("S\u00e3o Paulo", "Sao Paulo", 0.5),
    ("STRASSE", "Stra\u00dfe", 1.0),
    ("\uff21\uff22\uff23", "abc", 1.0),
    ("1,200", "1200", 1.0),
    ("1\u00a0200", "1200", 1.0),
    ("1\u2009200", "1,200", 1.0),
    ("1\u202f200", "1'200", 1.0),
    ("1,200", "1.2", 0.0),
    ("1.5", "1,5", 1.0),
    ("1.5", "15", 0.0),
    ("1.5", "1 5", 0.0),
    ("-5", "5", 0.0),
    ("\u22125", "-5", 1.0),
    ("-5", "+5", 0.0),
    ("it is -5", "it is 5", 2 / 3),
    ("3-5", "3 to -5", 0.4),
    ("3-5", "3\u20135", 1.0),
    ("3-5", "-3 5", 0.5),
    ("50%", "50", 0.0),
    ("50%", "50 %", 1.0),
    ("50%", "50\u2030", 0.0),
    ("C++", "C#", 0.0),
    ("C++", "C", 0.0),
    ("C#", "c#", 1.0),
    ("blood group O-", "blood group O+", 2 / 3),
    ("$5", "5 \u20ac", 0.5),
    ("$5", "5", 2 / 3),
    ("5 \u20ac", "\u20ac5", 1.0),
    ("x \u2265 5", "x \u2264 5", 2 / 3),
    ("x \u2265 5", "x >= 5", 1.0),
    ("x < 5", "x > 5", 2 / 3),
    ("x = y", "x \u2260 y", 2 / 3),
    ("\u00acp", "p", 2 / 3),
    ("\u221e", "-\u221e", 2 / 3),
    ("20 \u00b0C", "20 \u00b0F", 2 / 3),
    ("5 kg", "5kg", 1.0),
    ("5 kg", "5 g", 0.5),
    ("10\u00b2", "102", 0.0),
    ("10\u00b2", "10^2", 1.0),
    ("1\u00bd", "11/2", 0.0),
    ("1/2", "2/1", 0.0),
    ("2024-05-01", "2024-05-02", 2 / 3),
    ("1.2.3", "1.2.4", 0.0),
    ("12:30", "12:45", 0.0),
    ("\U0001f44d", "\U0001f44e", 0.0),
    ("\u2705", "\u274c", 0.0),
    ("**Paris**", "Paris", 1.0),
]


@pytest.mark.parametrize(("one", "other", "expected"), PAIRS)
def test_pairs(one: str, other: str, expected: float) -> None:
    for pair in ([one, other], [other, one]):
        matrix = rouge_l(pair)
        assert matrix == pytest.approx(np.array([[1, expected], [expected, 1]]))
        assert LexicalPairs()(*pair) == matrix[0, 1]


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("\u6771\u4eac", "\u6771\u4eac", 0.0),
        ("", "", 0.0),
        ("", "a", 0.0),
        ("-5", "5", 1.0),
        ("C++", "C#", 1.0),
        ("$1,200.50", "1 200 50", 1.0),
        ("don't", "don", 2 / 3),
        ("S\u00e3o", "s o", 1.0),
        ("\u212aelvin", "kelvin", 1.0),
    ],
)
def test_pairs_with_rouge_scores_tokens(one: str, other: str, expected: float) -> None:
    for pair in ([one, other], [other, one]):
        assert rouge_l(pair, tokens="rouge") == pytest.approx(
            np.array([[1, expected], [expected, 1]])
        )


SCORER = RougeScorer(["rougeL"])


@given(st.lists(ANY_TEXT | NEAR_TEXT, min_size=1, max_size=4))
def test_rouge_is_rouge_score(texts: list[str]) -> None:
    matrix = rouge_l(texts, tokens="rouge")
    for row, one in enumerate(texts):
        for column, other in enumerate(texts):
            expected = SCORER.score(one, other)["rougeL"].fmeasure
            if row == column:
                expected = 1.0
            assert abs(matrix[row, column] - expected) <= 1e-12


def slow_rouge_l(texts: Sequence[str], tokens: Tokens) -> FloatArray:
    """Lin's definition, literally, pair by pair."""
    matrix = np.eye(len(texts))
    for row, one in enumerate(texts):
        for column, other in enumerate(texts):
            left, right = TOKENIZERS[tokens](one), TOKENIZERS[tokens](other)
            if row == column:
                continue
            if not left and not right:
                matrix[row, column] = 1.0 if tokens == "unicode" else 0.0
            else:
                common = slow_lcs(left, right)
                matrix[row, column] = 2 * common / (len(left) + len(right))
    return matrix


def slow_lcs(left: Sequence[str], right: Sequence[str]) -> int:
    lengths = [[0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for i, one in enumerate(left):
        for j, other in enumerate(right):
            lengths[i + 1][j + 1] = (
                lengths[i][j] + 1
                if one == other
                else max(lengths[i][j + 1], lengths[i + 1][j])
            )
    return lengths[-1][-1]


@given(TEXTS, st.sampled_from(["unicode", "rouge"]))
def test_matrix_is_the_oracles(texts: list[str], tokens: Tokens) -> None:
    matrix = rouge_l(texts, tokens=tokens)
    assert matrix.shape == (len(texts), len(texts))
    assert matrix.dtype == np.float64
    assert matrix == pytest.approx(slow_rouge_l(texts, tokens), abs=1e-12)
    assert (matrix == matrix.T).all()
    assert ((matrix >= 0) & (matrix <= 1)).all()
    assert (matrix.diagonal() == 1).all()


@given(TEXTS, st.sampled_from(["unicode", "rouge"]))
def test_a_pair_does_not_depend_on_the_rest(texts: list[str], tokens: Tokens) -> None:
    matrix = rouge_l(texts, tokens=tokens)
    for column in range(1, len(texts)):
        pair = rouge_l([texts[0], texts[column]], tokens=tokens)
        assert pair[0, 1] == matrix[0, column]


def test_more_tokens_than_the_ready_characters() -> None:
    # Past the ready characters and past the surrogates.
    words = [f"w{number}" for number in range(57_000)]
    matrix = rouge_l([" ".join(words), "w0 w56999", "w56999 w0", "w55296 w5 w57000"])
    assert matrix[0] == pytest.approx([1, 4 / 57_002, 2 / 57_002, 2 / 57_003])
    assert matrix[1] == pytest.approx([4 / 57_002, 1, 0.5, 0])


def test_more_tokens_than_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lexical, "_CHARACTERS", "")
    monkeypatch.setattr(lexical, "_SURROGATES", range(3, sys.maxunicode + 1))
    assert rouge_l(["a b", "c"])[0, 1] == 0
    with pytest.raises(InputError, match="at most 3 distinct tokens, got more"):
        rouge_l(["a b", "c d"])


def test_repeats_are_read_and_compared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = count_pairs(monkeypatch)
    matrix = rouge_l(["Paris", "Lyon", "Paris", "Paris", "Lyon"])
    assert compared == [4]
    assert matrix.tolist() == [
        [1, 0, 1, 1, 0],
        [0, 1, 0, 0, 1],
        [1, 0, 1, 1, 0],
        [1, 0, 1, 1, 0],
        [0, 1, 0, 0, 1],
    ]


def count_pairs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record how many cells each call of the seam to rapidfuzz computes."""
    compared: list[int] = []
    cdist = vars(lexical)["cdist"]

    def counting(queries: Any, choices: Any, **options: Any) -> Any:
        compared.append(len(queries) * len(choices))
        return cdist(queries, choices, **options)

    monkeypatch.setattr(lexical, "cdist", counting)
    return compared


def test_adding_an_answer_costs_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    grown = LexicalSet.of(["Paris", "It is Paris", "Lyon", "-5"])
    compared = count_pairs(monkeypatch)
    read: list[str] = []

    def reading(text: str) -> list[str]:
        read.append(text)
        return unicode_tokens(text)

    monkeypatch.setattr(lexical, "tokenizer", lambda _: reading)
    grown = grown.add("It is Lyon").add("5")
    assert compared == [4, 5]
    assert read == ["It is Lyon", "5"]


@settings(max_examples=50)
@given(TEXTS, TEXTS, st.sampled_from(["unicode", "rouge"]))
def test_growing_is_the_batch(
    first: list[str], more: list[str], tokens: Tokens
) -> None:
    start = grown = LexicalSet.of(first, tokens=tokens)
    for text in more:
        grown = grown.add(text)
    assert grown.texts == (*first, *more)
    assert grown.tokens == tokens
    assert (grown.matrix == rouge_l([*first, *more], tokens=tokens)).all()
    assert start.texts == tuple(first)
    assert (start.matrix == rouge_l(first, tokens=tokens)).all()


def test_two_sets_grow_apart_from_one() -> None:
    root = LexicalSet.of(["a"])
    left, right = root.add("b c"), root.add("c b")
    assert left.add("c").matrix[1, 2] == pytest.approx(2 / 3)
    assert right.add("b").matrix[1, 2] == pytest.approx(2 / 3)
    assert root.matrix.tolist() == [[1]]
    with pytest.raises(ValueError, match="read-only"):
        left.matrix[0, 1] = 1


def test_the_texts_are_not_in_the_repr() -> None:
    assert "secret" not in repr(LexicalSet.of(["secret"]))


def test_no_text_and_one_text() -> None:
    assert rouge_l([]).shape == (0, 0)
    assert rouge_l([""]).tolist() == [[1]]
    assert rouge_l(["x"], tokens="rouge").tolist() == [[1]]


def test_paper_and_question() -> None:
    texts = ["-5", "5", "\u6771\u4eac", "\u6771\u4eac"]
    expected = [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    assert rouge_l_paper(texts, question="?").tolist() == expected
    assert rouge_l(texts, tokens="rouge", question="5").tolist() == expected


def test_bad_input() -> None:
    with pytest.raises(InputError, match="sequence of texts, got one str"):
        rouge_l("Paris")
    with pytest.raises(InputError, match="to be a str, got NoneType"):
        rouge_l(["Paris", None])  # type: ignore[list-item]
    with pytest.raises(InputError, match="to be a str, got int"):
        LexicalSet.of(["Paris"]).add(5)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="got 'words'"):
        rouge_l(["Paris"], tokens="words")  # type: ignore[arg-type]


def test_a_str_of_another_type_is_a_text() -> None:
    class Text(str):
        __slots__ = ()

    assert rouge_l([Text("a b"), "a"])[0, 1] == pytest.approx(2 / 3)


def test_long_texts_give_the_same_beside_an_event_loop() -> None:
    texts = ["word " * 300, "word " * 200 + "other " * 100]
    with ThreadPoolExecutor(1) as pool:
        beside = pool.submit(rouge_l, texts).result()
    assert (beside == rouge_l(texts)).all()
    assert beside[0, 1] == pytest.approx(2 / 3)
