"""Questions and recordings: files of one JSON object a line."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from hashlib import blake2b
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, Field, Strict, TypeAdapter, ValidationError

from snne_guard.errors import InputError
from snne_guard.evaluation.jsonl import OnBad, Source, json_line, read_objects
from snne_guard.files import first_problem, replace_file

__all__ = [
    "Question",
    "Recording",
    "read_questions",
    "read_recordings",
    "write_recordings",
]


def _encodable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        msg = "a text must not hold half of a surrogate pair"
        raise ValueError(msg) from None
    return text


_Text = Annotated[str, Strict(), AfterValidator(_encodable)]
_Id = Annotated[
    str,
    Field(min_length=1, coerce_numbers_to_str=True),
    AfterValidator(_encodable),
]
# Providers round: a log-probability a little above 0 is no reason to lose a line.
_Logprob = Annotated[float, Field(le=1e-3)]
_Label = Annotated[int, Field(ge=0, le=1)]


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
    label: _Label | None = None
    settings: dict[str, Any] | None = field(default=None, repr=False)
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)

    @classmethod
    def from_dict(cls, row: Mapping[str, Any], /) -> Recording:
        """Check the fields of a JSON object.

        Raises:
            InputError: A field is missing or is not what it must be.
        """
        found = _checked(_RECORDING, cls, row)
        lists = found.token_logprobs
        if lists is not None and len(lists) != len(found.samples):
            msg = (
                f"token_logprobs: expected one list for each of {len(found.samples)} "
                f"samples, got {len(lists)}"
            )
            raise InputError(msg)
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object that ``from_dict`` reads; unknown fields stay out."""
        known = {
            one.name: getattr(self, one.name)
            for one in fields(self)
            if one.name != "extra"
        }
        kept = {
            name: value
            for name, value in known.items()
            if value is not None or name == "question"
        }
        return kept | dict(self.extra)


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
        found = _checked(_QUESTION, cls, named)
        if not found.question.strip():
            msg = "question: expected a text, got a blank one"
            raise InputError(msg)
        return found

    @property
    def prompt(self) -> str:
        """What the model is asked: the question, below its context if it has one."""
        if not self.context:
            return self.question
        return f"Context: {self.context}\n\nQuestion: {self.question}"


_RECORDING = TypeAdapter(Recording)
_QUESTION = TypeAdapter(Question)

Row = TypeVar("Row", Question, Recording)


def read_recordings(
    source: Source, *, on_bad: OnBad | None = None
) -> Iterator[Recording]:
    """Read recordings line by line.

    Args:
        source: A file, or lines of bytes: UTF-8, one JSON object a line; blank lines
            are passed over.
        on_bad: Is called with the error of each line that is no recording, and the
            line is passed over. Without it the first such line ends the reading.

    Yields:
        The recordings in the order of the file.

    Raises:
        InputError: A line is no recording, or its id has come before. The message
            names the file and the line and quotes nothing of an answer.
        OSError: The file cannot be read.

    Example:
        >>> lines = [
        ...     b'{"id": "1", "question": "Why?", "samples": []}',
        ...     b'{"id": "2", "question": null, "main_answer": "4", "samples": []}',
        ... ]
        >>> [row.main_answer for row in read_recordings(lines, on_bad=print)]
        input, line 1: main_answer: Field required
        ['4']
    """
    return read_objects(source, _unique(Recording.from_dict), on_bad=on_bad)


def read_questions(
    source: Source, *, on_bad: OnBad | None = None
) -> Iterator[Question]:
    """Read questions; the rest is as in ``read_recordings``.

    A line has ``question`` and, where known, ``id``, ``context``, ``answers`` and
    anything else. A file of recordings is also one of questions.

    Example:
        >>> list(read_questions([b'{"id": 7, "question": "Why?"}']))
        [Question(id='7')]
    """
    return read_objects(source, _unique(Question.from_dict), on_bad=on_bad)


def write_recordings(
    path: str | os.PathLike[str], recordings: Iterable[Recording]
) -> int:
    """Write a file of recordings, whole or not at all.

    Args:
        path: The file; what was there is replaced when the last line is written.
        recordings: They are taken one by one, so they need not fit in memory.

    Returns:
        How many were written.

    Raises:
        InputError: A recording holds what JSON has no word for, such as NaN.
        OSError: The file cannot be written.
    """
    count = 0
    with replace_file(path) as stream:
        for count, recording in enumerate(recordings, start=1):  # noqa: B007 - the total
            stream.write(json_line(recording.to_dict()))
    return count


def _unique(read: Callable[[Mapping[str, Any]], Row]) -> Callable[..., Row]:
    """Return ``read`` with a check that no id comes twice."""
    seen: set[str] = set()

    def read_new(row: Mapping[str, Any]) -> Row:
        found = read(row)
        if found.id in seen:
            msg = f"id: {found.id!r} has come before"
            raise InputError(msg)
        seen.add(found.id)
        return found

    return read_new


def _checked(adapter: TypeAdapter[Row], cls: type[Row], row: Mapping[str, Any]) -> Row:
    known = {one.name: one for one in fields(cls) if one.name != "extra"}
    # A field that is null says no more than one that is left out.
    given = {
        name: row[name]
        for name, one in known.items()
        if name in row and (row[name] is not None or one.default is MISSING)
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
