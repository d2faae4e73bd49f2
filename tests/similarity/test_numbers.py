"""The number that an answer states: LaTeX, powers, mixed numbers, signs, terms."""

from __future__ import annotations

from fractions import Fraction

import pytest

from snne_guard import score
from snne_guard.similarity import content_f1, numeric, stated_number


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


@pytest.mark.parametrize("text", ["", "12:30", "v1.2", "3 x 2^8", "9" * 500])
def test_no_number(text: str) -> None:
    assert stated_number(text) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        # A box is the result, to its matching brace; the last one counts.
        (r"\boxed{17} apples in 4 bags", 17),
        (r"First \boxed{3}, then \boxed{\dfrac{-7}{3}} of 10.", Fraction(-7, 3)),
        (r"\boxed{x = 5 \text{ cm}}", 5),
        (r"\[\boxed{25\text{ m}^2}\]", 25),
        (r"\boxed{\$1{,}250}", 1250),
        (r"\boxed{45\%}", 45),
        (r"\boxed{90^{\circ}}", 90),
        (r"\boxed 8", 8),
        # Fractions, their sign, mixed numbers.
        (r"$-\frac{3}{7}$", Fraction(-3, 7)),
        (r"\frac{3}{-7}", Fraction(-3, 7)),
        (r"\tfrac38", Fraction(3, 8)),
        (r"\frac3{8}", Fraction(3, 8)),
        (r"$2\frac{1}{2}$ hours", Fraction(5, 2)),
        ("-3 1/4", Fraction(-13, 4)),
        ("about 7\u00bd or so", Fraction(15, 2)),
        (r"so it is \frac{7}{2}.", Fraction(7, 2)),
        ("\u2212\u00bd", Fraction(-1, 2)),
        # Groups of digits.
        (r"\boxed{1{,}234{,}567}", 1234567),
        (r"45\,300 km", 45300),
        (r"45,\!300", 45300),
        ("45\u202f300", 45300),
        # Powers of ten.
        (r"$3.5 \times 10^{-3}$ m", Fraction(35, 10000)),
        (r"2 \cdot 10^5", 200000),
        ("2\u00b710\u207b\u00b3", Fraction(1, 500)),
        ("3 x 10^8", 300000000),
        ("10^6", 1000000),
        (r"\boxed{5 \times 10^{3} \text{ J}}", 5000),
        (r"\boxed{15^\circ C}", 15),
        # Signs.
        ("It was minus 40 outside.", -40),
        ("Negative 2.5", Fraction(-5, 2)),
        ("minus $5", -5),
        ("x = - 4", -4),
        ("- 4 apples", 4),
        # What repeats the steps, and what is announced.
        ("That makes 30 eggs (5 \u00d7 6).", 30),
        ("The answer is 9. I used 3 steps.", 9),
        ("So 5 * 2 = 10 dollars.\n#### 10", 10),
        (r"\sqrt{16} = 4", 4),
        ("\u03c0 is 3.14", Fraction(314, 100)),
    ],
)
def test_values(text: str, value: Fraction) -> None:
    found = stated_number(text)
    assert found is not None
    assert found[0] == value


@pytest.mark.parametrize(
    "text",
    [
        r"\boxed{5\sqrt{2}}",
        r"\boxed{\frac{\sqrt{3}}{2}}",
        r"\frac{\sqrt{3}}{2}",
        "2\u221a7",
        "6 + \u221a2",
        "sqrt(3)",
        "the square root of 3",
        r"\boxed{\frac{3\pi}{4}}",
        r"The area is $16\pi$",
        "12 pi",
        r"\boxed{7n}",
        "4y",
        r"\boxed{3x + 2}",
        r"\boxed{2^{10}}",
        "log 5",
        r"\boxed{(3, 4)}",
        r"\boxed{x < 5}",
        r"7 ways, so \boxed{\text{B}}",
    ],
)
def test_a_term_is_no_number(text: str) -> None:
    assert stated_number(text) is None


def test_a_percentage_is_not_per_mille() -> None:
    texts = ["5%", "5\u2030", "5", r"5\%", "5 per mille"]
    assert numeric(texts).tolist() == [
        [1, 0, 0, 1, 0],
        [0, 1, 0, 0, 1],
        [0, 0, 1, 0, 0],
        [1, 0, 0, 1, 0],
        [0, 1, 0, 0, 1],
    ]


def test_sets_of_numbers() -> None:
    def disagreement(*texts: str, similarity: str = "numeric") -> float:
        found = score(texts, similarity=similarity).uncertainty
        assert found is not None
        return found

    one = (r"$\frac{3}{8}$", "so 3/8", "0.375", r"\boxed{\frac38}")
    powers = tuple(rf"${n} \times 10^{{{n}}}$" for n in (3, 4, 5, 6))
    signs = ("minus 9", "9", "-9", "9 degrees")
    assert disagreement(*one) <= 0.2
    assert disagreement(*powers) >= 0.5
    assert disagreement(*signs) >= 0.5
    prices = ("$12.50", "$12.5", "$12.50", "$12.5")
    assert disagreement(*prices, similarity="content_f1") <= 0.2
    versions = ("Python 3.1", "Python 3.10", "Python 3.1", "Python 3.10")
    assert disagreement(*versions, similarity="content_f1") >= 0.5


def test_a_word_for_the_sign_is_the_sign() -> None:
    texts = ["It was minus 5 degrees", "It was -5 degrees", "It was 5 degrees"]
    matrix = content_f1(texts)
    assert matrix[0, 1] == 1
    assert matrix[0, 2] <= 0.5
