from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from snne_guard.evaluation import FeatureCache, evaluate
from snne_guard.similarity import exact, rouge_l
from snne_guard.types import BoolArray, FloatArray
from tests.evaluation.support import recordings


class Model:
    """A similarity that counts how often it is asked."""

    name = "model"

    def __init__(self) -> None:
        self.calls = 0

    def __call__(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> FloatArray:
        self.calls += 1
        return rouge_l(texts, question=question)

    def equivalent(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> BoolArray:
        self.calls += 1
        return exact.equivalent(texts, question=question)


def test_a_model_is_asked_once_also_by_the_next_run(tmp_path: Path) -> None:
    model = Model()
    figures = []
    for _ in range(2):
        kept = FeatureCache(model, folder=tmp_path / "cache")
        found = evaluate(recordings(), methods="snne,dse", similarity=[kept], draws=2)
        assert [row.name for row in found.rows[:2]] == ["snne[model]", "dse[model]"]
        figures.append(found.uncertainties["snne[model]"])
    assert model.calls == 2 * len(recordings())
    assert (figures[0] == figures[1]).all()


def test_texts_question_and_model_tell_entries_apart(tmp_path: Path) -> None:
    model = Model()
    kept = FeatureCache(model, folder=tmp_path)
    for texts, question in (
        (["a", "b"], None),
        (["a", "b"], ""),
        (["a", "b"], "q"),
        (["b", "a"], None),
        (["ab", ""], None),
        (["a", "b", ""], None),
    ):
        kept(texts, question=question)
    assert model.calls == 5  # no question is an empty one
    other = Model()
    other.name = "another"
    FeatureCache(other, folder=tmp_path)(["a", "b"])
    assert other.calls == 1


def test_what_a_model_cannot_do_is_not_pretended(tmp_path: Path) -> None:
    kept = FeatureCache("rouge_l", folder=tmp_path)
    assert not hasattr(kept, "equivalent")
    assert not hasattr(kept, "probabilities")
    assert kept(["a b", "a"]) == pytest.approx(rouge_l(["a b", "a"]))


@pytest.mark.parametrize("content", [b"", b"nonsense", b"x" * 31, b"x" * 33])
def test_a_damaged_entry_is_computed_anew(tmp_path: Path, content: bytes) -> None:
    kept = FeatureCache("rouge_l", folder=tmp_path)
    before = kept(["a b", "a"])
    (entry,) = tmp_path.iterdir()
    entry.write_bytes(content)
    assert kept(["a b", "a"]) == pytest.approx(before)
    assert entry.stat().st_size == 32


def test_nothing_of_a_text_is_stored(tmp_path: Path) -> None:
    FeatureCache("exact", folder=tmp_path)(["hidden", "other"], question="asked")
    (entry,) = tmp_path.iterdir()
    content = entry.name.encode() + entry.read_bytes()
    assert not any(text in content for text in (b"hidden", b"other", b"asked"))
