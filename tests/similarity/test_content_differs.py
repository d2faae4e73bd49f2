"""What content F1 takes for another answer although it has all words of the first."""

from __future__ import annotations

import pytest

from snne_guard.similarity import content_f1


def alike(one: str, other: str, question: str | None = None) -> float:
    return float(content_f1([one, other], question=question)[0, 1])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("the Nile", "the White Nile"),
        ("the Nile", "the Nile's delta"),
        ("the Nile", "the delta of the Nile"),
        ("the Nile", "the Nile and the Congo"),
        ("the Nile", "the Congo, the Niger and the Nile"),
        ("It is near the Nile", "It is by the Nile"),
        ("It is a river", "It was a river"),
        ("He saw it", "She saw it"),
        ("He swam", "Perhaps he swam"),
        ("they follow us", "they follow the US"),
        ("Rome defeated Carthage", "Rome was defeated by Carthage"),
        ("big dogs chase small cats", "small dogs chase big cats"),
    ],
)
def test_such_answers_are_a_half_alike_at_most(one: str, other: str) -> None:
    assert 0.25 < alike(one, other) <= 0.5


@pytest.mark.parametrize(
    ("question", "one", "other"),
    [
        # What stands apart is no part of a name, and grammar is none.
        (None, "the Nile", "the Nile, which is long"),
        (None, "the Nile", "the Nile (Africa)"),
        (None, "Ann Lee won", "Ann Lee, the sister of Ann Ray, won"),
        (None, "the Nile", "the Nile. It is in Africa"),
        (None, "the Nile", "the Nile is long and wide"),
        (None, "the Nile", "the Nile, and it is long"),
        (None, "Paris, I think", "Paris"),
        # Nor are words of the question, or a verb before them.
        ("Which river is it?", "the Nile", "the Nile river"),
        ("Who is the author of Emma?", "Jane Austen", "Jane Austen wrote Emma"),
        # A number with what it counts.
        (None, "12", "12 rivers"),
        # The same in the passive voice, and by the same word in both.
        (None, "It was made by Ford", "Ford"),
        (None, "It is in Rome", "It is in Rome in Italy"),
        ("Was it perhaps Rome?", "Rome", "perhaps Rome"),
        # What a word changes is not what the other says.
        ("Is it Paris?", "Paris", "Paris, only on foot"),
        # Titles are written either way.
        (None, "Gone With The Wind", "Gone with the Wind"),
    ],
)
def test_such_answers_are_more_alike(
    question: str | None, one: str, other: str
) -> None:
    assert alike(one, other, question) > 0.5


def test_a_word_more_behind_a_name_may_be_a_number_or_a_name() -> None:
    asked = "Which mission landed?"
    assert alike("Apollo", "Apollo 11 landed", asked) <= 0.5
    assert alike("Apollo", "Apollo Soyuz landed", asked) <= 0.5
    assert alike("Saturn", "Saturn never landed", asked) <= 0.5


def test_where_words_have_no_spaces_between_them_a_phrase_has_no_end() -> None:
    assert alike("東京", "東京です") > 0.5


def test_a_word_of_the_question_may_stand_in_the_other_order() -> None:
    asked = "Did the chicken come before the egg?"
    one, other = "The chicken came before the egg", "The egg came before the chicken"
    assert alike(one, other, asked) <= 0.5
    assert alike("Lima is the capital", "the capital is Lima", "The capital?") > 0.5
