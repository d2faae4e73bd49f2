"""Lone letters: an option, a vitamin, a gate; and words that are one letter long."""

from __future__ import annotations

import pytest

from snne_guard import score
from snne_guard.similarity import content_f1, normalised


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("vitamin a deficiency", "vitamin e deficiency"),
        ("deficiency of vitamin a", "deficiency of vitamin c"),
        ("hepatitis a virus", "hepatitis e virus"),
        ("seat 14a", "seat 14e"),
        ("Platform 9A", "Platform 9E"),
        ("apartment 7a is free", "apartment 7e is free"),
        ("blood type ab", "blood type a"),
        ("group o", "group a"),
        ("the right answer is e.", "the right answer is o."),
        ("Answer is (c)", "Answer is (e)"),
        ("option a would be best", "option e would be best"),
        ("team d won", "team a won"),
        ("in the key of d minor", "in the key of e minor"),
        ("c is correct", "d is correct"),
        ("a. because it floats", "d. because it floats"),
        ("d", "a"),
        ("model s", "model y"),
    ],
)
def test_other_letters_are_other_answers(one: str, other: str) -> None:
    assert content_f1([one, other])[0, 1] <= 0.5


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("He bought a car", "He bought the car"),
        ("A dog is an animal.", "The dog is an animal."),
        ("group a few people", "group few people"),
        ("type a password", "type the password"),
        ("vit y pan", "vit, pan"),
        ("il y a un chat", "il y a le chat"),
        ("room 4b", "Room 4B."),
        ("The answer is (c).", "the answer is c"),
    ],
)
def test_articles_and_cases_do_not_matter(one: str, other: str) -> None:
    assert content_f1([one, other])[0, 1] >= 0.85


@pytest.mark.parametrize(
    ("texts", "least", "most"),
    [
        (["Option a.", "Option c.", "Option d.", "Option e."], 0.5, 1.0),
        ([f"{x}) it has the most mass" for x in "ecdao"], 0.5, 1.0),
        ([f"it is {x} because it rains more there" for x in "dace"], 0.5, 1.0),
        ([f"seat 9{x}" for x in "acde"], 0.5, 1.0),
        (["the answer is e", "The answer is E.", "(e)", "Answer: e"], 0.0, 0.2),
        (["gate 4a", "Gate 4A", "gate 4A.", "gate 4a"], 0.0, 0.2),
    ],
)
def test_sets(texts: list[str], least: float, most: float) -> None:
    found = score(texts).uncertainty
    assert found is not None
    assert least <= found <= most


def test_an_option_is_normalised_to_its_letter() -> None:
    same = ["A", "(A)", "A.", "A)", "a", "[A]", "(A).", "**A)**"]
    assert normalised([*same, "B", "AB", "(A B)"])[0].tolist() == [1] * 8 + [0] * 3
