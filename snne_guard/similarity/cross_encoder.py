"""How alike two texts are by a model that reads both, and how much a token matters."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Literal

import numpy as np

from snne_guard._devices import best_device
from snne_guard.errors import ConfigurationError
from snne_guard.similarity._nli_engine import ENGINES, Engine, Pair, engine
from snne_guard.similarity._nli_load import Source, check_extra
from snne_guard.similarity._nli_reading import Reader, Reading, read_answers
from snne_guard.similarity._options import check_dtype, check_model_name, check_whole
from snne_guard.similarity._token_spans import token_spans
from snne_guard.similarity.lexical import distinct_texts
from snne_guard.types import FloatArray

__all__ = ["DEFAULT_CROSS_ENCODER", "CrossEncoder", "Removal"]

DEFAULT_CROSS_ENCODER = "cross-encoder/stsb-roberta-large"
"""The one that SAR takes: trained on the similarity of sentences, English."""

Removal = Literal["position", "everywhere"]
"""Whether a token is taken out where it stands, or wherever its text occurs."""

_ONE_TOKEN = 0.5


@dataclass(frozen=True, slots=True)
class CrossEncoder(Reader):
    """A Hugging Face model with one output that says how alike two texts are.

    It is a similarity, and it tells how much the meaning of an answer changes without
    each of its tokens, for SAR. The model is loaded once and shared, each pair goes
    through it once, and batches are sorted by length, as with ``NLI``. As there, two
    different answers that the model cannot tell apart do not count as alike: their
    similarity is 0 where one is written in characters that it does not know, where
    what differs stands beyond what it reads, and where both become the same tokens.

    Args:
        model: Name on the Hugging Face Hub, or the path of a folder. Code that comes
            with a model is never run.
        device: Such as ``"cuda:1"``; a GPU if there is one unless given.
        dtype: ``"float32"``, ``"float16"``, ``"bfloat16"`` or ``"float64"``.
        revision: Branch, tag or commit of the model.
        condition_on_question: Whether the question stands before both answers when
            whole answers are compared; not so in the paper's runs.
        batch_size: Pairs that go through the model together.
        max_length: Tokens of a pair; None for what the model was made for.

    Attributes:
        name: ``"cross_encoder:"`` and the model.

    Raises:
        ConfigurationError: An option makes no sense.

    Source:
        Duan et al. 2024, "Shifting Attention to Relevance" (SAR).

    Example:
        >>> CrossEncoder().name
        'cross_encoder:cross-encoder/stsb-roberta-large'
        >>> CrossEncoder().token_importance(  # doctest: +SKIP
        ...     "Where is it?", "It is Paris", ["It", " is", " Paris"]
        ... )
        array([0.02, 0.01, 0.61])
    """

    model: str | os.PathLike[str] = DEFAULT_CROSS_ENCODER
    _: KW_ONLY
    device: str | None = None
    dtype: str = "float32"
    revision: str | None = None
    condition_on_question: bool = False
    batch_size: int = 32
    max_length: int | None = None
    name: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_model_name(self.model)
        check_dtype(self.dtype)
        check_whole("batch_size", self.batch_size, least=1)
        if self.max_length is not None:
            check_whole("max_length", self.max_length, least=16)
        object.__setattr__(self, "model", os.fspath(self.model))
        object.__setattr__(self, "name", f"cross_encoder:{self.model}")

    def __call__(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> FloatArray:
        """Return how alike the texts are: the mean of both orders.

        Args:
            texts: The ``n`` texts.
            question: What was asked.

        Returns:
            ``(n, n)`` float64 matrix in [0, 1], symmetric, 1 for equal texts, 0 for
            different ones that the model cannot tell apart.

        Raises:
            InputError: ``texts`` is not a sequence of strings, or the model's numbers
                are none.
            MissingExtraError: A package or the model is not there.
            ConfigurationError: The model has several outputs.
        """
        distinct = list(distinct_texts(texts))
        matrix = np.ones((len(distinct), len(distinct)))
        if len(distinct) > 1:
            reading = self._read(distinct, question)
            if asked := reading.asked:
                rows, columns = zip(*asked, strict=True)
                pairs = [reading.pairs[place] for place in asked]
                matrix[rows, columns] = self._alike(reading.shared, pairs)
            if alike := reading.alike:
                rows, columns = zip(*alike, strict=True)
                matrix[rows, columns] = 0.0
        place = {text: row for row, text in enumerate(distinct)}
        chosen = [place[text] for text in texts]
        both: FloatArray = (matrix + matrix.T) / 2
        return both[np.ix_(chosen, chosen)]

    def token_importance(
        self,
        question: str | None,
        text: str,
        tokens: Sequence[str],
        *,
        removal: Removal = "position",
    ) -> FloatArray:
        """Return how much the meaning of an answer changes without each of its tokens.

        The importance of a token is 1 less the similarity of the question and the
        answer to the question and the answer without it.

        Args:
            question: What was asked, joined with the answer without a space, as the
                authors do; None to leave it out.
            text: The answer.
            tokens: Its ``t`` tokens in order, as the model that wrote it cuts it.
            removal: ``"position"`` takes a token out where it stands;
                ``"everywhere"`` takes out all that reads like it, which is what the
                authors' code does.

        Returns:
            ``(t,)`` float64 in [0, 1], aligned with the tokens. 0 where nothing is
            taken out; 0.5 for an answer of one token, of which nothing would be left.

        Raises:
            InputError: The tokens are not those of the text.
            SnneGuardError: As for the similarity.
            ConfigurationError: ``removal`` is another word.

        Source:
            SAR, equation 3; https://github.com/jinhaoduan/SAR. The value for one
            token is LM-Polygraph's.
        """
        distinct_texts((text,))
        distinct_texts(tokens)
        if removal not in {"position", "everywhere"}:
            msg = f"removal must be 'position' or 'everywhere'; got {removal!r}"
            raise ConfigurationError(msg)
        if len(tokens) == 1:
            return np.full(1, _ONE_TOKEN)
        importance = np.zeros(len(tokens))
        left = _without_each(text, tokens, removal)
        changed = [place for place, rest in enumerate(left) if rest != text]
        if changed:
            shared = self._engine()
            before = question or ""
            whole = shared.clean(f"{before}{text}")
            pairs = [
                Pair(whole, shared.clean(f"{before}{left[place]}")) for place in changed
            ]
            importance[changed] = 1.0 - self._alike(shared, pairs)
        return importance

    def load(self) -> CrossEncoder:
        """Load the model now rather than at first use, and return this object.

        Raises:
            MissingExtraError: A package or the model is not there.
            ConfigurationError: The model has several outputs.
        """
        ENGINES.forgive(self._source())
        self._engine()
        return self

    def unload(self) -> None:
        """Let go of the shared model; the next use loads it again."""
        ENGINES.drop(self._source())

    def _source(self) -> Source:
        check_extra()
        device = self.device or best_device()
        return Source(os.fspath(self.model), self.revision, device, self.dtype)

    def _engine(self) -> Engine:
        shared = engine(self._source())
        outputs = [*shared.loaded.id2label.values()]
        if len(outputs) != 1:
            msg = (
                f"the model {self.model!r} is no cross-encoder of similarity: it has "
                f"{len(outputs)} outputs, {outputs}, where one is expected"
            )
            raise ConfigurationError(msg)
        return shared

    def _read(self, distinct: Sequence[str], question: str | None) -> Reading:
        shared = self._engine()
        told = question if self.condition_on_question else None
        clean = [shared.clean(text) for text in distinct]
        return read_answers(shared, clean, told, max_length=self.max_length)

    def _alike(self, shared: Engine, pairs: Sequence[Pair]) -> FloatArray:
        found = shared.probabilities(
            pairs,
            max_length=shared.window(self.max_length),
            batch_size=self.batch_size,
        )
        return found[:, 0]


def _without_each(text: str, tokens: Sequence[str], removal: Removal) -> list[str]:
    if removal == "everywhere":
        return [text.replace(token, "") if token else text for token in tokens]
    return [text[:start] + text[end:] for start, end in token_spans(text, tokens)]
