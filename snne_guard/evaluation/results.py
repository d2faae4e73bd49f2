"""What an evaluation found, as frozen values that go to JSON and back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, cast

__all__ = [
    "AgreementOfGraders",
    "Curve",
    "EvaluatedSet",
    "Evaluation",
    "HardQuestion",
    "MethodResult",
    "Metric",
    "Status",
]

Status = Literal["evaluated", "skipped", "formula_verified"]
"""``formula_verified``: the formula is tested, but what it needs (the weights of an NLI
model, say) could not be had, so that there is nothing to rank."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A figure with its interval over questions.

    Attributes:
        value: The figure, None where it does not exist (as AUROC of one class).
        low: Lower end of the interval, None where there is none.
        high: Upper end of it.
    """

    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Points of a curve under a label, in order.

    Attributes:
        label: What it is of, for example ``"snne[rouge_l]"``.
        x: ``(p,)`` abscissae.
        y: ``(p,)`` ordinates, None where there is none.
        low: ``(p,)`` lower ends of intervals, empty where there are none.
        high: ``(p,)`` upper ends.
        counts: ``(p,)`` questions behind each point, empty where nobody counts.
        metric: What the ordinate is where it is a metric of the methods: ``"auroc"``,
            or ``"prr"`` where nothing says right or wrong.
    """

    label: str
    x: tuple[float, ...]
    y: tuple[float | None, ...]
    low: tuple[float | None, ...] = ()
    high: tuple[float | None, ...] = ()
    counts: tuple[int, ...] = ()
    metric: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodResult:
    """How well one method ranks the questions of a set.

    Attributes:
        name: What ran, for example ``"dse[exact]"``.
        method: Its key in ``METHODS`` or ``READINGS``, or the name of the user's own.
        similarity: What compared the answers, None where nothing does.
        white_box: Whether it needs what only the model's owner can see.
        source: Paper and equation, or URL.
        status: Whether it was evaluated.
        why: Why it was not, None where it was.
        calls: Calls of a model a question: the samples and the delivered answer as far
            as the method looks at them, and a judge's verdicts.
        milliseconds: Time a question, its similarity included as if it ran alone.
        auroc: Area under the ROC curve of wrong against right answers.
        auarc: Area under the accuracy-rejection curve.
        prr: The paper's area under the prediction-rejection curve.
        prr_normalised: The same between random and oracle, as LM-Polygraph has it.
        aupr: Area under the precision-recall curve, wrong answers positive.
        e_aurc: Excess area under the risk-coverage curve; lower is better.
        auroc_by_length: AUROC within thirds of answer length, short to long.
        against_first: AUROC, or PRR where the grader does not say which answers are
            right, less that of the set's first method, on the same draws.
        ece: Expected calibration error of the cross-fitted probability.
        brier: Brier score of the cross-fitted probability.
        uncertainty: Value for each ranked question, in the order of the set's ids.
    """

    name: str
    method: str
    similarity: str | None = None
    white_box: bool = False
    source: str = ""
    status: Status = "evaluated"
    why: str | None = None
    calls: float | None = None
    milliseconds: float | None = None
    auroc: Metric | None = None
    auarc: Metric | None = None
    prr: Metric | None = None
    prr_normalised: Metric | None = None
    aupr: Metric | None = None
    e_aurc: Metric | None = None
    auroc_by_length: tuple[Metric, ...] = ()
    against_first: Metric | None = None
    ece: float | None = None
    brier: float | None = None
    uncertainty: tuple[float, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class HardQuestion:
    """A question on which score and truth disagree.

    Attributes:
        id: Its id.
        question: What was asked, None where there was no question.
        answer: The delivered answer.
        samples: The samples that were scored.
        references: Reference answers, empty where there are none.
        correct: Whether the delivered answer is right.
        uncertainty: The method's value.
        rank: Share of the questions that are less uncertain, in [0, 1].
    """

    id: str
    question: str | None
    answer: str
    samples: tuple[str, ...]
    references: tuple[str, ...]
    correct: bool
    uncertainty: float
    rank: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreementOfGraders:
    """How often two graders say the same of the same answers.

    Attributes:
        first: The grader whose labels are used.
        second: The other one.
        n: Answers that both graded.
        share: Share of them on which they agree.
        kappa: Cohen's kappa, None where it does not exist.
        both_right: Answers that both call right.
        first_only: Answers that the first alone calls right.
        second_only: Answers that the second alone calls right.
        both_wrong: Answers that neither calls right.
    """

    first: str
    second: str
    n: int
    share: float
    kappa: float | None
    both_right: int = 0
    first_only: int = 0
    second_only: int = 0
    both_wrong: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluatedSet:
    """What was found on one set of recordings, kept apart from every other.

    Attributes:
        name: Of its file, and what tells it from the file's other parts.
        path: The file.
        protocol: How the delivered answers came about, None where nobody says.
        grader: What says which answers are right.
        agreement: With a second grader, None where there is none.
        include_answer: Whether the delivered answer is a member of the scored sets.
        n_samples: Samples of each question that were scored.
        n_read: Questions in the file.
        left_out: Why questions are not ranked, and how many.
        accuracy: Share of right answers among the ranked questions.
        warnings: What a reader of the figures must know.
        methods: The methods, best AUROC first, those not evaluated last.
        ids: ``(N,)`` the ranked questions.
        correct: ``(N,)`` 1 right, 0 wrong.
        quality: ``(N,)`` the grader's quality in [0, 1].
        answer_length: ``(N,)`` tokens of the delivered answer.
        n_clusters: ``(N,)`` groups of equal answers, under ``clusters_by``.
        clusters_by: What tells equal answers.
        roc: ROC curve of each evaluated method.
        risk_coverage: Risk-coverage curve of each.
        auroc_by_samples: AUROC by number of scored answers, of each.
        auroc_by_clusters: AUROC by number of groups of equal answers, of each.
        reliability: Observed share of wrong answers by predicted probability.
        hardest: The questions on which score and truth disagree most.
        hardest_by: The method whose score that is.
        length_clusters_rho: Spearman correlation of the mean length of a question's
            scored answers, in tokens, and their number of groups (figure 1 of the
            paper).
        ablations: Curves of AUROC, or of PRR without one, by tau, similarity, number
            of answers or temperature, under the name of what varies.
    """

    name: str
    path: str
    protocol: str | None = None
    grader: str = "label"
    agreement: AgreementOfGraders | None = None
    include_answer: bool = True
    n_samples: int = 0
    n_read: int = 0
    left_out: Mapping[str, int] = field(default_factory=dict[str, int])
    accuracy: float | None = None
    warnings: tuple[str, ...] = ()
    methods: tuple[MethodResult, ...] = ()
    ids: tuple[str, ...] = field(default=(), repr=False)
    correct: tuple[int, ...] = field(default=(), repr=False)
    quality: tuple[float, ...] = field(default=(), repr=False)
    answer_length: tuple[int, ...] = field(default=(), repr=False)
    n_clusters: tuple[int, ...] = field(default=(), repr=False)
    clusters_by: str | None = None
    roc: tuple[Curve, ...] = field(default=(), repr=False)
    risk_coverage: tuple[Curve, ...] = field(default=(), repr=False)
    auroc_by_samples: tuple[Curve, ...] = field(default=(), repr=False)
    auroc_by_clusters: tuple[Curve, ...] = field(default=(), repr=False)
    reliability: tuple[Curve, ...] = field(default=(), repr=False)
    hardest: tuple[HardQuestion, ...] = field(default=(), repr=False)
    hardest_by: str | None = None
    length_clusters_rho: Metric | None = None
    ablations: Mapping[str, tuple[Curve, ...]] = field(
        default_factory=dict[str, tuple[Curve, ...]], repr=False
    )

    @property
    def graded(self) -> bool:
        """Whether its answers are better or worse, not right or wrong: PRR ranks them.

        AUROC and what else tells right answers from wrong ones do not exist then.
        """
        return self.accuracy is None and any(
            row.prr is not None and row.prr.value is not None for row in self.methods
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """What was found on all sets of one run.

    Attributes:
        sets: The sets, in the order of the files.
        settings: Options of the run, as they were given; ``similarity`` is all that
            compared the answers, of whichever row.
        draws: Bootstrap draws behind the intervals.
        level: Share of the draws within an interval.
        created: When, in ISO 8601.
        version: Of this library.
    """

    sets: tuple[EvaluatedSet, ...]
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    draws: int = 1000
    level: float = 0.95
    created: str = ""
    version: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold; non-finite numbers are texts.

        Example:
            >>> Evaluation(sets=()).to_dict()["draws"]
            1000
        """
        plain: dict[str, Any] = _plain(asdict(self))
        return plain


def _plain(value: Any) -> Any:  # noqa: ANN401 - of every kind that JSON has
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {key: _plain(one) for key, one in fields.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in cast("list[Any]", value)]
    return value
