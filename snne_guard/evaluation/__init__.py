"""Recorded answers, how they are read, and what an uncertainty is worth on them."""

from snne_guard.evaluation._lines import BadLine
from snne_guard.evaluation.drawn import Drawn
from snne_guard.evaluation.metrics import aupr, auroc, spearman
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
from snne_guard.evaluation.risk_coverage import (
    auarc,
    aurc,
    e_aurc,
    prr,
    risk_coverage_curve,
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
    "auarc",
    "aupr",
    "aurc",
    "auroc",
    "e_aurc",
    "learn_stop",
    "parse_questions",
    "parse_recordings",
    "prr",
    "read_questions",
    "read_recordings",
    "risk_coverage_curve",
    "spearman",
    "uncertainty_paths",
]
