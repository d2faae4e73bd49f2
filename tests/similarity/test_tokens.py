"""What the two tokenizers see in a text."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rouge_score.tokenize import tokenize as rouge_score_tokens

from snne_guard.errors import ConfigurationError
from snne_guard.similarity import rouge_tokens, unicode_tokens
from snne_guard.similarity._grammar import scan
from snne_guard.similarity._unicode import mark, normalise, prepare
from snne_guard.similarity.tokens import tokenizer

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=30)

CASES: list[tuple[str, str]] = [
    # words
    ("a      b \n\n  c", "a b c"),
    ("1      -2", "1 -2"),
    ("5\n% \u00e95\n%", "5 % \u00e95 %"),
    (
        "Don't stop; it's a well-known snake_case!",
        "don t stop it s a well known snake case",
    ),
    ("Don\u2019t \u2014 \u201cnever\u201d", "don t never"),
    ("b2b 4th 1980s covid-19", "b2b 4th 1980s covid 19"),
    ("S\u00e3o Paulo", "s\u00e3o paulo"),
    ("Stra\u00dfe \ufb01n \uff21\uff22", "strasse fin ab"),
    ("\u212a \u0130", "k i\u0307"),
    ("\ud800x", "x"),
    ("a\x02b \x03c", "a b c"),
    ("\u00e9\x04\x02", "\u00e9"),
    # scripts without spaces, marks with their letter
    ("\u6211love\u4f60", "\u6211 love \u4f60"),
    ("\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35", "\u0e2a \u0e27\u0e31 \u0e2a \u0e14\u0e35"),
    ("\u0e81\u0eb4\u0e99", "\u0e81\u0eb4 \u0e99"),
    ("\u1780\u17b6\u179a", "\u1780\u17b6 \u179a"),
    ("\u1019\u103c\u1014\u103a", "\u1019\u103c \u1014\u103a"),
    (
        "\u6771\u4eac\u3067\u30ab\u30ec\u30fc",
        "\u6771 \u4eac \u3067 \u30ab \u30ec \u30fc",
    ),
    ("\ud55c\uad6d\uc5b4 \ud14d\uc2a4\ud2b8", "\ud55c\uad6d\uc5b4 \ud14d\uc2a4\ud2b8"),
    (
        "\u0939\u093f\u0928\u094d\u0926\u0940 \u092e\u0947\u0902",
        "\u0939\u093f\u0928\u094d\u0926\u0940 \u092e\u0947\u0902",
    ),
    ("\u0301", "\u0301"),
    ("0.3\u0305", "0.3 \u0305"),
    # numbers with grouping and decimals
    ("1,200 1,234,567.50 1,00,000", "1200 1234567.50 100000"),
    (
        "1\u00a0200 1\u202f200\u202f000 1\u2009200 2024\u00a0500",
        "1200 1200000 1200 2024 500",
    ),
    ("1'200 1\u2019200 1_200", "1200 1200 1200"),
    ("1.200.000 1.234,56 1.200", "1200000 1234.56 1.200"),
    ("1.5 1,5 .5 -.5 1. 1..5", "1.5 1.5 0.5 -0.5 1 1 5"),
    ("(3,4) [1,2] (-3,4) (3, 4) {0,5}", "3 4 1 2 -3 4 3 4 0 5"),
    ("2,3,5,7 1,2,345 1,200,30", "2 3 5 7 1 2 345 1 200 30"),
    ("1.2.3 192.168.1.1 6.02e23 1e-5", "1.2.3 192.168.1.1 6.02e23 1e-5"),
    ("v1.2 python3.11. 1.\u20135. A1.", "v1.2 python3.11 1 5 a1"),
    ("12:30pm 16:9 12:30:05.5", "12:30 pm 16:9 12:30:05.5"),
    ("1/2 \u00bd 1\u00bd 2023/24 1.5/2", "1/2 1/2 1 1/2 2023/24 1.5 / 2"),
    ("2024-05-01 2024/05/01 5/1/2024", "2024 05 01 2024 05 01 5 1 2024"),
    ("5kg 10 km \u2460\u2461", "5 kg 10 km 1 2"),
    (
        "\u0663\u066b\u0665 \u0661\u066c\u0662\u0660\u0660 \u0665\u066a \uff11\uff12",
        "3.5 1200 5% 12",
    ),
    ("\uff15\uff0c\uff16 5\uff0c6", "5.6 5 6"),
    ("50% 50 % 5\u2030 5 \u2030 100%.", "50% 50% 5\u2030 5\u2030 100%"),
    # numbers with signs, and ranges
    ("-5 \u22125 \u20135 (-5) =-5 '-5' **-5**", "-5 -5 -5 -5 = -5 -5 -5"),
    (
        "3-5 3\u20135 3 - 5 5%-10% 5\u00b0-9\u00b0 (1)-2",
        "3 5 3 5 3 5 5% 10% 5 \u00b0 9 \u00b0 1 2",
    ),
    ("\u22125\u2013\u22123 5--3 5'-6'", "-5 -3 5 3 5 6"),
    ("3 -5 x-5 +5 +-5", "3 -5 x 5 + 5 + -5"),
    (
        "\u6e29\u5ea6\u4e3a-5\u5ea6 2010\u5e74-2015\u5e74",
        "\u6e29 \u5ea6 \u4e3a -5 \u5ea6 2010 \u5e74 2015 \u5e74",
    ),
    ("-x \u2212\u221e -(a) ~-5", "- x - \u221e - a \u2248 -5"),
    # currencies
    ("$5, 6 $", "$ 5 $ 6"),
    ("5$", "$ 5"),
    ("\u20ac5 5\u20ac 5 \u20ac", "\u20ac 5 \u20ac 5 \u20ac 5"),
    ("-$5, $-5, -\u20ac5, \u22125 \u20ac", "$ -5 $ -5 \u20ac -5 \u20ac -5"),
    (
        "$5-$10 5\u20ac-10\u20ac 5-10 \u20ac 5 $10",
        "$ 5 $ 10 \u20ac 5 \u20ac 10 \u20ac 5 10 5 $ 10",
    ),
    ("US$1,200 \u00a35 \uffe55", "us $ 1200 \u00a3 5 \u00a5 5"),
    ("$x^2$ is $5 and $6", "x ^ 2 is $ 5 and $ 6"),
    # symbols
    ("C++ C# C F#. C++11 A+ a+b", "c++ c# c f# c++ 11 a+ a + b"),
    ("O- O\u2212 AB- is Cl\u2212 NO3-", "o- o- ab- is cl- no3-"),
    ("x- and y-axis, T- or B-cells", "x and y axis t or b cells"),
    ("Na\u207a SO\u2084\u00b2\u207b Ca\u00b2\u207a", "na+ so4 ^ 2 - ca ^ 2 +"),
    (
        "x \u2265 5 x>=5 x <= 5 a != b a == b",
        "x \u2265 5 x \u2265 5 x \u2264 5 a \u2260 b a = b",
    ),
    ("< > = \u2260 \u00b1 +/- \u2248 ~", "< > = \u2260 \u00b1 \u00b1 \u2248 \u2248"),
    (
        "10\u2076 10^6 10\u207b\u2076 10**-6 (x)\u00b2",
        "10 ^ 6 10 ^ 6 10 ^ -6 10 ^ -6 x ^ 2",
    ),
    ("H\u2082O log\u20828 m\u00b2", "h2o log2 8 m ^ 2"),
    (
        "2*3 2 * 3 2\u00b73 2\u22c53 2\u00d73",
        "2 \u00d7 3 2 \u00d7 3 2 \u00d7 3 2 \u00d7 3 2 \u00d7 3",
    ),
    ("1/x x/2 5 / 3 km/h and/or (a)/2", "1 / x x / 2 5 / 3 km h and or a / 2"),
    (
        "25 \u00b0C 25\u2103 77 \u00b0F 5\u2032",
        "25 \u00b0 c 25 \u00b0 c 77 \u00b0 f 5 \u2032",
    ),
    ("\u00acp !p wow! p && q p || q |x|", "\u00ac p ! p wow p && q p || q | x |"),
    ("a->b a\u2192b", "a \u2192 b a \u2192 b"),
    ("**bold** *it* `x` | a | # Title ==== #1", "bold it x a title # 1"),
    ("ok \U0001f44d\U0001f468\u200d\U0001f680", "ok \U0001f44d \U0001f468 \U0001f680"),
    (
        "\U0001f1eb\U0001f1f7\U0001f1ee\U0001f1f9",
        "\U0001f1eb\U0001f1f7 \U0001f1ee\U0001f1f9",
    ),
    ("\u2460\ufe0f 1\ufe0f\u20e3 x\u00ady", "1 1 xy"),
    ("\u0378", "\u0378"),
    # nothing but punctuation
    ("", ""),
    (" \n\u00a0", ""),
    ("...", "..."),
    (": )", ":)"),
    ("\u3002\u3002 ", "\u3002\u3002"),
]


@pytest.mark.parametrize(("text", "tokens"), CASES)
def test_unicode_tokens(text: str, tokens: str) -> None:
    assert unicode_tokens(text) == tokens.split()


def test_characters_of_one_text_do_not_stay_for_the_next() -> None:
    many = "".join(map(chr, range(0xA0, 0x250)))
    assert unicode_tokens("\u00bd \u20ac5") == ["1/2", "\u20ac", "5"]
    unicode_tokens(many)
    assert unicode_tokens("\u00bd \u20ac5") == ["1/2", "\u20ac", "5"]


def test_rouge_tokens_are_rouge_scores_on_every_character() -> None:
    for start in range(0, sys.maxunicode + 1, 4096):
        text = "".join(f"a{chr(code)}b " for code in range(start, start + 4096))
        assert rouge_tokens(text) == rouge_score_tokens(text, None)


@given(ANY_TEXT)
def test_rouge_tokens_are_rouge_scores_on_any_text(text: str) -> None:
    assert rouge_tokens(text) == rouge_score_tokens(text, None)


PLAIN_ENGLISH = st.text(
    st.sampled_from("abcdefghijklmnopqrstuvwxyzABCXYZ    .,;:?\"'()\n_"), max_size=60
)


@given(PLAIN_ENGLISH.filter(rouge_tokens))
def test_both_tokenizers_agree_on_plain_english(text: str) -> None:
    assert unicode_tokens(text) == rouge_tokens(text)


@pytest.mark.parametrize(
    "text",
    [
        "I don't know; it's a well-known, so-called 'rule of thumb'!",
        "The capital (of France) is Paris -- not Lyon - really?",
        "state-of-the-art e-mail; T-shirt, and/or \u2018quoted\u2019 words\u2026",
        "Rock'n'roll \u2013 he said: \u201cOh!\u201d",
    ],
)
def test_both_tokenizers_agree_on_english_punctuation(text: str) -> None:
    assert unicode_tokens(text) == rouge_tokens(text)


@settings(max_examples=500)
@given(
    st.text(st.characters(max_codepoint=127), max_size=30)
    | st.text("aB0./()-!&|_ '", max_size=8)
)
def test_the_short_way_through_ascii_is_the_long_way(text: str) -> None:
    long_way = scan(mark(prepare(text)))
    assert unicode_tokens(text) == (
        long_way or ["".join(text.split())] * bool(text.split())
    )


@given(ANY_TEXT)
def test_normalisation_is_idempotent_and_canonical(text: str) -> None:
    once = normalise(text)
    assert normalise(once) == once
    assert normalise(unicodedata.normalize("NFD", text)) == once


@given(ANY_TEXT)
def test_only_a_blank_text_has_no_tokens(text: str) -> None:
    tokens = unicode_tokens(text)
    assert all(tokens)
    assert bool(tokens) == bool(prepare(text).strip())


def test_unknown_tokenizer() -> None:
    with pytest.raises(ConfigurationError, match=r"one of \['rouge', 'unicode'\], got"):
        tokenizer("bert")
    with pytest.raises(ConfigurationError):
        tokenizer([])  # type: ignore[arg-type]
