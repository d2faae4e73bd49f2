"""A file of lines that one process at a time appends to; what is written survives."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from snne_guard.errors import ConfigurationError

if sys.platform != "win32":
    import fcntl

__all__ = ["AppendFile", "is_whole"]


class AppendFile:
    r"""A file that belongs to this process until it is closed or the process ends.

    A line is on the disk when ``append`` returns, and the file ends with a whole line
    whatever kills the process: an unfinished line that a killed process left is cut off
    when the file is opened again. The lock is the kernel's, so a killed process leaves
    none behind; on Windows nothing is locked.

    Args:
        path: Created where there is none.

    Attributes:
        path: The file.
        torn: Bytes of an unfinished last line that were cut off.

    Raises:
        ConfigurationError: Another process writes the file, or it is no regular file.
        OSError: It cannot be opened.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with AppendFile(Path(folder) / "a.jsonl") as file:
        ...         file.append(b"{}")
        ...         list(file.lines())
        [b'{}\n']
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if self.path.exists() and not self.path.is_file():
            msg = f"expected {self.path} to be a regular file"
            raise ConfigurationError(msg)
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
        self._descriptor = os.open(self.path, flags, 0o666)
        try:
            self._lock()
            self.torn = self._cut_unfinished()
        except BaseException:
            os.close(self._descriptor)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def lines(self) -> Iterator[bytes]:
        """Yield the lines, each with its end."""
        with self.path.open("rb") as stream:
            yield from stream

    def append(self, line: bytes) -> None:
        """Write a line and its end, all of it or nothing.

        Raises:
            OSError: It cannot be written; the file still ends with a whole line.
        """
        start = os.fstat(self._descriptor).st_size
        left = memoryview(line.rstrip(b"\n") + b"\n")
        try:
            while left:  # a full disk takes a part, and says so at the next attempt
                left = left[os.write(self._descriptor, left) :]
            os.fsync(self._descriptor)
        except BaseException:
            os.ftruncate(self._descriptor, start)
            raise

    def close(self) -> None:
        """Let others write."""
        os.close(self._descriptor)

    def _lock(self) -> None:
        if sys.platform == "win32":
            return
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError) as error:
            msg = f"another process is writing {self.path}; wait until it has ended"
            raise ConfigurationError(msg) from error

    def _cut_unfinished(self) -> int:
        size = whole = 0
        last = b""
        for last in self.lines():
            size += len(last)
            whole += len(last) if is_whole(last) else 0
        if whole < size:
            os.ftruncate(self._descriptor, whole)
        elif last and not last.endswith(b"\n"):
            os.write(self._descriptor, b"\n")
        return size - whole


def is_whole(line: bytes, /) -> bool:
    """Return whether a line has its end, or needs nothing but that."""
    if line.endswith(b"\n"):
        return True
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False
