"""One side of a pair: the answer whole, and as much of the question as fits."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from snne_guard.similarity._nli_texts import defused, side

WORDS = st.lists(st.sampled_from(["a", "bb", "ccc"]), max_size=9).map(" ".join)


def words(text: str) -> int:
    return len(text.split())


@given(WORDS, WORDS, st.integers(0, 20))
def test_the_question_loses_its_beginning(q: str, answer: str, room: int) -> None:
    found = side(q, answer, room=room, count=words)
    whole = f"{q} {answer}"
    assert found == whole or whole.endswith(f" {found}")
    assert found.endswith(answer)
    if words(answer) <= room:
        assert words(found) == min(words(whole), room)
    else:
        assert found == answer


def test_long_white_space_and_no_question() -> None:
    assert side("a  \n b", "c", room=2, count=words) == "b c"
    assert side(None, "c", room=0, count=words) == "c"


def test_marks_are_broken_wherever_they_stand() -> None:
    marks = ["<s>", "</s>", "[SEP]", "a"]
    assert defused("a<s></s>[SEP", marks) == "a< s>< /s>[SEP"
    assert defused("plain", marks) == "plain"
