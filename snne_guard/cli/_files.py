"""Files of lines, read with a count of bytes and written whole or not at all."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from snne_guard._atomic import atomic_output
from snne_guard.errors import ConfigurationError

__all__ = ["LineSource", "atomic_output", "open_input", "refuse_same_file"]


class LineSource:
    """Lines of a binary stream; remembers the one that was taken last."""

    def __init__(self, stream: IO[bytes], on_bytes: Callable[[int], object]) -> None:
        self._stream = stream
        self._on_bytes = on_bytes
        self.raw = b""

    def __iter__(self) -> Iterator[bytes]:
        for line in self._stream:
            self.raw = line
            yield line
            # Counted when the line has been dealt with, not when it was read.
            self._on_bytes(len(line))


@contextmanager
def open_input(name: str) -> Generator[tuple[IO[bytes], int | None]]:
    """Open a file, or standard input for ``-``; yield it and its size if known."""
    if name == "-":
        yield sys.stdin.buffer, None
        return
    with Path(name).open("rb") as stream:
        # The size of a pipe is 0, which would be a bar that is full at once.
        yield stream, os.fstat(stream.fileno()).st_size or None


def refuse_same_file(stream: IO[bytes], output: Path) -> None:
    """Raise ConfigurationError if the output is the input or cannot be replaced."""
    if not output.exists():
        return
    if not output.is_file():
        msg = f"expected --output to be a regular file, got {output}"
        raise ConfigurationError(msg)
    try:
        source = os.fstat(stream.fileno())
    except OSError:
        return
    if os.path.samestat(source, output.stat()):
        msg = f"--output {output} is the input itself; give it another name"
        raise ConfigurationError(msg)
