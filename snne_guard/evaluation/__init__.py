"""Recorded answers, how they are read, and what an uncertainty is worth on them."""

from snne_guard.evaluation.calibrating.calibrate import calibrate, run_calibration
from snne_guard.evaluation.calibrating.promise import Promise
from snne_guard.evaluation.calibrating.results import CalibrationRun
from snne_guard.evaluation.comparison.runner import evaluate
from snne_guard.evaluation.comparison.table import to_csv, to_rows
from snne_guard.evaluation.data.dataset_reader import read_dataset
from snne_guard.evaluation.data.datasets import DATASETS, Dataset, dataset_named
from snne_guard.evaluation.data.prompts import Prompt
from snne_guard.evaluation.grading.abstention import (
    ABSTENTIONS,
    is_abstention,
    is_unanswerable,
)
from snne_guard.evaluation.grading.agreement import (
    agreement,
    both_lexical,
    is_lexical,
    labels_by_tokens,
)
from snne_guard.evaluation.grading.bert_score_grader import BertScoreGrader
from snne_guard.evaluation.grading.grade import Grade, Grader, LabelGrader, LabelsFirst
from snne_guard.evaluation.grading.honesty import (
    AnswerAmongSamples,
    answer_among_samples,
)
from snne_guard.evaluation.grading.judge_grader import JudgeGrader
from snne_guard.evaluation.grading.judge_prompt import judge_prompt, read_yes_no
from snne_guard.evaluation.grading.numeric_match import final_number, numeric_match
from snne_guard.evaluation.grading.reference_grader import ReferenceGrader, rouge_l_f1
from snne_guard.evaluation.grading.registry import GRADERS, grade_all, resolve_grader
from snne_guard.evaluation.grading.squad import (
    squad_contains,
    squad_exact_match,
    squad_f1,
    squad_normalised,
)
from snne_guard.evaluation.grading.user_grader import FunctionGrader, import_function
from snne_guard.evaluation.labelling.labels import (
    Label,
    Labels,
    answer_digest,
    labels_path,
)
from snne_guard.evaluation.labelling.store import LabelStore
from snne_guard.evaluation.metrics.calibration_error import brier, brier_skill, ece
from snne_guard.evaluation.metrics.cross_fit import cross_fitted
from snne_guard.evaluation.metrics.curves import precision_recall_curve, roc_curve
from snne_guard.evaluation.metrics.intervals import (
    Bootstrap,
    Comparison,
    Interval,
    interval,
)
from snne_guard.evaluation.metrics.order import aupr, auroc, spearman
from snne_guard.evaluation.metrics.reliability_bins import (
    Bins,
    Reliability,
    reliability,
)
from snne_guard.evaluation.metrics.resampling import bootstrap, resamples
from snne_guard.evaluation.metrics.risk_coverage import (
    auarc,
    aurc,
    e_aurc,
    prr,
    risk_coverage_curve,
)
from snne_guard.evaluation.recording.drawn import Drawn
from snne_guard.evaluation.recording.lines import BadLine
from snne_guard.evaluation.recording.questions import (
    Question,
    parse_questions,
    read_questions,
)
from snne_guard.evaluation.recording.recorder import Draw, Recorder, Tally
from snne_guard.evaluation.recording.recordings import (
    Recording,
    parse_recordings,
    read_recordings,
)
from snne_guard.evaluation.recording.store import Failure, RecordingStore
from snne_guard.evaluation.reporting.report import to_html, write_report
from snne_guard.evaluation.results import (
    AgreementOfGraders,
    Curve,
    EvaluatedSet,
    Evaluation,
    HardQuestion,
    MethodResult,
    Metric,
)
from snne_guard.evaluation.stopping import learn_stop, uncertainty_paths

__all__ = [
    "ABSTENTIONS",
    "DATASETS",
    "GRADERS",
    "AgreementOfGraders",
    "AnswerAmongSamples",
    "BadLine",
    "BertScoreGrader",
    "Bins",
    "Bootstrap",
    "CalibrationRun",
    "Comparison",
    "Curve",
    "Dataset",
    "Draw",
    "Drawn",
    "EvaluatedSet",
    "Evaluation",
    "Failure",
    "FunctionGrader",
    "Grade",
    "Grader",
    "HardQuestion",
    "Interval",
    "JudgeGrader",
    "Label",
    "LabelGrader",
    "LabelStore",
    "Labels",
    "LabelsFirst",
    "MethodResult",
    "Metric",
    "Promise",
    "Prompt",
    "Question",
    "Recorder",
    "Recording",
    "RecordingStore",
    "ReferenceGrader",
    "Reliability",
    "Tally",
    "agreement",
    "answer_among_samples",
    "answer_digest",
    "auarc",
    "aupr",
    "aurc",
    "auroc",
    "bootstrap",
    "both_lexical",
    "brier",
    "brier_skill",
    "calibrate",
    "cross_fitted",
    "dataset_named",
    "e_aurc",
    "ece",
    "evaluate",
    "final_number",
    "grade_all",
    "import_function",
    "interval",
    "is_abstention",
    "is_lexical",
    "is_unanswerable",
    "judge_prompt",
    "labels_by_tokens",
    "labels_path",
    "learn_stop",
    "numeric_match",
    "parse_questions",
    "parse_recordings",
    "precision_recall_curve",
    "prr",
    "read_dataset",
    "read_questions",
    "read_recordings",
    "read_yes_no",
    "reliability",
    "resamples",
    "resolve_grader",
    "risk_coverage_curve",
    "roc_curve",
    "rouge_l_f1",
    "run_calibration",
    "spearman",
    "squad_contains",
    "squad_exact_match",
    "squad_f1",
    "squad_normalised",
    "to_csv",
    "to_html",
    "to_rows",
    "uncertainty_paths",
    "write_report",
]
