"""Letters that stand alone and are what was asked for: option C, vitamin a, gate 5d."""

from __future__ import annotations

import re
from collections.abc import Sequence

_LABEL = re.compile(
    r"""[A-Z](?<!\w.)(?:
        [A-Z]++                  # the US
      | (?<![AI])                # option C
      | (?<=\w\ A)               # option A
      | (?!\ (?!is\ )[a-z])      # A, but neither an article nor a pronoun
    )\b(?!['\u2019])""",
    re.VERBOSE,
)
_OPTION = re.compile(r"\((?<!\w\()([a-z])\)")  # option (b), but not option(s)

# Nouns that are followed by a letter, but by no article; and such that may be verbs.
_NOUNS = """
    appendix block category choice class exit factor gate hepatitis influenza letter
    option platform section size team terminal variant vitamin zone
"""
_MAYBE_VERBS = """
    answer case figure grade group key line part plan room step table type
"""
_LETTERED = frozenset(_NOUNS.split())
_MAYBE_LETTERED = frozenset(_MAYBE_VERBS.split())
_LINKS = frozenset(("is", "was", "of"))
_VERBS = frozenset(("is", "was", "because", "since"))
_AROUND = "()[]\"'*+-.,;:!?\u2018\u2019\u201c\u201d\u3002\u3001"
_BEHIND_DIGIT = re.compile(r"\d([^\W\d_])(?![\w'\u2019])")
_LONGEST = 6  # characters of a letter with marks around it: **(a).


def capital_labels(text: str, /) -> list[str]:
    """Return the capital letters that are neither an article nor a pronoun."""
    return _LABEL.findall(text) + _OPTION.findall(text)


def lone_letters(text: str, /) -> set[str]:
    """Return the lone letters of a text that are its answer, and no words.

    They stand behind a digit (gate 5a), end a clause (the key of e), have a mark or a
    verb behind them (a) because, plan d is), or follow a word such as "vitamin".

    Example:
        >>> sorted(lone_letters("Gate 5a, vitamin c and a plan b, or a cat"))
        ['a', 'b', 'c']
    """
    found = set(_BEHIND_DIGIT.findall(text))
    for line in (text.replace(":", ": ") if ":" in text else text).splitlines():
        pieces = line.split()
        for place, piece in enumerate(pieces):
            if len(piece) == 1 or (len(piece) <= _LONGEST and not piece.isalpha()):
                letter = piece.strip(_AROUND)
                if len(letter) == 1 and letter.isalpha() and _is_answer(pieces, place):
                    found.add(letter)
    return {*map(str.casefold, found)}


def _is_answer(pieces: Sequence[str], place: int) -> bool:
    """Return whether a lone letter among the words of a line is no word."""
    piece = pieces[place]
    letter = piece.strip(_AROUND)
    following = pieces[place + 1 : place + 2]
    ends = not (piece.endswith(letter) and following) or following[0] in _VERBS
    if ends and letter != "I":
        return True
    before = ["", "", *pieces[max(0, place - 2) : place]]
    noun = before.pop().strip(_AROUND).casefold()
    if noun in _LINKS:
        noun = before.pop().strip(_AROUND).casefold()
    return noun in _LETTERED or (noun in _MAYBE_LETTERED and letter not in "aAiI")
