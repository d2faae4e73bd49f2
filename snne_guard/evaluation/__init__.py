"""Recorded answers, their grading, and the evaluation of uncertainties on them."""

from snne_guard.evaluation.calibrating import CalibrationResult, calibrate
from snne_guard.evaluation.grade import (
    GRADERS,
    Grade,
    Grader,
    ReferenceGrader,
    graded,
    math_verify,
    numeric_match,
    resolve_grader,
    squad_f1,
    word_f1,
)
from snne_guard.evaluation.merge import merge_recordings
from snne_guard.evaluation.metrics import (
    Bootstrap,
    Interval,
    auarc,
    auroc,
    bootstrap,
    prr,
    risk_coverage,
)
from snne_guard.evaluation.model_graders import JudgeGrader, bert_score
from snne_guard.evaluation.plots import (
    plot_calibration,
    plot_methods,
    plot_recipes,
    plot_risk_coverage,
    plot_uncertainty,
)
from snne_guard.evaluation.ranking import Evaluation, MethodResult, evaluate
from snne_guard.evaluation.recordings import (
    Question,
    Recording,
    read_labelled,
    read_questions,
    read_recordings,
    shard_of,
    write_recordings,
)
from snne_guard.evaluation.report import html_report
from snne_guard.evaluation.sentences import SentenceRanking
from snne_guard.evaluation.tables import read_rows, score_frame

__all__ = [
    "GRADERS",
    "Bootstrap",
    "CalibrationResult",
    "Evaluation",
    "Grade",
    "Grader",
    "Interval",
    "JudgeGrader",
    "MethodResult",
    "Question",
    "Recording",
    "ReferenceGrader",
    "SentenceRanking",
    "auarc",
    "auroc",
    "bert_score",
    "bootstrap",
    "calibrate",
    "evaluate",
    "graded",
    "html_report",
    "math_verify",
    "merge_recordings",
    "numeric_match",
    "plot_calibration",
    "plot_methods",
    "plot_recipes",
    "plot_risk_coverage",
    "plot_uncertainty",
    "prr",
    "read_labelled",
    "read_questions",
    "read_recordings",
    "read_rows",
    "resolve_grader",
    "risk_coverage",
    "score_frame",
    "shard_of",
    "squad_f1",
    "word_f1",
    "write_recordings",
]
