"""The frozen values that travel between the parts, and the one-method seams."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from snne_guard._cost import Cost
from snne_guard._seams import (
    BoolArray,
    Entailment,
    Equivalence,
    FloatArray,
    Generate,
    IntArray,
    Likelihood,
    Method,
    MethodInputs,
    Similarity,
)

__all__ = [
    "Assessment",
    "AsyncSampler",
    "BoolArray",
    "Cost",
    "Decision",
    "Entailment",
    "Equivalence",
    "FloatArray",
    "Generate",
    "IntArray",
    "Likelihood",
    "Method",
    "MethodInputs",
    "ResponseSet",
    "Sample",
    "Sampler",
    "Score",
    "Similarity",
]

Decision = Literal["accept", "flag", "refuse", "fallback", "unscored"]
"""What was decided about an answer; None in its place means: no threshold was set."""

_CUT_OFF = frozenset(
    {
        "length",
        "max_tokens",
        "MAX_TOKENS",
        "max_output_tokens",
        "model_context_window_exceeded",
        "model_length",
    }
)
"""What providers call the end of a reply that a token limit cut off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One reply of the model: the answer itself or one more draw.

    Attributes:
        text: What the reply says, without reasoning. Not in the repr, so that a
            logged object does not carry what people asked.
        token_logprobs: Natural log-probability of each drawn token, None if unknown.
        finish_reason: The provider's word for why the reply ended.
        model: Name of the model that gave it, None if the provider does not say.
        tool_calls: The calls that the reply makes, as canonical JSON, else None.
        refused: Whether the provider marked the reply as a refusal.
        reasoned: Whether the reply held reasoning that is not part of the text.
        misaligned: Whether log-probabilities came whose tokens do not make up the
            text, so that they are left out.
        unread: Whether the reply holds more than text and calls: an image, audio, a
            file, which nothing here compares.
        response_id: The provider's id of the reply, None if it gives none.
        tokens: The text of each token that ``token_logprobs`` speaks of, U+FFFD for a
            part of a character; None if unknown.
    """

    text: str = field(repr=False)
    token_logprobs: tuple[float, ...] | None = field(default=None, repr=False)
    finish_reason: str | None = None
    model: str | None = None
    tool_calls: str | None = field(default=None, repr=False)
    refused: bool = False
    reasoned: bool = False
    misaligned: bool = False
    unread: bool = False
    response_id: str | None = field(default=None, compare=False)
    tokens: tuple[str, ...] | None = field(default=None, repr=False, compare=False)

    @property
    def mean_logprob(self) -> float | None:
        """Mean token log-probability in nats, None where it is unknown."""
        if not self.token_logprobs:
            return None
        return float(sum(self.token_logprobs) / len(self.token_logprobs))

    @property
    def truncated(self) -> bool:
        """Whether a token limit cut the reply off."""
        return self.finish_reason in _CUT_OFF


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseSet:
    """The answer and its samples, as they came back.

    Attributes:
        answer: The reply that the application will get.
        samples: The further draws that arrived, in the order of the requests.
        n_requested: Members that were asked for, the answer included if it is in the
            set.
        stopped: Whether the draws ended early because enough was known.
        include_answer: Whether the answer is a member of the scored set.
        question: What the user asks, for similarities that use it.
        reasons: What was not as usual while sampling, as reason codes.
        errors: The exceptions of the samples that failed for good.
        cost: What all of it took.
    """

    answer: Sample
    samples: tuple[Sample, ...] = ()
    n_requested: int = 0
    stopped: bool = False
    include_answer: bool = True
    question: str | None = field(default=None, repr=False)
    reasons: tuple[str, ...] = ()
    errors: tuple[BaseException, ...] = field(default=(), repr=False)
    cost: Cost = field(default_factory=Cost)


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """How far a set of answers spreads.

    Attributes:
        value: The method's raw value in its own unit (SNNE: nats). Higher is always
            more uncertain.
        uncertainty: The value mapped to [0, 1]: 0 all alike, 1 all different. None
            where the method has no bounds or the set has one member.
        method: Name of the method that ran, for example ``"snne"``.
        similarity: Name of the similarity that ran, for example ``"rouge_l"``; None
            where the method compares no answers, as perplexity does not.
        tau: Temperature of the similarity's softmax.
        n: Members that were scored.
        reasons: What was not as usual, as reason codes.
        matrix: The ``(n, n)`` similarity matrix. None where the method compares no
            answers, or their sentences alone, so that no similarity is asked for it,
            and where nothing was scored.
        anchor: Share of the weight that SNNE and WSNNE put on the delivered answer
            before the rest is shared out; 0 in the paper.
    """

    value: float
    uncertainty: float | None
    method: str
    similarity: str | None
    tau: float
    n: int
    reasons: tuple[str, ...] = ()
    matrix: FloatArray | None = field(default=None, repr=False, compare=False)
    anchor: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """The record of one guarded call.

    Attributes:
        id: Unique id; the message that was delivered carries it too.
        answer: The reply that was drawn, also when it was withheld. None when the call
            ended before it arrived.
        samples: Every further draw that arrived, the unusable ones too.
        scored: Texts of the members that were scored, in the order of the matrix.
        matrix: Their ``(n, n)`` similarity matrix, None when nothing was scored or the
            method compares no answers.
        method: Name of the method that ran, None when nothing was scored.
        score: The method's raw value in its own unit, None when nothing was scored.
        uncertainty: ``u`` in [0, 1], None when nothing was scored.
        threshold: Largest ``u`` that is accepted, None when none was set.
        certified: Whether that threshold carries a statistical promise that holds for
            this very call: for its method, its number of members and its model.
        p_wrong: Probability that the answer is wrong, in (0, 1); None where no
            calibration says so.
        p_wrong_interval: Its 90 % band, lower end first.
        decision: What was decided, None when no threshold was set.
        n_requested: Members that were asked for: n, less ``cost.samples_saved``.
        n_used: Members that were scored.
        reasons: What was not as usual, as reason codes.
        cost: What the call took.
        question: What the user asks; all of the last message unless told otherwise.
        run_id: The LangChain run that it belongs to: the guard's own, or around
            ``assess`` the one that called it. None outside of any.
        audit: Whether the answer was picked for a check by hand; None where nothing
            watches the guard.
        raw: The answer as the provider's client gave it (a ``ChatCompletion``, a
            ``Response``), where the guard delivers nothing else, and the model's
            ``AIMessage`` where a callable ``on_uncertain`` is asked; else None.
    """

    id: str
    answer: Sample | None
    samples: tuple[Sample, ...] = ()
    scored: tuple[str, ...] = field(default=(), repr=False)
    matrix: FloatArray | None = field(default=None, repr=False, compare=False)
    method: str | None = None
    score: float | None = None
    uncertainty: float | None = None
    threshold: float | None = None
    certified: bool = False
    p_wrong: float | None = None
    p_wrong_interval: tuple[float, float] | None = None
    decision: Decision | None = None
    n_requested: int = 0
    n_used: int = 0
    reasons: tuple[str, ...] = ()
    cost: Cost = field(default_factory=Cost)
    question: str | None = field(default=None, repr=False)
    run_id: str | None = None
    audit: bool | None = None
    raw: Any = field(default=None, repr=False, compare=False)

    def to_metadata(self) -> dict[str, Any]:
        """Return the plain dict that a delivered message carries: no text in it."""
        from snne_guard._version import __version__

        band = self.p_wrong_interval
        return {
            "id": self.id,
            "method": self.method,
            "score": self.score,
            "uncertainty": self.uncertainty,
            "threshold": self.threshold,
            "certified": self.certified,
            "p_wrong": self.p_wrong,
            "p_wrong_interval": None if band is None else list(band),
            "decision": self.decision,
            "n_requested": self.n_requested,
            "n_used": self.n_used,
            "reasons": list(self.reasons),
            "cost": self.cost.to_dict(),
            "audit": self.audit,
            "version": __version__,
        }


class Sampler(Protocol):
    """A conversation to the answer and its samples."""

    def sample(self, messages: Any, /) -> ResponseSet:  # noqa: ANN401 - each takes its own
        """Draw a response set."""
        ...


class AsyncSampler(Protocol):
    """The same without blocking the event loop."""

    async def sample(self, messages: Any, /) -> ResponseSet:  # noqa: ANN401
        """Draw a response set."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleEvent:
    """What an observer is told when a request goes out and when it comes back.

    Attributes:
        assessment_id: Id of the guarded call that it belongs to.
        role: Whether the answer was asked for or samples of it.
        index: Position of the first reply of this request among the samples.
        n: Replies asked for in this request.
        samples: What came back; empty at the start and after a failure.
        error: Why nothing came back, None at the start and after a success.
        cost: What the request took; nothing at the start and after a failure.
        model: Name of the model that is asked, None where nobody says.
        provider: Who serves it, as LangChain or the client calls them.
        time_ns: When it happened, in nanoseconds since the epoch.
    """

    assessment_id: str
    role: Literal["answer", "sample"]
    index: int
    n: int
    samples: tuple[Sample, ...] = ()
    error: BaseException | None = None
    cost: Cost = field(default_factory=Cost)
    model: str | None = None
    provider: str | None = None
    time_ns: int = field(default_factory=time.time_ns, compare=False)


Observer = Any
"""An object with any of ``on_sample_start(event)``, ``on_sample_end(event)`` (each gets
a ``SampleEvent``) and ``on_assessment(assessment)``, plain or async. They are called in
a thread of the observer's own, and in a copy of the context of the guarded call: what
is the current span there is the current span here."""

OnUncertain = Literal["flag", "refuse", "fallback", "raise"]
"""What is done with an answer that is not accepted."""

OnError = Literal["uncertain", "accept", "raise"]
"""What is done with an answer that could not be scored."""

ToolCalls = Literal["skip", "score"]
"""What is done with an answer that calls tools."""

Schedule = Literal["concurrent", "answer_first"]
"""Whether the samples are drawn beside the answer or after it."""
