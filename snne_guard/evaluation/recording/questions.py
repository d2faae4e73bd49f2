"""Questions of a data set, one JSON object a line: what a recording begins with."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

from snne_guard.errors import InputError
from snne_guard.evaluation.recording.fields import (
    identifier,
    optional,
    text,
    text_list,
    text_or_none,
)
from snne_guard.evaluation.recording.lines import BadLine, parse_lines

__all__ = ["Question", "parse_questions", "read_questions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question of a data set.

    Attributes:
        id: Unique in its file. A line without one gets a hash of its question and
            context, the same wherever the line stands.
        text: What is asked; the field ``question``.
        context: What the model is given to answer from.
        answers: Reference answers, None where they are unknown.
        fields: Every field of the line, as it came.
        shown: What the model is sent, where a data set has a prompt of its own.

    Example:
        >>> question = Question.from_dict({"question": "Capital of France?"})
        >>> question.id, question.prompt
        ('q-86de8525172ae71e', 'Capital of France?')
    """

    id: str
    text: str = field(repr=False)
    context: str | None = field(default=None, repr=False)
    answers: tuple[str, ...] | None = field(default=None, repr=False)
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    shown: str | None = field(default=None, repr=False)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any], /) -> Question:
        """Check the fields of a JSON object and return them as a question.

        Raises:
            InputError: A field is missing or of another kind than it must be.
        """
        if "question" not in fields:
            msg = 'expected a field "question"'
            raise InputError(msg)
        asked = text(fields, "question")
        if not asked.strip():
            msg = 'expected "question" to be a text, got an empty one'
            raise InputError(msg)
        context = text_or_none(fields, "context")
        named = optional(identifier, fields, "id")
        return cls(
            id=_id_of(asked, context) if named is None else named,
            text=asked,
            context=context,
            answers=optional(text_list, fields, "answers"),
            fields=fields,
        )

    @property
    def prompt(self) -> str:
        """What the model is asked: the question, under its context if there is one."""
        if self.shown is not None:
            return self.shown
        if not self.context:
            return self.text
        return f"Context: {self.context}\n\nQuestion: {self.text}"


def _id_of(asked: str, context: str | None) -> str:
    digest = blake2b(digest_size=8)
    for part in (asked, context or ""):
        content = part.encode("utf-8", "surrogatepass")
        digest.update(len(content).to_bytes(8) + content)
    return f"q-{digest.hexdigest()}"


def read_questions(
    path: str | os.PathLike[str], *, strict: bool = False
) -> Iterator[tuple[int, Question | BadLine]]:
    """Read a file of questions line by line.

    Memory does not grow with the file but for 16 bytes a line, by which ids that come
    twice are found. A file of recordings is one of questions too.

    Args:
        path: The file, UTF-8, one JSON object a line with ``question`` and where known
            ``id``, ``context``, ``answers`` and anything else.
        strict: Whether the first bad line ends the reading.

    Yields:
        The line's number, from 1, and the question or what is wrong with the line.

    Raises:
        InputError: With ``strict``, at the first bad line; the message has its number.
        OSError: The file cannot be read.

    Example:
        >>> import tempfile, pathlib
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder) / "a.jsonl"
        ...     _ = path.write_text('{"id": 7, "question": "Why?"}')
        ...     list(read_questions(path))
        [(1, Question(id='7'))]
    """
    with Path(path).open("rb") as lines:
        yield from parse_questions(lines, strict=strict)


def parse_questions(
    lines: Iterable[bytes], *, strict: bool = False
) -> Iterator[tuple[int, Question | BadLine]]:
    """Read questions from lines of bytes; the rest is as in ``read_questions``.

    A line is taken from ``lines`` only when the one before has been dealt with.

    Example:
        >>> list(parse_questions([b'{"id": "1"}']))
        [(1, BadLine(message='expected a field "question"'))]
    """
    return parse_lines(lines, Question.from_dict, strict=strict)
