"""Texts that are the same: as they stand, normalised, by their number."""

from __future__ import annotations

import pytest

from snne_guard.similarity import (
    exact,
    normalised,
    normalised_text,
    numeric,
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
