"""Token F1 and exact match of SQuAD 2.0, as the paper grades short answers."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence

__all__ = ["squad_contains", "squad_exact_match", "squad_f1", "squad_normalised"]

_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")


def squad_normalised(text: str, /) -> str:
    """Return a text as SQuAD compares it.

    Lower case, then without ASCII punctuation, then without the words a, an and the,
    then with single spaces. Deleting punctuation joins what it stood between: "18.0"
    becomes "180"; numbers are better compared by ``numeric_match``. Words of scripts
    without spaces stay whole, so that 東京都 and 東京 have nothing in common.

    Source:
        The evaluation script of SQuAD 2.0 (Rajpurkar et al. 2018).

    Example:
        >>> squad_normalised("The  U.S.A.!"), squad_normalised("18.0")
        ('usa', '180')
    """
    bare = text.lower().translate(_NO_PUNCTUATION)
    return " ".join(_ARTICLE.sub(" ", bare).split())


def squad_f1(
    answer: str, references: Sequence[str], /, *, rational: bool = False
) -> float:
    """Return the largest token F1 of an answer with any of the references.

    Tokens are the words of the normalised texts, counted as often as they come.
    References that normalise to nothing are left out; where none is left, the one
    reference is the empty text, which only an answer that normalises to nothing
    matches.

    Args:
        answer: The text to grade.
        references: What counts as right; the best of them decides.
        rational: Whether F1 is the quotient 2 c / (p + r) of c common tokens and p
            and r tokens in all, rounded once. Else it is computed from precision and
            recall as SQuAD's script does, where an F1 of one half can come out as
            0.4999999999999999, below a threshold of 0.5.

    Returns:
        F1 in [0, 1], 1 for the same tokens.

    Source:
        The evaluation script of SQuAD 2.0 (Rajpurkar et al. 2018).

    Example:
        >>> squad_f1("It was Neil Armstrong", ["Neil Armstrong", "Armstrong"])
        0.6666666666666666
    """
    divide = _rational_f1 if rational else _script_f1
    words = squad_normalised(answer).split()
    return max(_f1(words, kept.split(), divide) for kept in _kept(references))


def squad_exact_match(answer: str, references: Sequence[str], /) -> float:
    """Return 1.0 if the normalised answer is one of the normalised references.

    References that normalise to nothing are dealt with as in ``squad_f1``.

    Returns:
        1.0 or 0.0.

    Source:
        The evaluation script of SQuAD 2.0 (Rajpurkar et al. 2018).

    Example:
        >>> squad_exact_match("the U.S.A.", ["USA"]), squad_exact_match("US", ["USA"])
        (1.0, 0.0)
    """
    return float(squad_normalised(answer) in _kept(references))


def squad_contains(answer: str, references: Sequence[str], /) -> float:
    """Return 1.0 if a normalised reference stands in the normalised answer.

    Its words must follow one another in the answer, whole: "Neil Armstrong was first"
    contains "Neil Armstrong" and not "strong". It does for answers in whole sentences
    what exact match does for those of a few words; it also passes an answer that names
    a right thing beside a wrong one, or denies it. References that normalise to nothing
    are dealt with as in ``squad_f1``.

    Returns:
        1.0 or 0.0.

    Example:
        >>> squad_contains("It was Neil Armstrong, in 1969.", ["Armstrong", "Aldrin"])
        1.0
    """
    words = squad_normalised(answer)
    if not words:
        return squad_exact_match(answer, references)
    return float(any(f" {kept} " in f" {words} " for kept in _kept(references) if kept))


def _kept(references: Sequence[str]) -> list[str]:
    normalised = [squad_normalised(reference) for reference in references]
    return [text for text in normalised if text] or [""]


def _f1(
    answer: list[str], reference: list[str], divide: Callable[[int, int, int], float]
) -> float:
    if not answer or not reference:
        return float(answer == reference)
    common = (Counter(answer) & Counter(reference)).total()
    return divide(common, len(answer), len(reference)) if common else 0.0


def _script_f1(common: int, of_answer: int, of_reference: int) -> float:
    precision, recall = common / of_answer, common / of_reference
    return 2 * precision * recall / (precision + recall)


def _rational_f1(common: int, of_answer: int, of_reference: int) -> float:
    return 2 * common / (of_answer + of_reference)
