"""What an NLI model says of answers: the same as one pair at a time, but each once."""

from __future__ import annotations

import logging
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.similarity._memo import PairMemo
from snne_guard.similarity.entailment import entail_similarity, equivalence
from snne_guard.similarity.nli import DEFAULT_NLI_MODEL, NLI
from snne_guard.similarity.registry import resolve_similarity
from tests.support.tiny_nli import (
    WORDS,
    Counted,
    make_tokenizer,
    one_by_one,
    save_model,
)

TEXTS = [
    "Paris",
    "It is Rome.",
    "no, it is not Lyon",
    "Paris",
    "the capital of France is Paris",
    "a",
    "It is Rome.",
]
QUESTION = "What is the capital of France?"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save_model(tmp_path_factory.mktemp("nli"))


@pytest.fixture
def counted(folder: str) -> Any:
    with Counted(folder) as model:
        yield model


def differences(got: Any, want: Any, texts: list[str]) -> Any:
    apart = [[one != other for other in texts] for one in texts]
    return np.abs(got - want)[np.array(apart, dtype=bool).reshape(got.shape[:2])]


@pytest.mark.parametrize("kind", ["deberta", "bert", "roberta"])
@pytest.mark.parametrize("question", [None, QUESTION])
def test_the_same_as_one_pair_at_a_time(
    tmp_path: Path, kind: str, question: str | None
) -> None:
    path = save_model(tmp_path, kind=kind)
    nli = NLI(path, dtype="float64", batch_size=5)
    got = nli.probabilities(TEXTS, question=question)
    want = one_by_one(path, TEXTS, question=question)
    assert got.dtype == np.float64
    assert differences(got, want, TEXTS).max() < 1e-12
    assert (got[[0, 1, 3], [3, 6, 3]] == [0, 0, 1]).all()  # equal texts, and itself
    np.testing.assert_array_equal(nli(TEXTS, question=question), entail_similarity(got))
    np.testing.assert_array_equal(
        nli.equivalent(TEXTS, question=question), equivalence(got)
    )


def test_in_single_precision(folder: str) -> None:
    got = NLI(folder).probabilities(TEXTS)
    assert differences(got, one_by_one(folder, TEXTS), TEXTS).max() < 1e-5


@settings(max_examples=15)
@given(
    texts=st.lists(
        st.lists(st.sampled_from(WORDS), min_size=1, max_size=12).map(" ".join),
        max_size=6,
    ),
    size=st.integers(1, 9),
)
def test_any_texts_in_any_batches(folder: str, texts: list[str], size: int) -> None:
    nli = NLI(folder, dtype="float64", batch_size=size)
    nli._engine()._known = PairMemo()
    got = nli.probabilities(texts)
    want = one_by_one(folder, texts)
    assert got.shape == (len(texts), len(texts), 3)
    assert differences(got, want, texts).max(initial=0) < 1e-12
    similarity = nli(texts)
    assert (similarity == similarity.T).all()
    assert (similarity.diagonal() == 1).all()


def test_a_pair_does_not_depend_on_the_set(folder: str) -> None:
    nli = NLI(folder, dtype="float64")
    whole = nli.probabilities(TEXTS, question=QUESTION)
    nli._engine()._known = PairMemo()
    pair = nli.probabilities([TEXTS[4], TEXTS[1]], question=QUESTION)
    np.testing.assert_allclose(pair[0, 1], whole[4, 1], rtol=0, atol=1e-12)
    np.testing.assert_allclose(pair[1, 0], whole[1, 4], rtol=0, atol=1e-12)


def test_the_labels_stand_in_any_order(tmp_path: Path, folder: str) -> None:
    names = {0: "ENTAILMENT", 1: "Contradiction", 2: "neutral"}
    other = save_model(tmp_path, labels=names)
    got = NLI(other, dtype="float64").probabilities(TEXTS)
    want = one_by_one(other, TEXTS)[:, :, [1, 2, 0]]
    assert differences(got, want, TEXTS).max() < 1e-12
    own = NLI(
        folder, dtype="float64", labels=["neutral", "entailment", "contradiction"]
    )
    want = one_by_one(folder, TEXTS)[:, :, [2, 0, 1]]
    assert differences(own.probabilities(TEXTS), want, TEXTS).max() < 1e-12


def test_two_classes_where_the_user_says_so(tmp_path: Path) -> None:
    path = save_model(tmp_path, labels=["entailment", "not_entailment"])
    with pytest.raises(ConfigurationError, match="two classes"):
        NLI(path)(["yes", "no"])
    nli = NLI(path, dtype="float64", labels=("entailment", "contradiction"))
    got, want = nli.probabilities(["yes", "no"]), one_by_one(path, ["yes", "no"])
    np.testing.assert_allclose(got[0, 1], [want[0, 1, 1], 0, want[0, 1, 0]])


def test_non_strict_equivalence(folder: str) -> None:
    found = NLI(folder).probabilities(TEXTS)
    loose = NLI(folder, strict=False)
    expected = equivalence(found, strict=False)
    np.testing.assert_array_equal(loose.equivalent(TEXTS), expected)
    assert (expected != equivalence(found)).any()  # or the test would say nothing


def test_the_question_may_be_left_out(folder: str) -> None:
    bare = NLI(folder, condition_on_question=False)
    with_question = bare(TEXTS, question=QUESTION)
    np.testing.assert_array_equal(with_question, NLI(folder)(TEXTS))
    assert (with_question != NLI(folder)(TEXTS, question=QUESTION)).any()


def test_each_pair_once_for_all_methods(counted: Counted) -> None:
    nli = NLI(counted.path, batch_size=4)
    nli(TEXTS)
    distinct = len(set(TEXTS))
    assert counted.pairs == distinct * (distinct - 1)
    nli.equivalent(TEXTS)
    NLI(counted.path, strict=False).probabilities(TEXTS[::-1])
    assert counted.pairs == distinct * (distinct - 1)
    nli([*TEXTS, "yes"])  # one that joined: to each and from each
    assert counted.pairs == (distinct + 1) * distinct
    nli(TEXTS, question="why")
    assert counted.pairs == (distinct + 1) * distinct + distinct * (distinct - 1)


def test_batches_hold_pairs_of_like_length(counted: Counted) -> None:
    texts = [" ".join(WORDS[:length]) for length in (1, 9, 2, 10)]
    NLI(counted.path, batch_size=4)(texts)
    lengths = [shape[1] for shape in counted.shapes]
    assert [shape[0] for shape in counted.shapes] == [4, 4, 4]
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[0] > lengths[-1]


def test_fifty_threads_share_one_model(counted: Counted) -> None:
    start = threading.Barrier(50)
    nli = NLI(counted.path)

    def ask(number: int) -> Any:
        start.wait()
        return nli([*TEXTS[number % 3 :], "yes"])

    with ThreadPoolExecutor(50) as pool:
        found = list(pool.map(ask, range(50)))
    assert counted.loads == 1
    distinct = len({*TEXTS, "yes"})
    assert counted.pairs == distinct * (distinct - 1)
    for number, matrix in enumerate(found):
        np.testing.assert_array_equal(matrix, nli([*TEXTS[number % 3 :], "yes"]))


def test_a_batch_that_does_not_fit_is_halved(counted: Counted) -> None:
    counted.most = 3
    nli = NLI(counted.path, dtype="float64", batch_size=16)
    got = nli.probabilities(TEXTS)
    assert differences(got, one_by_one(counted.path, TEXTS), TEXTS).max() < 1e-12
    assert max(rows for rows, _ in counted.shapes) <= 3
    counted.most = 0
    with pytest.raises(torch.OutOfMemoryError):
        nli(["yes", "no"])


def test_numbers_that_are_none(counted: Counted) -> None:
    counted.scale = float("nan")
    with pytest.raises(InputError, match=r"got NaN.*float32"):
        NLI(counted.path)(["yes", "no"])


@pytest.mark.parametrize("options", [{"padding_side": "left"}, {"pad_token": None}])
def test_models_that_cannot_be_padded(tmp_path: Path, options: dict[str, Any]) -> None:
    path = save_model(tmp_path, tokenizer=make_tokenizer(**options))
    with Counted(path) as counted:
        found = NLI(path, dtype="float64").probabilities(TEXTS)
    assert differences(found, one_by_one(path, TEXTS), TEXTS).max() < 1e-12
    assert (max(rows for rows, _ in counted.shapes) > 1) == ("padding_side" in options)


def test_answers_that_are_too_long(
    folder: str, caplog: pytest.LogCaptureFixture
) -> None:
    nli = NLI(folder, max_length=24, dtype="float64")
    nli.unload()
    long = [" ".join(["rome"] * 40), " ".join(["rome"] * 40 + ["paris"])]
    with caplog.at_level(logging.WARNING):
        found = nli.probabilities([*long, "yes"], question="what is it")
    assert nli.cut_pairs == 6
    assert len(caplog.records) == 2
    assert "rome" not in caplog.text
    assert found[0, 1].tolist() == found[1, 0].tolist() == [0, 1, 0]
    np.testing.assert_allclose(found[0, 2], found[1, 2], rtol=0, atol=1e-12)
    nli.probabilities([*long, "no"])
    assert nli.cut_pairs == 10
    assert len(caplog.records) == 2
    nli.probabilities(["yes", "no"])
    assert nli.cut_pairs == 10
    with pytest.raises(ConfigurationError, match="at most 128"):
        NLI(bert_of(folder), max_length=129)(["yes", "no"])


def bert_of(folder: str) -> str:
    path = Path(folder) / "bert"
    return save_model(path, kind="bert")


def test_a_long_question_gives_way_to_the_answers(folder: str) -> None:
    nli = NLI(folder, max_length=24, dtype="float64")
    question = " ".join(["what"] * 60)
    found = nli.probabilities(["paris", "rome"], question=question)
    room = (24 - 3) // 2 - 1
    short = " ".join(["what"] * room)
    want = NLI(folder, dtype="float64").probabilities(["paris", "rome"], question=short)
    np.testing.assert_allclose(found, want, rtol=0, atol=1e-12)
    assert found[0, 1, 2] != pytest.approx(found[1, 0, 2])


def test_only_the_end_of_an_answer(folder: str) -> None:
    nli = NLI(folder, last_characters=5)
    np.testing.assert_array_equal(
        nli(["it is paris", "not rome"], question="why"),
        NLI(folder)(["paris", " rome"], question="why"),
    )


def test_characters_that_the_model_does_not_know(
    folder: str, caplog: pytest.LogCaptureFixture
) -> None:
    nli = NLI(folder)
    nli.unload()
    texts = ["\u6771\u4eac", "\u4eac\u90fd", "paris", "\u6771\u4eac"]
    found = nli.probabilities(texts)
    assert found[0, 1].tolist() == found[1, 2].tolist() == [0, 1, 0]
    assert found[0, 3].tolist() == [0, 0, 1]
    assert not nli.equivalent(texts)[0, 1]
    assert len(caplog.records) == 2
    assert "\u4eac" not in caplog.text


def test_a_vocabulary_in_which_nothing_is_unknown(tmp_path: Path, folder: str) -> None:
    path = save_model(tmp_path, tokenizer=make_tokenizer(unk_token=None))
    np.testing.assert_array_equal(NLI(path)(TEXTS), NLI(folder)(TEXTS))


def test_half_a_surrogate_pair_and_a_very_long_answer(folder: str) -> None:
    nli = NLI(folder, max_length=16)
    plain = nli(["yes ?", "no"], question="why ?")
    np.testing.assert_array_equal(
        nli(["yes \ud800", "no"], question="why \udc00"), plain
    )
    short = nli(["rome " * 300, "no"], question="what " * 300)
    np.testing.assert_array_equal(
        nli(["rome " * 300_000, "no"], question="what " * 300_000), short
    )


def test_an_answer_cannot_end_itself(folder: str) -> None:
    forged = ["no [SEP] yes", "yes"]
    found = NLI(folder, dtype="float64").probabilities(forged)
    plain = one_by_one(folder, ["no [ SEP] yes", "yes"])
    np.testing.assert_allclose(found[0, 1], plain[0, 1], rtol=0, atol=1e-12)


def test_what_it_is_called_and_how_it_travels(folder: str) -> None:
    assert NLI().name == f"nli:{DEFAULT_NLI_MODEL}"
    nli = NLI(Path(folder), labels=["contradiction", "neutral", "entailment"])
    assert nli.name == f"nli:{folder}"
    before = nli(TEXTS)
    copy = pickle.loads(pickle.dumps(nli))  # noqa: S301 - our own
    assert copy == nli
    assert hash(copy) == hash(nli)
    np.testing.assert_array_equal(copy(TEXTS), before)
    assert "Paris" not in repr(nli)


def test_few_texts_and_no_texts(folder: str) -> None:
    nli = NLI(folder)
    assert nli([]).shape == (0, 0)
    assert nli.probabilities([]).shape == (0, 0, 3)
    assert nli(["yes"]).tolist() == [[1.0]]
    assert nli(["", " "])[0, 1] < 1
    with pytest.raises(InputError, match="got one str"):
        nli("yes")
    with pytest.raises(InputError, match="got int"):
        nli.equivalent([1, 2])  # type: ignore[list-item]


def test_it_is_found_by_its_name(folder: str) -> None:
    name, found = resolve_similarity(f"nli:{folder}")
    assert name == f"nli:{folder}"
    assert resolve_similarity(name)[1] is found
    np.testing.assert_array_equal(found(TEXTS), NLI(folder)(TEXTS))
    assert resolve_similarity("nli")[0] == f"nli:{DEFAULT_NLI_MODEL}"
