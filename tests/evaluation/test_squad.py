"""SQuAD's F1 and exact match: the vectors, a table, a slow oracle, odd texts."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snne_guard.evaluation import (
    squad_contains,
    squad_exact_match,
    squad_f1,
    squad_normalised,
)
from tests.support.shared_folder import SHARED

VECTORS = SHARED / "reference" / "vectors.json"


@pytest.mark.skipif(not VECTORS.is_file(), reason="no reference vectors here")
def test_every_vector() -> None:
    cases = json.loads(VECTORS.read_text(encoding="utf-8"))["squad_f1"]
    for case in cases:
        f1 = squad_f1(case["prediction"], case["references"])
        assert f1 == pytest.approx(case["f1"], abs=1e-9), case
        assert float(f1 >= 0.5) == case["correct(f1>=0.5)"], case
    assert len(cases) == 13


@pytest.mark.parametrize(
    ("text", "normalised"),
    [
        ("The  U.S.A.!", "usa"),
        ("a an the A", ""),
        ("anthem then Ana", "anthem then ana"),
        ("a-b", "ab"),
        ("the-cat", "thecat"),
        ("don't", "dont"),
        ("don\u2019t", "don\u2019t"),
        ("18.0", "180"),
        ("$1,200", "1200"),
        ("\u201cParis\u201d", "\u201cparis\u201d"),
        ("\u6771\u4eac\u3002", "\u6771\u4eac\u3002"),
        ("\u00c9TUDE", "\u00e9tude"),
        ("\t new\u00a0york \n", "new york"),
        ("?!...", ""),
        ("", ""),
    ],
)
def test_normalisation(text: str, normalised: str) -> None:
    assert squad_normalised(text) == normalised


@pytest.mark.parametrize(
    ("one", "other", "f1"),
    [
        ("Paris", "paris.", 1.0),
        ("the city of Paris", "Paris", 0.5),
        ("Paris Paris", "Paris", 2 / 3),
        ("Paris, France", "Lyon, France", 0.5),
        ("Paris", "Lyon", 0.0),
        ("", "Paris", 0.0),
        ("the", "a", 1.0),
        ("18.0", "18", 0.0),
        ("18 apples", "18", 2 / 3),
        ("\u6771\u4eac\u90fd", "\u6771\u4eac", 0.0),
        ("\u6771\u4eac", "\u6771\u4eac", 1.0),
        ("\u3002", "Paris", 0.0),
    ],
)
@pytest.mark.parametrize("rational", [False, True])
def test_pairs_in_both_directions(
    one: str, other: str, f1: float, *, rational: bool
) -> None:
    assert squad_f1(one, [other], rational=rational) == pytest.approx(f1, abs=1e-12)
    assert squad_f1(other, [one], rational=rational) == pytest.approx(f1, abs=1e-12)


def test_a_half_that_floats_miss() -> None:
    answer = "x1 x2 x3 x4 x5 x6 p1 p2 p3 p4 p5"
    reference = "x1 x2 x3 x4 x5 x6 g1 g2 g3 g4 g5 g6 g7"

    assert squad_f1(answer, [reference]) == 0.4999999999999999
    assert squad_f1(answer, [reference], rational=True) == 0.5


def test_the_best_reference_decides() -> None:
    assert squad_f1("one two three", ["one four five", "two six"]) == 0.4
    assert squad_exact_match("Tyne", ["Tyne (disambiguation)", "the Tyne"]) == 1.0


def test_references_that_say_nothing_are_left_out() -> None:
    assert squad_f1("", ["", "Paris"]) == 0.0
    assert squad_f1("", ["", "."]) == 1.0
    assert squad_f1("", []) == 1.0
    assert squad_f1("Paris", []) == 0.0
    assert squad_exact_match("", ["", "Paris"]) == 0.0
    assert squad_exact_match("?", ["the"]) == 1.0


@pytest.mark.parametrize(
    ("answer", "reference", "contained"),
    [
        ("It was Neil Armstrong, in 1969.", "Neil Armstrong", True),
        ("Neil Armstrong", "the Neil Armstrong!", True),
        ("Neil A. Armstrong", "Neil Armstrong", True),  # an article, to SQuAD
        ("Neil B. Armstrong", "Neil Armstrong", False),
        ("Armstrong, Neil", "Neil Armstrong", False),
        ("Armstrong", "Neil Armstrong", False),
        ("strong arms", "arm", False),
        ("In 19690", "1969", False),
        ("not Paris", "Paris", True),
        ("\u6771\u4eac\u90fd", "\u6771\u4eac", False),
        ("", "Paris", False),
        ("?", "Paris", False),
        ("Paris", "", False),
        ("", "", True),
        ("the", "a", True),
    ],
)
def test_containment(answer: str, reference: str, *, contained: bool) -> None:
    assert squad_contains(answer, [reference]) == float(contained)
    assert squad_contains(answer, ["Rome", reference]) == float(
        contained and bool(squad_normalised(reference))
    )


WORDS = st.lists(st.sampled_from(["x", "y", "z", "the", "Q!", "7"]), max_size=9)


def counted_by_hand(answer: list[str], reference: list[str]) -> Fraction:
    """Token F1 as a fraction, common tokens crossed out one by one."""
    if not answer or not reference:
        return Fraction(answer == reference)
    left, common = list(reference), 0
    for word in answer:
        if word in left:
            left.remove(word)
            common += 1
    return Fraction(2 * common, len(answer) + len(reference))


@given(WORDS, WORDS)
def test_both_readings_are_the_fraction(one: list[str], other: list[str]) -> None:
    bare = [
        [word.lower().strip("!") for word in words if word != "the"]
        for words in (one, other)
    ]
    expected = counted_by_hand(*bare)
    answer, reference = " ".join(one), " ".join(other)

    assert squad_f1(answer, [reference], rational=True) == float(expected)
    script = squad_f1(answer, [reference])
    assert script == pytest.approx(float(expected), abs=1e-15)
    assert (script == 1) == (squad_f1(reference, [answer]) == 1)
