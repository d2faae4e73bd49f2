"""What a model of pairs gets to read of answers, and what of them it cannot see."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import permutations
from typing import NamedTuple

from snne_guard.similarity._nli_engine import Engine, Pair
from snne_guard.similarity.lexical import distinct_texts

__all__ = ["Reader", "Reading", "read_answers"]


class Reading(NamedTuple):
    """What a model gets to read of distinct answers.

    Attributes:
        shared: The model.
        window: Tokens of a pair.
        known: Of each answer, whether the model knows its characters.
        pairs: Each ordered pair under its place.
    """

    shared: Engine
    window: int
    known: list[bool]
    pairs: dict[tuple[int, int], Pair]

    @property
    def asked(self) -> list[tuple[int, int]]:
        """Places of the pairs of which the model knows the characters."""
        return [(i, j) for i, j in self.pairs if self.known[i] and self.known[j]]

    @property
    def alike(self) -> list[tuple[int, int]]:
        """Places of the pairs that it cannot tell apart, whatever it says of them."""
        return [
            place
            for place, pair in self.pairs.items()
            if pair.alike or not (self.known[place[0]] and self.known[place[1]])
        ]

    def blind_spots(self) -> tuple[str, ...]:
        """Return ``answers_cut`` and ``answers_alike`` where there are such pairs."""
        cut = any(
            pair.cut or not self.shared.fits(pair, window=self.window)
            for pair in self.pairs.values()
        )
        reasons: tuple[str, ...] = ("answers_cut",) if cut else ()
        return (*reasons, "answers_alike") if self.alike else reasons


class Reader(ABC):
    """A similarity that a model of pairs makes, which tells what it cannot see."""

    __slots__ = ()

    def blind_spots(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> tuple[str, ...]:
        """Return why the comparison of these texts tells less than it seems.

        It costs as much as cutting them into tokens.

        Args:
            texts: The ``n`` texts.
            question: What was asked.

        Returns:
            ``"answers_cut"`` where the ends of two different texts are not compared,
            ``"answers_alike"`` where the model cannot tell two of them apart.

        Raises:
            SnneGuardError: As for the similarity.
        """
        distinct = list(distinct_texts(texts))
        if len(distinct) < 2:  # noqa: PLR2004 - a pair
            return ()
        return self._read(distinct, question).blind_spots()

    @abstractmethod
    def _read(self, distinct: Sequence[str], question: str | None) -> Reading:
        """Return what the model gets to read of distinct texts."""


def read_answers(
    shared: Engine,
    answers: Sequence[str],
    question: str | None,
    *,
    max_length: int | None,
) -> Reading:
    """Return what a model reads of answers.

    Args:
        shared: The model.
        answers: The distinct answers, clean.
        question: What stands before each of them, None for nothing.
        max_length: Tokens of a pair, None for what the model was made for.
    """
    window = shared.window(max_length)
    sides = shared.sides(question, answers, window=window)
    alike = shared.indistinct(answers, sides, window=window)
    cut = shared.too_long(answers, window=window)
    pairs = {
        (i, j): Pair(sides[i], sides[j], cut=cut[i] or cut[j], alike=bool(alike[i, j]))
        for i, j in permutations(range(len(answers)), 2)
    }
    return Reading(shared, window, [shared.reads(each) for each in answers], pairs)
