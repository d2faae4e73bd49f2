"""Where a sentence ends, and which answer it is in."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snne_guard.scorers import READINGS
from snne_guard.scorers.materials import Materials
from snne_guard.scorers.relation import Relation
from snne_guard.scorers.sentences import (
    sentence_owners,
    sentences_of,
    split_sentences,
)
from snne_guard.types import FloatArray
from tests.support.entailing import Contains


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Paris", ("Paris",)),
        ("He won. Did she?  No!", ("He won.", "Did she?", "No!")),
        ("It is 3.5 km.", ("It is 3.5 km.",)),
        ('He said "no." Then he left.', ('He said "no."', "Then he left.")),
        ("One\n\n two \n", ("One", "two")),
        ("東京です。京都です。", ("東京です。", "京都です。")),
        ("...", ("...",)),
        (" ", (" ",)),
    ],
)
def test_sentences(text: str, sentences: tuple[str, ...]) -> None:
    assert split_sentences(text) == sentences


@given(st.lists(st.text("ab. \n!"), min_size=1, max_size=5))
def test_every_answer_has_its_sentences(texts: list[str]) -> None:
    sentences, owners = sentences_of(texts), sentence_owners(texts)

    assert len(sentences) == len(owners)
    for place, text in enumerate(texts):
        own = [one for one, who in zip(sentences, owners, strict=True) if who == place]
        assert own
        assert "".join("".join(own).split()) == "".join(text.split())


def test_a_part_of_a_set_has_the_first_sentences_and_asks_nothing_anew() -> None:
    asked: list[int] = []

    class Counts(Contains):
        def probabilities(
            self, texts: Sequence[str], /, *, question: str | None = None
        ) -> FloatArray:
            asked.append(len(texts))
            return super().probabilities(texts, question=question)

    relation = Relation.of(Counts())
    whole = Materials(
        ["Main.", "Paris. Yes.", "Lyon.", "Nice. No. Well."], include_answer=False
    )
    method = READINGS["luq_sentences"]

    part = whole.first(2).inputs(method, relation)
    all_ = whole.inputs(method, relation)

    assert asked == [6]
    assert part.sentence_of is not None
    assert part.sentence_entailment is not None
    assert all_.sentence_entailment is not None
    assert part.sentence_of.tolist() == [0, 0, 1]
    assert np.array_equal(part.sentence_entailment, all_.sentence_entailment[:3, :3])
    assert Materials(["a"]).part("sentence_entailment", Relation.of("rouge_l")) is None
