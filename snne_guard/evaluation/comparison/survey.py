"""The first look at a file: its sets, their rows and grades; no text is kept."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, takewhile
from pathlib import Path
from typing import Any, TypeVar

from snne_guard.errors import InputError
from snne_guard.evaluation.grading.grade import Grade, Grader
from snne_guard.evaluation.grading.registry import grade_all
from snne_guard.evaluation.labelling.kept import (
    BY_LABEL,
    grades_with,
    picked_hardest,
)
from snne_guard.evaluation.labelling.labels import Labels
from snne_guard.evaluation.recording.lines import BadLine
from snne_guard.evaluation.recording.recordings import Recording, read_recordings
from snne_guard.similarity.exact import stated_number

__all__ = ["OnProblem", "Part", "Row", "field_of", "mark_of", "survey"]

OnProblem = Callable[[str, int, str], object]
"""Told the file, the line's number and what is wrong with it."""

T = TypeVar("T")

_AT_ONCE = 256
_SHORT = 40
_LOOKED_AT = 2000
_RECORDED = ("hidden_states", "token_importance", "p_true_logprob")


@dataclass(slots=True, kw_only=True)
class Row:
    """What is kept of one recording.

    Attributes:
        line: Its number, from 1.
        id: Its id.
        mark: What changes when it changes, in this process.
        grade: What the grader says, None where it cannot tell.
        second: What the second grader says.
        n_samples: Samples that are not empty.
        main_logprobs: Whether the delivered answer has log-probabilities.
        logprobs: How many of the first of them have some without a gap.
        temperature: At which the samples were drawn, None if unknown.
    """

    line: int
    id: str
    mark: int
    grade: Grade | None
    second: Grade | None = None
    n_samples: int = 0
    main_logprobs: bool = False
    logprobs: int = 0
    temperature: float | None = None


@dataclass(slots=True, kw_only=True)
class Part:
    """The recordings of a file that are evaluated together.

    Attributes:
        name: Of the file, and what tells this part from its others.
        protocol: How the delivered answers came about.
        n_read: Recordings, the ones left out too.
        rows: Those that have an answer to rank.
        left_out: Why others are not ranked, and how many.
        numeric: Rows whose reference is a number and nothing else.
        first: The first recordings, to be looked at for what is suspect.
        recorded: Rows in which each need that a recording may meet is met.
        datasets: What the field ``dataset`` says in them.
        hardest: Labels that were given with the most uncertain answers first.
        notes: What else a reader of the figures must know.
    """

    name: str
    protocol: str | None = None
    n_read: int = 0
    rows: list[Row] = field(default_factory=list[Row])
    left_out: Counter[str] = field(default_factory=Counter[str])
    numeric: int = 0
    first: list[Recording] = field(default_factory=list[Recording])
    recorded: Counter[str] = field(default_factory=Counter[str])
    datasets: set[str] = field(default_factory=set[str])
    hardest: int = 0
    notes: list[str] = field(default_factory=list[str])


def survey(
    path: str | os.PathLike[str],
    *,
    grader: Grader,
    labels: Labels | None = None,
    second: Grader | None = None,
    by: str | None = None,
    strict: bool = False,
    on_problem: OnProblem | None = None,
) -> list[Part]:
    """Read a file once and return its parts, in the order in which they come.

    Args:
        path: A file of recordings; it is read again later, so no pipe.
        grader: Says which delivered answers are right.
        labels: What people said of them, for a grader that looks at labels.
        second: Another one, whose agreement with the first is of interest.
        by: A field of the recordings, or of their settings, by which the file is
            split; ``answer_protocol`` always splits it.
        strict: Whether the first bad line ends it.
        on_problem: Told of each bad line.

    Raises:
        InputError: With ``strict``, at the first bad line; or the file is no regular
            file.
        OSError: The file cannot be read.
    """
    name = os.fspath(path)
    if Path(path).exists() and not Path(path).is_file():
        msg = f"expected a file that can be read twice, got {name}"
        raise InputError(msg)
    kept = Labels() if labels is None else labels
    parts: dict[tuple[str | None, str | None], Part] = {}
    for rows in _in_lots(_recordings(path, strict=strict, on_problem=on_problem)):
        recordings = [recording for _, recording in rows]
        grades = grades_with(kept, recordings, grader)
        seconds: Sequence[Grade | None] = [None] * len(rows)
        if second is not None:
            seconds = grade_all(recordings, second)
        for (line, recording), *grade in zip(rows, grades, seconds, strict=True):
            key = (field_of(recording, "answer_protocol"), by and _told(recording, by))
            part = parts.setdefault(key, Part(name="", protocol=key[0]))
            _note(part, line, recording, *grade, labels=kept)
    _name_parts(parts, Path(path).stem)
    return [*parts.values()]


def field_of(recording: Recording, name: str, /) -> str | None:
    """Return a field of a recording or of its settings as text, None without it."""
    settings = recording.settings or {}
    found: Any = recording.extra.get(name, settings.get(name))
    return None if found is None else str(found)


def mark_of(recording: Recording, /) -> int:
    """Return a number by which a recording is known again on a second reading."""
    label = -1 if recording.label is None else recording.label
    whose = (recording.id, recording.question, recording.answers, label)
    answers = (recording.main_answer, recording.samples)
    return hash((whose, answers, recording.main_logprobs, recording.token_logprobs))


def _told(recording: Recording, by: str) -> str:
    found = field_of(recording, by)
    return f"no {by}" if found is None else found


def _recordings(
    path: str | os.PathLike[str], *, strict: bool, on_problem: OnProblem | None
) -> Iterator[tuple[int, Recording]]:
    for line, row in read_recordings(path):
        if not isinstance(row, BadLine):
            yield line, row
            continue
        if strict:
            msg = f"{os.fspath(path)}: line {line}: {row.message}"
            raise InputError(msg)
        if on_problem is not None:
            on_problem(os.fspath(path), line, row.message)


def _in_lots(rows: Iterable[T]) -> Iterator[list[T]]:
    # A grader with a model is faster with many, and memory stays small.
    source = iter(rows)
    while lot := [*islice(source, _AT_ONCE)]:
        yield lot


def _note(
    part: Part,
    line: int,
    recording: Recording,
    grade: Grade | None,
    second: Grade | None,
    *,
    labels: Labels,
) -> None:
    part.n_read += 1
    if not recording.main_answer.strip():
        part.left_out["the delivered answer is empty"] += 1
        return
    if grade is None:
        part.left_out["no grade"] += 1
        return
    part.numeric += _is_number(recording.answers)
    if len(part.first) < _LOOKED_AT:
        # Without what may be large and tells nothing here.
        said = labels.on(recording)
        part.first.append(
            replace(said, token_logprobs=None, main_logprobs=None, extra={})
        )
    if grade.grader in BY_LABEL:
        part.hardest += picked_hardest([recording], labels)
    part.recorded.update(
        need for need in _RECORDED if recording.extra.get(need) is not None
    )
    if (dataset := field_of(recording, "dataset")) is not None:
        part.datasets.add(dataset)
    part.rows.append(
        Row(
            line=line,
            id=recording.id,
            mark=mark_of(recording),
            grade=grade,
            second=second,
            n_samples=sum(bool(sample.strip()) for sample in recording.samples),
            main_logprobs=bool(recording.main_logprobs),
            logprobs=_with_logprobs(recording),
            temperature=_temperature(recording),
        )
    )


def _with_logprobs(recording: Recording) -> int:
    logprobs = recording.token_logprobs or (None,) * len(recording.samples)
    each = zip(recording.samples, logprobs, strict=True)
    known = (bool(tokens) for sample, tokens in each if sample.strip())
    return sum(1 for _ in takewhile(bool, known))


def _is_number(references: Sequence[str] | None) -> bool:
    if not references or len(references[0]) > _SHORT:
        return False
    bare = references[0].strip().replace(",", "").lstrip("$€£-")
    number = bare.removesuffix("%").replace(".", "", 1)
    return number.isdecimal() and stated_number(references[0]) is not None


def _temperature(recording: Recording) -> float | None:
    try:
        return float(field_of(recording, "temperature") or "")
    except ValueError:
        return None


def _name_parts(parts: dict[tuple[str | None, str | None], Part], stem: str) -> None:
    protocols = len({protocol for protocol, _ in parts}) > 1
    for (protocol, value), part in parts.items():
        words = [stem]
        if value is not None:
            words.append(value)
        if protocols:
            words.append(protocol or "no answer_protocol")
        part.name = " · ".join(words)
