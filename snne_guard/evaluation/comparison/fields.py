"""Whether there is a field by which files are to be split."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from snne_guard.errors import ConfigurationError
from snne_guard.evaluation.comparison.survey import field_of
from snne_guard.evaluation.recording.lines import BadLine
from snne_guard.evaluation.recording.recordings import read_recordings

__all__ = ["check_field"]


def check_field(paths: Sequence[str | os.PathLike[str]], name: str, /) -> None:
    """Refuse a field that no recording has: its name must be a slip.

    Files are read until one has it, so that this takes no time where all is well.

    Raises:
        ConfigurationError: There are recordings, and none has the field.
        OSError: A file cannot be read.
    """
    some = False
    for path in paths:
        # What cannot be read, or not twice, is refused where it is evaluated.
        for _, row in read_recordings(path) if Path(path).is_file() else ():
            if isinstance(row, BadLine):
                continue
            if field_of(row, name) is not None:
                return
            some = True
    if some:
        msg = f"no recording has a field {name!r} to split by"
        raise ConfigurationError(msg)
