"""Questions and recordings: files of one JSON object a line."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from hashlib import blake2b
from typing import Annotated, Any, TypeVar

from pydantic import Field, TypeAdapter, ValidationError

from snne_guard.errors import InputError
from snne_guard.evaluation.jsonl import Source, json_line, read_objects
from snne_guard.files import first_problem, replace_file

__all__ = [
    "Question",
    "Recording",
    "Verdict",
    "read_questions",
    "read_recordings",
    "shard_of",
    "write_recordings",
]


Verdict = Annotated[int, Field(ge=0, le=1)]
"""Whether an answer is right: 1 or 0."""

# With a limit, pydantic refuses half of a surrogate pair, which cannot be encoded.
_Text = Annotated[str, Field(min_length=0)]
_Id = Annotated[str, Field(min_length=1, coerce_numbers_to_str=True)]
# Providers round: a log-probability a little above 0 is no reason to lose a line.
_Logprob = Annotated[float, Field(le=1e-3)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """One question with its delivered answer and further draws.

    Attributes:
        id: Unique in its file.
        question: What was asked, None where there was no question.
        main_answer: The answer that was delivered.
        samples: Further draws; never the draw that is ``main_answer``.
        context: What the model was given to answer from.
        answers: Reference answers, None where they are unknown; empty where the
            question has no answer.
        main_logprobs: Log-probabilities in nats of the delivered answer's tokens.
        token_logprobs: The same for each sample, None where unknown.
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
    self_check: Annotated[float, Field(ge=0, le=1)] | None = field(
        default=None, repr=False
    )
    label: Verdict | None = None
    settings: dict[str, Any] | None = field(default=None, repr=False)
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)

    @classmethod
    def from_dict(cls, row: Mapping[str, Any], /) -> Recording:
        """Check the fields of a JSON object.

        Raises:
            InputError: A field is missing or is not what it must be.
        """
        recording = _checked(_RECORDING, cls, row)
        lists, samples = recording.token_logprobs, recording.samples
        if lists is not None and len(lists) != len(samples):
            msg = (
                f"token_logprobs: expected one list for each of {len(samples)} "
                f"samples, got {len(lists)}"
            )
            raise InputError(msg)
        return recording

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object that ``from_dict`` reads; unknown fields stay out."""
        names = [each.name for each in fields(self) if each.name != "extra"]
        known = {name: getattr(self, name) for name in names}
        given = {
            name: value
            for name, value in known.items()
            if value is not None or name == "question"
        }
        return given | dict(self.extra)


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

    Example:
        >>> question = Question.from_dict({"question": "Capital of France?"})
        >>> question.id, question.prompt
        ('q-86de8525172ae71e', 'Capital of France?')
    """

    id: _Id
    question: _Text = field(repr=False)
    context: _Text | None = field(default=None, repr=False)
    answers: tuple[_Text, ...] | None = field(default=None, repr=False)
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)

    @classmethod
    def from_dict(cls, row: Mapping[str, Any], /) -> Question:
        """Check the fields of a JSON object.

        Raises:
            InputError: A field is missing or is not what it must be.
        """
        named = row if row.get("id") is not None else {**row, "id": _content_id(row)}
        question = _checked(_QUESTION, cls, named)
        if not question.question.strip():
            msg = "question: expected a text, got a blank one"
            raise InputError(msg)
        return question

    @property
    def prompt(self) -> str:
        """What the model is asked: the question, below its context if it has one."""
        if not self.context:
            return self.question
        return f"Context: {self.context}\n\nQuestion: {self.question}"


_RECORDING = TypeAdapter(Recording)
_QUESTION = TypeAdapter(Question)

Row = TypeVar("Row", Question, Recording)


def read_recordings(source: Source) -> Iterator[Recording]:
    """Read recordings line by line.

    Args:
        source: A file, or lines of bytes: UTF-8, one JSON object a line; blank lines
            are passed over.

    Yields:
        The recordings in the order of the file.

    Raises:
        InputError: A line is no recording, or its id has come before. The message
            names the file and the line and quotes nothing of an answer.
        OSError: The file cannot be read.

    Example:
        >>> line = b'{"id": "1", "question": null, "main_answer": "4", "samples": []}'
        >>> [row.main_answer for row in read_recordings([line])]
        ['4']
    """
    return read_objects(source, _unique(Recording.from_dict))


def read_questions(source: Source) -> Iterator[Question]:
    """Read questions; the rest is as in ``read_recordings``.

    A line has ``question`` and, where known, ``id``, ``context``, ``answers`` and
    anything else. A file of recordings is also one of questions.

    Example:
        >>> list(read_questions([b'{"id": 7, "question": "Why?"}']))
        [Question(id='7')]
    """
    return read_objects(source, _unique(Question.from_dict))


def write_recordings(
    path: str | os.PathLike[str], recordings: Iterable[Recording]
) -> None:
    """Write a file of recordings, whole or not at all.

    Args:
        path: The file; what was there is replaced when the last line is written.
        recordings: They are taken one by one, so they need not fit in memory.

    Raises:
        InputError: A recording holds what JSON has no word for, such as NaN.
        OSError: The file cannot be written.
    """
    with replace_file(path) as stream:
        stream.writelines(json_line(recording.to_dict()) for recording in recordings)


def shard_of(question_id: str, parts: int, /) -> int:
    """Return the part of a set that a question is in, by a hash of its id.

    It is the same in every recording, whatever other questions there are.

    Args:
        question_id: The id of the question.
        parts: How many parts there are, at least 1.

    Returns:
        A number from 1 to ``parts``.

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
            msg = f"id: {value.id!r} has come before"
            raise InputError(msg)
        seen.add(value.id)
        return value

    return read_new


def _checked(adapter: TypeAdapter[Row], cls: type[Row], row: Mapping[str, Any]) -> Row:
    known = {each.name: each for each in fields(cls) if each.name != "extra"}
    # A field that is null says no more than one that is left out.
    given = {
        name: row[name]
        for name, each in known.items()
        if name in row and (row[name] is not None or each.default is MISSING)
    }
    extra = {name: value for name, value in row.items() if name not in known}
    try:
        return adapter.validate_python(given | {"extra": extra})
    except ValidationError as error:
        raise InputError(first_problem(error)) from None


def _content_id(row: Mapping[str, Any]) -> str:
    digest = blake2b(digest_size=8)
    for name in ("question", "context"):
        content = str(row.get(name) or "").encode("utf-8", "surrogatepass")
        digest.update(len(content).to_bytes(8) + content)
    return f"q-{digest.hexdigest()}"
