"""What meets needs that recordings do not: embeddings, importance, the model itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from snne_guard.evaluation.comparison.measure import Provider
from snne_guard.evaluation.recording.recordings import Recording
from snne_guard.evaluation.recording.token_texts import token_texts
from snne_guard.scorers.p_true import p_true_logprob
from snne_guard.types import FloatArray, Likelihood

__all__ = ["embedded", "judged_true", "weighed"]


class Vectors(Protocol):
    """A model of embeddings, such as ``Embedding``."""

    def vectors(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> FloatArray:
        """Return the ``(n, d)`` embeddings of ``n`` texts."""
        ...


class Weighs(Protocol):
    """A model of how much tokens matter, such as ``CrossEncoder``."""

    def token_importance(
        self, question: str | None, text: str, tokens: Sequence[str]
    ) -> FloatArray:
        """Return ``(t,)`` importances of the tokens of a text."""
        ...


def embedded(model: Vectors, /) -> Provider:
    """Return what gives ``hidden_states``: embeddings of the answers by a model."""

    def provide(recording: Recording) -> FloatArray:
        texts = (recording.main_answer, *recording.samples)
        return model.vectors(texts, question=recording.question)

    return provide


def weighed(model: Weighs, /) -> Provider:
    """Return what gives ``token_importance``, where a recording has the tokens' texts.

    They are the fields ``main_tokens``, a list of texts, and ``tokens``, one such list
    for each sample, aligned with the log-probabilities. A recording in which they are
    missing for an answer that says something has no ``token_importance``.
    """

    def provide(recording: Recording) -> list[FloatArray] | None:
        texts = (recording.main_answer, *recording.samples)
        pairs = list(zip(texts, token_texts(recording), strict=True))
        if any(tokens is None for text, tokens in pairs if text.strip()):
            return None
        return [
            model.token_importance(recording.question, text, tokens)
            if tokens
            else np.zeros(0)
            for text, tokens in pairs
        ]

    return provide


def judged_true(likelihood: Likelihood, /) -> Provider:
    """Return what gives ``p_true_logprob``: the model is asked about its answer."""

    def provide(recording: Recording) -> float | None:
        if recording.question is None:
            return None
        return p_true_logprob(
            likelihood, recording.question, recording.main_answer, recording.samples
        )

    return provide
