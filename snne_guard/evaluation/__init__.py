"""Recorded answers, read as a stream; evaluation on top of them lives here too."""

from snne_guard.evaluation.recordings import (
    BadLine,
    Recording,
    parse_recordings,
    read_recordings,
)
from snne_guard.evaluation.stopping import learn_stop, uncertainty_paths

__all__ = [
    "BadLine",
    "Recording",
    "learn_stop",
    "parse_recordings",
    "read_recordings",
    "uncertainty_paths",
]
