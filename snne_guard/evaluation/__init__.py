"""Recorded answers, read as a stream; evaluation on top of them lives here too."""

from snne_guard.evaluation.recordings import (
    BadLine,
    Recording,
    parse_recordings,
    read_recordings,
)

__all__ = ["BadLine", "Recording", "parse_recordings", "read_recordings"]
