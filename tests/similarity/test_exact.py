"""Texts that are the same or not: as they stand, normalised, by their number."""

from __future__ import annotations

import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snne_guard.errors import InputError
from snne_guard.similarity.exact import (
    Match,
    exact,
    normalised,
    normalised_text,
    numeric,
    stated_number,
)

MATCHES = (exact, normalised, numeric)
WRITTEN = st.lists(
    st.one_of(
        st.sampled_from(["18", "18.0", "18%", "$18", " 18 ", "a", "A", "A.", "", "½"]),
        st.text(max_size=8),
    ),
    max_size=8,
)


@given(texts=WRITTEN)
def test_exact_is_equality_of_stripped_strings(texts: list[str]) -> None:
    expected = [[a.strip() == b.strip() for b in texts] for a in texts]
    found = exact.equivalent(texts)
    assert found.shape == (len(texts), len(texts))
    assert found.tolist() == expected


@pytest.mark.parametrize("match", MATCHES, ids=lambda match: match.name)
@given(texts=WRITTEN)
def test_each_is_an_equivalence_and_depends_on_the_pair_alone(
    match: Match, texts: list[str]
) -> None:
    found = match.equivalent(texts, question="How many?")
    assert found.dtype == np.bool_
    assert (found == found.T).all()
    assert found.diagonal().all()
    assert ((found.astype(int) @ found.astype(int) > 0) == found).all()
    for row, one in enumerate(texts):
        for column, other in enumerate(texts):
            if row != column:
                alone = match.equivalent([one, other])[0, 1]
                assert found[row, column] == alone


@pytest.mark.parametrize("match", MATCHES, ids=lambda match: match.name)
def test_the_similarity_is_the_relation(match: Match) -> None:
    texts = ["18", "18.0", "Paris", "paris.", "", " "]
    matrix = match(texts, question="Which?")
    assert matrix.dtype == np.float64
    assert (matrix == match.equivalent(texts)).all()
    assert match([]).shape == (0, 0)


@pytest.mark.parametrize("match", MATCHES, ids=lambda match: match.name)
@pytest.mark.parametrize("texts", ["Paris", ["Paris", 18], [None]])
def test_only_texts_are_compared(match: Match, texts: Any) -> None:
    with pytest.raises(InputError, match="expected"):
        match(texts)


def test_copies_for_other_processes_do_the_same() -> None:
    for match in MATCHES:
        assert pickle.loads(pickle.dumps(match)) == match  # noqa: S301 - our own bytes


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Paris", "\u201cPARIS\u201d."),
        ("New York", " new\u00a0 york\n"),
        ("it's", "It\u2019s!"),
        ("**Paris**", "Paris"),
        ("\uff30\uff21\uff32\uff29\uff33", "Paris"),
        ("Strasse", "Straße"),
        ("-5", "\u22125"),
        ("\u6771\u4eac", "\u6771\u4eac\u3002"),
    ],
)
def test_the_same_normalised(one: str, other: str) -> None:
    assert normalised.equivalent([one, other]).all()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("the Paris", "Paris"),
        ("São Paulo", "Sao Paulo"),
        ("5", "-5"),
        (".5", "5"),
        ("5%", "5"),
        ("C#", "C"),
        ("?", "!"),
        ("...", ""),
        ("[3, 4)", "(3, 4]"),
        ("18.0", "18"),
        ("10\u00b2", "102"),
    ],
)
def test_not_the_same_normalised(one: str, other: str) -> None:
    assert not normalised.equivalent([one, other])[0, 1]


def test_normalising_again_changes_nothing() -> None:
    for text in ("\u201cNew  York!\u201d", "?!", " ", "*'a'*."):
        once = normalised_text(text)
        assert normalised_text(once) == once


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("18", 18, ""),
        ("18.0", 18, ""),
        ("018.", 18, ""),
        ("1,200", 1200, ""),
        ("1.200,50", Fraction("1200.5"), ""),
        ("$18", 18, ""),
        ("18 €", 18, ""),
        ("5kg", 5, ""),
        ("-$5", -5, ""),
        ("\u22125", -5, ""),
        (".5", Fraction(1, 2), ""),
        ("1/2", Fraction(1, 2), ""),
        ("-2/4", Fraction(-1, 2), ""),
        ("2/04", Fraction(1, 2), ""),
        ("\u00bd", Fraction(1, 2), ""),
        ("1\u00bd cups", Fraction(3, 2), ""),
        ("-1 1/2", Fraction(-3, 2), ""),
        ("x 1/2", Fraction(1, 2), ""),
        ("1 3/2", Fraction(3, 2), ""),
        ("1 0.5", Fraction(1, 2), ""),
        ("6.02e3", 6020, ""),
        ("1e-2", Fraction(1, 100), ""),
        ("18%", 18, "%"),
        ("18 percent", 18, "%"),
        ("18 per cent of them", 18, "%"),
        ("18 per person", 18, ""),
        ("7\u2030", 7, "\u2030"),
        ("\u0661\u0668", 18, ""),
        ("6 * 3 = 18", 18, ""),
        ("#### **18**", 18, ""),
        ("\\boxed{18}", 18, ""),
        ("She has 18 apples at 12:30.", 18, ""),
        ("9" * 400, int("9" * 400), ""),
    ],
)
def test_the_number_that_a_text_states(
    text: str, value: int | Fraction, unit: str
) -> None:
    assert stated_number(text) == (Fraction(value), unit)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "none",
        "12:30",
        "1.2.3",
        "1st",
        "1980s",
        "1/0",
        "1/00",
        "10^2",
        "10\u00b2",
        "1e9999",
        "9" * 401,
        "1/" + "9" * 401,
    ],
)
def test_texts_that_state_no_number(text: str) -> None:
    assert stated_number(text) is None


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("18.0", "The answer is 18", True),
        ("18", "18%", False),
        ("0.5", "\u00bd", True),
        ("0", "none", False),
        ("none", " none", True),
        ("none", "None", False),
        ("10^2", "10^3", False),
        ("-18", "18", False),
        ("It happened on 5/1/2024", "It happened on 3/4/2024", False),
        ("2024-05-01", "1999-07-01", False),
        ("2024-05", "1999-05", False),
        ("2024/5/1", "1999/5/1", False),
        ("5.1.2024", "6.1.2024", False),
        ("July 4, 1776", "August 2, 1776", False),
        ("July 4, 1776", "\u201cjuly 4,  1776.\u201d", True),
        ("July 1776", "August 1776", False),
        ("Sept. 3rd", "Oct. 3rd", False),
        ("the 4th of July, 1776", "the 2nd of August, 1776", False),
        ("4 July 1776", "5 July 1776", False),
        ("July 4, 1776 at 12:30", "August 2, 1776 at 12:30", False),
        ("On 5/1/2024 she had 18.", "18", True),
        ("2010-12=1998", "1998", True),
        ("It may be 18", "18", True),
        ("25 m^2", "The area is 25 m^2.", True),
        ("25 m\u00b2", "25 m^2", True),
        ("25 m^2", "25 m^3", False),
        ("9.8 m/s^2", "It is 9.80 m/s^2", True),
        ("m^2", "m^3", False),
        ("^2", "^3", False),
        ("10^5 m^2", "10^6 m^2", False),
    ],
)
def test_numeric(one: str, other: str, *, same: bool) -> None:
    assert numeric.equivalent([one, other])[0, 1] == same
