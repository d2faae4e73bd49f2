"""Texts with the same words: marks of prose do not count, other symbols do."""

from __future__ import annotations

import pytest

from snne_guard import score
from snne_guard.similarity import content_f1, unicode_tokens
from tests.similarity.test_linear import SMALL, UNITS, seconds

OTHER_SYMBOLS = [
    # Negations.
    ("while (!done) wait()", "while (done) wait()"),
    ("!admin", "admin"),
    ("if ! grep foo bar", "if grep foo bar"),
    ("~mask", "mask"),
    ("\u00acp", "p"),
    # Arguments that are marks, and commands.
    ("ls /", "ls"),
    ("git add .", "git add"),
    ("cd ..", "cd"),
    ("cd -", "cd"),
    ("[[ ! -e x ]]", "[[ -e x ]]"),
    ("rm *", "rm"),
    ("mv x y; z", "mv x y z"),
    # Brackets.
    ("3 * (4 + 2)", "3 * 4 + 2"),
    ("(1, 5)", "[1, 5]"),
    ("(a, b]", "(a, b)"),
    ("f(x)", "f x"),
    # Signs of numbers.
    ("12\u2030", "12"),
    ("12\u2030", "12%"),
    ("5! outcomes", "5 outcomes"),
    ("n! ways", "n ways"),
    ("7!", "7"),
    ("7 !", "7"),
    ("7!.", "7."),
    ("(n-1)!", "(n-1)"),
    ("It is (2n)! ways", "It is (2n) ways"),
    ("6\u2033", "6\u2032"),
    ("6'", '6"'),
    ("$5", "\u20ac5"),
    ("x = -3", "x = 3"),
    # Charges and ratings.
    ("OH-", "OH"),
    ("The ion is Cl-.", "The ion is Cl."),
    ("rated BBB-, down", "rated BBB, down"),
    # Others.
    (":q!", ":q"),
    ("echo $?", "echo $!"),
    (".*?", ".*"),
    ("g'' = 1", "g' = 1"),
    ("# restart nginx", "restart nginx"),
    ("#general", "general"),
    ("-- drop it", "drop it"),
    (":name", "name"),
    ("where id = ?id", "where id = id"),
    ("return &x", "return *x"),
    ("a && b", "a || b"),
    ("a \u2227 b", "a \u2228 b"),
    ("colou?r", "colour"),
    ("foo.bar", "foo bar"),
    ("to the left -> up; stay", "to the left -> up stay"),
    ('here"there', "here there"),
]
PROSE = [
    (r"So it is $\boxed{12}$.", "So it is 12"),
    ("Well, it is gold!", "Well it is gold"),
    ("(in Rome)", "in Rome"),
    ("(in 1990)!", "in 1990"),
    ("pre- and post-war", "pre and post war"),
    ("Smith (John)", "Smith John"),
    ("pepper; salt", "pepper, salt"),
    ("the ship 'Argo'", "the ship Argo"),
    ("the ship \u201cArgo\u201d", "the ship Argo"),
    ("dogs' bowls", "dogs bowls"),
    ("Really?", "Really"),
    ("Oui !", "Oui"),
    ("Yahoo! was first", "Yahoo was first"),
    ("in 1990 (or 1991)", "in 1990 or 1991"),
    ("\u00bfQui\u00e9n?", "Qui\u00e9n"),
    ("\u00abParis\u00bb", "Paris"),
    ("\u300c\u6771\u4eac\u300d\u3002", "\u6771\u4eac"),
    ("\u0628\u0627\u0631\u064a\u0633\u061f", "\u0628\u0627\u0631\u064a\u0633"),
    ("coffee \u2014 black", "coffee black"),
    ("well-known", "well known"),
    ("J.R.R. Tolkien", "J R R Tolkien"),
    ("St. Louis", "St Louis"),
    ("**Answer:** Paris", "Answer: Paris"),
    ("__Lead__", "Lead"),
    ("`Lead`", "Lead"),
    ("# Lead", "Lead"),
    ("\u2022 Lead", "Lead"),
    (r"\(x\)", "x"),
    ("4 \u00d7 4", "4*4"),
    ("4\u00b74", "4 * 4"),
    ("about $5", "about 5 $"),
    ("It is $5.", "It is $5"),
    ("It's 42!", "It's 42"),
    ('He said, "yes."', "He said yes"),
    ('in "1990" or so', "in 1990 or so"),
    ("Is it gin?, he asked", "Is it gin, he asked"),
    ("American Express Company: Chase", "American Express Company Chase"),
    ("a) Rome\nb) Bonn", "a Rome\nb Bonn"),
]


@pytest.mark.parametrize(("one", "other"), OTHER_SYMBOLS)
def test_another_symbol_is_another_answer(one: str, other: str) -> None:
    matrix = content_f1([one, other, f" {one}\n"])
    assert matrix[0, 1] == matrix[1, 0] <= 0.2
    assert matrix[0, 2] == 1


@pytest.mark.parametrize(("one", "other"), PROSE)
def test_marks_of_prose_do_not_count(one: str, other: str) -> None:
    assert content_f1([one, other])[0, 1] == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [("It is ash.", "It is ash"), ("red  ash", "red ash"), ("Red Ash!", "red ash")],
)
def test_marks_at_the_end_case_and_blanks_do_not_count(one: str, other: str) -> None:
    assert content_f1([one, other])[0, 1] == 1


def test_a_set_of_two_commands() -> None:
    texts = ["rm -r tmp /", "rm -r tmp", "rm -r tmp /", "rm -r tmp"]
    found = score(texts).uncertainty
    assert found is not None
    assert found >= 0.5


@pytest.mark.parametrize(
    "unit", [*UNITS, "!", "a! ", "(a) ", "*a* ", "'a' ", ". ", "\n"]
)
def test_time_is_linear(unit: str) -> None:
    def read(text: str) -> None:
        unicode_tokens(f"5 a{text}5")

    small = min(seconds(read, unit * (SMALL // 4 // len(unit))) for _ in range(2))
    assert seconds(read, unit * (SMALL // len(unit))) < 9 * small + 0.05
