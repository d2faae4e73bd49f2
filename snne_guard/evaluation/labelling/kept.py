"""Labels that people gave, taken up where recordings are graded."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from snne_guard.errors import ConfigurationError
from snne_guard.evaluation.grading.grade import Grade, Grader, LabelGrader
from snne_guard.evaluation.grading.registry import grade_all
from snne_guard.evaluation.labelling.labels import (
    HAND,
    LABEL_ORDER,
    Label,
    Labels,
    labels_path,
)
from snne_guard.evaluation.recording.recordings import Recording

__all__ = ["BY_LABEL", "grades_with", "kept_labels", "picked_hardest"]

_LABEL = LabelGrader().name

BY_LABEL = frozenset({HAND, _LABEL})
"""What the graders of labels are called: a person, and whoever wrote the recording."""


def kept_labels(
    recordings: Sequence[str | os.PathLike[str] | Iterable[Recording]],
    named: str | os.PathLike[str] | None,
    /,
) -> list[Labels]:
    """Return the labels that people gave to each of some recordings.

    Args:
        recordings: Files, beside which labels are looked for; recordings themselves
            have none but those that are named.
        named: Where the labels of the only one are, None for beside it.

    Raises:
        ConfigurationError: Labels are named beside several.
        InputError: A line is no label.
        OSError: A file cannot be read, or the one that is named is not there.
    """
    if named is not None:
        if len(recordings) > 1:
            msg = (
                "labels= is the file of one recording's labels; got "
                f"{len(recordings)} recordings"
            )
            raise ConfigurationError(msg)
        Path(named).stat()  # one that is named is there
        return [Labels.read(named) for _ in recordings]
    return [
        Labels.read(labels_path(one))
        if isinstance(one, str | os.PathLike)
        else Labels()
        for one in recordings
    ]


def grades_with(
    labels: Labels, recordings: Sequence[Recording], grader: Grader, /
) -> list[Grade | None]:
    """Return the grades of recordings; a label that a person gave is named so.

    Args:
        labels: What people said.
        recordings: Whose answers are graded.
        grader: Who grades; whether labels go first is up to it.

    Example:
        >>> from snne_guard.evaluation.labelling.labels import answer_digest
        >>> row = Recording(id="1", question="2+2?", main_answer="4", samples=("4",))
        >>> said = Label(id="1", label=1, answer=answer_digest(row))
        >>> grades_with(Labels(by_id={"1": said}), [row], LabelGrader())
        [Grade(quality=1.0, correct=1, grader='hand')]
    """
    given = [labels.of(row) for row in recordings]
    grades = grade_all([labels.on(row) for row in recordings], grader)
    return [
        replace(grade, grader=HAND)
        if grade is not None and _says(said) and grade.grader == _LABEL
        else grade
        for grade, said in zip(grades, given, strict=True)
    ]


def picked_hardest(recordings: Sequence[Recording], labels: Labels, /) -> int:
    """Return how many labels were given with the most uncertain answers first.

    Args:
        recordings: With labels of their own, which may say how they were picked:
            ``snne-guard label --output`` writes it.
        labels: What people said in a file of labels.
    """
    return [_order(row, labels.of(row)) for row in recordings].count("hardest_first")


def _says(label: Label | None) -> bool:
    return label is not None and label.label is not None


def _order(recording: Recording, label: Label | None) -> object:
    """Return how an answer was picked whose label counts, None for no label."""
    if label is not None and label.label is not None:
        return label.order
    return None if recording.label is None else recording.extra.get(LABEL_ORDER)
