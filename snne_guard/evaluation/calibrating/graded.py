"""Recordings with the grades that a promise is made by, people's before others'."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.evaluation.grading.grade import Grade, Grader
from snne_guard.evaluation.grading.registry import resolve_grader
from snne_guard.evaluation.grading.user_grader import GradeFunction
from snne_guard.evaluation.labelling.kept import (
    grades_with,
    kept_labels,
    picked_hardest,
)
from snne_guard.evaluation.labelling.labels import LABEL_ORDER, Labels, answer_digest
from snne_guard.evaluation.recording.recordings import Recording, read_recordings
from snne_guard.similarity.tokens import unicode_tokens

__all__ = ["Answers", "Recordings", "graded", "read_answers", "repeated"]

Recordings = str | os.PathLike[str] | Iterable[Recording]
"""A file of recordings, or the recordings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """Recordings, and the grades of those that have one.

    Attributes:
        recordings: All of them, each with the label that a person gave if one did.
        correct: 1 right, 0 wrong, None for no grade, of each.
        graders: How many grades came from whom.
        skipped: Answers that somebody looked at and passed over.
        partial: Whether only some have a label, and no file says how these were
            picked.
    """

    recordings: tuple[Recording, ...]
    correct: tuple[int | None, ...]
    graders: Counter[str]
    skipped: int = 0
    partial: bool = False

    @property
    def digest(self) -> str:
        """Digest of the labels: of which answer each is, and what it says."""
        lines = sorted(
            f"{answer_digest(row)} {grade}"
            for row, grade in zip(self.recordings, self.correct, strict=True)
            if grade is not None
        )
        return blake2b("\n".join(lines).encode(), digest_size=16).hexdigest()


def read_answers(
    recordings: Sequence[Recordings], /, *, labels: str | os.PathLike[str] | None = None
) -> list[tuple[list[Recording], Labels]]:
    """Read recordings and the labels that people gave to them.

    Args:
        recordings: Files of recordings, with their labels beside them, or recordings.
        labels: Where the labels of the only file are, None for beside it.

    Returns:
        The recordings of each, and its labels.

    Raises:
        InputError: A line is no recording or no label; an id comes in two of them.
        ConfigurationError: Labels are named beside several.
        OSError: A file cannot be read.
    """
    found = [
        (_read(given) if isinstance(given, str | os.PathLike) else list(given), kept)
        for given, kept in zip(recordings, kept_labels(recordings, labels), strict=True)
    ]
    times = Counter(row.id for rows, _ in found for row in rows)
    twice = [name for name, count in times.items() if count > 1]
    if twice:
        msg = f"{len(twice)} ids come more than once, such as {twice[0]!r}"
        raise InputError(msg)
    return found


def _read(path: str | os.PathLike[str]) -> list[Recording]:
    try:
        rows = [row for _, row in read_recordings(path, strict=True)]
    except InputError as error:
        msg = f"{Path(path)}: {error}"
        raise InputError(msg) from error
    return [row for row in rows if isinstance(row, Recording)]


def graded(
    given: Sequence[tuple[Sequence[Recording], Labels]],
    /,
    *,
    grader: str | Grader | GradeFunction = "label",
) -> Answers:
    """Return the grades of recordings; labels win, those of people first.

    Args:
        given: Recordings and the labels that people gave to them.
        grader: What grades an answer without a label; ``"label"``: nothing.

    Raises:
        InputError: Labels were given hardest first, which can promise nothing.
        ConfigurationError: The grader says how good answers are, but not which are
            right.
    """
    chosen = resolve_grader(grader)
    rows: list[Recording] = []
    grades: list[Grade | None] = []
    skipped, partial = 0, False
    for recordings, labels in given:
        said = [labels.of(row) for row in recordings]
        _refuse_hardest(recordings, labels)
        skipped += sum(one is not None and one.label is None for one in said)
        # Some say themselves how they were picked: `snne-guard label --output` did.
        own = sum(row.label is not None for row in recordings)
        unknown = sum(
            row.label is not None and row.extra.get(LABEL_ORDER) != "random"
            for row in recordings
        )
        partial = partial or (unknown > 0 and own < len(recordings))
        rows += [labels.on(row) for row in recordings]
        grades += grades_with(labels, recordings, chosen)
    undecided = {
        one.grader for one in grades if one is not None and one.correct is None
    }
    if undecided:
        msg = (
            f"the grader {min(undecided)!r} says how good answers are, and not which "
            "are right; give it a threshold, or take another one"
        )
        raise ConfigurationError(msg)
    return Answers(
        recordings=tuple(rows),
        correct=tuple(None if one is None else one.correct for one in grades),
        graders=Counter(one.grader for one in grades if one is not None),
        skipped=skipped,
        partial=partial,
    )


def _refuse_hardest(recordings: Sequence[Recording], labels: Labels) -> None:
    hard = picked_hardest(recordings, labels)
    if hard:
        msg = (
            f"{hard} labels were given with the most uncertain answers first: what "
            "they say of the error rate is not true of all answers, so nothing can "
            "be promised by them. Label at random, into another file: snne-guard "
            "label RECORDING --labels FILE"
        )
        raise InputError(msg)


def repeated(recordings: Iterable[Recording], /) -> int:
    """Return how many questions were asked before among the same recordings.

    Case, punctuation and spaces make no difference; a context does.

    Example:
        >>> rows = [
        ...     Recording(id=str(n), question=text, main_answer="", samples=())
        ...     for n, text in enumerate(["Who won?", "who  won", "Who lost?"])
        ... ]
        >>> repeated(rows)
        1
    """
    seen = Counter(
        (_words(row.question), _words(row.context))
        for row in recordings
        if row.question is not None
    )
    return sum(count - 1 for count in seen.values())


def _words(text: str | None) -> tuple[str, ...]:
    return tuple(unicode_tokens(text or ""))
