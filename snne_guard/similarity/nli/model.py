"""Whether answers mean the same, by a model of natural language inference (NLI)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from itertools import permutations
from typing import Any

import numpy as np

from snne_guard.errors import ScoringError
from snne_guard.similarity.exact import normalised_text
from snne_guard.similarity.lexical import distinct_texts
from snne_guard.similarity.local_models import (
    LocalModel,
    check_batch_size,
    model_name,
)
from snne_guard.similarity.nli.entailment import (
    class_columns,
    entail_similarity,
    equivalence,
)
from snne_guard.types import BoolArray, FloatArray

__all__ = ["DEFAULT_NLI_MODEL", "NLI"]

DEFAULT_NLI_MODEL = "microsoft/deberta-v2-xlarge-mnli"
"""The paper's, 3.6 GB. ``microsoft/deberta-base-mnli`` and
``cross-encoder/nli-deberta-v3-base`` are several times smaller and faster."""

_TOKENS = 512
_NEUTRAL = (0.0, 1.0, 0.0)
_ENTAILED = (0.0, 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class NLI:
    """An NLI model, by the ``CrossEncoder`` of sentence-transformers (extra ``nli``).

    It is a similarity (how far two answers entail each other), an equivalence (which
    mean the same) and an entailment (the probabilities behind both). The model is
    loaded at first use and shared in the process.

    Of a pair the model reads as many tokens as it was made for, 512 as a rule. Where
    the question does not fit beside two answers it is left out; of answers that do not
    fit by themselves the ends are not compared. Two different answers that become the
    same tokens, because their ends are cut off or their script is unknown to the model,
    count as neutral; ``blind_spots`` tells of both.

    Args:
        model: Name on the Hugging Face Hub, or the path of a folder. Code that comes
            with a model is never run.
        device: Such as ``"cuda:1"``; None for the best.
        revision: Branch, tag or commit of the model.
        condition_on_question: Whether the question, where there is one, stands before
            both answers, as in the paper for question answering.
        strict: Whether two answers mean the same only if each entails the other, as
            in the paper's code; else no contradiction and not two neutrals suffice.
        batch_size: Pairs that go through the model together.

    Raises:
        MissingExtraError: At first use: sentence-transformers is not installed.
        ConfigurationError: An option makes no sense; at first use: the model cannot be
            loaded, or is no NLI model.
        ScoringError: In use: the model failed, or its numbers are none.

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
    revision: str | None = None
    condition_on_question: bool = True
    strict: bool = True
    batch_size: int = 32
    name: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_batch_size(self.batch_size)
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
        found = self.probabilities(texts, question=question)
        return equivalence(found, strict=self.strict)

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
        table = np.tile(np.array(_ENTAILED), (n, n, 1))
        if n > 1:
            asked = question if self.condition_on_question else None
            self._shared().run(lambda model: self._fill(table, model, distinct, asked))
        place = {text: row for row, text in enumerate(distinct)}
        rows = [place[text] for text in texts]
        return table[np.ix_(rows, rows)]

    def blind_spots(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> bool:
        """Return whether two texts do not fit into the model, or look alike to it."""
        del question
        distinct = distinct_texts(texts)
        if len(distinct) < 2:  # noqa: PLR2004 - a pair
            return False
        seen = self._shared().run(
            lambda model: [_ids(model, text) for text in distinct]
        )
        room = self._shared().run(_room)
        longest = sorted(map(len, seen))[-2:]
        pairs = permutations(range(len(distinct)), 2)
        return sum(longest) > room or any(
            _look_alike(seen[i], seen[j], room) and _differ(distinct[i], distinct[j])
            for i, j in pairs
        )

    def _shared(self) -> LocalModel:
        return LocalModel.of(
            "CrossEncoder",
            model_name(self.model),
            device=self.device,
            revision=self.revision,
            extra="nli",
        )

    def _fill(
        self,
        table: FloatArray,
        model: Any,  # noqa: ANN401 - of torch
        distinct: Sequence[str],
        question: str | None,
    ) -> None:
        """Write what the model says of distinct texts into their table."""
        columns = list(class_columns(model.config.id2label, model=self.name))
        room = _room(model)
        seen = [_ids(model, text) for text in distinct]
        asked = 0 if question is None else len(_ids(model, question))
        places, pairs = [], []
        for i, j in permutations(range(len(distinct)), 2):
            if _look_alike(seen[i], seen[j], room) and _differ(
                distinct[i], distinct[j]
            ):
                table[i, j] = _NEUTRAL
                continue
            fits = len(seen[i]) + len(seen[j]) + 2 * asked <= room
            before = f"{question} " if question is not None and fits else ""
            places.append((i, j))
            pairs.append([_defused(model, f"{before}{distinct[k]}") for k in (i, j)])
        if not pairs:
            return
        found = np.asarray(
            model.predict(
                pairs,
                batch_size=self.batch_size,
                apply_softmax=True,
                show_progress_bar=False,
            ),
            dtype=np.float64,
        )
        if not np.isfinite(found).all():
            msg = f"expected probabilities from {self.name}, got NaN or infinity"
            raise ScoringError(msg)
        rows, across = zip(*places, strict=True)
        table[rows, across] = found[:, columns]


def _room(model: Any) -> int:  # noqa: ANN401 - of torch
    """Return how many tokens of two texts fit into the model together."""
    positions = getattr(model.config, "max_position_embeddings", _TOKENS)
    limit = min(model.tokenizer.model_max_length, positions)
    return int(limit - model.tokenizer.num_special_tokens_to_add(pair=True))


def _ids(model: Any, text: str) -> list[int]:  # noqa: ANN401 - of torch
    # No model reads more, and a tokenizer takes its time.
    window = _defused(model, text[: 20 * _TOKENS])
    found = model.tokenizer(window, add_special_tokens=False, verbose=False)
    return list(found["input_ids"])


def _look_alike(one: list[int], other: list[int], room: int) -> bool:
    """Return whether the model sees the same tokens of both."""
    return one[: room // 2] == other[: room // 2]


def _differ(one: str, other: str) -> bool:
    return normalised_text(one) != normalised_text(other)


def _defused(model: Any, text: str) -> str:  # noqa: ANN401 - of torch
    """Break marks such as [SEP], by which a text could end itself and go on."""
    for mark in model.tokenizer.all_special_tokens:
        if len(mark) > 1:
            text = text.replace(mark, f"{mark[0]} {mark[1:]}")
    return text
