"""NLI and cross-encoders, by tiny models of sentence-transformers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from snne_guard.errors import ConfigurationError
from snne_guard.similarity import NLI, CrossEncoder, entail_similarity, equivalence
from tests.similarity.support import is_similarity, save_classifier

CLASSES = ("contradiction", "neutral", "entailment")
TEXTS = ["paris", "it is paris", "rome", "not paris", "paris"]
ASKED = "which capital is it?"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save_classifier(tmp_path_factory.mktemp("nli"), CLASSES)


@pytest.fixture(scope="module")
def scale(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save_classifier(tmp_path_factory.mktemp("sts"), ["alike"])


def by_hand(folder: str, premise: str, hypothesis: str) -> Any:
    """The classes' probabilities of one pair, as transformers alone has them."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    model: Any = AutoModelForSequenceClassification.from_pretrained(folder)
    with torch.no_grad():
        logits = model(**tokenizer(premise, hypothesis, return_tensors="pt")).logits
    return logits.softmax(-1)[0].numpy()


@pytest.mark.slow
def test_labels_in_any_order_and_spelling(tmp_path: Path) -> None:
    names = ["ENTAILMENT", "CONTRADICTION", "Neutral"]
    expected = NLI(save_classifier(tmp_path / "a", CLASSES)).probabilities(TEXTS)
    found = NLI(save_classifier(tmp_path / "b", names)).probabilities(TEXTS)
    assert found[0, 1] == pytest.approx(expected[0, 1][[1, 2, 0]])


@pytest.mark.slow
def test_a_table_is_what_transformers_says_of_each_pair(folder: str) -> None:
    nli = NLI(Path(folder))
    for asked in (None, ASKED):
        table = nli.probabilities(TEXTS, question=asked)
        assert table.shape == (5, 5, 3)
        before = "" if asked is None else f"{asked} "
        for i, one in enumerate(TEXTS):
            for j, other in enumerate(TEXTS):
                expected = (
                    [0, 0, 1]
                    if one == other
                    else by_hand(folder, before + one, before + other)
                )
                assert table[i, j] == pytest.approx(expected, abs=1e-5)
    matrix = nli(TEXTS, question=ASKED)
    assert is_similarity(matrix, 5)
    assert (matrix == entail_similarity(table)).all()
    assert (nli.equivalent(TEXTS, question=ASKED) == equivalence(table)).all()
    assert nli.probabilities([]).shape == (0, 0, 3)
    long = nli.probabilities(TEXTS, question="which is it " * 20)  # does not fit
    assert long == pytest.approx(nli.probabilities(TEXTS), abs=1e-6)


@pytest.mark.slow
def test_texts_that_look_the_same_to_the_model_are_neutral(folder: str) -> None:
    nli = NLI(folder)
    head = "it is not in the capital of france " * 20
    for texts in (["\u6771\u4eac", "\u5927\u962a"], [f"{head}paris", f"{head}rome"]):
        assert nli.probabilities(texts)[0, 1].tolist() == [0, 1, 0]
        assert not nli.equivalent(texts)[0, 1]


@pytest.mark.slow
def test_an_answer_cannot_end_itself(folder: str) -> None:
    found = NLI(folder).probabilities(["paris[SEP]rome", "rome"])
    plain = NLI(folder).probabilities(["paris[ SEP]rome", "rome"])
    assert found == pytest.approx(plain, abs=1e-6)


@pytest.mark.slow
def test_threads_share_one_model(folder: str) -> None:
    expected = NLI(folder)(TEXTS)
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(lambda _: NLI(folder)(TEXTS), range(16)):
            assert found == pytest.approx(expected, abs=1e-6)


@pytest.mark.slow
def test_models_that_are_none(folder: str, scale: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="expected id2label"):
        NLI(scale)(TEXTS)
    with pytest.raises(ConfigurationError, match="cannot be loaded"):
        NLI(str(tmp_path / "nothing"))(TEXTS)
    with pytest.raises(ConfigurationError, match="one output, got 3"):
        CrossEncoder(folder)(["a", "b"])


@pytest.mark.slow
def test_a_cross_encoder_is_a_similarity_and_weighs_tokens(scale: str) -> None:
    encoder = CrossEncoder(scale)
    matrix = encoder(TEXTS)
    assert is_similarity(matrix, 5)
    assert matrix[0, 4] == 1
    assert len(np.unique(matrix.round(6))) > 3
    tokens = ["it", " is", " paris"]
    found = encoder.token_importance(ASKED, tokens)
    assert found.shape == (3,)
    assert ((found >= 0) & (found <= 1)).all()
    assert found[1] != pytest.approx(found[2])
    assert encoder.token_importance(None, ["paris"]).tolist() == [0.5]
