"""Similarity by a model that reads both texts, and the importance of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import methodcaller
from os import PathLike

import numpy as np

from snne_guard.errors import ConfigurationError
from snne_guard.similarity.local_models import run_model
from snne_guard.similarity.pairs import compare_ordered
from snne_guard.types import FloatArray

DEFAULT_CROSS_ENCODER = "cross-encoder/stsb-roberta-large"
"""SAR's choice: an English model, trained on the similarity of sentences."""

_ONE_TOKEN = 0.5


@dataclass(frozen=True, slots=True)
class CrossEncoder:
    """A model with one output in [0, 1] that says how alike two texts are.

    For SAR it also measures how much the meaning of an answer changes without each of
    its tokens. The model is loaded at first use and shared. What does not fit into it,
    usually 512 tokens of both texts, is not compared.

    Args:
        model: Name on the Hugging Face Hub, or the path of a folder.

    Raises:
        ConfigurationError: At first use: it has several outputs. Else as for ``NLI``.

    Source: Duan et al. 2024, "Shifting Attention to Relevance" (SAR).

    Example:
        >>> CrossEncoder().name
        'cross_encoder:cross-encoder/stsb-roberta-large'
        >>> CrossEncoder().token_importance(  # doctest: +SKIP
        ...     "Where is it?", ["It", " is", " Paris"]
        ... )
        array([0.02, 0.01, 0.61])
    """

    model: str | PathLike[str] = DEFAULT_CROSS_ENCODER

    @property
    def name(self) -> str:
        """``"cross_encoder:"`` and the model."""
        return f"cross_encoder:{self.model}"

    def __call__(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> FloatArray:
        """Return the similarity of the texts: the mean of both orders."""
        del question
        matrix: FloatArray = compare_ordered(texts, self.of_pairs, equal=1.0)
        return (matrix + matrix.T) / 2

    def token_importance(
        self, question: str | None, tokens: Sequence[str], /
    ) -> FloatArray:
        """Return the change of an answer's meaning without each of its tokens.

        The importance of a token is 1 minus the similarity between the question with
        the whole answer and the question with the answer without that token.

        Args:
            question: What was asked, joined with the answer without a space, as the
                authors do; None to leave it out.
            tokens: The ``t`` tokens of the answer, whose texts joined are the answer.

        Returns:
            ``(t,)`` float64 in [0, 1]; 0.5 for an answer of one token.

        Source: SAR, equation 3; https://github.com/jinhaoduan/SAR. The value for one
        token is LM-Polygraph's.
        """
        if len(tokens) == 1:
            return np.full(1, _ONE_TOKEN)
        parts = [question or "", *tokens]
        whole = "".join(parts)
        places = range(1, len(parts))
        without = ["".join([*parts[:k], *parts[k + 1 :]]) for k in places]
        return 1.0 - self.of_pairs([(whole, rest) for rest in without])

    def of_pairs(self, pairs: Sequence[tuple[str, str]], /) -> FloatArray:
        """Return the model's output for each pair, ``(m,)`` in [0, 1]."""
        work = methodcaller("predict", pairs, show_progress_bar=False)
        alike = run_model("CrossEncoder", self.model, work)
        if alike.ndim != 1:
            msg = f"expected {self.name} to have one output, got {alike.shape[1]}"
            raise ConfigurationError(msg)
        shares: FloatArray = alike.astype(np.float64).clip(0.0, 1.0)
        return shares
