"""Recorded answers, how they are graded, and what an uncertainty is worth on them."""

from snne_guard.evaluation.recordings import (
    Question,
    Recording,
    read_questions,
    read_recordings,
    write_recordings,
)

__all__ = [
    "Question",
    "Recording",
    "read_questions",
    "read_recordings",
    "write_recordings",
]
