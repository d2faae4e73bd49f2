"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["atomic_output"]


@contextmanager
def atomic_output(output: Path | None) -> Generator[Callable[[bytes], object]]:
    """Yield a function that writes; the file appears when all went well.

    Until then the bytes are in a hidden file beside it, which is removed on an error.
    Without an output what is written goes nowhere.
    """
    if output is None:
        yield len
        return
    # Through a link, so that the link stays one.
    target = output.resolve()
    partial = target.with_name(f".{target.name}.{secrets.token_hex(4)}.partial")
    try:
        with partial.open("xb") as stream:
            yield stream.write
            stream.flush()
            os.fsync(stream.fileno())
        if target.exists():
            shutil.copymode(target, partial)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
