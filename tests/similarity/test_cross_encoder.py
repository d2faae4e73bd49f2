"""Similarity and token importance by a cross-encoder, beside sentence-transformers'."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sentence_transformers import CrossEncoder as Reference

from snne_guard.errors import ConfigurationError, InputError, MissingExtraError
from snne_guard.similarity._token_spans import token_spans
from snne_guard.similarity.cross_encoder import CrossEncoder
from snne_guard.similarity.registry import resolve_similarity
from tests.support.tiny_nli import WORDS, Counted, save_model

TEXTS = ["Paris", "it is Rome", "it is the capital of France", "Paris", "no"]
QUESTION = "which city is it?"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save_model(
        tmp_path_factory.mktemp("alike"), kind="roberta", labels=["alike"]
    )


@pytest.fixture(scope="module")
def reference(folder: str) -> Any:
    return Reference(folder, device="cpu", model_kwargs={"dtype": torch.float64})


@pytest.fixture(scope="module")
def encoder(folder: str) -> CrossEncoder:
    return CrossEncoder(folder, dtype="float64", batch_size=3).load()


@pytest.mark.parametrize("question", [None, QUESTION])
def test_the_similarity_is_that_of_sentence_transformers(
    folder: str, reference: Any, question: str | None
) -> None:
    own = CrossEncoder(folder, dtype="float64", condition_on_question=True)
    sides = [f"{question} {text}" if question else text for text in TEXTS]
    one_way = np.array(
        [[float(reference.predict([(a, b)])[0]) for b in sides] for a in sides]
    )
    expected = (one_way + one_way.T) / 2
    expected[[[a == b for b in TEXTS] for a in TEXTS]] = 1.0
    found = own(TEXTS, question=question)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-7)
    assert (found == found.T).all()
    if question:  # not told unless asked for
        plain = CrossEncoder(folder, dtype="float64")(TEXTS, question="x")
        np.testing.assert_array_equal(plain, own(TEXTS))


def test_a_long_question_gives_way_to_the_answers(folder: str) -> None:
    own = CrossEncoder(folder, condition_on_question=True, max_length=24)
    long = " ".join(["what"] * 60)
    found = own(TEXTS[:2], question=long)
    assert (found == own(TEXTS[:2], question=f"why {long}")).all()


def slow_importance(
    reference: Any, question: str, text: str, left: list[str]
) -> list[float]:
    """One pair at a time through sentence-transformers."""
    return [
        0.0
        if rest == text
        else 1 - float(reference.predict([(question + text, question + rest)])[0])
        for rest in left
    ]


def test_the_importance_of_tokens(reference: Any, encoder: CrossEncoder) -> None:
    text, tokens = "it is it, Paris", ["it", " is", " it", ",", " Paris"]
    left = [
        "is it, Paris",
        "it it, Paris",
        "it is, Paris",
        "it is it Paris",
        "it is it,",
    ]
    left[0] = " " + left[0]
    found = encoder.token_importance(QUESTION, text, tokens)
    expected = slow_importance(reference, QUESTION, text, left)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-7)
    assert found.std() > 0.01
    # The authors take every "it" out, and so the first and the third are alike.
    everywhere = encoder.token_importance(QUESTION, text, tokens, removal="everywhere")
    left = [
        " is , Paris",
        "it it, Paris",
        "it is, Paris",
        "it is it Paris",
        "it is it,",
    ]
    expected = slow_importance(reference, QUESTION, text, left)
    np.testing.assert_allclose(everywhere, expected, rtol=0, atol=1e-7)


def test_without_a_question(reference: Any, encoder: CrossEncoder) -> None:
    found = encoder.token_importance(None, "no Rome", ["no", " Rome"])
    expected = slow_importance(reference, "", "no Rome", [" Rome", "no"])
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-7)


def test_few_tokens_and_tokens_that_say_nothing(folder: str) -> None:
    with Counted(folder) as counted:
        encoder = CrossEncoder(folder)
        assert encoder.token_importance(QUESTION, "Paris", ["Paris"]).tolist() == [0.5]
        assert encoder.token_importance(QUESTION, "", []).tolist() == []
        assert encoder.token_importance(QUESTION, "", ["", "<end>"]).tolist() == [0, 0]
        assert encoder([]).shape == (0, 0)
        assert encoder(["Paris", "Paris"]).tolist() == [[1, 1], [1, 1]]
        assert counted.loads == 0
        tokens = ["it", "", " is", " Rome", "<end>"]
        found = encoder.token_importance(None, "it is Rome", tokens)
        assert found[[1, 4]].tolist() == [0, 0]
        assert (found[[0, 2, 3]] > 0).all()
        assert counted.pairs == 3
        encoder.token_importance(None, "it is Rome", tokens)
        assert counted.pairs == 3


@given(
    st.lists(st.sampled_from([*WORDS, " ", "\u6771", "<s>"]), max_size=8),
    st.integers(0, 2),
    st.integers(0, 2),
)
def test_tokens_that_make_up_the_text_are_where_they_stand(
    tokens: list[str], before: int, behind: int
) -> None:
    text = "".join(tokens)
    around = ["\n"] * before + tokens + ["<end>"] * behind
    spans = token_spans(text, around)
    assert len(spans) == len(around)
    if not text.startswith("\n"):
        cut = [text[start:end] for start, end in spans]
        assert "".join(cut) == text
        assert cut[before : before + len(tokens)] == tokens


def test_tokens_that_are_not_written_as_the_text_is() -> None:
    # As Llama's and GPT-2's tokenizers call them, and parts of one character.
    assert token_spans("It is", ["\u2581It", " is"]) == [(0, 2), (2, 5)]
    assert token_spans("a b", [" a ", " b"]) == [(0, 1), (1, 3)]
    split = ["\ufffd", "\ufffd", " is", "\ufffd"]
    assert token_spans("\u6771 is x", ["a", *split])[3:] == [(1, 4), (4, 6)]
    with pytest.raises(InputError, match="not found"):
        token_spans("Paris", ["Ly", "on", "s"])


def test_what_cannot_be_used(
    folder: str, tmp_path: Path, encoder: CrossEncoder
) -> None:
    with pytest.raises(ConfigurationError, match="2 outputs"):
        CrossEncoder(save_model(tmp_path, labels=["a", "b"])).load()
    with pytest.raises(MissingExtraError, match="stsb-roberta-large"):
        CrossEncoder()(["yes", "no"])
    with pytest.raises(ConfigurationError, match="removal"):
        encoder.token_importance(None, "a b", ["a", " b"], removal="all")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="one str"):
        encoder.token_importance(None, "a b", "a b")
    for wrong in ({"model": ""}, {"dtype": "x"}, {"batch_size": 0}, {"max_length": 1}):
        options: dict[str, Any] = {"model": folder, **wrong}
        with pytest.raises(ConfigurationError):
            CrossEncoder(**options)


def test_what_it_is_called_and_let_go(folder: str) -> None:
    named = CrossEncoder(Path(folder), max_length=64)
    assert named.name == f"cross_encoder:{folder}"
    with Counted(folder) as counted:
        named(["yes", "no"])
        named.unload()
        named(["yes", "no"])
    assert counted.loads == 2


def test_it_is_found_by_its_name(folder: str) -> None:
    name, found = resolve_similarity(f"cross_encoder:{folder}")
    assert name == f"cross_encoder:{folder}"
    np.testing.assert_array_equal(found(TEXTS), CrossEncoder(folder)(TEXTS))
    assert resolve_similarity("cross_encoder")[0].endswith("stsb-roberta-large")
