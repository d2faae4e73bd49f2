"""What a grade is, what gives one, and the grade that a recording brings along."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.evaluation.recording.recordings import Recording

__all__ = ["BatchGrader", "Grade", "Grader", "LabelGrader", "LabelsFirst"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grade:
    """How good a delivered answer is, and who says so.

    Attributes:
        quality: In [0, 1], 1 for the best. What PRR is computed from.
        correct: 1 if the answer counts as right, 0 if as wrong, None where the grader
            draws no such line. What AUROC and AUARC are computed from.
        grader: Name of the grader.

    Raises:
        InputError: ``quality`` is outside of [0, 1], or ``correct`` is neither 0, 1
            nor None.

    Example:
        >>> Grade(quality=0.4, correct=0, grader="squad_f1").correct
        0
    """

    quality: float
    correct: Literal[0, 1] | None
    grader: str

    def __post_init__(self) -> None:
        # The negation refuses NaN too.
        if not 0 <= self.quality <= 1:
            msg = (
                f"expected a quality in [0, 1] from grader {self.grader!r}, "
                f"got {self.quality}"
            )
            raise InputError(msg)
        if self.correct not in {0, 1, None}:
            msg = (
                f"expected correct to be 0, 1 or None from grader {self.grader!r}, "
                f"got {self.correct!r}"
            )
            raise InputError(msg)


def graded(quality: float, threshold: float | None, grader: str) -> Grade:
    """Return the grade that a quality makes; right from the threshold on."""
    correct: Literal[0, 1] | None = None
    if threshold is not None:
        correct = 1 if quality >= threshold else 0
    return Grade(quality=quality, correct=correct, grader=grader)


def check_threshold(threshold: float | None, grader: str) -> None:
    """Refuse a threshold above which there is nothing, or below which nothing is.

    Raises:
        ConfigurationError: It is neither None nor in (0, 1].
    """
    if threshold is not None and not 0 < threshold <= 1:
        msg = (
            f"expected the threshold of grader {grader!r} in (0, 1] or None, "
            f"got {threshold}"
        )
        raise ConfigurationError(msg)


class Grader(Protocol):
    """Grades the delivered answer of a recording.

    It may also have ``grade_all``, as a ``BatchGrader`` has.
    """

    @property
    def name(self) -> str:
        """What its figures are labelled with."""
        ...

    @property
    def lexical(self) -> bool:
        """Whether it compares words, as a lexical similarity does."""
        ...

    def __call__(self, recording: Recording, /) -> Grade | None:
        """Return the grade, None where there is nothing to grade by."""
        ...


@runtime_checkable
class BatchGrader(Protocol):
    """A grader that is faster, or safer, with many recordings at once."""

    def grade_all(self, recordings: Sequence[Recording], /) -> list[Grade | None]:
        """Return the grade of each recording, in order."""
        ...


@dataclass(frozen=True, slots=True)
class LabelGrader:
    """The label that a recording has already; registered as ``label``.

    Nobody knows how it came about, so it does not count as lexical;
    ``labels_by_tokens`` finds labels that were computed from words.

    Example:
        >>> fields = {"id": "1", "question": "?", "main_answer": "x", "samples": []}
        >>> LabelGrader()(Recording.from_dict({**fields, "label": 1}))
        Grade(quality=1.0, correct=1, grader='label')
    """

    name: str = "label"
    lexical: bool = False

    def __call__(self, recording: Recording, /) -> Grade | None:
        """Return the label as a grade, None where there is none."""
        label = recording.label
        if label is None:
            return None
        return Grade(quality=float(label), correct=label, grader=self.name)


@dataclass(frozen=True, slots=True)
class LabelsFirst:
    """The label of a recording where it has one, else what another grader says.

    Each grade names the one of the two that gave it.

    Args:
        grader: Grades the recordings without a label; it sees no others.

    Example:
        >>> from snne_guard.evaluation import GRADERS
        >>> LabelsFirst(GRADERS["squad_f1"]()).name
        'label, else squad_f1'
    """

    grader: Grader
    _label: LabelGrader = LabelGrader()

    @property
    def name(self) -> str:
        """Both names."""
        return f"{self._label.name}, else {self.grader.name}"

    @property
    def lexical(self) -> bool:
        """As the other grader is."""
        return self.grader.lexical

    def __call__(self, recording: Recording, /) -> Grade | None:
        """Return the label as a grade, or the other grader's."""
        return self._label(recording) or self.grader(recording)

    def grade_all(self, recordings: Sequence[Recording], /) -> list[Grade | None]:
        """Return the grade of each recording; the rest go to the grader together."""
        grades = [self._label(recording) for recording in recordings]
        missing = [place for place, grade in enumerate(grades) if grade is None]
        rest = grades_of(self.grader, [recordings[place] for place in missing])
        for place, grade in zip(missing, rest, strict=True):
            grades[place] = grade
        return grades


def grades_of(grader: Grader, recordings: Sequence[Recording], /) -> list[Grade | None]:
    """Return the grade of each recording, all at once where the grader can."""
    if isinstance(grader, BatchGrader):
        return grader.grade_all(recordings)
    return [grader(recording) for recording in recordings]
