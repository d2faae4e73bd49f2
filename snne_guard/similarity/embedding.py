"""Cosine similarity of embeddings: sentence-transformers, LangChain's, or your own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import methodcaller
from typing import Any

import numpy as np

from snne_guard.arrays import as_numbers
from snne_guard.checks import check_function
from snne_guard.similarity.local_models import name_of, run_model
from snne_guard.similarity.pairs import distinct_texts, spread
from snne_guard.types import FloatArray


@dataclass(frozen=True, slots=True)
class Embedding:
    """Compares texts by the cosine of their embeddings, rescaled to [0, 1].

    Text beyond the model's limit, often 256 or 512 tokens, is not compared.

    Args:
        model: The name or the folder of a sentence-transformers model (extra
            ``embeddings``), loaded at first use and shared in the process; LangChain
            ``Embeddings``, or anything else with ``embed_documents``; or a callable
            that takes a list of ``n`` texts and returns ``(n, d)`` numbers, such as
            ``encode`` of a model that you have loaded.

    Raises:
        ConfigurationError: ``model`` is none of these. A named one raises as ``NLI``.

    Source: section 6.3 of the paper of SNNE takes
    ``Alibaba-NLP/gte-Qwen2-7B-instruct`` or ``Salesforce/SFR-Embedding-2_R``, and the
    cosine as it is.

    Example:
        >>> def count(texts):
        ...     return [[text.count("a"), text.count("b")] for text in texts]
        >>> Embedding(count)(["ab", "abab", "a"]).round(3)
        array([[1.   , 1.   , 0.854],
               [1.   , 1.   , 0.854],
               [0.854, 0.854, 1.   ]])
    """

    model: Any

    def __post_init__(self) -> None:
        if not (isinstance(self.model, str) or hasattr(self.model, "embed_documents")):
            what = "model, unless it is a name or has embed_documents,"
            check_function(self.model, what=what)

    @property
    def name(self) -> str:
        """``"embedding:"`` and the model."""
        if isinstance(self.model, str):
            return f"embedding:{self.model}"
        return f"embedding:{name_of(self.model, 'model', 'model_name')}"

    def __call__(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> FloatArray:
        """Return ``(1 + cosine) / 2`` of every two texts; of length 0 the cosine is 0.

        Raises:
            InputError: The model did not return a finite vector for each text.
        """
        del question
        distinct = distinct_texts(texts)
        if not distinct:
            return np.zeros((0, 0))
        what, shape = f"vectors of {self.name}", (len(distinct), "d")
        vectors = as_numbers(self._encode(distinct), what=what, shape=shape)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors = vectors / np.where(lengths > 0, lengths, 1.0)
        cosines = vectors @ vectors.T
        # BLAS may round (a, b) and (b, a) differently.
        matrix = ((2.0 + cosines + cosines.T) / 4.0).clip(0.0, 1.0)
        np.fill_diagonal(matrix, 1.0)
        return spread(matrix, distinct, texts)

    def _encode(self, texts: list[str]) -> Any:  # noqa: ANN401 - numbers of any kind
        if isinstance(self.model, str):
            work = methodcaller("encode", texts, show_progress_bar=False)
            return run_model("SentenceTransformer", self.model, work)
        embed = getattr(self.model, "embed_documents", self.model)
        return embed(texts)
