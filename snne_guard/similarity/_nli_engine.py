"""One loaded classifier of pairs that all threads of the process share."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from snne_guard._forks import begin_in_forks
from snne_guard.errors import ConfigurationError, InputError
from snne_guard.similarity._memo import PairMemo, pair_key
from snne_guard.similarity._nli_load import Loaded, MadeOnce, Source, load
from snne_guard.similarity._nli_texts import (
    defused,
    look_alike,
    side,
    spelled_alike,
)
from snne_guard.types import BoolArray, FloatArray

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["ENGINES", "Engine", "Pair", "engine"]

_LETTERS = 64
"""Letters that a token has at most, but for white space."""

logger = logging.getLogger(__name__)


class Pair(NamedTuple):
    """Two texts as the model gets them.

    Attributes:
        first: The premise.
        second: The hypothesis.
        cut: Whether an end was taken off already.
        alike: Whether the model cannot tell the two answers apart.
    """

    first: str
    second: str
    cut: bool = False
    alike: bool = False


class Engine:
    """Gives the class probabilities of pairs; each pair goes through the model once.

    Threads take turns: the tokenizers of Hugging Face cannot be shared, and two
    batches at once would each be half as fast.

    Args:
        loaded: The model.
        name: What it is called in errors.
    """

    def __init__(self, loaded: Loaded, *, name: str) -> None:
        self.loaded = loaded
        self._name = name
        self._known: PairMemo[tuple[float, ...]] = PairMemo()
        self._cut_pairs = 0
        self._alike_pairs = 0
        self._told_unreadable = False
        self._told_indistinct = False
        begin_in_forks(self)

    def begin(self) -> None:
        """Keep the model, under a lock that nobody holds."""
        self._lock = threading.RLock()

    @property
    def cut_pairs(self) -> int:
        """Pairs so far of which the model did not see the end."""
        return self._cut_pairs

    @property
    def alike_pairs(self) -> int:
        """Pairs so far of different answers that are the same to the model."""
        return self._alike_pairs

    def window(self, asked: int | None) -> int:
        """Return how many tokens a pair may have.

        Raises:
            ConfigurationError: More were asked for than the model has places.
        """
        most = self.loaded.most
        if asked is not None and most is not None and asked > most:
            msg = f"max_length must be at most {most} for {self._name!r}; got {asked}"
            raise ConfigurationError(msg)
        return self.loaded.window if asked is None else asked

    def tokens(self, text: str) -> list[int]:
        """Return the tokens of a text, without special ones."""
        with self._lock:
            ids = self.loaded.tokenizer(text, add_special_tokens=False, verbose=False)
        return list(map(int, ids["input_ids"]))

    def clean(self, text: str) -> str:
        """Return a text that the tokenizer can read and that is nothing but text."""
        whole = text.encode("utf-8", "replace").decode("utf-8")
        return defused(whole, self.loaded.tokenizer.all_special_tokens)

    def sides(
        self, question: str | None, answers: Sequence[str], *, window: int
    ) -> list[str]:
        """Return each clean answer, behind as much of the question as fits."""
        most = window * _LETTERS  # what is certain to be cut off need not be read
        told = None if question is None else self.clean(question[-most:])
        return [
            side(
                told,
                answer.strip()[:most],
                room=self._room(window) // 2,
                count=lambda text: len(self.tokens(text)),
            )
            for answer in answers
        ]

    def _room(self, window: int) -> int:
        """Return how many tokens the two texts of a pair have together."""
        special = self.loaded.tokenizer.num_special_tokens_to_add(pair=True)
        return int(window - special)

    def fits(self, pair: Pair, *, window: int) -> bool:
        """Return whether the model sees the whole of both texts."""
        both = len(self.tokens(pair.first)) + len(self.tokens(pair.second))
        return both <= self._room(window)

    def too_long(self, answers: Sequence[str], *, window: int) -> list[bool]:
        """Return which clean answers lose letters before they become tokens."""
        return [len(answer.strip()) > window * _LETTERS for answer in answers]

    def indistinct(
        self, answers: Sequence[str], sides: Sequence[str], *, window: int
    ) -> BoolArray:
        """Return which different answers are the same to the model.

        Either what makes them different stands where the model does not look, or its
        vocabulary does not tell it: unknown characters, or words too long for it. That
        it levels case and spaces is meant.

        Args:
            answers: The ``m`` clean answers.
            sides: What :meth:`sides` made of them.
            window: Tokens of a pair.

        Returns:
            ``(m, m)`` booleans, symmetric, diagonal False.
        """
        most, room = window * _LETTERS, self._room(window)
        bare = [self.tokens(answer.strip()[:most]) for answer in answers]
        whole = [self.tokens(text) for text in sides]
        same = np.zeros((len(answers), len(answers)), dtype=np.bool_)
        for i, j in combinations(range(len(answers)), 2):
            alike = bare[i] == bare[j] or look_alike(whole[i], whole[j], room=room)
            if alike and not spelled_alike(answers[i], answers[j]):
                same[i, j] = same[j, i] = True
        if same.any() and not self._told_indistinct:
            self._told_indistinct = True
            logger.warning("%r sees no difference between two answers", self._name)
        return same

    def reads(self, text: str) -> bool:
        """Return whether the model knows at least half of a text's tokens."""
        unknown = self.loaded.tokenizer.unk_token_id
        if unknown is None:
            return True
        ids = self.tokens(text)
        readable = 2 * ids.count(unknown) <= len(ids)
        if not readable and not self._told_unreadable:
            self._told_unreadable = True
            logger.warning("%r does not know the characters of an answer", self._name)
        return readable

    def probabilities(
        self, pairs: Sequence[Pair], *, max_length: int, batch_size: int
    ) -> FloatArray:
        """Return the probability of each class for each pair.

        Args:
            pairs: The ``p`` pairs, in their order.
            max_length: Tokens of a pair that the model sees; what is longer loses the
                end of its longer text.
            batch_size: Pairs that go through the model together. Where they do not
                fit into memory, fewer do.

        Returns:
            ``(p, classes)`` float64, each row adding up to 1, in the model's order;
            of a model with one output its sigmoid.

        Raises:
            InputError: The model's numbers are NaN or infinite.
        """
        keys = {
            pair: pair_key(str(max_length), pair.first, pair.second) for pair in pairs
        }
        with self._lock:
            found = {pair: self._known.get(key) for pair, key in keys.items()}
            new = [pair for pair, known in found.items() if known is None]
            rows = self._classify(new, max_length=max_length, batch_size=batch_size)
            for pair, row in zip(new, rows, strict=True):
                found[pair] = row
                self._known.put(keys[pair], row)
        classes = len(self.loaded.id2label)
        return np.array([found[pair] for pair in pairs]).reshape(-1, classes)

    def _classify(
        self, pairs: Sequence[Pair], *, max_length: int, batch_size: int
    ) -> list[tuple[float, ...]]:
        if not pairs:
            return []
        encoded = self._encode(pairs, max_length)
        # The longest first: what does not fit into memory shows at once, and little
        # of a batch is padding.
        lengths = [len(each["input_ids"]) for each in encoded]
        order = sorted(range(len(pairs)), key=lengths.__getitem__, reverse=True)
        rows: list[tuple[float, ...]] = [()] * len(pairs)
        size = batch_size
        while order:
            batch = self._batch(order[:size], lengths)
            probabilities = self._forward([encoded[place] for place in batch])
            if probabilities is None:
                size = len(batch) // 2
                continue
            for place, row in zip(batch, probabilities, strict=True):
                rows[place] = row
            del order[: len(batch)]
        return rows

    def _batch(self, places: Sequence[int], lengths: Sequence[int]) -> Sequence[int]:
        """Return the first of these places whose pairs may be padded to one length."""
        tokenizer = self.loaded.tokenizer
        if tokenizer.pad_token_id is None:
            return places[:1]
        if tokenizer.padding_side == "left":
            # Where a model looks for the summary of a padded pair is its own affair.
            return [place for place in places if lengths[place] == lengths[places[0]]]
        return places

    def _encode(self, pairs: Sequence[Pair], max_length: int) -> list[dict[str, Any]]:
        """Return the model's inputs for each pair, not yet padded."""
        firsts, seconds = (
            [pair.first for pair in pairs],
            [pair.second for pair in pairs],
        )
        self._alike_pairs += sum(pair.alike for pair in pairs)
        tokenizer = self.loaded.tokenizer
        table = tokenizer(firsts, seconds, verbose=False)
        lengths = map(len, table["input_ids"])
        long = sum(
            length > max_length or pair.cut
            for length, pair in zip(lengths, pairs, strict=True)
        )
        if long:
            table = tokenizer(
                firsts,
                seconds,
                truncation="longest_first",
                max_length=max_length,
            )
            if not self._cut_pairs:
                logger.warning(
                    "answers are longer than the %d tokens that %r reads of a pair; "
                    "their ends are not compared",
                    max_length,
                    self._name,
                )
            self._cut_pairs += long
        return [
            {name: table[name][place] for name in table} for place in range(len(pairs))
        ]

    def _forward(
        self, batch: Sequence[dict[str, Any]]
    ) -> list[tuple[float, ...]] | None:
        """Return the probabilities of a batch, None where memory does not suffice."""
        import torch

        try:
            with torch.inference_mode():
                logits = self.loaded.model(**self._padded(batch)).logits
                logits = logits.cpu().double()
                # One output is a degree of similarity, several are classes.
                single = logits.shape[-1] == 1
                probabilities = logits.sigmoid() if single else logits.softmax(dim=-1)
        except torch.OutOfMemoryError:
            if len(batch) == 1:
                raise
            return None
        if not bool(torch.isfinite(probabilities).all()):
            msg = (
                f"expected numbers from {self._name!r}, got NaN; a model that "
                'overflows in half precision needs dtype="float32"'
            )
            raise InputError(msg)
        rows: list[list[float]] = probabilities.numpy().tolist()
        return [tuple(row) for row in rows]

    def _padded(self, batch: Sequence[dict[str, Any]]) -> dict[str, Tensor]:
        import torch

        tokenizer = self.loaded.tokenizer
        fill = {
            "input_ids": tokenizer.pad_token_id,
            "token_type_ids": tokenizer.pad_token_type_id,
        }
        longest = max(len(each["input_ids"]) for each in batch)
        device = self.loaded.model.device
        inputs: dict[str, Tensor] = {}
        for name in batch[0]:
            rows = [
                each[name] + [fill.get(name, 0)] * (longest - len(each[name]))
                for each in batch
            ]
            inputs[name] = torch.tensor(rows, device=device)
        return inputs


_PAUSE = 60.0
"""Seconds for which a model that cannot be loaded is not tried again: to find that the
Hub cannot be reached takes most of a minute."""

ENGINES: MadeOnce[Engine] = MadeOnce(pause=_PAUSE)
"""The loaded models of this process, by their ``Source``."""


def engine(source: Source) -> Engine:
    """Return the model that everyone shares, loading it if nobody has yet."""
    return ENGINES.get(source, lambda: Engine(load(source), name=source.model))
