"""BERTScore by tiny models made on the spot, against the formula written out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from snne_guard.errors import ConfigurationError, MissingExtraError
from snne_guard.evaluation import (
    BertScoreGrader,
    grade_all,
    resolve_grader,
)
from snne_guard.evaluation.grading import bert_score_grader
from tests.support.grading import answered

pytest.importorskip("bert_score")
torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
tiny_nli = pytest.importorskip("tests.support.tiny_nli")

LAYER = 1


@pytest.fixture(scope="module", params=["bert", "deberta", "roberta"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: Any) -> str:
    path: Path = tmp_path_factory.mktemp(request.param)
    return str(tiny_nli.save_model(path, kind=request.param, places=40))


@pytest.fixture(scope="module")
def bert(tmp_path_factory: Any) -> str:
    return str(tiny_nli.save_model(tmp_path_factory.mktemp("bert"), kind="bert"))


def written_out(folder: str, answer: str, reference: str) -> float:
    """F1 of the greedy matching by cosine, one pair at a time."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder).float().eval()

    def embedded(text: str) -> np.ndarray[Any, Any]:
        with torch.no_grad():
            found = model(
                **tokenizer(text, return_tensors="pt", return_token_type_ids=False),
                output_hidden_states=True,
            )
        vectors = found.hidden_states[LAYER][0].double().numpy()
        unit: np.ndarray[Any, Any] = vectors / np.linalg.norm(vectors, axis=1)[:, None]
        return unit

    cosines = embedded(answer) @ embedded(reference).T
    # What begins and ends a text can be matched with, but does not count.
    precision = cosines.max(axis=1)[1:-1].mean()
    recall = cosines.max(axis=0)[1:-1].mean()
    return float(2 * precision * recall / (precision + recall))


def test_it_is_the_formula(folder: str) -> None:
    answers = ["paris is the capital of france", "not lyon!", "rome"]
    references = ["the capital is paris", "lyon", "paris is the capital of france"]
    rows = [answered(answer, *references) for answer in answers]

    grades = grade_all(rows, BertScoreGrader(folder, num_layers=LAYER, batch_size=2))

    for answer, grade in zip(answers, grades, strict=True):
        expected = max(written_out(folder, answer, text) for text in references)
        assert grade is not None
        assert grade.quality == pytest.approx(expected, abs=1e-5)
        assert grade.correct is None


def test_equal_texts_and_both_directions(folder: str) -> None:
    grader = BertScoreGrader(folder, num_layers=LAYER)
    one, other, same = grade_all(
        [
            answered("paris is it", "rome"),
            answered("rome", "paris is it"),
            answered("paris", "paris"),
        ],
        grader,
    )

    assert one is not None
    assert other is not None
    assert same is not None
    assert one.quality == pytest.approx(other.quality, abs=1e-6)
    assert same.quality == pytest.approx(1, abs=1e-6)
    assert one.quality < 1


def test_answers_that_are_odd(folder: str) -> None:
    grader = BertScoreGrader(folder, num_layers=LAYER, threshold=0.5)
    rows = [
        answered("", "paris"),
        answered(" \n", "paris", ""),
        answered("paris", " "),
        answered("", ""),
        answered("paris"),
        answered("unknown", unanswerable=True),
        answered("paris", unanswerable=True),
        answered("yes " * 300, "no " * 300),  # longer than the model's window
        answered("\u6771\u4eac", "paris"),
        answered("?!", "paris"),
    ]
    grades = grade_all(rows, grader)

    assert [grade and grade.quality for grade in grades[:7]] == [
        0.0,
        0.0,
        None,
        None,
        None,
        1.0,
        0.0,
    ]
    assert [grade and grade.correct for grade in grades[:2]] == [0, 0]
    for grade in grades[7:]:
        assert grade is not None
        assert 0 <= grade.quality <= 1
        assert grade.correct == (grade.quality >= 0.5)


def test_one_model_for_all_in_pieces_of_bounded_size(
    bert: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bert_score_grader._loaded.cache_clear()
    monkeypatch.setattr(bert_score_grader, "_PAIRS_AT_ONCE", 3)
    rows = [answered(f"paris {number % 8}", "paris", "rome") for number in range(20)]

    together = grade_all(rows, BertScoreGrader(bert, num_layers=LAYER))
    alone = BertScoreGrader(bert, num_layers=LAYER, device="cpu")

    assert [grade and grade.quality for grade in together] == pytest.approx(
        [grade.quality for row in rows if (grade := alone(row))], abs=1e-6
    )
    assert bert_score_grader._loaded.cache_info().misses == 2  # one a device


def test_half_precision_is_computed_in_full(tmp_path: Path, bert: str) -> None:
    model = transformers.AutoModel.from_pretrained(bert).half()
    model.save_pretrained(tmp_path)
    transformers.AutoTokenizer.from_pretrained(bert).save_pretrained(tmp_path)
    grader = BertScoreGrader(str(tmp_path), num_layers=LAYER)

    grade = grader(answered("paris is it", "rome"))

    assert grade is not None
    expected = written_out(str(tmp_path), "paris is it", "rome")
    assert grade.quality == pytest.approx(expected, abs=1e-5)


def test_names(bert: str) -> None:
    assert BertScoreGrader().name == "bert_score"
    assert BertScoreGrader(num_layers=17).name == "bert_score"
    assert BertScoreGrader(num_layers=3, threshold=0.9).name == (
        "bert_score[num_layers=3][threshold=0.9]"
    )
    assert BertScoreGrader("roberta-large").name == "bert_score:roberta-large"
    named = resolve_grader(f"bert_score:{bert}", num_layers=1, labels_first=False)
    assert named.name == f"bert_score:{bert}[num_layers=1]"
    assert not named.lexical


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "somebody/unheard-of"}, "num_layers for 'somebody/unheard-of'"),
        ({"num_layers": 0}, "num_layers of at least 1, got 0"),
        ({"batch_size": 0}, "batch_size of at least 1, got 0"),
        ({"threshold": 2}, r"in \(0, 1\] or None"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        BertScoreGrader(**options)


def test_more_layers_than_there_are(bert: str) -> None:
    with pytest.raises(ConfigurationError, match=r"num_layers that .* has, got 3"):
        BertScoreGrader(bert, num_layers=3)(answered("paris", "rome"))


def test_a_model_that_is_not_there(tmp_path: Path) -> None:
    grader = BertScoreGrader(str(tmp_path / "none"), num_layers=1)

    with pytest.raises(MissingExtraError, match="hf download"):
        grader(answered("paris", "rome"))
    assert grader(answered("paris")) is None


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    bert_score_grader._bert_score.cache_clear()
    monkeypatch.setitem(sys.modules, "bert_score", None)

    with pytest.raises(MissingExtraError, match=r"\(for BERTScore\)") as told:
        resolve_grader("bert_score")
    assert told.value.extra == "eval"
