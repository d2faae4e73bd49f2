"""Numbers by value: what ends an answer, what is the same, and what is not."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snne_guard.errors import ConfigurationError
from snne_guard.evaluation import GRADERS, final_number, numeric_match
from tests.support.grading import answered

SAME = [
    ("18", "18"),
    ("18.0", "18"),
    ("18.", "18"),
    ("018", "18"),
    ("+18", "18"),
    ("1,200", "1200"),
    ("1.200.000", "1200000"),
    ("1 200", "1200"),
    ("1\u202f200,5", "1200.5"),
    ("1200.00", "1,200"),
    ("$1,200.50", "1200.5"),
    ("\u20ac3,50", "3.5"),
    ("3.5e3", "3500"),
    ("-5", "\u22125"),
    ("-5", "(-5)"),
    ("-$5", "-5"),
    ("$-5", "-5"),
    ("- \u00a35", "-5"),
    ("18 apples", "18"),
    ("18kg", "18"),
    ("about 18!", "18"),
    ("1/2", "0.5"),
    ("\u00bd", "0.5"),
    ("1 1/2", "1.5"),
    ("1\u00bd", "1.5"),
    ("-\u00bd", "-0.5"),
    ("\u2212\u00be cups", "-3/4"),
    ("\u2154", "2/3"),
    ("1.5 \u00d7 10^6", "1,500,000"),
    ("2*10^-3", "0.002"),
    ("$3 \\times 10^{\u22122}$", "0.03"),
    ("4 x 10^+2 people", "400"),
    ("\\frac{3}{4}", "0.75"),
    ("$\\dfrac{3}{4}$", "3/4"),
    ("18%", "18"),
    ("18%", "18 percent"),
    ("18%", "0.18"),
    ("18\\%", "18%"),
    ("5\u2030", "0.005"),
    ("\uff15", "5"),
    ("\u6771\u4eac 5 \u500b", "5"),
    ("0", "0.0"),
    ("-0", "0"),
    ("0.333333333", "1/3"),
    ("7 * 12 = 84", "84"),
    ("$ 491 - $ 216 = $ 275", "275"),
    ("She has 16 - 3 - 4 = <<16-3-4=9>>9 eggs.\n#### 9", "9"),
    ("#### 1,200\n", "1200"),
    ("The answer is 42.", "42"),
    ("The answer is 42, which is twice 21.", "42"),
    ("The final answer is **42** because 40 + 2 is that", "42"),
    ("**Answer:** 42 apples (7 more than 35)", "42"),
    ("Answer:\n42", "42"),
    ("answer = 6 * 7 = 42; checked 3 times", "42"),
    ("So the answer was -1/2. I tried 3 ways.", "-0.5"),
    ("The answer is 7. No: the answer is 8 in the end", "8"),
    ("The answer is unknown to 3 of us", "3"),
    ("\\boxed{42} is what 2 people found", "42"),
    ("$\\boxed{\\frac{3}{4}}$", "0.75"),
    ("1" + "0" * 300, "1e300"),
]
DIFFERENT = [
    ("18", "19"),
    ("18.0", "180"),
    ("-5", "5"),
    ("5", "0.5"),
    ("1,200", "1.2"),
    ("33.33", "33.3333"),
    ("1/2", "2"),
    ("-\u00bd", "\u00bd"),
    ("3 x 10", "3e10"),
    ("50%", "5"),
    ("18%", "0.018"),
    ("18%", "18\u2030"),
    ("8 birds and 2 storks", "10"),
    ("1e300", "1e301"),
    ("0.0000001", "0"),
    ("The answer is 5", "4"),
    ("5 000", "0"),
]
NO_NUMBER = [
    "",
    "eighteen",
    "?!",
    "\u6771\u4eac",
    "10:30",
    "version 1.2.3",
    "5th",
    "x^2",
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_the_same_in_both_directions(one: str, other: str) -> None:
    assert numeric_match(one, [other]) == 1.0
    assert numeric_match(other, [one]) == 1.0


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_not_the_same_in_either_direction(one: str, other: str) -> None:
    assert numeric_match(one, [other]) == 0.0
    assert numeric_match(other, [one]) == 0.0


@pytest.mark.parametrize("text", NO_NUMBER)
def test_texts_without_a_number(text: str) -> None:
    assert final_number(text) is None
    assert numeric_match(text, ["18"]) == 0.0
    assert numeric_match("18", [text]) is None
    assert numeric_match("18", [text, "18"]) == 1.0


def test_any_reference_will_do() -> None:
    assert numeric_match("18", ["17", "18.0"]) == 1.0


@pytest.mark.parametrize(
    ("answer", "reference", "tolerance", "expected"),
    [
        ("33.3", "33.333333", 0.01, 1.0),
        ("33.3", "33.333333", 0.0001, 0.0),
        ("101", "100", 0.01, 1.0),
        ("99", "100", 0.01, 1.0),
        ("98.9", "100", 0.01, 0.0),
        ("-101", "-100", 0.01, 1.0),
        ("0.1", "0", 0.5, 0.0),
        ("1.53883e+06", "1538830.9", 1e-6, 1.0),
        ("18.000001", "18", 0, 0.0),
        ("0.1", "1/10", 0, 1.0),
    ],
)
def test_tolerance(
    answer: str, reference: str, tolerance: float, expected: float
) -> None:
    assert numeric_match(answer, [reference], tolerance=tolerance) == expected
    grade = GRADERS["numeric"](tolerance=tolerance)(answered(answer, reference))
    assert grade is not None
    assert grade.quality == expected


@pytest.mark.parametrize("tolerance", [-0.1, 1, float("nan")])
def test_a_tolerance_that_makes_no_sense(tolerance: float) -> None:
    with pytest.raises(ConfigurationError, match=r"tolerance in \[0, 1\)"):
        GRADERS["numeric"](tolerance=tolerance)
    with pytest.raises(ConfigurationError, match=r"tolerance in \[0, 1\)"):
        numeric_match("1", ["1"], tolerance=tolerance)


def test_the_tolerance_is_in_the_name() -> None:
    assert GRADERS["numeric"]().name == "numeric"
    assert GRADERS["numeric"](tolerance=0.01).name == "numeric[tolerance=0.01]"


def test_the_exact_value_is_kept() -> None:
    assert final_number("0.1") == (Fraction(1, 10), "")
    assert final_number("answer: 18 %") == (Fraction(18), "%")


def test_a_long_answer_without_a_number_costs_no_time() -> None:
    assert final_number("the answer is none of it " * 20_000) is None


WAYS = (
    "{0}",
    "{0:,}",
    "{0}.0",
    "{0:,}.00",
    "{0:e}",
    "${0}",
    "{0} eggs",
    "3 + 4 is less. The answer is {0:,}, as 1 + 1 shows.",
    "12 - 5 = 7\n#### {0}",
    "\\boxed{{{0}}}",
    "= {0}.",
)


@given(
    st.integers(-999_999, 999_999),
    st.integers(-999_999, 999_999),
    st.sampled_from(WAYS),
    st.sampled_from(WAYS),
)
def test_a_number_is_itself_in_every_way_of_writing(
    one: int, other: int, way: str, another: str
) -> None:
    assert final_number(way.format(one)) == (Fraction(one), "")
    expected = float(one == other)
    assert numeric_match(way.format(one), [another.format(other)]) == expected
