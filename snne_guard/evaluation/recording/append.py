"""A file of lines that one process at a time appends to, whole line by whole line."""

from __future__ import annotations

import io
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from snne_guard._atomic import naming
from snne_guard.errors import ConfigurationError

if sys.platform == "win32":  # pragma: no cover - Windows
    import msvcrt
else:
    import fcntl

__all__ = ["AppendFile"]

_SYNC_SECONDS = 1.0
"""A machine that loses its power loses at most what was written in this time; a
process that is killed loses nothing."""
_BLOCK = 65_536


class AppendFile:
    """An open file that is this process's own until it is closed, or the process ends.

    The lock is the kernel's (``flock``): a process that is killed leaves none behind.

    Args:
        path: Created where there is none.

    Raises:
        ConfigurationError: If another process writes it, or it is no regular file.
        OSError: If it cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if path.exists() and not path.is_file():
            msg = f"expected {path} to be a regular file"
            raise ConfigurationError(msg)
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
        self._descriptor = os.open(path, flags, 0o666)
        self._synced = time.monotonic()
        try:
            _lock(self._descriptor, path)
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

    @property
    def size(self) -> int:
        """Bytes in the file."""
        return os.fstat(self._descriptor).st_size

    def whole(self) -> int:
        """Return the bytes up to the end of the last whole line."""
        end = self.size
        while end > 0:
            start = max(0, end - _BLOCK)
            at = self._read(start, end - start).rfind(b"\n")
            if at >= 0:
                return start + at + 1
            end = start
        return 0

    def lines(self) -> Iterator[bytes]:
        """Yield the whole lines, each with its end."""
        left = self.whole()
        with self.path.open("rb") as stream:
            while left > 0:
                line = stream.readline()
                left -= len(line)
                yield line

    def line_at(self, offset: int) -> bytes:
        """Return the line that begins at an offset."""
        with self.path.open("rb") as stream:
            stream.seek(offset)
            return stream.readline()

    def mend(self, is_whole: Callable[[bytes], bool], *, backup: Path) -> int:
        """Settle what comes after the last whole line: a run was killed writing it.

        What is a line but for its end gets one. Anything else is cut off and goes to
        the backup.

        Args:
            is_whole: Says whether a line without its end is all there.
            backup: A file to append to what is cut off.

        Returns:
            The number of bytes that were cut off.

        Raises:
            ConfigurationError: If what is there cannot be the beginning of a line of
                ours; it is left as it is.
        """
        start = self.whole()
        torn = self._read(start, self.size - start)
        if not torn:
            return 0
        # A file system that lost its power may leave zeros.
        if torn.lstrip(b"\0 \t\r")[:1] not in {b"", b"{"}:
            msg = f"expected JSON objects in {self.path}, and it ends with another text"
            raise ConfigurationError(msg)
        if is_whole(torn):
            self.append(b"\n")
            return 0
        with naming(backup), backup.open("ab") as stream:
            stream.write(torn + b"\n")
            stream.flush()
            os.fsync(stream.fileno())
        os.ftruncate(self._descriptor, start)
        self.sync()
        return len(torn)

    def append(self, line: bytes) -> int:
        """Write a line, all of it or nothing; return the offset where it begins.

        Raises:
            OSError: If it cannot be written; the file ends with a whole line.
        """
        start = self.size
        try:
            self._write(line)
        except BaseException:
            os.ftruncate(self._descriptor, start)
            raise
        if time.monotonic() - self._synced >= _SYNC_SECONDS:
            self.sync()
        return start

    def sync(self) -> None:
        """Have what was written on the disk.

        Raises:
            OSError: If that fails, with the file's name.
        """
        with naming(self.path):
            os.fsync(self._descriptor)
        self._synced = time.monotonic()

    def close(self) -> None:
        """Have it on the disk, and let others write."""
        try:
            self.sync()
        finally:
            os.close(self._descriptor)

    def _write(self, line: bytes) -> None:
        left = memoryview(line)
        with naming(self.path):
            while left:  # a full disk takes a part, and says so at the next attempt
                left = left[os.write(self._descriptor, left) :]

    def _read(self, start: int, count: int) -> bytes:
        with self.path.open("rb") as stream:
            stream.seek(start, io.SEEK_SET)
            return stream.read(count)


def _lock(descriptor: int, path: Path) -> None:
    try:
        if sys.platform == "win32":  # pragma: no cover - Windows
            # Locks there keep others from reading: far behind the end of the file.
            os.lseek(descriptor, 1 << 40, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError) as error:
        msg = f"another run is writing {path}; wait until it has ended"
        raise ConfigurationError(msg) from error
