"""Values that a guard returns, and protocols for what users write themselves."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from snne_guard._version import __version__
from snne_guard.cost import Cost, RequestCost

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

Decision = Literal["accept", "flag", "refuse", "fallback", "unscored"]
"""What was decided about an answer. Without a threshold it is None."""

OnUncertain = Literal["flag", "refuse", "fallback", "raise"]
"""What is done with an answer that is not accepted."""

OnError = Literal["uncertain", "accept", "raise"]
"""What is done with an answer that could not be scored."""

ToolCalls = Literal["skip", "score"]
"""Whether an answer that calls tools passes unscored or has its calls compared."""

DecideOn = Literal["answer", "worst_field"]
"""Whether the whole answer's uncertainty decides, or that of its worst field."""

Schedule = Literal["concurrent", "answer_first"]
"""Whether samples are drawn together with the answer or after it."""

Grounding = Callable[[Sequence[str], str], ArrayLike]
"""Takes ``m`` sentences and the documents as one text, and returns ``m`` numbers in
[0, 1]: 1 where the documents say it, 0 where they do not."""

ContextFrom = Literal["function", "text", "tool_messages", "client"]
"""Where the documents of a call come from: a guard's option ``context``."""

REASONS: dict[str, str] = {
    "no_threshold": "no threshold is set, so nothing was decided",
    "no_context": "there are no documents that could support the answer",
    "ungrounded": "the documents support the answer less than min_grounded, or unknown",
    "other_language": "answer and documents differ in language: words tell nothing",
    "grounding_failed": "what compares the answer with the documents failed",
    "disabled": "SNNE_GUARD_DISABLED is set: the bare model answered",
    "not_sampled": "the call is outside the share that sample_rate samples",
    "cancelled": "the call was cancelled or broke off; the cost is that up to then",
    "side_effects": "another draw could have side effects, so none was made",
    "greedy_samples": "samples may be the likeliest text each time: they mean nothing",
    "temperature_unset": "samples could not be drawn at the requested temperature",
    "answer_failed": "the model failed to give an answer",
    "answer_unreadable": "the answer has no visible text, or content other than text",
    "answer_refused": "the provider marked the answer as a refusal",
    "answer_truncated": "the answer was cut off, or how it ended is unknown",
    "tool_calls": "the answer calls bound tools and passes without a score",
    "samples_failed": "a request for samples failed, retries included",
    "samples_late": "a time limit passed; the samples that had arrived were used",
    "unreadable_samples": "a sample has no visible text, or content other than text",
    "refused_samples": "a sample that the provider marked as a refusal was left out",
    "truncated_samples": "a sample that was cut off was left out",
    "tool_call_samples": "a sample that calls tools was left out",
    "mixed_models": "not all replies of the guarded model came from the same model",
    "other_model_failed": "another model gave no reply that could be compared",
    "too_few_samples": "fewer than min_replies replies could be scored",
    "view_unreadable": "a sample drawn in a view has no final answer, or no text",
    "self_check_unknown": "the self-check failed or is not clear, and counts as 0.5",
    "suspect_agreement": "samples agree more than chance allows, as from a cache",
    "logprobs_missing": "log-probabilities were missing, so another method ran",
    "spans_failed": "the parts of the answer could not be compared with the samples",
    "fields_failed": "the fields of the answer could not be compared with the samples",
    "scoring_failed": "the similarity or method failed, ran out of time or has no u",
    "uncalibrated": "the call is unlike those that the calibration was made from",
}
"""Every reason code, with what it means."""


class Similarity(Protocol):
    """Maps ``n`` texts to an ``(n, n)`` float64 matrix in [0, 1] with diagonal 1.

    The value for a pair depends on that pair and the question alone.

    Some scoring methods also call two methods of it, with the same arguments:
    ``equivalent`` returns which texts mean the same, ``(n, n)`` booleans, symmetric,
    True on the diagonal. ``probabilities`` returns ``(n, n, 3)``: premise, hypothesis,
    then contradiction, neutral, entailment; the diagonal means nothing.
    """

    def __call__(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> FloatArray:
        """Compare every text with every other one."""
        ...


class SpanSimilarity(Protocol):
    """Compares parts of an answer with whole texts.

    Takes ``m`` parts and ``k`` texts. Returns ``(m, k)`` float64 in [0, 1]: 1 where the
    text says the same, 0 where it says something else or nothing about it.
    """

    def __call__(
        self,
        parts: Sequence[str],
        texts: Sequence[str],
        /,
        *,
        question: str | None = None,
    ) -> FloatArray:
        """Compare every part with every text."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One text or call that a model gave: the answer, or a sample.

    Attributes:
        text: What the application would get as text. Not in the repr, so that a
            logged object does not show what people asked.
        token_logprobs: Natural log-probability of each token of the text, None if
            unknown or if the provider's values belong to other tokens.
        tokens: The text of each of these tokens, None if unknown.
        finish_reason: The provider's word for why the reply ended.
        truncated: Whether it was cut off, or the provider does not say how it ended.
        model: Name of the model that gave it, None if the provider does not say.
        tool_calls: The calls that the reply makes, as canonical JSON, else None.
        refused: Whether the provider marked the reply as a refusal.
        unreadable: Whether it has no visible text, or holds content that is neither
            text nor a call: an image, audio, a file.
        view: Name of the view that it was drawn in, None without views. In a view,
            ``text`` is the part of the reply that is compared.
        other_model: Name of the other model that gave it, as the guard's options name
            it; None for a reply of the guarded model.
        response_id: The provider's id of the reply, None if it gives none.
    """

    text: str = field(repr=False)
    token_logprobs: tuple[float, ...] | None = field(default=None, repr=False)
    tokens: tuple[str, ...] | None = field(default=None, repr=False)
    finish_reason: str | None = None
    truncated: bool = False
    model: str | None = None
    tool_calls: str | None = field(default=None, repr=False)
    refused: bool = False
    unreadable: bool = False
    view: str | None = None
    other_model: str | None = None
    response_id: str | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """How far a set of answers spreads.

    Attributes:
        value: The method's raw value in its own unit (SNNE: nats). Higher is always
            more uncertain.
        uncertainty: ``u`` in [0, 1], which thresholds limit: the disagreement or, with
            a self-check, its weighted mean with the self-check's doubt.
        disagreement: The value mapped to [0, 1]: 0 all alike, 1 all different. None for
            a single answer and for methods without bounds, and then there is no ``u``.
        self_check: Probability that the model calls its answer correct, None without a
            self-check.
        method: Name of the method that ran, for example ``"snne"``.
        similarity: Name of the similarity that ran, for example ``"rouge_l"``; None
            where the method compares no answers.
        tau: Temperature of SNNE's log-sum-exp.
        n: Replies that were scored.
        reasons: What was unusual, as codes of ``REASONS``.
        matrix: The ``(n, n)`` similarity matrix, None where there is none.
    """

    value: float
    uncertainty: float | None
    method: str
    similarity: str | None
    tau: float
    n: int
    disagreement: float | None = None
    self_check: float | None = None
    reasons: tuple[str, ...] = ()
    matrix: FloatArray | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A part of an answer, and how far the samples support it.

    Attributes:
        start: Where it begins in the delivered text, in characters.
        end: Where it ends; ``text[start:end]`` is the part.
        uncertainty: In [0, 1]. 0: every sample says it; 1: none does.
        supported: How many samples say it, by a match above 0.5.
        grounded: How far the context supports it, in [0, 1]; None without a context,
            or where words cannot tell.
        missing: Where numbers and names stand that are nowhere in the context, as
            pairs of start and end in the delivered text.
    """

    start: int
    end: int
    uncertainty: float
    supported: int
    grounded: float | None = None
    missing: tuple[tuple[int, int], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return a plain dict for metadata and JSON."""
        record = {each.name: getattr(self, each.name) for each in fields(self)}
        record["missing"] = [*map(list, self.missing)] or None
        return {name: value for name, value in record.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A field of a structured answer, and how far the samples support its value.

    Attributes:
        path: Where it stands, as a JSON Pointer (RFC 6901); ``-`` at the end of one
            stands for rows that the answer lacks.
        uncertainty: In [0, 1]. 0: every sample has its value; 1: none has.
        supported: How many samples have it, by a similarity above 0.5.
        grounded: How far the words of its value stand in the context, in [0, 1]; None
            without a context, and for null and booleans.
    """

    path: str
    uncertainty: float
    supported: int
    grounded: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return a plain dict for metadata and JSON."""
        record = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: value for name, value in record.items() if value is not None}


_IN_METADATA = (
    *("id", "method", "score", "uncertainty", "disagreement", "self_check"),
    *("threshold", "certified", "p_wrong", "decision", "n_requested", "n_used"),
)
"""Fields of an assessment that go into metadata as they are."""

_OF_OTHERS = (
    *("prompt_tokens", "cached_tokens", "completion_tokens", "reasoning_tokens"),
    "money",
)
"""Fields of a cost that are told of each other model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """The record of one guarded call.

    Attributes:
        id: Unique id; the delivered message carries it too.
        answer: The reply that was drawn, even if it was withheld. None if the call
            ended before it arrived.
        samples: Every other draw that arrived, including the unusable ones; those of
            other models come last.
        reply_set: Texts of the replies that were scored, in the order of the matrix.
        matrix: Their ``(n, n)`` similarity matrix, None when nothing was compared.
        method: Name of the method that ran. It and the next four fields are those of
            ``Score``; all are None when nothing was scored.
        score: The method's raw value in its own unit.
        uncertainty: ``u`` in [0, 1].
        disagreement: The value mapped to [0, 1].
        self_check: Probability that the model calls its answer correct.
        threshold: Largest ``u`` that is accepted, None when none is set.
        certified: Whether that threshold carries a statistical guarantee that holds for
            this call.
        p_wrong: Estimated probability that the answer is wrong, in (0, 1); None
            without a calibration that gives one.
        decision: What was decided, None when no threshold is set.
        n_requested: Replies of the reply set that were asked for.
        n_used: Replies that could be compared.
        reasons: What was unusual, as codes of ``REASONS``.
        cost: What the call took.
        requests: What each of them took, in the order in which they were sent.
        question: The question that the similarity was given.
        run_id: The LangChain run of the guarded call, None outside LangChain.
        spans: The parts of a delivered text, each with its own uncertainty; None
            unless they were asked for and could be compared.
        span_threshold: Largest uncertainty of a part that is not marked, None when none
            is set.
        fields: The fields of a structured answer, each with its own uncertainty, even
            if it was withheld. None for other answers; empty if they could not be
            compared.
        field_threshold: Largest uncertainty of a field that is not marked, None when
            none is set.
        grounded: How far the context supports the answer, in [0, 1]: as far as its
            least supported part. None without a context, or where that is unknown.
        min_grounded: Least ``grounded`` that is accepted, None when none is set.
        withheld: Whether the application did not get the answer.
    """

    id: str
    answer: Reply | None
    samples: tuple[Reply, ...] = ()
    reply_set: tuple[str, ...] = field(default=(), repr=False)
    matrix: FloatArray | None = field(default=None, repr=False, compare=False)
    method: str | None = None
    score: float | None = None
    uncertainty: float | None = None
    disagreement: float | None = None
    self_check: float | None = None
    threshold: float | None = None
    certified: bool = False
    p_wrong: float | None = None
    decision: Decision | None = None
    n_requested: int = 0
    n_used: int = 0
    reasons: tuple[str, ...] = ()
    cost: Cost = field(default_factory=Cost)
    requests: tuple[RequestCost, ...] = field(default=(), repr=False)
    question: str | None = field(default=None, repr=False)
    run_id: str | None = None
    spans: tuple[Span, ...] | None = None
    span_threshold: float | None = None
    fields: tuple[Field, ...] | None = None
    field_threshold: float | None = None
    grounded: float | None = None
    min_grounded: float | None = None
    withheld: bool = False

    @property
    def uncertain_fields(self) -> tuple[str, ...]:
        """Paths of the fields above the field threshold; none without one."""
        limit = math.inf if self.field_threshold is None else self.field_threshold
        return tuple(
            each.path for each in self.fields or () if each.uncertainty > limit
        )

    @property
    def own_cost(self) -> Cost:
        """What the requests to the guarded model took, without those to others."""
        own = [one for one in self.requests if one.other_model is None]
        return sum(own, Cost())

    @property
    def other_models(self) -> dict[str, dict[str, Any]]:
        """What each other model took, and the names that its replies carried."""
        return {
            one.other_model: {
                **{name: getattr(one, name) for name in _OF_OTHERS},
                "models": [
                    sample.model
                    for sample in self.samples
                    if sample.other_model == one.other_model and sample.model
                ],
            }
            for one in self.requests
            if one.other_model is not None
        }

    def to_metadata(self) -> dict[str, Any]:
        """Return the plain dict that a delivered message carries; no text is in it."""
        parts: dict[str, Any] = {}
        if self.spans is not None:
            parts["spans"] = [span.to_dict() for span in self.spans]
            parts["span_threshold"] = self.span_threshold
        # Of an answer that is withheld not even the names of its fields are told.
        withheld = self.withheld or self.decision in {"refuse", "fallback"}
        if self.fields is not None and not withheld:
            parts["fields"] = [each.to_dict() for each in self.fields]
            if self.field_threshold is not None:
                parts["uncertain_fields"] = list(self.uncertain_fields)
        if others := self.other_models:
            parts["other_models"] = others
        grounding = {"grounded": self.grounded, "min_grounded": self.min_grounded}
        return {
            **{name: getattr(self, name) for name in _IN_METADATA},
            **(grounding if any(v is not None for v in grounding.values()) else {}),
            "reasons": list(self.reasons),
            "cost": self.cost.to_dict(),
            "version": __version__,
            **parts,
        }


class Observer(Protocol):
    """Gets the assessment of every call, the texts of answer and samples included."""

    def on_assessment(self, assessment: Assessment, /) -> object:
        """Take one assessment; may be ``async``. Its exceptions are swallowed."""
        ...
