"""Different answers that are the same to an NLI model never mean the same."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snne_guard.scorers import score
from snne_guard.similarity._nli_texts import look_alike
from snne_guard.similarity.cross_encoder import CrossEncoder
from snne_guard.similarity.nli import NLI
from tests.support.tiny_nli import save_model

BASE = "it is the city of paris " * 60
NEUTRAL = [0.0, 1.0, 0.0]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save_model(tmp_path_factory.mktemp("alike"), kind="bert")


@pytest.fixture
def yes(folder: str, monkeypatch: pytest.MonkeyPatch) -> NLI:
    """Return a model that finds that everything follows from everything."""
    nli = NLI(folder)
    nli.unload()
    shared = nli._engine()
    monkeypatch.setattr(
        shared, "_forward", lambda batch: [(0.01, 0.01, 0.98)] * len(batch)
    )
    return nli


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("It is the capital \u5317\u4eac", "It is the capital \u6771\u4eac"),
        ("it is " + "a" * 120, "it is " + "b" * 120),
        (BASE + "yes", BASE + "no"),
        (BASE + "yes", BASE + "not lyon"),
        ("it is" + " " * 40_000 + "yes", "it is" + " " * 40_000 + "no"),
        ("it is" + " " * 40_000 + "yes", "it is"),
    ],
)
@pytest.mark.parametrize("question", [None, "what is it ?"])
def test_no_difference_to_the_model_is_no_agreement(
    yes: NLI,
    one: str,
    other: str,
    question: str | None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        found = yes.probabilities([one, other, one], question=question)
    assert found[0, 1].tolist() == found[1, 0].tolist() == NEUTRAL
    assert found[0, 2].tolist() == [0, 0, 1]
    assert not yes.equivalent([one, other], question=question)[0, 1]
    assert yes([one, other], question=question)[0, 1] == 0
    # What is cut to the same letters is the same text, and one pair.
    pairs = 1 if one[:30_000] == other[:30_000] else 2
    assert yes.alike_pairs == pairs
    assert sum("no difference" in each.message for each in caplog.records) == 1
    long = len(one) > 1000
    assert yes.cut_pairs == (pairs if long else 0)
    spots = yes.blind_spots([one, other], question=question)
    assert spots == (("answers_cut",) if long else ()) + ("answers_alike",)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Paris", "paris"),
        ("it is Paris", "it  is\nParis"),
        (" " * 40_000 + "yes", "\t" * 40_000 + "no"),
        (" " * 40_000 + "yes", "YES"),
        ("it is paris", "it is rome"),
        ("paris is it", "it is paris"),
    ],
)
def test_what_the_model_can_tell_it_is_asked(yes: NLI, one: str, other: str) -> None:
    assert yes.equivalent([one, other]).all()
    assert (yes.alike_pairs, yes.cut_pairs) == (0, 0)
    assert yes.blind_spots([one, other]) == ()


def test_other_characters_are_a_blind_spot_too(yes: NLI) -> None:
    texts = ["\u6771\u4eac", "paris"]
    assert not yes.equivalent(texts)[0, 1]
    assert yes.blind_spots(texts) == ("answers_alike",)
    assert yes.blind_spots(["paris", "paris"]) == yes.blind_spots([]) == ()


def test_spaces_around_an_answer_are_none_of_it(folder: str) -> None:
    nli = NLI(folder, last_characters=8)
    np.testing.assert_array_equal(nli(["  yes\n", "no  "]), nli(["yes", "no"]))


def seen(one: list[int], other: list[int], room: int) -> tuple[list[int], list[int]]:
    """Take one token after the other off the longer list, as tokenizers do."""
    one, other = list(one), list(other)
    while len(one) + len(other) > room:
        (one if len(one) > len(other) else other).pop()
    return one, other


TOKENS: Any = st.lists(st.sampled_from([1, 2]), max_size=9)


@given(one=TOKENS, other=TOKENS, room=st.integers(0, 20))
def test_the_same_as_cutting_and_comparing(
    one: list[int], other: list[int], room: int
) -> None:
    left, right = seen(one, other, room)
    least = min(len(left), len(right))
    alike = left[:least] == right[:least]
    cut = len(one) + len(other) > room
    expected = alike and len(left) + len(right) - 2 * least <= cut
    assert look_alike(one, other, room=room) == expected


@pytest.mark.parametrize("method", ["snne", "dse", "luq"])
def test_a_score_says_what_the_model_could_not_see(yes: NLI, method: str) -> None:
    found = score([BASE + "yes", BASE + "no"], method=method, similarity=yes)

    assert found.reasons[-2:] == ("answers_cut", "answers_alike")
    assert score(["yes", "no"], method=method, similarity=yes).reasons == (
        ("no_bounds",) if found.uncertainty is None else ()
    )
    if method == "dse":
        assert found.uncertainty == pytest.approx(1.0)


@pytest.fixture
def alike(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> CrossEncoder:
    """Return a model that finds that everything is alike."""
    folder = save_model(tmp_path_factory.mktemp("alike"), kind="bert", labels=["alike"])
    encoder = CrossEncoder(folder)
    monkeypatch.setattr(
        encoder._engine(), "_forward", lambda batch: [(0.98,)] * len(batch)
    )
    return encoder


def test_a_cross_encoder_takes_no_blind_spot_for_likeness(alike: CrossEncoder) -> None:
    cut, other = BASE + "yes", BASE + "no"
    strange = "\u6771\u4eac"

    found = alike([cut, other, strange, cut, "Paris", "paris"])

    assert found[0].tolist() == [1, 0, 0, 1, 0.98, 0.98]
    assert found[2].tolist() == [0, 0, 1, 0, 0, 0]
    assert found[4, 5] == 0.98
    assert (found == found.T).all()
    assert alike.blind_spots([cut, other]) == ("answers_cut", "answers_alike")
    assert alike.blind_spots([strange, "Paris"]) == ("answers_alike",)
    assert alike.blind_spots(["Paris", "no"]) == alike.blind_spots([cut, cut]) == ()
    spots = score([cut, other], similarity=alike)
    assert spots.uncertainty == pytest.approx(1.0)
    assert spots.reasons == ("answers_cut", "answers_alike")


def test_a_cross_encoder_that_knows_no_characters_asks_nothing(
    alike: CrossEncoder,
) -> None:
    assert alike(["\u6771\u4eac", "\u5317\u4eac"]).tolist() == [[1, 0], [0, 1]]
