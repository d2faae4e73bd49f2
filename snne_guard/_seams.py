"""What scores are made of: the seams of similarities and methods, and what they see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "BoolArray",
    "Entailment",
    "Equivalence",
    "FloatArray",
    "Generate",
    "IntArray",
    "Likelihood",
    "Method",
    "MethodInputs",
    "Similarity",
    "inputs_of",
]

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


class Similarity(Protocol):
    """Texts to an ``(n, n)`` float64 matrix in [0, 1] with diagonal 1.

    The value for a pair depends on the pair and the question alone, never on the
    rest of the set.
    """

    def __call__(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> FloatArray:
        """Compare every text with every other one."""
        ...


class Equivalence(Similarity, Protocol):
    """A similarity that can also say which texts mean the same."""

    def equivalent(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> BoolArray:
        """Return an ``(n, n)`` matrix, symmetric, True on the diagonal."""
        ...


class Entailment(Similarity, Protocol):
    """A similarity that can also say how far one text entails another.

    Where it does not say itself which texts mean the same (see ``Equivalence``), each
    must entail the other, unless it has an attribute ``strict`` that is False.
    """

    def probabilities(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> FloatArray:
        """Return the probabilities of contradiction, neutrality and entailment.

        Returns:
            ``(n, n, 3)``: premise, hypothesis, class. The diagonal means nothing.
        """
        ...


class Generate(Protocol):
    """A prompt to a model's reply."""

    def __call__(self, prompt: str, /) -> str:
        """Return the text of one reply."""
        ...


class Likelihood(Protocol):
    """How likely a model finds a text to go on in a certain way."""

    def __call__(self, prompt: str, continuation: str, /) -> float:
        """Return the natural log-probability of the continuation after the prompt."""
        ...


# Without slots a field that nobody fills is its class's default and costs nothing: of
# some twenty a method needs two, and every response set has a dozen of these.
@dataclass(frozen=True, kw_only=True)
class MethodInputs:
    """What a method may look at; it declares in ``needs`` what it demands.

    Attributes:
        similarity: ``(n, n)`` float64 matrix in [0, 1]; all NaN where the method
            does not need it, so that no number can come of it.
        tau: Temperature of the similarity's softmax, above 0.
        mean_logprobs: ``(n,)`` mean token log-probabilities in nats.
        metric: Whether 2 (1 - f) / (2 - f) obeys the triangle inequality, as it does
            for ROUGE-L; it sharpens what is known of a set with missing members.
        anchor: Share of SNNE's weight that lies on the first member, the delivered
            answer, before the rest is shared out among all.
        answers: The ``n`` texts.
        question: What was asked.
        token_logprobs: For each answer the log-probabilities of its tokens in nats.
        cluster_ids: ``(n,)`` numbers from 0 of the groups of equal meaning.
        entailment: ``(n, n, 3)`` probabilities of contradiction, neutrality and
            entailment of premise and hypothesis; the diagonal means nothing.
        sentence_entailment: ``(m, m, 3)`` the same of all sentences of all answers.
        sentence_of: ``(m,)`` which answer, from 0, each of these sentences is in.
        graph: ``(n, n)`` symmetric weights of the edges between answers, at least 0,
            diagonal 0.
        hidden_states: ``(n, d)`` vectors of the answers.
        token_importance: For each answer how much its meaning changes without each
            of its tokens, in [0, 1], aligned with ``token_logprobs``.
        main_answer: The delivered answer.
        main_logprobs: ``(t,)`` log-probabilities of its tokens in nats.
        main_similarity: ``(m,)`` similarity of the delivered answer to each sample.
        main_entailment: ``(m, 2, 3)``: from the delivered answer to each sample, and
            from the sample to it.
        sample_mean_logprobs: ``(m,)`` mean log-probabilities of the samples in nats.
        p_true_logprob: Log-probability in nats that the model calls the delivered
            answer true.
    """

    similarity: FloatArray
    tau: float = 1.0
    mean_logprobs: FloatArray | None = None
    metric: bool = False
    anchor: float = 0.0
    answers: tuple[str, ...] | None = field(default=None, repr=False)
    question: str | None = field(default=None, repr=False)
    token_logprobs: tuple[FloatArray, ...] | None = field(default=None, repr=False)
    cluster_ids: IntArray | None = None
    entailment: FloatArray | None = field(default=None, repr=False)
    sentence_entailment: FloatArray | None = field(default=None, repr=False)
    sentence_of: IntArray | None = field(default=None, repr=False)
    graph: FloatArray | None = field(default=None, repr=False)
    hidden_states: FloatArray | None = field(default=None, repr=False)
    token_importance: tuple[FloatArray, ...] | None = field(default=None, repr=False)
    main_answer: str | None = field(default=None, repr=False)
    main_logprobs: FloatArray | None = field(default=None, repr=False)
    main_similarity: FloatArray | None = None
    main_entailment: FloatArray | None = field(default=None, repr=False)
    sample_mean_logprobs: FloatArray | None = None
    p_true_logprob: float | None = None


def inputs_of(fields: Mapping[str, object], /) -> MethodInputs:
    """Return ``MethodInputs(**fields)`` of known fields, in a fifth of the time."""
    inputs = object.__new__(MethodInputs)
    vars(inputs).update(fields)
    return inputs


class Method(Protocol):
    """An uncertainty method, higher is more uncertain."""

    @property
    def name(self) -> str:
        """Its key in ``METHODS`` or ``READINGS``, or a name of your own."""
        ...

    @property
    def needs(self) -> frozenset[str]:
        """Names of the fields of ``MethodInputs`` that it demands."""
        ...

    @property
    def white_box(self) -> bool:
        """Whether it needs what only the model's owner can see."""
        ...

    @property
    def source(self) -> str:
        """Paper and equation, or URL."""
        ...

    def compute(self, inputs: MethodInputs, /) -> float:
        """Return the raw value."""
        ...

    def bounds(self, n: int, /, *, tau: float = 1.0) -> tuple[float, float] | None:
        """Return the smallest and largest value for ``n`` members, None if unknown."""
        ...

    def uncertainty(self, value: float, n: int, /, *, tau: float = 1.0) -> float | None:
        """Map the raw value to [0, 1], None where that is not defined."""
        ...
