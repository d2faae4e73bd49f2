"""Cosine similarity of embeddings: sentence-transformers, LangChain's, or your own."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, cast

import numpy as np

from snne_guard._forks import begin_in_forks
from snne_guard._hub import from_hub
from snne_guard.errors import ConfigurationError, InputError, MissingExtraError
from snne_guard.similarity._memo import PairMemo, pair_key
from snne_guard.similarity.lexical import distinct_texts
from snne_guard.types import FloatArray, IntArray

__all__ = ["Embedding"]

_Encode = Callable[[list[str]], Any]

_REMEMBERED = 1024
"""Embeddings that are kept, so that a set that grows costs only what is new."""


class Embedding:
    """Compares texts by the cosine of their embeddings, rescaled to [0, 1].

    A model that is named is loaded at the first use, once, and threads wait for one
    another; an object that is handed in is called as it is. The embeddings used last
    are kept, without their texts.

    Args:
        model: The name or the folder of a sentence-transformers model (extra
            ``embeddings``); a ``SentenceTransformer``; LangChain ``Embeddings``, or
            anything else with ``embed_documents``; or a callable that takes a list of
            ``n`` texts and returns ``(n, d)`` numbers.
        name: What a method on it is called by; else ``embedding:`` and the model.
        condition_on_question: Whether ``"{question} {text}"`` is embedded, where there
            is a question, and not the text alone. The name, unless given, then ends in
            ``+question``.
        device: Where a named model runs, such as ``"cuda:0"``; None for the best.
        batch_size: Texts that a sentence-transformers model takes at once.

    Raises:
        ConfigurationError: ``model`` is none of these.

    Source:
        Section 6.3 of the paper of SNNE takes ``Alibaba-NLP/gte-Qwen2-7B-instruct``
        or ``Salesforce/SFR-Embedding-2_R``, and the cosine as it is.

    Example:
        >>> def count(texts):
        ...     return [[text.count("a"), text.count("b")] for text in texts]
        >>> letters = Embedding(count)
        >>> letters.name
        'embedding:count'
        >>> letters(["ab", "abab", "a"]).round(3)
        array([[1.   , 1.   , 0.854],
               [1.   , 1.   , 0.854],
               [0.854, 0.854, 1.   ]])
    """

    def __init__(
        self,
        model: Any,  # noqa: ANN401 - a text, an object of another library, a callable
        /,
        *,
        name: str | None = None,
        condition_on_question: bool = False,
        device: str | None = None,
        batch_size: int = 32,
    ) -> None:
        if batch_size < 1:
            msg = f"expected batch_size to be at least 1, got {batch_size}"
            raise ConfigurationError(msg)
        self._condition_on_question = condition_on_question
        self._memo = PairMemo[FloatArray](_REMEMBERED)
        self._encode = _encoder(model, device=device, batch_size=batch_size)
        own = f"embedding:{_named(model)}{'+question' if condition_on_question else ''}"
        self.name = own if name is None else name

    def __repr__(self) -> str:
        """Return what a reader would write."""
        return f"{type(self).__name__}({self.name!r})"

    def __call__(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> FloatArray:
        """Compare every text with every other one: ``(1 + cosine) / 2``.

        Args:
            texts: The ``n`` texts. Equal ones are embedded once.
            question: What was asked; looked at only with ``condition_on_question``.

        Returns:
            ``(n, n)`` float64 matrix in [0, 1], symmetric; 1 for equal texts. The
            cosine with an embedding of length 0 counts as 0.

        Raises:
            InputError: ``texts`` is not a sequence of strings, or the model gave
                something else than a finite vector for each.
            MissingExtraError: sentence-transformers is needed and not installed.
            ConfigurationError: The model cannot be loaded.
        """
        return self.matrices([texts], questions=[question])[0]

    def matrices(
        self,
        sets: Sequence[Sequence[str]],
        /,
        *,
        questions: Sequence[str | None] | None = None,
    ) -> list[FloatArray]:
        """Compare the texts of many sets, each within its set; all embedded at once.

        Args:
            sets: Texts, any number in each set.
            questions: One a set, None for none at all.

        Returns:
            What calling it on each set would give, up to rounding.

        Raises:
            InputError: As for a call; or there is another number of questions.
        """
        asked = [None] * len(sets) if questions is None else questions
        if len(asked) != len(sets):
            msg = f"expected {len(sets)} questions, one a set, got {len(asked)}"
            raise InputError(msg)
        for texts in sets:
            distinct_texts(texts)
        read = [
            [self._read(text, question) for text in texts]
            for texts, question in zip(sets, asked, strict=True)
        ]
        distinct = list(dict.fromkeys(text for texts in read for text in texts))
        place = {text: row for row, text in enumerate(distinct)}
        units = _unit(self._embedded(distinct))
        return [
            _alike(units, np.array([place[text] for text in texts], dtype=np.intp))
            for texts in read
        ]

    def vectors(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> FloatArray:
        """Return the embeddings as the model gives them, not normalised.

        Args:
            texts: The ``n`` texts. Equal ones are embedded once.
            question: As for a call.

        Returns:
            ``(n, d)`` float64; ``(0, 0)`` for no texts.

        Raises:
            InputError: As for a call.
        """
        distinct_texts(texts)
        read = [self._read(text, question) for text in texts]
        distinct = list(dict.fromkeys(read))
        place = {text: row for row, text in enumerate(distinct)}
        return self._embedded(distinct)[[place[text] for text in read]]

    def _read(self, text: str, question: str | None) -> str:
        if question is None or not self._condition_on_question:
            return text
        return f"{question} {text}"

    def _embedded(self, texts: list[str]) -> FloatArray:
        if not texts:
            return np.zeros((0, 0))
        keys = [pair_key(text) for text in texts]
        found = {key: self._memo.get(key) for key in keys}
        new = [
            text for text, key in zip(texts, keys, strict=True) if found[key] is None
        ]
        if new:
            for text, vector in zip(new, self._vectors_of(new), strict=True):
                key = pair_key(text)
                own = vector.copy()  # which does not keep the others in memory
                found[key] = own
                self._memo.put(key, own)
        try:
            return np.stack([cast("FloatArray", found[key]) for key in keys])
        except ValueError as error:
            msg = f"expected {self.name} to give vectors of one length: {error}"
            raise InputError(msg) from error

    def _vectors_of(self, texts: list[str]) -> FloatArray:
        given = self._encode(texts)
        try:
            vectors = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError) as error:
            msg = f"expected {self.name} to give vectors of one length: {error}"
            raise InputError(msg) from error
        if vectors.ndim != 2 or len(vectors) != len(texts) or not vectors.size:  # noqa: PLR2004
            msg = (
                f"expected {self.name} to give an array of shape ({len(texts)}, d), "
                f"got {vectors.shape}"
            )
            raise InputError(msg)
        if not np.isfinite(vectors).all():
            msg = f"expected {self.name} to give finite numbers, got NaN or infinity"
            raise InputError(msg)
        return vectors


class _Sentences:
    """A sentence-transformers model, loaded when it is first needed."""

    def __init__(self, model: Any, *, device: str | None, batch_size: int) -> None:  # noqa: ANN401
        self._given, self._device, self._batch_size = model, device, batch_size
        self._model = model
        begin_in_forks(self)

    def begin(self) -> None:
        """Keep the model, under a lock that nobody holds."""
        # Its tokenizer cannot serve two threads at once.
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle what was given: a model by its name, and no lock."""
        return _sentences, (self._given, self._device, self._batch_size)

    def __call__(self, texts: list[str]) -> Any:  # noqa: ANN401 - an array or a list
        with self._lock:
            if isinstance(self._model, str):
                self._model = _load(self._model, device=self._device)
            return self._model.encode(
                texts, batch_size=self._batch_size, show_progress_bar=False
            )


def _sentences(model: Any, device: str | None, batch_size: int) -> _Sentences:  # noqa: ANN401
    return _Sentences(model, device=device, batch_size=batch_size)


def _load(name: str, *, device: str | None) -> Any:  # noqa: ANN401 - untyped enough
    try:
        library: Any = import_module("sentence_transformers")
    except ImportError as error:
        needed = f"{error.name or 'sentence-transformers'} (for embedding:{name})"
        raise MissingExtraError(needed, extra="embeddings") from error
    try:
        return library.SentenceTransformer(name, device=device, **from_hub(name))
    except (OSError, ValueError, RuntimeError) as error:
        msg = f"the embedding model {name!r} cannot be loaded: {error}"
        raise ConfigurationError(msg) from error


def _encoder(model: Any, *, device: str | None, batch_size: int) -> _Encode:  # noqa: ANN401
    if isinstance(model, os.PathLike):
        model = os.fspath(cast("os.PathLike[str]", model))
    if hasattr(model, "embed_documents"):
        return cast("_Encode", model.embed_documents)
    if hasattr(model, "encode") and model != "":
        return _Sentences(model, device=device, batch_size=batch_size)
    if callable(model):
        return cast("_Encode", model)
    msg = (
        "expected the name of a sentence-transformers model, an object with encode or "
        f"embed_documents, or a callable, got {model!r}"
    )
    raise ConfigurationError(msg)


def _named(model: Any) -> str:  # noqa: ANN401
    if isinstance(model, str | os.PathLike):
        return str(os.fspath(cast("str | os.PathLike[str]", model)))
    for attribute in ("model", "model_name", "__qualname__"):
        found = getattr(model, attribute, None)
        if isinstance(found, str) and found:
            return found
    return type(model).__qualname__


def _unit(vectors: FloatArray) -> FloatArray:
    """Return vectors of length 1, zero ones as they are."""
    # First by the largest entry, so that no square over- or underflows.
    largest = np.abs(vectors).max(axis=1, keepdims=True, initial=0.0)
    vectors = vectors / np.where(largest > 0, largest, 1.0)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1.0)


def _alike(units: FloatArray, places: IntArray) -> FloatArray:
    chosen = units[places]
    cosines = chosen @ chosen.T
    # BLAS may round (a, b) and (b, a) differently.
    matrix = ((1.0 + (cosines + cosines.T) / 2.0) / 2.0).clip(0.0, 1.0)
    matrix[np.equal.outer(places, places)] = 1.0
    return matrix
