"""Content F1 is what its slow and literal form gives, to the last bit."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snne_guard.similarity import content_f1
from snne_guard.similarity._content_common import heaviest_common
from snne_guard.similarity._content_words import canonical_words, names_in
from tests.support.content_cases import ALIKE, DIFFERENT
from tests.support.content_oracle import (
    slow_content_f1,
    slow_heaviest,
    slow_names,
    slow_words,
)

WORDS = st.sampled_from(
    [
        *("Paris", "Lyon", "paris", "the", "is", "older", "than", "or", "der", "ist"),
        *("not", "isn't", "yes", "no", "up", "down", "before", "I", "The", "iPhone"),
        *("5", "6.0", "6", "km", "miles", "5%", "$", "$5", "東京", "Müller", "two"),
        *("U.S.", "J. K.", "cannot", "t", "-", "x", "World", "War", "World. War", "¿"),
    ]
)
TEXTS = st.lists(WORDS, max_size=10).map(" ".join) | st.text(max_size=12)
QUESTIONS = st.none() | st.lists(WORDS, max_size=6).map(" ".join)


def fast(one: str, other: str, question: str | None) -> float:
    return float(content_f1([one, other], question=question)[0, 1])


@given(one=TEXTS, other=TEXTS, question=QUESTIONS)
def test_it_is_the_literal_form(one: str, other: str, question: str | None) -> None:
    assert fast(one, other, question) == slow_content_f1(one, other, question)


@pytest.mark.parametrize(("question", "one", "other"), [*DIFFERENT, *ALIKE])
def test_it_is_the_literal_form_on_the_table(
    question: str | None, one: str, other: str
) -> None:
    for asked in (question, None):
        assert fast(one, other, asked) == slow_content_f1(one, other, asked)


@given(text=TEXTS | st.text("aAbB IiÉé.!1-\n", max_size=30))
def test_words_and_names_are_read_as_slowly(text: str) -> None:
    assert canonical_words(text) == slow_words(text)
    assert list(names_in(text)) == list(slow_names(text))


# Few words that repeat much, many of which few repeat, and names or numbers alone.
@pytest.mark.parametrize("stock", [8, 60, 2000])
@pytest.mark.parametrize("size", [140, 170, 400, 1100])
@pytest.mark.parametrize("form", ["word{}", "Name {} of the", "plain{} is not"])
def test_of_long_answers_too(stock: int, size: int, form: str) -> None:
    draw = random.Random(f"{stock} {size} {form}")  # noqa: S311 - the same every time
    one = [form.format(draw.randrange(stock)) for _ in range(size // len(form.split()))]
    other = [word if draw.random() < 0.8 else draw.choice(one) for word in one]
    asked = "Is it word5, or Name 7 of plain3?"
    found = fast(" ".join(one), " ".join(other), asked)
    assert found == slow_content_f1(" ".join(one), " ".join(other), asked)


WEIGHED = st.lists(st.sampled_from("abcdefgh"), max_size=30)


@given(
    left=WEIGHED,
    right=WEIGHED,
    weights=st.fixed_dictionaries(
        dict.fromkeys("abcdefgh", st.integers(0, 3) | st.sampled_from([8, 24, 999]))
    ),
)
def test_the_heaviest_common_subsequence(
    left: list[str], right: list[str], weights: dict[str, int]
) -> None:
    one = [(word, weights[word]) for word in left]
    other = [(word, weights[word]) for word in right]
    assert heaviest_common(left, right, weights) == slow_heaviest(one, other)
