"""Texts that are the same: as they stand, normalised, by their number."""

from __future__ import annotations

from fractions import Fraction

import pytest

from snne_guard.similarity import (
    exact,
    normalised,
    normalised_text,
    numeric,
    stated_number,
)


def test_exact() -> None:
    assert exact(["Paris", " Paris\n", "paris"]).tolist() == [
        [1, 1, 0],
        [1, 1, 0],
        [0, 0, 1],
    ]
    assert exact.equivalent(["a", "b", "a"])[0].tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("**Paris**!", "paris"),
        ("\uff21\uff22", "ab"),
        ("it\u2019s", "it's"),
        ("[3, 4)", "[3, 4)"),
        (".5", ".5"),
        ("", ""),
    ],
)
def test_normalised_text(text: str, expected: str) -> None:
    assert normalised_text(text) == expected
    assert normalised([text, expected])[0, 1] == 1


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("\u22125%", Fraction(-5), "%"),
        ("1/2", Fraction(1, 2), ""),
        ("1e3", Fraction(1000), ""),
        ("\u0661\u0662", Fraction(12), ""),
        ("25 m^2", Fraction(25), ""),
        ("0/0 and 7", Fraction(7), ""),
    ],
)
def test_stated_number(text: str, value: Fraction, unit: str) -> None:
    assert stated_number(text) == (value, unit)


@pytest.mark.parametrize("text", ["", "12:30", "v1.2", "3 x 10^8", "9" * 500])
def test_no_number(text: str) -> None:
    assert stated_number(text) is None


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("The answer is 42.", "42", True),
        ("$5.00", "5", True),
        ("5%", "5", False),
        ("none", "None", False),
    ],
)
def test_numeric(one: str, other: str, *, same: bool) -> None:
    assert numeric([one, other])[0, 1] == same
