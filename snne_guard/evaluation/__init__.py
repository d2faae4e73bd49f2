"""Recorded answers, how they are read, and what an uncertainty is worth on them."""

from snne_guard.evaluation._lines import BadLine
from snne_guard.evaluation.abstention import ABSTENTIONS, is_abstention, is_unanswerable
from snne_guard.evaluation.agreement import (
    agreement,
    both_lexical,
    is_lexical,
    labels_by_tokens,
)
from snne_guard.evaluation.bert_score_grader import BertScoreGrader
from snne_guard.evaluation.calibration_error import brier, brier_skill, ece
from snne_guard.evaluation.comparison.runner import evaluate
from snne_guard.evaluation.comparison.table import to_csv, to_rows
from snne_guard.evaluation.cross_fit import cross_fitted
from snne_guard.evaluation.curves import precision_recall_curve, roc_curve
from snne_guard.evaluation.dataset_reader import read_dataset
from snne_guard.evaluation.datasets import DATASETS, Dataset, dataset_named
from snne_guard.evaluation.drawn import Drawn
from snne_guard.evaluation.grade import Grade, Grader, LabelGrader, LabelsFirst
from snne_guard.evaluation.grading import GRADERS, grade_all, resolve_grader
from snne_guard.evaluation.honesty import AnswerAmongSamples, answer_among_samples
from snne_guard.evaluation.intervals import (
    Bootstrap,
    Comparison,
    Interval,
    interval,
)
from snne_guard.evaluation.judge_grader import JudgeGrader
from snne_guard.evaluation.judge_prompt import judge_prompt, read_yes_no
from snne_guard.evaluation.metrics import aupr, auroc, spearman
from snne_guard.evaluation.numeric_match import final_number, numeric_match
from snne_guard.evaluation.prompts import Prompt
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
from snne_guard.evaluation.reference_grader import ReferenceGrader, rouge_l_f1
from snne_guard.evaluation.reliability_bins import Bins, Reliability, reliability
from snne_guard.evaluation.report import to_html, write_report
from snne_guard.evaluation.resampling import bootstrap, resamples
from snne_guard.evaluation.results import (
    AgreementOfGraders,
    Curve,
    EvaluatedSet,
    Evaluation,
    HardQuestion,
    MethodResult,
    Metric,
)
from snne_guard.evaluation.risk_coverage import (
    auarc,
    aurc,
    e_aurc,
    prr,
    risk_coverage_curve,
)
from snne_guard.evaluation.squad import (
    squad_contains,
    squad_exact_match,
    squad_f1,
    squad_normalised,
)
from snne_guard.evaluation.stopping import learn_stop, uncertainty_paths
from snne_guard.evaluation.store import Failure, RecordingStore
from snne_guard.evaluation.user_grader import FunctionGrader, import_function

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
    "LabelGrader",
    "LabelsFirst",
    "MethodResult",
    "Metric",
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
    "auarc",
    "aupr",
    "aurc",
    "auroc",
    "bootstrap",
    "both_lexical",
    "brier",
    "brier_skill",
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
