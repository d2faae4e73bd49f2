"""Content F1: pairs that overlap of words takes for one another, and its bounds."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snne_guard.errors import InputError
from snne_guard.similarity import SIMILARITIES, content_f1, rouge_l
from snne_guard.similarity._function_words import (
    FUNCTION_WORDS,
    NEGATIONS,
    NUMBER_WORDS,
    OPPOSITES,
    QUALIFIERS,
    UNITS,
    YES,
    language_of,
)
from snne_guard.similarity.content import ContentPairs
from snne_guard.similarity.growth import Growth
from tests.support.content_cases import ALIKE, DIFFERENT

WORDS = st.sampled_from(
    [
        *("Paris", "Lyon", "paris", "the", "is", "older", "than", "or", "der", "ist"),
        *("not", "isn't", "yes", "no", "up", "down", "before"),
        *("5", "6.0", "6", "km", "miles", "5%", "$", "東京", "Müller"),
    ]
)
TEXTS = st.lists(WORDS, max_size=8).map(" ".join) | st.text(max_size=12)
QUESTIONS = st.none() | st.lists(WORDS, max_size=6).map(" ".join)


def alike(one: str, other: str, question: str | None = None) -> float:
    return float(content_f1([one, other], question=question)[0, 1])


@pytest.mark.parametrize(("question", "one", "other"), DIFFERENT)
def test_different_answers_are_not_alike(
    question: str | None, one: str, other: str
) -> None:
    assert alike(one, other, question) <= 0.5


@pytest.mark.parametrize(("question", "one", "other"), ALIKE)
def test_like_answers_are(question: str | None, one: str, other: str) -> None:
    assert alike(one, other, question) >= 0.6


def test_word_overlap_fails_most_of_the_table() -> None:
    taken = [rouge_l([one, other])[0, 1] > 0.5 for _, one, other in DIFFERENT]
    assert len(DIFFERENT) >= 40
    assert sum(taken) > 20


@given(texts=st.lists(TEXTS, max_size=6), question=QUESTIONS)
def test_a_value_depends_on_the_pair_alone(
    texts: list[str], question: str | None
) -> None:
    matrix = content_f1(texts, question=question)
    n = len(texts)
    assert matrix.shape == (n, n)
    assert matrix.dtype == np.float64
    assert ((matrix >= 0) & (matrix <= 1)).all()
    assert (matrix == matrix.T).all()
    assert (matrix.diagonal() == 1).all()
    for row in range(n):
        for column in range(row):
            assert matrix[row, column] == alike(texts[column], texts[row], question)


@given(texts=st.lists(TEXTS, min_size=1, max_size=5), question=QUESTIONS)
def test_a_growing_set_gives_the_same(texts: list[str], question: str | None) -> None:
    grown = Growth().over(content_f1)
    for size in range(len(texts) + 1):
        found = grown(texts[:size], question=question)
        assert (found == content_f1(texts[:size], question=question)).all()


def test_pairs_are_compared_once_a_question() -> None:
    pairs = ContentPairs()
    answers = ["Paris, France", "Lyon, France"]
    before = pairs(answers)
    after = pairs(answers, question="Where in France?")
    assert after[0, 1] < before[0, 1]
    assert (pairs(answers) == before).all()


def test_case_of_a_letter_and_grouping_of_digits_make_no_difference() -> None:
    assert alike("PARIS", "paris") == 1
    assert alike("1,200.50", "1200.5") == 1
    assert alike("3.0 km", "three km") == 1
    assert alike("It isn't so", "it is not so") == 1
    assert alike("don't", "do not") == 1


def test_an_empty_answer_is_like_no_other() -> None:
    assert content_f1(["", " ", "a"]).tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 1]]
    assert content_f1([]).shape == (0, 0)


def test_more_words_than_there_are_before_the_surrogates() -> None:
    many = " ".join(f"word{n}" for n in range(0xD800 + 10))
    assert 0.5 < alike(many, f"word{0xD800 + 3}") < 0.6  # all of it is in the other


def test_of_long_answers_the_words_of_content_count() -> None:
    many = " ".join(f"Name{n}" for n in range(1500))
    half = " ".join(f"Name{n}" for n in range(750))
    assert alike(many, half) == pytest.approx((2 / 3 + 1) / 2)
    # But where there are none.
    assert alike("it is the " * 1000, "is the it " * 1000) > 0.9


def test_a_long_question_takes_no_time_of_its_square() -> None:
    asked = "red or blue " * 50_000
    assert alike("red", "blue", asked) == 0


async def test_in_a_thread_it_gives_the_same() -> None:
    answers = [f"{one} " + "is the name of it " * 100 for one in ("Paris", "Lyon")]
    beside = await asyncio.to_thread(content_f1, answers)
    assert (beside == content_f1(answers)).all()


@pytest.mark.parametrize("texts", ["one text", ["a", None]])
def test_texts_must_be_texts(texts: list[str]) -> None:
    with pytest.raises(InputError, match="expected"):
        content_f1(texts)


def test_it_has_a_name() -> None:
    assert SIMILARITIES["content_f1"] is content_f1


def test_words_that_may_be_an_answer_are_no_function_words() -> None:
    closed = frozenset[str]().union(*FUNCTION_WORDS.values())
    answers = YES | OPPOSITES | QUALIFIERS | frozenset(NUMBER_WORDS)
    assert answers & closed <= {"da", "vor", "or", "oder", "eller", "или"}
    assert not NEGATIONS & FUNCTION_WORDS["en"]
    assert UNITS & FUNCTION_WORDS["en"] == {"am", "m"}  # units behind a number alone


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("what is the capital of france", "en"),
        ("was ist die hauptstadt von frankreich", "de"),
        ("quelle est la capitale de la france", "fr"),
        ("cuál es la capital de francia", "es"),
        ("qual è la capitale della francia", "it"),
        ("qual é a capital da frança", "pt"),
        ("wat is de hoofdstad van frankrijk", "nl"),
        ("vad är huvudstaden i frankrike", "sv"),
        ("какая столица франции и где", "ru"),
        ("paris", None),
        ("東 京", None),
        ("", None),
        ("de", None),
    ],
)
def test_the_language_is_the_one_of_most_function_words(
    text: str, language: str | None
) -> None:
    assert language_of(text.split()) == language
