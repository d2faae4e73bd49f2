"""Questions, recordings and their labels: files with one JSON object per line."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import partial
from hashlib import blake2b
from typing import Annotated, Any, TypeVar

from pydantic import Field, TypeAdapter

from snne_guard.errors import InputError
from snne_guard.evaluation.jsonl import (
    Source,
    beside,
    checked,
    digest,
    json_line,
    read_appended,
)
from snne_guard.evaluation.tables import Columns, Frame, read_rows
from snne_guard.files import replace_file

# With a limit, pydantic refuses half of a surrogate pair, which cannot be encoded.
_Text = Annotated[str, Field(min_length=0)]
_Verdict = Annotated[int, Field(ge=0, le=1)]
_Id = Annotated[str, Field(min_length=1, coerce_numbers_to_str=True)]
# Providers round: a log-probability a little above 0 is no reason to lose a line.
_Logprob = Annotated[float, Field(le=1e-3)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """One question with its delivered answer and further replies.

    Attributes:
        id: Unique in its file.
        question: What was asked, None where there was no question.
        main_answer: The answer that was delivered.
        samples: Further replies; never the one that is ``main_answer``.
        context: What the model was given to answer from.
        answers: Reference answers, None where they are unknown; empty where the
            question has no answer.
        main_logprobs: Log-probabilities in nats of the delivered answer's tokens.
        token_logprobs: The same for each sample, None where unknown.
        sample_models: Of each sample, the name of the other model that gave it, None
            for the guarded model; None where all are the guarded model's.
        self_check: Probability that the model calls ``main_answer`` correct, None
            without a self-check, or where it says neither Yes nor No.
        label: 1 if ``main_answer`` is right, 0 if it is wrong, None if unknown.
        settings: How the answers were drawn: model, temperature, ...
        extra: Every other field of the line, untouched.

    Example:
        >>> row = {"id": "1", "question": "2+2?", "main_answer": "4", "samples": ["5"]}
        >>> Recording.from_dict(row).samples
        ('5',)
    """

    id: _Id
    question: _Text | None = field(repr=False)
    main_answer: _Text = field(repr=False)
    samples: tuple[_Text, ...] = field(repr=False)
    context: _Text | None = field(default=None, repr=False)
    answers: tuple[_Text, ...] | None = field(default=None, repr=False)
    main_logprobs: tuple[_Logprob, ...] | None = field(default=None, repr=False)
    token_logprobs: tuple[tuple[_Logprob, ...] | None, ...] | None = field(
        default=None, repr=False
    )
    sample_models: tuple[Annotated[str, Field(min_length=1)] | None, ...] | None = None
    self_check: Annotated[float, Field(ge=0, le=1)] | None = field(
        default=None, repr=False
    )
    label: _Verdict | None = None
    settings: dict[str, Any] | None = field(default=None, repr=False)
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)

    @classmethod
    def from_dict(cls, row: Mapping[str, Any], /) -> Recording:
        """Check the fields of a JSON object; InputError says what is wrong."""
        recording = checked(_RECORDING, _fields(cls, row))
        n = len(recording.samples)
        for name, what in (("token_logprobs", "list"), ("sample_models", "name")):
            given = getattr(recording, name)
            if given is not None and len(given) != n:
                each = f"{name}: expected one {what} for each of {n} samples"
                msg = f"{each}, got {len(given)}"
                raise InputError(msg)
        return recording

    @property
    def own_places(self) -> tuple[int, ...]:
        """Places of the samples that the guarded model gave."""
        models = self.sample_models or (None,) * len(self.samples)
        return tuple(at for at, name in enumerate(models) if name is None)

    @property
    def other_models(self) -> tuple[str, ...]:
        """Names of the other models that gave samples, each once."""
        return tuple(dict.fromkeys(filter(None, self.sample_models or ())))

    @property
    def prompt(self) -> str | None:
        """What the model was asked; None where there was no question."""
        return None if self.question is None else _prompt(self.question, self.context)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object that ``from_dict`` reads, without unknown values."""
        return _known(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question of a data set.

    Attributes:
        id: Unique in its file. A line without one gets a hash of its question and
            context, the same wherever the line stands.
        question: What is asked, not blank.
        context: What the model is given to answer from.
        answers: Reference answers, None where they are unknown; empty where the
            question has no answer.
        extra: Every other field of the line, untouched.
    """

    id: _Id
    question: Annotated[str, Field(pattern=r"\S")] = field(repr=False)
    context: _Text | None = field(default=None, repr=False)
    answers: tuple[_Text, ...] | None = field(default=None, repr=False)
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)

    @classmethod
    def from_dict(cls, row: Mapping[str, Any], /) -> Question:
        """Check the fields of a JSON object; InputError says what is wrong."""
        if row.get("id") is None:
            row = {**row, "id": f"q-{digest(row.get('question'), row.get('context'))}"}
        return checked(_QUESTION, _fields(cls, row))

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object that ``from_dict`` reads, without unknown values."""
        return _known(self)

    @property
    def prompt(self) -> str:
        """What the model is asked: the question, below its context if it has one."""
        return _prompt(self.question, self.context)


def _prompt(question: str, context: str | None) -> str:
    return f"Context: {context}\n\nQuestion: {question}" if context else question


_RECORDING = TypeAdapter(Recording)
_QUESTION = TypeAdapter(Question)

Row = TypeVar("Row", Question, Recording)


def read_recordings(
    source: Source | Frame, *, columns: Columns | None = None
) -> Iterator[Recording]:
    """Read recordings one by one, in the order of the file.

    Args:
        source: A file, or lines of bytes: UTF-8, one JSON object per line; blank lines
            are skipped. Or a CSV file, or a data frame, as ``read_rows`` takes it.
        columns: The columns of a table that hold a field, where they have other names.

    Raises:
        InputError: A line is not a recording, or its id is a duplicate. The message
            names the file and the line and quotes nothing of an answer.
        OSError: The file cannot be read.

    Example:
        >>> line = b'{"id": "1", "question": null, "main_answer": "4", "samples": []}'
        >>> [row.main_answer for row in read_recordings([line])]
        ['4']
    """
    return read_rows(source, _unique(Recording.from_dict), columns=columns)


def read_questions(
    source: Source | Frame, *, columns: Columns | None = None
) -> Iterator[Question]:
    """Read questions; the rest is as in ``read_recordings``.

    A line has ``question`` and, where known, ``id``, ``context``, ``answers`` and
    anything else. A file of recordings can be read as questions too.
    """
    return read_rows(source, _unique(Question.from_dict), columns=columns)


def write_recordings(
    path: str | os.PathLike[str], recordings: Iterable[Recording]
) -> None:
    """Write recordings one by one to a file, which is replaced as a whole or not.

    Raises:
        InputError: A recording holds a value that JSON cannot express, such as NaN.
        OSError: The file cannot be written.
    """
    with replace_file(path) as stream:
        stream.writelines(json_line(recording.to_dict()) for recording in recordings)


def shard_of(question_id: str, parts: int, /) -> int:
    """Return the part of a set that a question is in, from 1, by a hash of its id.

    It is the same in every recording, whatever other questions there are.

    Example:
        >>> [shard_of(str(number), 3) for number in range(8)]
        [2, 3, 3, 2, 2, 3, 2, 2]
    """
    digest = blake2b(
        question_id.encode("utf-8", "surrogatepass"), digest_size=8
    ).digest()
    return int.from_bytes(digest) % parts + 1


def _unique(read: Callable[[Mapping[str, Any]], Row]) -> Callable[..., Row]:
    """Return ``read`` with a check that no id comes twice."""
    seen: set[str] = set()

    def read_new(row: Mapping[str, Any]) -> Row:
        value = read(row)
        if value.id in seen:
            msg = f"id: {value.id!r} is a duplicate"
            raise InputError(msg)
        seen.add(value.id)
        return value

    return read_new


def _known(row: Question | Recording) -> dict[str, Any]:
    names = [each.name for each in fields(row) if each.name != "extra"]
    known = {name: getattr(row, name) for name in names}
    # A question that is null says that there was none.
    given = {k: v for k, v in known.items() if v is not None or k == "question"}
    return given | dict(row.extra)


def _fields(cls: type[Row], row: Mapping[str, Any]) -> dict[str, Any]:
    known = {each.name: each for each in fields(cls) if each.name != "extra"}
    # A field that is null says no more than one that is left out.
    given = {
        name: row[name]
        for name, each in known.items()
        if name in row and (row[name] is not None or each.default is MISSING)
    }
    extra = {name: value for name, value in row.items() if name not in known}
    return given | {"extra": extra}


# -- Labels, in a file beside the recording --------------------------------------------


@dataclass(frozen=True, slots=True)
class _Label:
    answer: str
    label: _Verdict


_LABEL = TypeAdapter(_Label)


def answer_digest(recording: Recording, /) -> str:
    """Return a hash of id, question, context and answer, which shows none of them.

    A label counts only for the very answer that was shown, not for one drawn anew.
    """
    row = recording
    return digest(row.id, row.question, row.context, row.main_answer)


def read_labels(path: str | os.PathLike[str], /) -> dict[str, int]:
    """Return the last label of each answer, by its digest; none without a file.

    An unfinished last line, left by a killed process, is skipped.
    """
    lines = read_appended(path, partial(checked, _LABEL))
    return {each.answer: each.label for each in lines}


def read_labelled(
    *paths: str | os.PathLike[str], columns: Columns | None = None
) -> Iterator[Recording]:
    """Yield recordings with the labels from the file beside each, if there is one.

    The arguments are those of ``read_recordings``, for files; no id may be in two.
    """
    read = _unique(Recording.from_dict)
    for path in paths:
        labels = read_labels(beside(path, "labels"))
        for recording in read_rows(path, read, columns=columns):
            label = labels.get(answer_digest(recording))
            yield recording if label is None else replace(recording, label=label)
