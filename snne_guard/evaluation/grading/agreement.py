"""How far two graders agree, and whether a grader and a similarity see the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from snne_guard.errors import InputError
from snne_guard.evaluation.grading.grade import Grade, Grader
from snne_guard.evaluation.grading.registry import GRADERS, grade_all
from snne_guard.evaluation.recording.recordings import Recording
from snne_guard.evaluation.results import AgreementOfGraders
from snne_guard.similarity import resolve_similarity
from snne_guard.types import Similarity

__all__ = ["agreement", "both_lexical", "is_lexical", "labels_by_tokens"]

_LEXICAL = frozenset(
    {
        "rouge_l",
        "rouge_l+question",
        "rouge_l_paper",
        "rouge_l_paper+question",
        "content_f1",
        "structured",
        "exact",
        "normalised",
    }
)
_NEARLY_THE_SAME = 0.9
_FEWEST = 30


def agreement(
    first: Sequence[Grade | None], second: Sequence[Grade | None], /
) -> AgreementOfGraders | None:
    """Return how often two graders call the same answers right.

    Args:
        first: Grades of some recordings.
        second: Grades of the same recordings by another grader, in the same order.

    Returns:
        Over the answers of which both say whether they are right: how many, the share
        on which they agree, Cohen's kappa (1 for agreement, 0 for what chance would
        give, negative for less), and the four counts. Kappa is None where both call
        every answer the same. All of it is None where there is no such answer.

    Raises:
        InputError: There are more grades of one than of the other.

    Source:
        Cohen, A coefficient of agreement for nominal scales, 1960.

    Example:
        >>> def grades(name, *verdicts):
        ...     return [Grade(quality=v, correct=v, grader=name) for v in verdicts]
        >>> found = agreement(grades("label", 1, 1, 0, 0), grades("f1", 1, 0, 0, 0))
        >>> found.share, found.kappa, found.first_only
        (0.75, 0.5, 1)
    """
    if len(first) != len(second):
        msg = f"expected as many grades of both, got {len(first)} and {len(second)}"
        raise InputError(msg)
    pairs = [
        (one, other)
        for one, other in zip(first, second, strict=True)
        if one is not None and one.correct is not None
        if other is not None and other.correct is not None
    ]
    if not pairs:
        return None
    cells = Counter((one.correct, other.correct) for one, other in pairs)
    n, same = len(pairs), cells[1, 1] + cells[0, 0]
    right = cells[1, 1] + cells[1, 0], cells[1, 1] + cells[0, 1]
    # In whole numbers, so that agreement by chance alone is seen exactly.
    chance = right[0] * right[1] + (n - right[0]) * (n - right[1])
    return AgreementOfGraders(
        first=_names(one for one, _ in pairs),
        second=_names(other for _, other in pairs),
        n=n,
        share=same / n,
        kappa=None if chance == n * n else (n * same - chance) / (n * n - chance),
        both_right=cells[1, 1],
        first_only=cells[1, 0],
        second_only=cells[0, 1],
        both_wrong=cells[0, 0],
    )


def is_lexical(similarity: str | Similarity, /) -> bool:
    """Return whether a similarity compares words or characters, not meanings.

    Those of this library are known by name; one of your own says so with an attribute
    ``lexical``, and counts as one of meanings without it.

    Example:
        >>> is_lexical("rouge_l"), is_lexical("numeric")
        (True, False)
    """
    said = getattr(similarity, "lexical", None)
    if isinstance(said, bool):
        return said
    name, _ = resolve_similarity(similarity)
    return name in _LEXICAL


def both_lexical(grader: Grader, similarity: str | Similarity, /) -> bool:
    """Return whether a grader and a similarity look at the same words.

    An answer in unusual words is then far from the reference and far from the samples,
    right or wrong, so that the uncertainty seems to know more than it does: a second
    grader that compares meanings is wanted, and the agreement of the two.

    Example:
        >>> both_lexical(GRADERS["squad_f1"](), "rouge_l")
        True
    """
    return grader.lexical and is_lexical(similarity)


def labels_by_tokens(recordings: Iterable[Recording], /) -> AgreementOfGraders | None:
    """Return the agreement of labels with SQuAD F1 where it is nearly complete.

    Labels that say what token F1 would say were most likely computed from words, or
    look to a lexical similarity as if they had been. Human labels of whole sentences
    have kappas below 0.5 with it.

    Returns:
        The agreement where at least 30 recordings have a label and references, and
        Cohen's kappa is at least 0.9; else None.
    """
    rows = [row for row in recordings if row.label is not None and row.answers]
    found = agreement(
        grade_all(rows, GRADERS["label"]()), grade_all(rows, GRADERS["squad_f1"]())
    )
    if found is None or found.n < _FEWEST or found.kappa is None:
        return None
    return found if found.kappa >= _NEARLY_THE_SAME else None


def _names(grades: Iterable[Grade]) -> str:
    return " and ".join(dict.fromkeys(grade.grader for grade in grades))
