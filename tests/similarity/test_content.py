"""Content F1: pairs, bounds, an oracle, the judged pairs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from snne_guard.similarity import content_f1, unicode_tokens
from snne_guard.similarity.content import LONG_QUESTION
from snne_guard.similarity.words import FUNCTION_WORDS, NEGATIONS
from tests.similarity.content_pairs import ALIKE, DIFFERENT
from tests.similarity.support import is_similarity

JUDGED = Path(__file__).parents[3] / "shared" / "data" / "judged_pairs.jsonl"
WORDS = st.sampled_from(
    [
        *("Paris", "Lyon", "paris", "the", "is", "older", "than", "or", "der", "ist"),
        *("not", "isn't", "yes", "no", "up", "down", "f(x)", "{", "=", '{"a": 1}'),
        *("5", "6.0", "6", "km", "miles", "5%", "$", "\u6771\u4eac", "M\u00fcller"),
        *("US", "us", "A", "a", "(b)", "I", "*", "can't", "I'm", "7", "-"),
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
    assert alike(one, f" {one}\n", question) == 1


@pytest.mark.parametrize(("question", "one", "other"), ALIKE)
def test_like_answers_are(question: str | None, one: str, other: str) -> None:
    assert alike(one, other, question) >= 0.6


@pytest.mark.skipif(not JUDGED.exists(), reason="needs the shared data")
def test_it_agrees_with_a_judge_on_real_answers() -> None:
    rows = [json.loads(line) for line in JUDGED.read_text("utf-8").splitlines()]
    same = np.array([row["same"] for row in rows])
    found = np.array([alike(row["a"], row["b"], row["question"]) for row in rows])
    assert roc_auc_score(same, found) >= 0.89
    assert (found[~same] > 0.5).mean() <= 0.025
    assert (found[same] > 0.5).mean() >= 0.65


def weight(word: str, heavy: set[str], asked: set[str]) -> int:
    if word in asked:
        return 2
    if word in heavy:
        return 24
    return 1 if word in FUNCTION_WORDS else 8


def slow_content_f1(one: str, other: str, question: str) -> float:
    """The rule of the docstring for plain words and numbers, word by word."""
    texts = (one, other)
    left, right = map(unicode_tokens, texts)
    if left == right:
        return 1.0
    if not left or not right:
        return 0.0
    mine, theirs = {*left}, {*right}
    names = {
        name.lower()
        for text in texts
        for name in re.findall(r"\b[A-Z][a-z]*", text)
        if name.lower() not in FUNCTION_WORDS
    }
    marked = {w for w in mine | theirs if not w.isalpha() or w in NEGATIONS}
    asked = {*unicode_tokens(question)} - NEGATIONS - FUNCTION_WORDS
    asked &= mine & theirs
    best = np.zeros((len(left) + 1, len(right) + 1))
    for i, word in enumerate(left):
        for j, with_ in enumerate(right):
            met = best[i, j] + weight(word, names | marked, asked) * (word == with_)
            best[i + 1, j + 1] = max(met, best[i, j + 1], best[i + 1, j])
    sizes = [sum(weight(w, names | marked, asked) for w in s) for s in (left, right)]
    found = best[-1, -1] / sum(sizes) + best[-1, -1] / min(sizes) / 2
    if mine - theirs - FUNCTION_WORDS and theirs - mine - FUNCTION_WORDS:
        found /= 2
    digits = [[*dict.fromkeys(w for w in s if w.isdigit())] for s in (left, right)]
    lacking = [{*digits[0]} - {*digits[1]}, {*digits[1]} - {*digits[0]}]
    numbers = all(lacking) or (not any(lacking) and digits[0] != digits[1])
    if numbers or bool(mine & NEGATIONS) != bool(theirs & NEGATIONS):
        found /= 2
    return float(found)


PLAIN = st.lists(
    st.sampled_from("Paris paris Lyon the The of old not 5 6 river was".split()),  # noqa: SIM905 - words
    max_size=9,
).map(" ".join)


@given(one=PLAIN, other=PLAIN, question=PLAIN)
def test_it_is_the_oracles(one: str, other: str, question: str) -> None:
    expected = slow_content_f1(one, other, question)
    assert alike(one, other, question) == pytest.approx(
        min(expected, 0.99) if expected < 1 or one != other else 1.0, abs=0.0101
    )
    if expected < 0.99:
        assert alike(one, other, question) == pytest.approx(expected)


@given(texts=st.lists(TEXTS, max_size=6), question=QUESTIONS)
def test_a_value_depends_on_the_pair_alone(
    texts: list[str], question: str | None
) -> None:
    matrix = content_f1(texts, question=question)
    assert is_similarity(matrix, len(texts))
    for row in range(len(texts)):
        for column in range(row):
            assert matrix[row, column] == alike(texts[column], texts[row], question)


def test_the_words_of_a_choice_are_answers() -> None:
    one, other = "It is a large animal", "An animal"
    plain, choice = "Is it an animal?", "Is it an animal or a plant?"
    assert alike(one, other, choice) == alike(one, other) > alike(one, other, plain)


def test_literal_values() -> None:
    # 24 of 24 and of 24 + 4 * 1 + 8: the mean of F1 48 / 60 and containment 1.
    assert alike("Paris", "It is in the old Paris") == pytest.approx((48 / 60 + 1) / 2)
    # Both have "old", which was asked for: 2 of 26 on both sides, halved.
    asked = "Which city is old?"
    assert alike("old Paris", "old Lyon", asked) == pytest.approx(2 / 26 / 2)
    # Only one is negated: 32 of 32 and of 56, halved.
    assert alike("safe Paris", "not safe Paris") == pytest.approx((64 / 88 + 1) / 4)


def test_an_empty_answer_is_like_no_other() -> None:
    assert content_f1(["", " ", "a"]).tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 1]]
    assert content_f1([]).shape == (0, 0)


def test_a_long_question_is_not_looked_at() -> None:
    answers = ("The capital is Paris", "The capital is Lyon")
    short = "What is the capital?"
    padding = "x" * (LONG_QUESTION - len(short) - 1)
    assert alike(*answers, f"{short} {padding}") == alike(*answers)
    assert alike(*answers, f"{short} {padding[1:]}") == alike(*answers, short)
    assert alike(*answers, short) < alike(*answers)


def test_texts_within_structured_answers_are_compared_as_answers() -> None:
    one = '{"city": "Paris", "why": "It is the capital of France."}'
    other = '{"city": "paris", "why": "The capital of France it is."}'
    assert 0.5 < alike(one, other) < 1
    assert alike(one, one.replace("Paris", "Lyon")) <= 0.5


def test_long_texts_that_are_not_equal_are_never_one() -> None:
    many = " ".join(f"Name{n}" for n in range(20_000))
    assert 0.9 < alike(many, f"{many} Paris") < 1
    swapped = many.replace("Name19000", "x").replace("Name19001", "Name19000")
    swapped = swapped.replace("x", "Name19001")
    assert 0.9 < alike(many, swapped) < 1
    half = " ".join(f"Name{n}" for n in range(10_000))
    assert alike(many, half) == pytest.approx((2 / 3 + 1) / 2, abs=0.01)
    # Where nothing but function words is left.
    assert 0.9 < alike("it is the " * 1000, "is the it " * 1000) < 1
    assert alike("it is the " * 1000 + "Paris", "of the " * 1000 + "Lyon") <= 0.5


def test_more_words_than_characters_below_the_surrogates() -> None:
    many = " ".join(f"word{n}" for n in range(0xD800 + 10))
    assert 0.5 < alike(many, "word4 word40") < 0.6
