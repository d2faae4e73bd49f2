"""Graders that compare the delivered answer with the reference answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from snne_guard.errors import MissingExtraError
from snne_guard.evaluation.grading.abstention import is_abstention, is_unanswerable
from snne_guard.evaluation.grading.grade import Grade, check_threshold, graded
from snne_guard.evaluation.grading.squad import (
    squad_contains,
    squad_exact_match,
    squad_f1,
)
from snne_guard.evaluation.recording.recordings import Recording

__all__ = [
    "Measure",
    "ReferenceGrader",
    "rouge_l_f1",
    "rouge_l_grader",
    "squad_contains_grader",
    "squad_exact_match_grader",
    "squad_f1_grader",
]

Measure = Callable[[str, Sequence[str]], float | None]
"""An answer and its references (at least one) to a quality in [0, 1]; None where these
references cannot be compared with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceGrader:
    """A measure of an answer against its references, as a grader.

    A recording without references has no grade. Where its question is known to have no
    answer (``is_unanswerable``), only a reply that says so (``is_abstention``) is
    right; where it has one, such a reply is compared like any other, so it is wrong.

    Args:
        name: What its figures are labelled with.
        measure: The quality of an answer, given the references.
        threshold: Smallest quality that counts as right; None draws no such line.
        lexical: Whether the measure compares words.

    Raises:
        ConfigurationError: The threshold is not in (0, 1].

    Example:
        >>> grader = ReferenceGrader(
        ...     name="same_length",
        ...     measure=lambda answer, references: float(
        ...         any(len(answer) == len(text) for text in references)
        ...     ),
        ...     lexical=False,
        ... )
        >>> grader(
        ...     Recording(
        ...         id="1", question="?", main_answer="ab", samples=(), answers=("cd",)
        ...     )
        ... )
        Grade(quality=1.0, correct=1, grader='same_length')
    """

    name: str
    measure: Measure
    threshold: float | None = 0.5
    lexical: bool = True

    def __post_init__(self) -> None:
        check_threshold(self.threshold, self.name)

    def __call__(self, recording: Recording, /) -> Grade | None:
        """Return the grade of the delivered answer, None without references."""
        answer = recording.main_answer
        if is_unanswerable(recording):
            return graded(float(is_abstention(answer)), self.threshold, self.name)
        if not recording.answers:
            return None
        quality = self.measure(answer, recording.answers)
        if quality is None:
            return None
        return graded(quality, self.threshold, self.name)


def squad_f1_grader(
    *, threshold: float | None = 0.5, rational: bool = False
) -> ReferenceGrader:
    """Return the paper's grader of short answers; registered as ``squad_f1``.

    Args:
        threshold: Smallest F1 that counts as right.
        rational: As in ``squad_f1``.
    """
    name = "squad_f1[rational]" if rational else "squad_f1"
    return ReferenceGrader(
        name=_with_threshold(name, threshold, 0.5),
        measure=partial(squad_f1, rational=rational),
        threshold=threshold,
    )


def squad_exact_match_grader() -> ReferenceGrader:
    """Return the grader by SQuAD's exact match; registered as ``squad_em``."""
    return ReferenceGrader(name="squad_em", measure=squad_exact_match)


def squad_contains_grader() -> ReferenceGrader:
    """Return the grader by whether a reference is in the answer: ``contains``."""
    return ReferenceGrader(name="contains", measure=squad_contains)


def rouge_l_grader(*, threshold: float | None = None) -> ReferenceGrader:
    """Return the paper's grader of summaries and translations: ``rouge_l``.

    Args:
        threshold: Smallest ROUGE-L that counts as right. The paper draws no such line,
            so that by default there is a quality and no AUROC.

    Raises:
        MissingExtraError: rouge-score is not installed.
    """
    _rouge_scorer()  # now rather than at the first recording
    return ReferenceGrader(
        name=_with_threshold("rouge_l", threshold, None),
        measure=rouge_l_f1,
        threshold=threshold,
    )


def rouge_l_f1(answer: str, references: Sequence[str], /) -> float:
    """Return the largest ROUGE-L F1 of an answer with any of the references.

    It is rouge-score's own figure without stemmer, and its tokens are ``[a-z0-9]+``
    alone: a text in another script has none, and 0 with everything.

    Raises:
        MissingExtraError: rouge-score is not installed.

    Source:
        rouge-score 0.1.2, as the paper grades summaries and translations.

    Example:
        >>> rouge_l_f1("the cat sat", ["the cat sat down", "a dog"])
        0.857
    """
    scorer = _rouge_scorer()
    return max(
        float(scorer.score(reference, answer)["rougeL"].fmeasure)
        for reference in references
    )


@cache
def _rouge_scorer() -> Any:  # noqa: ANN401 - rouge-score has no types
    try:
        from rouge_score.rouge_scorer import RougeScorer
    except ImportError as error:
        needed = "rouge-score"
        raise MissingExtraError(needed, extra="eval") from error
    return RougeScorer(["rougeL"], use_stemmer=False)


def _with_threshold(name: str, threshold: float | None, usual: float | None) -> str:
    if threshold == usual:
        return name
    return f"{name}[threshold={threshold}]"
