"""Where one answer turns into another: a value for another, a "not" more or less."""

from __future__ import annotations

import pytest

from snne_guard.similarity._content_edits import replaced


def turned(one: str, other: str) -> bool:
    words = set(f"{one} {other}".split()) & {"paris", "lyon", "safe", "2", "3", "4"}
    return replaced(one.split(), other.split(), words, {"asked", "also"})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("2 and 2", "2 and 3"),
        ("asked asked 2", "asked 3 2"),
        ("not 2 not 3", "not 2 3"),
        ("no 2 no safe", "no 2 a safe"),
        ("2 3 is 4 then 2 is 3", "2 3 is 4 then 3 is 2"),
    ],
)
def test_one_gives_way_to_another(one: str, other: str) -> None:
    assert turned(one, other)
    assert turned(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("2 and 2", "2 and 2"),
        ("2 and 2 and 3", "2 and 3"),
        ("paris is it is paris", "it is paris is paris"),
        # Words of the question alone.
        ("asked asked also", "asked also also"),
        # More than a "not" is another sentence, and so is one with a word of content.
        ("no no it is not", "no no"),
        ("no 2 no safe 3", "no 2 3"),
    ],
)
def test_nothing_gives_way(one: str, other: str) -> None:
    assert not turned(one, other)
    assert not turned(other, one)
