"""Questions and recorded answers, read as a stream, and how one becomes the other."""

from snne_guard.evaluation._lines import BadLine
from snne_guard.evaluation.drawn import Drawn
from snne_guard.evaluation.questions import (
    Question,
    parse_questions,
    read_questions,
)
from snne_guard.evaluation.recorder import Draw, Recorder, Tally
from snne_guard.evaluation.recordings import (
    Recording,
    parse_recordings,
    read_recordings,
)
from snne_guard.evaluation.stopping import learn_stop, uncertainty_paths
from snne_guard.evaluation.store import Failure, RecordingStore

__all__ = [
    "BadLine",
    "Draw",
    "Drawn",
    "Failure",
    "Question",
    "Recorder",
    "Recording",
    "RecordingStore",
    "Tally",
    "learn_stop",
    "parse_questions",
    "parse_recordings",
    "read_questions",
    "read_recordings",
    "uncertainty_paths",
]
