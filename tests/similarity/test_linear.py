"""Time linear in the texts and the question, up to 1 MB."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from snne_guard.similarity import (
    content_f1,
    normalised,
    numeric,
    rouge_l,
    unicode_tokens,
)
from snne_guard.similarity.tokens import notation

SIZE = 1_000_000
SMALL = 50_000
UNITS = [
    *("a", "word ", "1", " ", "(", "[1,", "```a", "|a|\n", "1,", "/", "a/", "-"),
    *("$1", "\u6771", "e\u0301", "\"'", "(a ", "x\u00b2", "\n ", "f(", "a@", "*"),
    *(" = ", "1e", '{"a":', "n't ", "12:", "\n    a", "`a", "may 1 ", "1\u00a0", "_"),
    *("~~a", "US ", "A ", "A*", "a / ", "(a)"),
]


def read(text: str) -> None:
    unicode_tokens(text)
    notation(text)
    for compare in (content_f1, rouge_l, normalised, numeric):
        compare([text, f"{text} b", "Paris a"])
    content_f1(["Paris a", "Paris b"], question=text[:999])


def seconds(run: Callable[[str], object], text: str) -> float:
    start = time.thread_time()
    run(text)
    return time.thread_time() - start


@pytest.mark.parametrize("unit", UNITS)
def test_time_does_not_grow_with_the_square(unit: str) -> None:
    # With the square it would be 16 times as much, and minutes at 1 MB.
    small = min(seconds(read, unit * (SMALL // 4 // len(unit))) for _ in range(2))
    assert seconds(read, unit * (SMALL // len(unit))) < 9 * small + 0.05


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["word ", "f(", "1,"])
def test_a_megabyte_is_read_in_seconds(unit: str) -> None:
    assert seconds(read, unit * (SIZE // len(unit))) < 40


def test_a_question_of_many_letters_stops_nobody() -> None:
    asked = "Is it A or B? " + "x" * 40_000
    compared = lambda question: content_f1(["A", "B, I think"], question=question)  # noqa: E731 - short
    assert seconds(compared, asked) < 0.5
    assert seconds(compared, "Is it A or B? " * 70_000) < 0.5


def test_long_runs_of_marks_are_normalised_in_linear_time() -> None:
    def run(size: int) -> str:
        return "a" + "\u0301" * size + "\u0323" * size

    small = min(seconds(read, run(2_000)) for _ in range(2))
    assert seconds(read, run(8_000)) < 9 * small + 0.05
    assert unicode_tokens("e\u0301te\u0301") == unicode_tokens("\u00e9t\u00e9")
