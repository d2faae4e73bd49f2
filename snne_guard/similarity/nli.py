"""Whether answers mean the same, by a model of natural language inference (NLI)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import ClassVar

import numpy as np

from snne_guard._devices import best_device
from snne_guard.similarity._nli_engine import ENGINES, Engine, engine
from snne_guard.similarity._nli_labels import check_labels, class_columns
from snne_guard.similarity._nli_load import Source, check_extra
from snne_guard.similarity._nli_reading import Reader, Reading, read_answers
from snne_guard.similarity._nli_texts import cut_answer
from snne_guard.similarity._options import check_dtype, check_model_name, check_whole
from snne_guard.similarity.entailment import entail_similarity, equivalence
from snne_guard.similarity.lexical import distinct_texts
from snne_guard.types import BoolArray, FloatArray

__all__ = ["DEFAULT_NLI_MODEL", "NLI"]

DEFAULT_NLI_MODEL = "microsoft/deberta-v2-xlarge-mnli"
"""The paper's. 1.8 GB in half precision; ``microsoft/deberta-base-mnli`` and
``cross-encoder/nli-deberta-v3-base`` are several times smaller and faster."""

_NEUTRAL = (0.0, 1.0, 0.0)
_ENTAILED = (0.0, 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class NLI(Reader):
    """A sequence-classification model of Hugging Face that compares answers.

    It is a similarity (how far two answers entail each other), an equivalence (which
    mean the same) and an entailment (the probabilities behind both).

    The model is loaded at first use, or by :meth:`load`, and every ``NLI`` of the
    same model in the process shares it, among threads too. An ordered pair of texts
    goes through it once: what came out is remembered under a digest of the pair, so
    that further methods and rounds cost nothing. Batches are sorted by length.

    Of a pair the model reads ``max_length`` tokens. Where question and answer do not
    fit, the question loses its beginning; of answers that do not fit by themselves,
    the ends are not compared (a warning is logged once, and :attr:`cut_pairs` counts
    them). Two different answers that the model cannot tell apart count as neutral:
    where one is written in characters that it does not know, where what differs stands
    beyond what it reads, and where both become the same tokens though more than case
    and spaces differs (:attr:`alike_pairs` counts these two). Equal answers mean the
    same, without the model.

    Args:
        model: Name on the Hugging Face Hub, or the path of a folder. Code that comes
            with a model is never run.
        device: Such as ``"cuda:1"``; a GPU if there is one unless given.
        dtype: ``"float32"``, ``"float16"``, ``"bfloat16"`` or ``"float64"``.
        revision: Branch, tag or commit of the model.
        labels: What each output of the model means, in its order, where its
            configuration does not say so: ``("contradiction", "neutral",
            "entailment")`` in another order, or two of them without neutral, which
            counts whatever is no entailment as contradiction.
        condition_on_question: Whether the question, where there is one, stands before
            both answers, as in the paper for question answering.
        strict: Whether two answers mean the same only if each entails the other, as
            in the paper's code; else no contradiction and not two neutrals suffice.
        batch_size: Pairs that go through the model together. Where they do not fit
            into memory, fewer do.
        max_length: Tokens of a pair; None for what the model was made for.
        last_characters: Compare only the end of each answer; the authors' code takes
            1024 characters.

    Attributes:
        name: ``"nli:"`` and the model.

    Raises:
        ConfigurationError: An option makes no sense.

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

    from_probabilities: ClassVar[bool] = True
    """What is similar, and what means the same, follows from the probabilities."""

    model: str | os.PathLike[str] = DEFAULT_NLI_MODEL
    _: KW_ONLY
    device: str | None = None
    dtype: str = "float32"
    revision: str | None = None
    labels: Sequence[str] | None = None
    condition_on_question: bool = True
    strict: bool = True
    batch_size: int = 32
    max_length: int | None = None
    last_characters: int | None = None
    name: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_model_name(self.model)
        check_dtype(self.dtype)
        check_whole("batch_size", self.batch_size, least=1)
        if self.max_length is not None:
            check_whole("max_length", self.max_length, least=16)
        if self.last_characters is not None:
            check_whole("last_characters", self.last_characters, least=1)
        object.__setattr__(self, "model", os.fspath(self.model))
        object.__setattr__(self, "labels", check_labels(self.labels))
        object.__setattr__(self, "name", f"nli:{self.model}")

    def __call__(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> FloatArray:
        """Return how far the texts entail each other: the mean of both directions.

        Args:
            texts: The ``n`` texts.
            question: What was asked.

        Returns:
            ``(n, n)`` float64 matrix in [0, 1], symmetric, diagonal 1.

        Raises:
            InputError: ``texts`` is not a sequence of strings, or the model's numbers
                are none.
            MissingExtraError: A package or the model is not there.
            ConfigurationError: The model is no NLI model.
        """
        return entail_similarity(self.probabilities(texts, question=question))

    def equivalent(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> BoolArray:
        """Return which texts mean the same; see ``strict``.

        Args:
            texts: The ``n`` texts.
            question: What was asked.

        Returns:
            ``(n, n)`` booleans, symmetric, diagonal True; not always transitive.

        Raises:
            SnneGuardError: As for the similarity.
        """
        found = self.probabilities(texts, question=question)
        return equivalence(found, strict=self.strict)

    def probabilities(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> FloatArray:
        """Return what the model says of each ordered pair.

        Args:
            texts: The ``n`` texts.
            question: What was asked.

        Returns:
            ``(n, n, 3)`` float64: premise, hypothesis, then the probabilities of
            contradiction, neutral and entailment. The diagonal and equal texts are
            ``(0, 0, 1)``.

        Raises:
            SnneGuardError: As for the similarity.
        """
        distinct = list(distinct_texts(texts))
        table = np.tile(np.array(_ENTAILED), (len(distinct), len(distinct), 1))
        if len(distinct) > 1:
            self._fill(table, distinct, question)
        place = {text: row for row, text in enumerate(distinct)}
        rows = [place[text] for text in texts]
        return table[np.ix_(rows, rows)]

    @property
    def cut_pairs(self) -> int:
        """Pairs so far, of all that share the model, whose ends it did not see.

        0 where the model is not loaded.
        """
        shared = ENGINES.known(self._source())
        return 0 if shared is None else shared.cut_pairs

    @property
    def alike_pairs(self) -> int:
        """Pairs so far of different texts that are the same to the shared model.

        0 where the model is not loaded.
        """
        shared = ENGINES.known(self._source())
        return 0 if shared is None else shared.alike_pairs

    def load(self) -> NLI:
        """Load the model now rather than at first use, and return this object.

        A service calls it when it starts, so that no request waits for the model and
        a wrong name fails there.

        Elsewhere, a model that could not be loaded is not tried again for a minute;
        here it is.

        Raises:
            MissingExtraError: A package or the model is not there.
            ConfigurationError: The model is no NLI model.
        """
        ENGINES.forgive(self._source())
        self._columns(self._engine())
        return self

    def unload(self) -> None:
        """Let go of the shared model; the next use loads it again."""
        ENGINES.drop(self._source())

    def _source(self) -> Source:
        check_extra()
        device = self.device or best_device()
        return Source(os.fspath(self.model), self.revision, device, self.dtype)

    def _engine(self) -> Engine:
        return engine(self._source())

    def _columns(self, shared: Engine) -> tuple[int | None, ...]:
        labels = None if self.labels is None else tuple(self.labels)
        names = shared.loaded.id2label
        return class_columns(names, labels, model=os.fspath(self.model))

    def _read(self, distinct: Sequence[str], question: str | None) -> Reading:
        shared = self._engine()
        answers = [
            shared.clean(cut_answer(text.strip(), self.last_characters))
            for text in distinct
        ]
        told = question if self.condition_on_question else None
        return read_answers(shared, answers, told, max_length=self.max_length)

    def _fill(
        self, table: FloatArray, distinct: Sequence[str], question: str | None
    ) -> None:
        """Write what the model says of distinct texts into their table."""
        reading = self._read(distinct, question)
        columns = self._columns(reading.shared)
        asked = reading.asked
        found = reading.shared.probabilities(
            [reading.pairs[place] for place in asked],
            max_length=reading.window,
            batch_size=self.batch_size,
        )
        if asked:
            rows, across = zip(*asked, strict=True)
            ordered = [
                np.zeros(len(found)) if column is None else found[:, column]
                for column in columns
            ]
            table[rows, across] = np.stack(ordered, axis=1)
        for place in reading.alike:
            table[place] = _NEUTRAL
