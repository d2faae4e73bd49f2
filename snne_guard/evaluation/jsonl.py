"""Files with one JSON object per line, read, and appended to by one process at once."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any, Self, TypeVar

from pydantic import TypeAdapter, ValidationError

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.files import first_problem, json_object

if sys.platform != "win32":
    import fcntl

T = TypeVar("T")
Source = str | os.PathLike[str] | Iterable[bytes]


def read_objects(
    source: Source, read: Callable[[dict[str, Any]], T], *, name: str | None = None
) -> Iterator[T]:
    """Yield the value of each line; blank lines are skipped.

    Args:
        source: A path, or lines of bytes such as an open file.
        read: Turns a JSON object into a value, or raises InputError.
        name: What messages call the source; None: its own name.

    Raises:
        InputError: A line is bad; the message names the source and the line.
    """
    if isinstance(source, str | os.PathLike):
        with Path(source).open("rb") as lines:
            yield from read_objects(lines, read, name=name)
        return
    name = name or str(getattr(source, "name", "input"))
    for number, line in enumerate(source, start=1):
        content = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
        if not content.strip():
            continue
        try:
            value = read(json_object(content))
        except InputError as error:
            msg = f"{name}, line {number}: {error}"
            raise InputError(msg) from error
        yield value


def json_line(row: Mapping[str, Any]) -> bytes:
    """Return a JSON object as a line; InputError if it holds NaN or the like."""
    try:
        return json.dumps(row, allow_nan=False).encode() + b"\n"
    except (ValueError, TypeError, RecursionError) as error:
        msg = f"{row.get('id')!r} cannot be written as JSON: {error}"
        raise InputError(msg) from error


def read_appended(
    path: str | os.PathLike[str], read: Callable[[dict[str, Any]], T]
) -> Iterator[T]:
    """Yield the values of a file that is appended to; none if there is no file.

    An unfinished last line, left by a killed process, is skipped.
    """
    if Path(path).exists():
        yield from read_objects(_whole_lines(path), read, name=os.fspath(path))


def _whole_lines(path: str | os.PathLike[str]) -> Iterator[bytes]:
    with Path(path).open("rb") as lines:
        for line in lines:
            if not line.endswith(b"\n"):  # the last, as a killed process left it
                try:
                    json_object(line)
                except InputError:
                    return
            yield line


def checked(adapter: TypeAdapter[T], row: Mapping[str, Any]) -> T:
    """Return the value of a JSON object as pydantic validates it; else InputError."""
    try:
        return adapter.validate_python(row)
    except ValidationError as error:
        raise InputError(first_problem(error)) from None


def digest(*parts: object) -> str:
    """Return a hash of JSON values, the same everywhere, that reveals none of them."""
    content = json.dumps(parts, sort_keys=True).encode()
    return blake2b(content, digest_size=8).hexdigest()


def append_whole(descriptor: int, line: bytes) -> None:
    """Append a line to a file that nobody else writes now, or nothing of it."""
    status = os.fstat(descriptor)
    left = memoryview(line)
    try:
        while left:  # a full disk takes a part, and says so at the next attempt
            left = left[os.write(descriptor, left) :]
    except BaseException:
        if stat.S_ISREG(status.st_mode):  # of a pipe, nothing can be taken back
            with suppress(OSError):
                os.ftruncate(descriptor, status.st_size)
        raise


def beside(recording: str | os.PathLike[str], kind: str) -> Path:
    """Return the path of a file beside a recording, a.labels.jsonl for a.jsonl."""
    return Path(recording).with_suffix(f".{kind}.jsonl")


class AppendFile:
    """A file that belongs to this process until it is closed or the process ends.

    A line is on the disk when ``append`` returns. An unfinished last line, left by a
    process that was killed, is not read, and the first ``append`` cuts it off. The lock
    is the kernel's, so a killed process leaves none behind; on Windows nothing is
    locked.

    Raises:
        ConfigurationError: Another process writes the file.
        OSError: It cannot be opened.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._stream = self.path.open("ab", buffering=0)
        try:
            self._lock()
            last, self._size = b"\n", 0
            for last in _whole_lines(self.path):
                self._size += len(last)
            self._gap = b"" if last.endswith(b"\n") else b"\n"
        except BaseException:
            self._stream.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def append(self, row: Mapping[str, Any]) -> None:
        """Write a line, all of it or nothing."""
        line = self._gap + json_line(row)
        descriptor = self._stream.fileno()
        os.ftruncate(descriptor, self._size)
        append_whole(descriptor, line)
        os.fsync(descriptor)
        self._size += len(line)
        self._gap = b""

    def close(self) -> None:
        """Close the file, so that others may write to it."""
        self._stream.close()

    def _lock(self) -> None:
        if sys.platform != "win32":
            try:
                fcntl.flock(self._stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except (BlockingIOError, PermissionError) as error:
                msg = f"another process is writing {self.path}; wait until it has ended"
                raise ConfigurationError(msg) from error
