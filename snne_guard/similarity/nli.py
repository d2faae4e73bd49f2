"""Whether answers mean the same, by a model of natural language inference (NLI)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from itertools import permutations
from typing import Any

import numpy as np

from snne_guard.errors import ConfigurationError
from snne_guard.similarity.exact import normalised_text
from snne_guard.similarity.lexical import distinct_texts, spread
from snne_guard.similarity.local_models import LocalModel, model_name
from snne_guard.types import BoolArray, FloatArray

__all__ = ["DEFAULT_NLI_MODEL", "NLI", "entail_similarity", "equivalence"]

DEFAULT_NLI_MODEL = "microsoft/deberta-v2-xlarge-mnli"
"""The paper's, 3.6 GB. ``microsoft/deberta-base-mnli`` and
``cross-encoder/nli-deberta-v3-base`` are several times smaller and faster."""

_TOKENS = 512
_CLASSES = ("contradiction", "neutral", "entailment")  # the last axis of tables
_CONTRADICTION, _NEUTRAL, _ENTAILMENT = range(3)


def equivalence(probabilities: FloatArray, *, strict: bool = True) -> BoolArray:
    """Return which texts mean the same, by the likeliest class in both directions.

    Args:
        probabilities: ``(n, n, 3)``: premise, hypothesis, then contradiction, neutral,
            entailment. The diagonal is not looked at.
        strict: True: each must entail the other, as in the paper's code. False:
            neither may contradict the other, and not both may be neutral.

    Returns:
        ``(n, n)`` booleans, symmetric, True on the diagonal; not always transitive.

    Source:
        Farquhar et al. 2024, "Detecting hallucinations in large language models using
        semantic entropy" (strict); Kuhn et al. 2023, "Semantic Uncertainty" (not).

    Example:
        >>> one_way = [[[0, 0, 1], [0.1, 0.2, 0.7]], [[0.1, 0.8, 0.1], [0, 0, 1]]]
        >>> equivalence(one_way)[0, 1], equivalence(one_way, strict=False)[0, 1]
        (np.False_, np.True_)
    """
    label = np.asarray(probabilities).argmax(axis=2)
    neutral = label == _NEUTRAL
    possible = label == _ENTAILMENT if strict else label != _CONTRADICTION
    same: BoolArray = possible & possible.T & ~(neutral & neutral.T)
    np.fill_diagonal(same, val=True)
    return same


def entail_similarity(probabilities: FloatArray) -> FloatArray:
    """Return how far texts entail each other, as a similarity.

    Args:
        probabilities: ``(n, n, 3)`` as for ``equivalence``.

    Returns:
        ``(n, n)`` mean of both directions' probability of entailment, in [0, 1], 1 on
        the diagonal.

    Source:
        Nguyen, Payani, Mirzasoleiman 2025, "Beyond Semantic Entropy", the similarity
        ``entail``; that it is the mean of both directions is in the authors' code.

    Example:
        >>> entail_similarity(
        ...     [[[0, 0, 1], [0.1, 0.2, 0.7]], [[0.3, 0.6, 0.1], [0] * 3]]
        ... )
        array([[1. , 0.4],
               [0.4, 1. ]])
    """
    entailed = np.asarray(probabilities, dtype=np.float64)[:, :, _ENTAILMENT]
    matrix: FloatArray = ((entailed + entailed.T) / 2).clip(0.0, 1.0)
    np.fill_diagonal(matrix, 1.0)
    return matrix


@dataclass(frozen=True, slots=True)
class NLI:
    """An NLI model, by the ``CrossEncoder`` of sentence-transformers (extra ``nli``).

    It gives a similarity (how far two answers entail each other), an equivalence (which
    mean the same) and the probabilities behind both. The model is loaded at first use
    and shared in the process.

    A model reads a limited number of tokens of a pair, usually 512. Where the question
    does not fit beside two answers it is left out; the ends of longer answers are not
    compared. Two different answers that become the same tokens, because their ends are
    cut off or the model does not know their script, count as neutral.

    Args:
        model: Name on the Hugging Face Hub, or the path of a folder. Code that comes
            with a model is never run.
        device: Such as ``"cuda:1"``; None for the best.
        condition_on_question: Whether the question, where there is one, is put before
            both answers, as in the paper for question answering.
        strict: What it takes to mean the same, as for ``equivalence``.

    Raises:
        MissingExtraError: At first use: sentence-transformers is not installed.
        ConfigurationError: ``model`` is no name; at first use: the model cannot be
            loaded, or is no NLI model.
        ScoringError: In use: the model failed.

    Example:
        >>> nli = NLI("microsoft/deberta-base-mnli")
        >>> nli.name
        'nli:microsoft/deberta-base-mnli'
        >>> question = "Where is the Eiffel Tower?"
        >>> nli(["Paris", "In Paris.", "Rome"], question=question)  # doctest: +SKIP
        array([[1.  , 0.99, 0.  ],
               [0.99, 1.  , 0.  ],
               [0.  , 0.  , 1.  ]])
    """

    model: str | os.PathLike[str] = DEFAULT_NLI_MODEL
    _: KW_ONLY
    device: str | None = None
    condition_on_question: bool = True
    strict: bool = True
    name: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", f"nli:{model_name(self.model)}")

    def __call__(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> FloatArray:
        """Return how far the texts entail each other: the mean of both directions."""
        return entail_similarity(self.probabilities(texts, question=question))

    def equivalent(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> BoolArray:
        """Return which texts mean the same, a relation that may not be transitive."""
        probabilities = self.probabilities(texts, question=question)
        return equivalence(probabilities, strict=self.strict)

    def probabilities(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> FloatArray:
        """Return what the model says of each ordered pair.

        Returns:
            ``(n, n, 3)`` float64: premise, hypothesis, then the probabilities of
            contradiction, neutral and entailment. Equal texts are ``(0, 0, 1)``.
        """
        distinct = distinct_texts(texts)
        n = len(distinct)
        table = np.tile(np.eye(3)[_ENTAILMENT], (n, n, 1))
        if n > 1:
            asked = question if self.condition_on_question else None
            shared = LocalModel.of("CrossEncoder", self.model, device=self.device)
            shared.run(lambda model: self._fill(table, model, distinct, asked))
        return spread(table, distinct, texts)

    def of_pairs(self, pairs: Sequence[tuple[str, str]], /) -> FloatArray:
        """Return what the model says of pairs of a premise and a hypothesis.

        Returns:
            ``(m, 3)`` float64: the probabilities of contradiction, neutral, entailment.
        """
        if not pairs:
            return np.zeros((0, 3))
        shared = LocalModel.of("CrossEncoder", self.model, device=self.device)
        return shared.run(lambda model: self._predict(model, _Reader(model, ()), pairs))

    def _predict(
        self,
        model: Any,  # noqa: ANN401 - of torch
        reader: _Reader,
        pairs: Sequence[Sequence[str]],
    ) -> FloatArray:
        """Return the classes' probabilities of pairs."""
        columns = _columns(model, self.name)
        read = [[reader.without_marks(text) for text in pair] for pair in pairs]
        outputs = model.predict(read, apply_softmax=True, show_progress_bar=False)
        probabilities: FloatArray = outputs[:, columns].astype(np.float64)
        return probabilities

    def _fill(
        self,
        table: FloatArray,
        model: Any,  # noqa: ANN401 - of torch
        distinct: Sequence[str],
        question: str | None,
    ) -> None:
        """Write what the model says of distinct texts into their table."""
        reader = _Reader(model, distinct)
        asked = 0 if question is None else len(reader.tokens(question))
        places, pairs = [], []
        for i, j in permutations(range(len(distinct)), 2):
            a, b = distinct[i], distinct[j]
            if reader.look_alike(a, b):
                table[i, j] = np.eye(3)[_NEUTRAL]
                continue
            fits = reader.length(a, b) + 2 * asked <= reader.room
            before = f"{question} " if question is not None and fits else ""
            places.append((i, j))
            pairs.append([f"{before}{text}" for text in (a, b)])
        if pairs:
            rows, across = zip(*places, strict=True)
            table[rows, across] = self._predict(model, reader, pairs)


class _Reader:
    """What a model sees of texts.

    Args:
        model: A ``CrossEncoder`` of sentence-transformers.
        texts: The texts that are compared.
    """

    def __init__(self, model: Any, texts: Sequence[str]) -> None:  # noqa: ANN401 - of torch
        self._tokenizer = model.tokenizer
        positions = getattr(model.config, "max_position_embeddings", _TOKENS)
        limit = min(self._tokenizer.model_max_length, positions)
        self.room = int(limit - self._tokenizer.num_special_tokens_to_add(pair=True))
        self._seen = {text: self.tokens(text) for text in texts}

    def tokens(self, text: str) -> list[int]:
        """Return the ids of the tokens at the start of a text."""
        # No model reads more, and a tokenizer takes its time.
        window = self.without_marks(text[: 20 * _TOKENS])
        encoded = self._tokenizer(window, add_special_tokens=False, verbose=False)
        return list(encoded["input_ids"])

    def length(self, a: str, b: str) -> int:
        """Return how many tokens two texts have together."""
        return len(self._seen[a]) + len(self._seen[b])

    def look_alike(self, a: str, b: str) -> bool:
        """Return whether the model sees the same tokens of two different texts."""
        half = self.room // 2
        same = self._seen[a][:half] == self._seen[b][:half]
        return same and normalised_text(a) != normalised_text(b)

    def without_marks(self, text: str) -> str:
        """Break up marks such as [SEP], by which one text could pass for two."""
        for mark in self._tokenizer.all_special_tokens:
            if len(mark) > 1:
                text = text.replace(mark, f"{mark[0]} {mark[1:]}")
        return text


def _columns(model: Any, name: str) -> list[int]:  # noqa: ANN401 - of torch
    """Return which output is contradiction, which neutral and which entailment."""
    labels = [label for _, label in sorted(model.config.id2label.items())]
    starts = [label.lower()[:6] for label in labels]
    columns = [kind[:6] for kind in _CLASSES]
    if sorted(starts) != sorted(columns):
        msg = (
            f"expected the outputs of {name!r} to be {_CLASSES} in some order, got "
            f"{labels}; where only the names are missing, write them into id2label of "
            "the model's config.json"
        )
        raise ConfigurationError(msg)
    return [starts.index(column) for column in columns]
