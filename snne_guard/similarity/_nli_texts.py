"""How a question and an answer become one side of a pair."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

__all__ = ["cut_answer", "defused", "look_alike", "side", "spelled_alike"]


def cut_answer(answer: str, last_characters: int | None) -> str:
    """Return the end of an answer, all of it where no length is given.

    Example:
        >>> cut_answer("It is Paris", 5), cut_answer("It is Paris", None)
        ('Paris', 'It is Paris')
    """
    return answer if last_characters is None else answer[-last_characters:]


def defused(text: str, marks: Iterable[str]) -> str:
    """Return a text in which no mark of a tokenizer is left, but broken by a space.

    Else an answer could end itself and go on as the other side of the pair.

    Example:
        >>> defused("yes[SEP]no", ["[SEP]", "[CLS]"])
        'yes[ SEP]no'
    """
    long = sorted((mark for mark in marks if len(mark) > 1), key=len, reverse=True)
    if not any(mark in text for mark in long):
        return text
    either = re.compile("|".join(map(re.escape, long)))
    return either.sub(lambda found: f"{found[0][0]} {found[0][1:]}", text)


def side(
    question: str | None, answer: str, *, room: int, count: Callable[[str], int]
) -> str:
    """Return the question and the answer in one text that fits, the answer whole.

    Where both do not fit, the question loses its beginning, at a space: an answer
    that is cut off would be like any other one.

    Args:
        question: What was asked, None to leave it out.
        answer: The answer.
        room: Tokens that the text may have.
        count: Tells how many tokens a text has.

    Example:
        >>> words = lambda text: len(text.split())
        >>> side("What is its capital?", "Paris", room=9, count=words)
        'What is its capital? Paris'
        >>> side("What is its capital?", "Paris", room=3, count=words)
        'its capital? Paris'
    """
    if question is None:
        return answer
    whole = f"{question} {answer}"
    # No tokenizer makes more tokens than there are bytes, and counting takes its time.
    if len(whole.encode("utf-8", "replace")) < room or count(whole) <= room:
        return whole
    ends = [0, *(found.end() for found in re.finditer(r"\s+", question)), len(question)]
    starts = [one for one, other in pairwise(ends) if other > one]
    low, high = 0, len(starts)  # what begins at starts[high] fits
    while low < high:
        middle = (low + high) // 2
        if count(f"{question[starts[middle] :]} {answer}") <= room:
            high = middle
        else:
            low = middle + 1
    return f"{question[starts[high] :]} {answer}" if high < len(starts) else answer


def spelled_alike(one: str, other: str) -> bool:
    """Return whether two texts differ in case, spaces and compatible characters alone.

    Example:
        >>> (
        ...     spelled_alike("New York", "new  york"),
        ...     spelled_alike("resume", "resum\u00e9"),
        ... )
        (True, False)
    """
    return _levelled(one) == _levelled(other)


def _levelled(text: str) -> str:
    return "".join(unicodedata.normalize("NFKC", text).casefold().split())


def look_alike(one: Sequence[int], other: Sequence[int], *, room: int) -> bool:
    """Return whether a model sees the same tokens of two texts.

    Args:
        one: The tokens of the first text.
        other: Those of the second one.
        room: Tokens that both have together. What is longer loses its end, and the
            longer text more of it.

    Example:
        >>> look_alike([1, 2, 3, 4], [1, 2, 3, 5], room=8)
        False
        >>> look_alike([1, 2, 3, 4], [1, 2, 3, 5], room=6)
        True
    """
    if len(one) + len(other) <= room:
        return one == other
    least = min(len(one), len(other), room // 2)
    most = min(max(len(one), len(other)), room - least)
    # One token may be seen of the one only, where the room is odd.
    return most - least <= 1 and one[:least] == other[:least]
