"""Recordings: answers and samples that were drawn before, one JSON object a line."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from snne_guard.errors import InputError
from snne_guard.evaluation._fields import (
    identifier,
    json_object,
    kind,
    logprob_lists,
    logprobs,
    optional,
    text,
    text_list,
    text_or_none,
    zero_or_one,
)

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


@dataclass(frozen=True, slots=True, kw_only=True)
class BadLine:
    """A line that is no recording.

    Attributes:
        message: What was expected and what was there, without the text of an answer.
    """

    message: str


def read_recordings(
    path: str | os.PathLike[str], *, strict: bool = False
) -> Iterator[tuple[int, Recording | BadLine]]:
    """Read a file of recordings line by line.

    Memory does not grow with the file but for 8 bytes a line, the hash by which ids
    that come twice are found.

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
        [(2, 'the id "1" has come before in this file')]
    """
    seen = _SeenIds()
    for number, line in enumerate(lines, start=1):
        content = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
        if not content.strip():
            continue
        row = _parse(content, seen)
        if strict and isinstance(row, BadLine):
            msg = f"line {number}: {row.message}"
            raise InputError(msg)
        yield number, row


def _parse(line: bytes, seen: _SeenIds) -> Recording | BadLine:
    try:
        recording = Recording.from_dict(_json_object(line))
    except InputError as error:
        return BadLine(message=str(error))
    if not seen.add(recording.id):
        shown = json.dumps(recording.id)
        return BadLine(message=f"the id {shown} has come before in this file")
    return recording


def _json_object(line: bytes) -> dict[str, Any]:
    try:
        value: Any = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        msg = f"expected UTF-8, byte {error.start} is not"
        raise InputError(msg) from error
    except json.JSONDecodeError as error:
        msg = f"expected a JSON object, {error.msg} at column {error.colno}"
        raise InputError(msg) from error
    except (ValueError, RecursionError) as error:
        # A number of thousands of digits, or lists in lists in lists.
        msg = f"expected plain JSON, got {type(error).__name__}"
        raise InputError(msg) from error
    if not isinstance(value, dict):
        msg = f"expected a JSON object, got {kind(value)}"
        raise InputError(msg)
    return cast(dict[str, Any], value)


class _SeenIds:
    """A set of 64-bit hashes; a set of Python's own takes ten times the memory.

    Two of a million ids have the same hash once in 40 million files.
    """

    def __init__(self, *, recent: int = 4096) -> None:
        self._sorted: NDArray[np.uint64] = np.empty(0, dtype=np.uint64)
        self._recent: set[int] = set()
        self._limit = recent

    def add(self, text: str) -> bool:
        """Add an id and return whether it is new."""
        digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        value = int.from_bytes(digest)
        if value in self._recent or self._in_sorted(value):
            return False
        self._recent.add(value)
        if len(self._recent) >= self._limit:
            fresh = np.fromiter(self._recent, dtype=np.uint64)
            self._sorted = np.concatenate([self._sorted, fresh])
            self._sorted.sort()
            self._recent.clear()
        return True

    def _in_sorted(self, value: int) -> bool:
        at = int(np.searchsorted(self._sorted, np.uint64(value)))
        return at < len(self._sorted) and int(self._sorted[at]) == value
