"""What the two tokenizers see in a text."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rouge_score.tokenize import tokenize as rouge_score_tokens

from snne_guard.similarity.forms import compatible
from snne_guard.similarity.tokens import rouge_tokens, unicode_tokens

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=30)

CASES: list[tuple[str, str]] = [
    # words
    ("a      b \n\n  c", "a b c"),
    ("Don't stop; it's a well-known fact!", "don t stop it s a well known fact"),
    ("Stra\u00dfe \ufb01n \uff21\uff22", "strasse fin ab"),
    # scripts without spaces, marks with their letter
    ("\u6211love\u4f60", "\u6211 love \u4f60"),
    ("\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35", "\u0e2a \u0e27\u0e31 \u0e2a \u0e14\u0e35"),
    ("\u6771\u4eac\u3067\u30ab", "\u6771 \u4eac \u3067 \u30ab"),
    ("\ud55c\uad6d\uc5b4 \ud14d\uc2a4\ud2b8", "\ud55c\uad6d\uc5b4 \ud14d\uc2a4\ud2b8"),
    # numbers
    ("1,200 1,234,567.50 1,00,000", "1200 1234567.50 100000"),
    ("1\u00a0200 1\u202f200\u202f000 1\u2009200", "1200 1200000 1200"),
    ("1 200, 12 345 678, in 1990 200 came", "1200 12345678 in 1990 200 came"),
    ("5.0 5.000", "5 5.000"),
    ("1'200 1\u2019200 1.200.000 1.234,56 1.200", "1200 1200 1200000 1234.56 1.200"),
    ("1.5 1,5 .5 -.5 1. 1..5", "1.5 1.5 0.5 -0.5 1 1 5"),
    ("2,3,5,7 1,2,345 1,200,30", "2 3 5 7 1 2 345 1 200 30"),
    ("5.0 5.00% 1.2.0 1.20 \u20ac7.50", "5 5% 1.2.0 1.2 7.5 \u20ac"),
    ("Go 1.20, version 3.10; about 3.10 1.250", "go 1.20 version 3.10 about 3.1 1.250"),
    ("minus 5, negative 2.5; 7 minus 2", "-5 -2.5 7 minus 2"),
    ("v1.2 python3.11. A1.", "v1.2 python3.11 a1"),
    ("12:30pm 16:9 1/2 \u00bd 1\u00bd 2023/24", "12:30 pm 16:9 1/2 1/2 1 1/2 2023/24"),
    ("2024-05-01 2024/05/01 5/1/2024", "2024 05 01 2024 05 01 5 1 2024"),
    ("\u0663 \uff11\uff12", "3 12"),
    ("50% 50 % 100%. 5 percent", "50% 50% 100% 5%"),
    ("-5 \u22125 \u20135 (-5)", "-5 -5 -5 -5"),
    ("6e23 2.5E-3", "6e23 2.5e-3"),
    ("3-5 3\u20135 3 - 5 5%-10%", "3 5 3 5 3 5 5% 10%"),
    # currencies stand behind their number
    ("$5, 6 $", "5 $ 6 $"),
    ("\u20ac5, 5\u20ac, 5 \u20ac", "5 \u20ac 5 \u20ac 5 \u20ac"),
    ("-$5, $-5", "-5 $ -5 $"),
    ("US$1,200, \u00a35, \uffe55", "us 1200 $ 5 \u00a3 5 \u00a5"),
    ("$5 million, 5 million $", "5 million $ 5 million $"),
    # symbols
    ("C++ C# C F#. a+b", "c++ c# c f# a + b"),
    (
        "x \u2265 5 x>=5 x <= 5 a != b a == b",
        "x \u2265 5 x \u2265 5 x \u2264 5 a \u2260 b a = b",
    ),
    ("10\u2076 10^6 m\u00b2", "10 ^ 6 10 ^ 6 m ^ 2"),
    ("6*7 = 6 \u00d7 7", "6 * 7 = 6 * 7"),
    ("a_b -> c", "a _ b \u2192 c"),
    ("km/h and/or x- and y-axis", "km / h and / or x and y axis"),
    ("(in) likely? [sic]", "in likely [ sic ]"),
    ("x = (a + b) - c", "x = ( a + b ) - c"),
    # code: options and addresses, as written
    ("It is ln(X+1).", "it is ln ( x + 1 )"),
    ("rm -rf -V ./Build/*", "rm -rf -V . / build / *"),
    ("to A.Bo+c@acme.com, please", "to A.Bo+c@acme.com please"),
    ("in [0,1) or", "in [ 0 1 ) or"),
    ("option(s), a source[1]", "option ( s ) a source [ 1 ]"),
    ("# Title\n**bold** *it* `x` $y$", "title bold it x y"),
    # nothing but punctuation
    (" \n\u00a0", ""),
    ("? !", "?!"),
    (": )", ")"),
]


@pytest.mark.parametrize(("text", "tokens"), CASES)
def test_unicode_tokens(text: str, tokens: str) -> None:
    assert unicode_tokens(text) == tokens.split()


def test_a_block_of_code_is_one_token() -> None:
    code = ["use", "x = 1\n  y", "ok"]
    assert unicode_tokens("Use:\n```python\nx = 1\n  y\n```\nok") == code
    assert unicode_tokens("Use:\n```\nx = 1\n  y\n```\nok") == code


def test_rouge_tokens_are_rouge_scores_on_every_character() -> None:
    for start in range(0, sys.maxunicode + 1, 4096):
        text = "".join(f"a{chr(code)}b " for code in range(start, start + 4096))
        assert rouge_tokens(text) == rouge_score_tokens(text, None)


PLAIN_ENGLISH = st.lists(
    st.sampled_from(
        ["a", "bc", "Xyz", "it's", '"ab', "ab?", "de.", "fg,", "hi!\n", "J."]
    ),
    max_size=20,
).map(" ".join)


@given(PLAIN_ENGLISH.filter(rouge_tokens))
def test_both_tokenizers_agree_on_plain_english(text: str) -> None:
    assert unicode_tokens(text) == rouge_tokens(text)


AROUND = st.lists(
    st.sampled_from(
        [
            *(
                "5",
                "-5",
                "1 200",
                "minus",
                "7.50",
                "Node",
                "percent",
                "%",
                "$5",
                "=",
                "(",
            ),
            *(
                "(a)",
                "million",
                "C++",
                "-v",
                "a@b.com",
                "caf\u00e9",
                "\u6771\u4eac",
                "a-b",
            ),
            *("\n", ".", "'", '"', "5th", "\x01", "`x`", "```\nx = 1\n```", "+"),
        ]
    ),
    max_size=5,
).map(" ".join)
LONG = "river has a harbour, and ships of many towns come to it, which are old"


@given(before=AROUND, after=AROUND, glue=st.sampled_from(["", " ", "\n", "  "]))
def test_a_long_stretch_of_words_is_cut_as_a_short_one(
    before: str, after: str, glue: str
) -> None:
    ends = f"{before}{glue}the old zyx in spring{glue}{after}"
    short = unicode_tokens(ends)
    place = short.index("zyx")
    expected = [*short[:place], *LONG.replace(",", "").split(), *short[place + 1 :]]
    assert unicode_tokens(ends.replace("zyx", LONG)) == expected


@given(ANY_TEXT)
def test_only_a_blank_text_has_no_tokens(text: str) -> None:
    tokens = unicode_tokens(text)
    assert all(tokens)
    assert bool(tokens) == bool(text.strip())


@given(ANY_TEXT)
def test_composed_and_decomposed_are_the_same(text: str) -> None:
    decomposed = unicodedata.normalize("NFD", text)
    assert compatible(decomposed) == compatible(
        unicodedata.normalize("NFC", decomposed)
    )
