"""Whether answers mean the same, by a model of natural language inference (NLI)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from os import PathLike
from typing import Any

import numpy as np

from snne_guard.errors import ConfigurationError
from snne_guard.similarity.local_models import run_model
from snne_guard.similarity.matches import normalised_text
from snne_guard.similarity.pairs import compare_ordered
from snne_guard.types import BoolArray, FloatArray

DEFAULT_NLI_MODEL = "microsoft/deberta-v2-xlarge-mnli"
"""The paper's, 3.6 GB. ``microsoft/deberta-base-mnli`` and
``cross-encoder/nli-deberta-v3-base`` are several times smaller and faster."""

_TOKENS = 512
_CLASSES = ("contradiction", "neutral", "entailment")  # the last axis of tables
_, _NEUTRAL, ENTAILMENT = range(3)
_CERTAIN = np.eye(3)


def equivalence(probabilities: FloatArray) -> BoolArray:
    """Return the relation of texts whose likeliest label is entailment, both ways.

    Args:
        probabilities: ``(n, n, 3)``: premise, hypothesis, then contradiction, neutral,
            entailment. The diagonal is not looked at.

    ``(n, n)`` booleans, symmetric, True on the diagonal; not always transitive. Source:
    Farquhar et al. 2024, semantic entropy.

    Example:
        >>> equivalence([[[0, 0, 1], [0.1, 0.2, 0.7]], [[0.1, 0.8, 0.1], [0, 0, 1]]])
        array([[ True, False],
               [False,  True]])
    """
    entailed = np.asarray(probabilities).argmax(axis=2) == ENTAILMENT
    same: BoolArray = entailed & entailed.T
    np.fill_diagonal(same, val=True)
    return same


def entail_similarity(probabilities: FloatArray) -> FloatArray:
    """Return the entailment of every two texts, as a similarity.

    Args:
        probabilities: ``(n, n, 3)`` as for ``equivalence``.

    ``(n, n)`` mean of both directions' probability of entailment, in [0, 1], 1 on the
    diagonal. Source: ``entail`` of Nguyen, Payani, Mirzasoleiman 2025, "Beyond Semantic
    Entropy"; that it is the mean of both directions is in the authors' code.

    Example:
        >>> entail_similarity(
        ...     [[[0, 0, 1], [0.1, 0.2, 0.7]], [[0.3, 0.6, 0.1], [0] * 3]]
        ... )
        array([[1. , 0.4],
               [0.4, 1. ]])
    """
    entailed = np.asarray(probabilities, dtype=np.float64)[:, :, ENTAILMENT]
    matrix: FloatArray = ((entailed + entailed.T) / 2).clip(0.0, 1.0)
    np.fill_diagonal(matrix, 1.0)
    return matrix


@dataclass(frozen=True, slots=True)
class NLI:
    """An NLI model, by the ``CrossEncoder`` of sentence-transformers (extra ``nli``).

    It gives a similarity (how far two answers entail each other), an equivalence (which
    mean the same) and the probabilities behind both. Where there is a question, it is
    put before both answers, as in the paper. The model is loaded at first use, and
    shared in the process.

    A model reads a limited number of tokens of a pair, usually 512. A question that
    does not fit beside two answers is left out; the ends of longer answers are not
    compared. Two different answers that become the same tokens, because of that or of
    their script, count as neutral.

    Args:
        model: Name on the Hugging Face Hub, or the path of a folder. Code that comes
            with a model is never run. It runs on a GPU if there is one.

    Raises:
        MissingExtraError: At first use: sentence-transformers is not installed.
        ConfigurationError: At first use: the model cannot be loaded, or is not an
            NLI model.
        ScoringError: In use: the model failed.

    Example:
        >>> nli = NLI("microsoft/deberta-base-mnli")
        >>> nli.name
        'nli:microsoft/deberta-base-mnli'
        >>> question = "Where is the Eiffel Tower?"
        >>> nli(["Paris", "Rome"], question=question)  # doctest: +SKIP
        array([[1., 0.],
               [0., 1.]])
    """

    model: str | PathLike[str] = DEFAULT_NLI_MODEL

    @property
    def name(self) -> str:
        """``"nli:"`` and the model."""
        return f"nli:{self.model}"

    def __call__(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> FloatArray:
        """Return the entailment of every two texts: the mean of both directions."""
        return entail_similarity(self.probabilities(texts, question=question))

    def equivalent(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> BoolArray:
        """Return the relation of texts that mean the same; it may not be transitive."""
        return equivalence(self.probabilities(texts, question=question))

    def probabilities(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> FloatArray:
        """Return the ``(n, n, 3)`` probabilities of each ordered pair.

        That is premise, hypothesis, then contradiction, neutral and entailment. Equal
        texts are ``(0, 0, 1)``.
        """
        ask = partial(self.of_pairs, question=question)
        return compare_ordered(texts, ask, equal=_CERTAIN[ENTAILMENT])

    def of_pairs(
        self, pairs: Sequence[tuple[str, str]], /, *, question: str | None = None
    ) -> FloatArray:
        """Return the ``(m, 3)`` probabilities for pairs of premise and hypothesis."""
        work = partial(self._predict, pairs=pairs, question=question or "")
        return run_model("CrossEncoder", self.model, work)

    def _predict(
        self,
        model: Any,  # noqa: ANN401 - of torch
        pairs: Sequence[tuple[str, str]],
        question: str,
    ) -> FloatArray:
        columns = _columns(model, self.name)
        marks = model.tokenizer.num_special_tokens_to_add(pair=True)
        room = (model.max_seq_length or _TOKENS) - marks
        texts = {question, *chain.from_iterable(pairs)}
        ids = {text: _token_ids(model.tokenizer, text) for text in texts}
        read, blind = [], []
        for a, b in pairs:
            fits = len(ids[a]) + len(ids[b]) + 2 * len(ids[question]) <= room
            before = f"{question} " if question and fits else ""
            read.append((before + a, before + b))
            same = ids[a][: room // 2] == ids[b][: room // 2]
            blind.append(same and normalised_text(a) != normalised_text(b))
        outputs = model.predict(read, apply_softmax=True, show_progress_bar=False)
        probabilities: FloatArray = outputs[:, columns].astype(np.float64)
        probabilities[blind] = _CERTAIN[_NEUTRAL]
        return probabilities


def _token_ids(tokenizer: Any, text: str) -> list[int]:  # noqa: ANN401 - of torch
    """Return the tokens at the start of a text: no model reads more than that."""
    window = text[: 20 * _TOKENS]
    encoded = tokenizer(window, add_special_tokens=False, verbose=False)
    return list(encoded["input_ids"])


def _columns(model: Any, name: str) -> list[int]:  # noqa: ANN401 - of torch
    """Return the outputs for contradiction, neutral and entailment, in this order."""
    labels = [label for _, label in sorted(model.config.id2label.items())]
    starts = [label.lower()[:6] for label in labels]
    columns = [kind[:6] for kind in _CLASSES]
    if sorted(starts) != sorted(columns):
        msg = f"expected id2label of {name!r} to have {_CLASSES}, got {labels}"
        raise ConfigurationError(msg)
    return [starts.index(column) for column in columns]
