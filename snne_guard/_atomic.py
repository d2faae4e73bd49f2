"""Files that appear whole or not at all, and errors that say which file it is."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["atomic_output", "naming"]


@contextmanager
def naming(path: str | os.PathLike[str]) -> Generator[None]:
    """Have errors of the system say which file they are about.

    Those of an open file do not ("No space left on device"), and those of one that is
    to take another's place name a file that the user has never heard of.
    """
    try:
        yield
    except OSError as error:
        error.filename, error.filename2 = os.fspath(path), None
        raise


@contextmanager
def atomic_output(output: Path | None) -> Generator[Callable[[bytes], object]]:
    """Yield a function that writes; the file appears when all went well.

    Until then the bytes are in a hidden file beside it, which is removed on an error.
    Without an output what is written goes nowhere.

    Raises:
        OSError: It cannot be written; the error has the name of the output.
    """
    if output is None:
        yield len
        return
    # Through a link, so that the link stays one.
    target = output.resolve()
    partial = target.with_name(f".{target.name}.{secrets.token_hex(4)}.partial")
    try:
        with naming(output):
            stream = partial.open("xb")

        def write(content: bytes) -> int:
            with naming(output):
                return stream.write(content)

        try:
            yield write
            with naming(output):
                stream.flush()
                os.fsync(stream.fileno())
        finally:
            with naming(output):
                stream.close()
        with naming(output):
            if target.exists():
                shutil.copymode(target, partial)
            partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
