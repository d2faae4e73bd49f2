"""Questions and recordings: files of one JSON object a line."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, field, fields
from hashlib import blake2b
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, Annotated, Any, TypeVar

from pydantic import AfterValidator, Field, Strict, TypeAdapter, ValidationError

from snne_guard.errors import InputError

__all__ = [
    "Question",
    "Recording",
    "parse_questions",
    "parse_recordings",
    "read_questions",
    "read_recordings",
    "replace_file",
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
OnBad = Callable[[InputError], object]


def read_recordings(
    path: str | os.PathLike[str], *, on_bad: OnBad | None = None
) -> Iterator[Recording]:
    """Read a file of recordings line by line.

    Args:
        path: The file: UTF-8, one JSON object a line; blank lines are passed over.
        on_bad: Is called with the error of each line that is no recording, and the
            line is passed over. Without it the first such line ends the reading.

    Yields:
        The recordings in the order of the file.

    Raises:
        InputError: A line is no recording, or its id has come before. The message
            names the file and the line and quotes nothing of an answer.
        OSError: The file cannot be read.

    Example:
        >>> import tempfile, pathlib
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder) / "a.jsonl"
        ...     _ = path.write_text('{"id": "1", "question": "Why?", "samples": []}')
        ...     list(read_recordings(path, on_bad=lambda error: print(error.args[0])))
        a.jsonl, line 1: main_answer: Field required
        []
    """
    with Path(path).open("rb") as lines:
        yield from parse_recordings(lines, name=Path(path).name, on_bad=on_bad)


def parse_recordings(
    lines: Iterable[bytes], *, name: str = "input", on_bad: OnBad | None = None
) -> Iterator[Recording]:
    """Read recordings from lines of bytes; the rest is as in ``read_recordings``.

    Example:
        >>> line = b'{"id": "1", "question": null, "main_answer": "4", "samples": []}'
        >>> [recording.main_answer for recording in parse_recordings([line])]
        ['4']
    """
    return _parse(lines, Recording.from_dict, name=name, on_bad=on_bad)


def read_questions(
    path: str | os.PathLike[str], *, on_bad: OnBad | None = None
) -> Iterator[Question]:
    """Read a file of questions; the rest is as in ``read_recordings``.

    A line has ``question`` and, where known, ``id``, ``context``, ``answers`` and
    anything else. A file of recordings is also one of questions.

    Example:
        >>> import tempfile, pathlib
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder) / "a.jsonl"
        ...     _ = path.write_text('{"id": 7, "question": "Why?"}')
        ...     list(read_questions(path))
        [Question(id='7')]
    """
    with Path(path).open("rb") as lines:
        yield from parse_questions(lines, name=Path(path).name, on_bad=on_bad)


def parse_questions(
    lines: Iterable[bytes], *, name: str = "input", on_bad: OnBad | None = None
) -> Iterator[Question]:
    """Read questions from lines of bytes; the rest is as in ``read_recordings``."""
    return _parse(lines, Question.from_dict, name=name, on_bad=on_bad)


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
            stream.write(_json_line(recording))
    return count


@contextmanager
def replace_file(path: str | os.PathLike[str]) -> Generator[IO[bytes]]:
    """Yield a stream whose bytes take the place of a file once the block succeeds.

    Raises:
        OSError: The file cannot be written.
    """
    target = Path(path).resolve()
    stream = NamedTemporaryFile(  # noqa: SIM115 - closed below, before it is moved
        dir=target.parent, prefix=f".{target.name}.", delete=False
    )
    written = Path(stream.name)
    try:
        with stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        _give_usual_mode(written, target)
        written.replace(target)
    finally:
        written.unlink(missing_ok=True)


def _give_usual_mode(written: Path, target: Path) -> None:
    # A temporary file is readable by its owner alone.
    if target.exists():
        written.chmod(target.stat().st_mode & 0o777)
    else:
        mask = os.umask(0)
        os.umask(mask)
        written.chmod(0o666 & ~mask)


def _json_line(recording: Recording) -> bytes:
    try:
        return json.dumps(recording.to_dict(), allow_nan=False).encode() + b"\n"
    except (ValueError, TypeError, RecursionError) as error:
        msg = f"recording {recording.id!r} cannot be written as JSON: {error}"
        raise InputError(msg) from error


def _parse(
    lines: Iterable[bytes],
    read: Callable[[Mapping[str, Any]], Row],
    *,
    name: str,
    on_bad: OnBad | None,
) -> Iterator[Row]:
    seen: dict[str, int] = {}
    for number, line in enumerate(lines, start=1):
        content = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
        if not content.strip():
            continue
        try:
            row = read(_json_object(content))
            _check_new(seen.setdefault(row.id, number), number)
        except InputError as error:
            named = InputError(f"{name}, line {number}: {error}")
            if on_bad is None:
                raise named from error
            on_bad(named)
        else:
            yield row


def _check_new(first: int, number: int) -> None:
    if first != number:
        msg = f"id: the same as on line {first}"
        raise InputError(msg)


def _json_object(line: bytes) -> dict[str, Any]:
    try:
        value = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        msg = f"expected UTF-8, but byte {error.start} is not"
        raise InputError(msg) from None
    except json.JSONDecodeError as error:
        msg = f"expected a JSON object: {error.msg} at column {error.colno}"
        raise InputError(msg) from None
    except (ValueError, RecursionError, MemoryError) as error:
        # A number of thousands of digits, or lists in lists in lists.
        msg = f"expected a plain JSON object, got a {type(error).__name__}"
        raise InputError(msg) from None
    if not isinstance(value, dict):
        msg = f"expected a JSON object, got {type(value).__name__}"
        raise InputError(msg)
    return value


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
        # Pydantic's own text quotes the input, and so an answer.
        first = error.errors(
            include_url=False, include_input=False, include_context=False
        )[0]
        msg = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        msg = msg.replace("valid tuple", "list")
        raise InputError(msg) from None


def _content_id(row: Mapping[str, Any]) -> str:
    digest = blake2b(digest_size=8)
    for name in ("question", "context"):
        content = str(row.get(name) or "").encode("utf-8", "surrogatepass")
        digest.update(len(content).to_bytes(8) + content)
    return f"q-{digest.hexdigest()}"
