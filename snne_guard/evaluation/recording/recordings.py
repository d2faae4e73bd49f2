"""Recordings: answers and samples that were drawn before, one JSON object a line."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from snne_guard.errors import InputError
from snne_guard.evaluation.recording.fields import (
    identifier,
    json_object,
    logprob_lists,
    logprobs,
    optional,
    text,
    text_list,
    text_or_none,
    zero_or_one,
)
from snne_guard.evaluation.recording.lines import BadLine, parse_lines

__all__ = ["BadLine", "Recording", "parse_recordings", "read_recordings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """One question with its delivered answer and further samples.

    Attributes:
        id: Unique in its file.
        question: What was asked, None where there was no question.
        main_answer: The answer that was delivered.
        samples: Further draws; never the draw that is ``main_answer``.
        context: What the model was given to answer from.
        answers: Reference answers, None where they are unknown.
        main_logprobs: Natural log-probabilities of the delivered answer's tokens.
        token_logprobs: The same for each sample, None where unknown.
        label: 1 if ``main_answer`` is right, 0 if it is wrong, None if unknown.
        settings: How the answers were drawn: model, temperature, ...
        extra: Every other field, untouched.

    Example:
        >>> Recording.from_dict(
        ...     {"id": "1", "question": "2+2?", "main_answer": "4", "samples": ["4"]}
        ... ).samples
        ('4',)
    """

    id: str
    question: str | None = field(repr=False)
    main_answer: str = field(repr=False)
    samples: tuple[str, ...] = field(repr=False)
    context: str | None = field(default=None, repr=False)
    answers: tuple[str, ...] | None = field(default=None, repr=False)
    main_logprobs: tuple[float, ...] | None = field(default=None, repr=False)
    token_logprobs: tuple[tuple[float, ...] | None, ...] | None = field(
        default=None, repr=False
    )
    label: Literal[0, 1] | None = None
    settings: Mapping[str, Any] | None = None
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any], /) -> Recording:
        """Check the fields of a JSON object and return them as a recording.

        Raises:
            InputError: A field is missing or of another kind than it must be.
        """
        for name in ("id", "question", "main_answer", "samples"):
            if name not in fields:
                msg = f'expected a field "{name}"'
                raise InputError(msg)
        samples = text_list(fields, "samples")
        token_logprobs = logprob_lists(fields, "token_logprobs")
        if token_logprobs is not None and len(token_logprobs) != len(samples):
            msg = (
                f'expected "token_logprobs" of {len(samples)} samples, '
                f"got {len(token_logprobs)}"
            )
            raise InputError(msg)
        return cls(
            id=identifier(fields, "id"),
            question=text_or_none(fields, "question"),
            main_answer=text(fields, "main_answer"),
            samples=samples,
            context=text_or_none(fields, "context"),
            answers=optional(text_list, fields, "answers"),
            main_logprobs=optional(logprobs, fields, "main_logprobs"),
            token_logprobs=token_logprobs,
            label=optional(zero_or_one, fields, "label"),
            settings=optional(json_object, fields, "settings"),
            extra={name: fields[name] for name in fields if name not in _KNOWN},
        )


_KNOWN = frozenset(Recording.__dataclass_fields__) - {"extra"}


def read_recordings(
    path: str | os.PathLike[str], *, strict: bool = False
) -> Iterator[tuple[int, Recording | BadLine]]:
    """Read a file of recordings line by line.

    Memory does not grow with the file but for 16 bytes a line, by which ids that come
    twice are found.

    Args:
        path: The file, UTF-8, one JSON object a line; blank lines are passed over.
        strict: Whether the first bad line ends the reading.

    Yields:
        The line's number, from 1, and the recording or what is wrong with the line.

    Raises:
        InputError: With ``strict``, at the first bad line; the message has its number.
        OSError: The file cannot be read.

    Example:
        >>> import tempfile, pathlib
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder) / "a.jsonl"
        ...     _ = path.write_text('{"id": "1"}')
        ...     list(read_recordings(path))
        [(1, BadLine(message='expected a field "question"'))]
    """
    with Path(path).open("rb") as lines:
        yield from parse_recordings(lines, strict=strict)


def parse_recordings(
    lines: Iterable[bytes], *, strict: bool = False
) -> Iterator[tuple[int, Recording | BadLine]]:
    """Read recordings from lines of bytes; the rest is as in ``read_recordings``.

    A line is taken from ``lines`` only when the one before has been dealt with.

    Example:
        >>> line = b'{"id": "1", "question": null, "main_answer": "4", "samples": []}'
        >>> [
        ...     (number, row.message)
        ...     for number, row in parse_recordings([line, line])
        ...     if isinstance(row, BadLine)
        ... ]
        [(2, 'the id "1" has come before in this file, on line 1')]
    """
    return parse_lines(lines, Recording.from_dict, strict=strict)
