"""What models said of answers, kept on disk."""

from __future__ import annotations

import logging
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from snne_guard.errors import ScoringError
from snne_guard.evaluation.comparison import cache as comparison_cache
from snne_guard.evaluation.comparison import identity
from snne_guard.evaluation.comparison.cache import Cached, SimilarityCache
from snne_guard.evaluation.comparison.identity import identity_of
from snne_guard.similarity import NLI, rouge_l
from snne_guard.similarity.judge import EntailmentJudge
from snne_guard.types import FloatArray
from tests.support.evaluating import by_name, evaluated, questions

TEXTS = ["Paris", "a secret", "Lyon"]


class Model:
    """A similarity that counts how often it is asked; it knows entailment too."""

    calls: Any

    strict = True
    from_probabilities = True

    def __init__(self, *, name: str = "model", cache_key: str | None = "1") -> None:
        self.name, self.cache_key = name, cache_key
        self.asked = 0

    def __call__(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> FloatArray:
        del question
        self.asked += 1
        return rouge_l(texts)

    def probabilities(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> FloatArray:
        alike = self(texts, question=question)
        return np.stack([1 - alike, 0 * alike, alike], axis=2)


def test_a_set_is_asked_for_once_and_again_for_anything_else(tmp_path: Path) -> None:
    model = Model()
    with SimilarityCache(tmp_path) as cache:
        cached = Cached(model, cache, "one")
        first = cached(TEXTS, question="where?")
        np.testing.assert_array_equal(cached(TEXTS, question="where?"), first)
        assert model.asked == 1
        cached(TEXTS)
        cached(TEXTS, question="")
        cached(TEXTS[:2], question="where?")
        cached(["Paris", "a secretLyon"], question="where?")
        cached.probabilities(TEXTS, question="where?")
        Cached(model, cache, "two")(TEXTS, question="where?")
        assert model.asked == 7
    assert (cached.name, cached.strict) == ("model", True)
    with SimilarityCache(tmp_path) as later:
        again = Cached(Model(), later, "one")
        np.testing.assert_array_equal(again(TEXTS, question="where?"), first)


def test_no_text_is_stored(tmp_path: Path) -> None:
    with SimilarityCache(tmp_path) as cache:
        Cached(Model(), cache, "one")(TEXTS, question="a secret question")
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert stored
    assert b"secret" not in stored


def test_a_damaged_entry_is_computed_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = Model()
    with SimilarityCache(tmp_path) as cache:
        expected = Cached(model, cache, "one")(TEXTS)
    (file,) = tmp_path.glob("*.sqlite3")
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE kept SET data = substr(data, 1, 40)")
    connection.close()

    with SimilarityCache(tmp_path) as cache, caplog.at_level(logging.WARNING):
        for _ in range(2):
            found = Cached(model, cache, "one")(TEXTS)
            np.testing.assert_array_equal(found, expected)

    assert model.asked == 2
    assert [record.message.split(";")[1] for record in caplog.records] == [
        " it is computed anew"
    ]


def test_a_file_that_is_damaged_is_moved_aside(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "similarities.sqlite3"
    file.write_bytes(b"no data base " * 100)
    model = Model()

    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            with SimilarityCache(tmp_path) as cache:
                Cached(model, cache, "one")(TEXTS)

    assert model.asked == 1
    assert len(caplog.records) == 1
    assert "is moved to similarities.sqlite3.damaged" in caplog.text
    aside = tmp_path / "similarities.sqlite3.damaged"
    assert aside.read_bytes() == b"no data base " * 100


def test_a_file_that_is_damaged_within_is_moved_aside(tmp_path: Path) -> None:
    file = tmp_path / "similarities.sqlite3"
    with SimilarityCache(tmp_path) as cache:
        for number in range(200):
            cache.put(b"%d" % number, np.ones(100), seconds=1.0)
    # All pages but the first, which holds what the file is.
    file.write_bytes(file.read_bytes()[:4096] + b"\xff" * (file.stat().st_size - 4096))
    model = Model()

    for _ in range(2):
        with SimilarityCache(tmp_path) as cache:
            Cached(model, cache, "one")(TEXTS)

    assert model.asked == 1


def test_a_file_that_is_locked_or_cannot_be_moved_is_told_of_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparison_cache, "_WAIT", 0.01)
    held = sqlite3.connect(tmp_path / "similarities.sqlite3")
    held.execute("BEGIN EXCLUSIVE")
    model = Model()
    with caplog.at_level(logging.WARNING):
        with SimilarityCache(tmp_path) as cache:
            for _ in range(2):
                Cached(model, cache, "one")(TEXTS)
        held.close()
        (tmp_path / "similarities.sqlite3").write_bytes(b"no data base " * 100)
        (tmp_path / "similarities.sqlite3.damaged").mkdir()
        with SimilarityCache(tmp_path) as cache:
            for _ in range(2):
                Cached(model, cache, "one")(TEXTS)

    assert model.asked == 4
    told = [one for one in caplog.messages if "cannot be used as a cache" in one]
    assert len(told) == 2


def test_a_folder_that_cannot_be_made_is_told_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_bytes(b"")

    with SimilarityCache(tmp_path / "file" / "kept") as cache:
        assert Cached(Model(), cache, "one")(TEXTS).shape == (3, 3)

    assert "cannot be used as a cache" in caplog.text


def test_the_time_is_that_without_a_cache(tmp_path: Path) -> None:
    model = Model()
    with SimilarityCache(tmp_path / "kept") as cache:
        first = Cached(model, cache, "one")
        first(TEXTS)
        again = Cached(model, cache, "one")
        again(TEXTS)
        again(TEXTS)

    assert first.saved_seconds == 0
    assert again.saved_seconds > 0


def test_two_processes_write_at_once(tmp_path: Path) -> None:
    program = (
        "import sys, numpy as np\n"
        "from snne_guard.evaluation.comparison.cache import SimilarityCache\n"
        "with SimilarityCache(sys.argv[1]) as cache:\n"
        "    for number in range(100):\n"
        "        key = f'{sys.argv[2]}{number}'.encode()\n"
        "        cache.put(key, np.array([number, 1.0]), seconds=1.0)\n"
    )
    running = [
        subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-W", "error", "-c", program, str(tmp_path), name],
            stderr=subprocess.PIPE,
        )
        for name in "ab"
    ]
    told = [one.communicate()[1] for one in running]

    assert told == [b"", b""]
    with SimilarityCache(tmp_path) as cache:
        for name in "ab":
            numbers = [cache.get(f"{name}{number}".encode()) for number in range(100)]
            assert [one.numbers[0] for one in numbers if one] == [*range(100)]


def test_what_a_models_numbers_depend_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nli = NLI("a/b")
    assert identity_of(nli, None) == identity_of(NLI("a/b", batch_size=2), None)
    others = [NLI("a/c"), NLI("a/b", revision="x"), NLI("a/b", strict=False)]
    assert len({identity_of(one, None) for one in (nli, *others)}) == 4
    assert identity_of(Model(cache_key="2"), None) != identity_of(Model(), None)
    assert identity_of(Model(cache_key=None), None) is None
    assert identity_of(rouge_l, "embedding:x") != identity_of(rouge_l, "embedding:y")

    (tmp_path / "weights").write_bytes(b"1")
    before = identity_of(NLI(tmp_path), None)
    (tmp_path / "weights").write_bytes(b"22")
    assert identity_of(NLI(tmp_path), None) != before

    monkeypatch.setattr(identity, "_PACKAGES", ("no-such-package",))
    assert str(identity_of(nli, None)).endswith("no no-such-package")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    before = identity_of(nli, None)
    branch = tmp_path / "models--a--b" / "refs" / "main"
    branch.parent.mkdir(parents=True)
    branch.write_text("0" * 40)
    assert identity_of(nli, None) != before


def test_a_second_evaluation_asks_no_model(tmp_path: Path) -> None:
    rows = questions(12)
    found: list[Any] = []
    asked: list[int] = []
    for _ in range(2):
        model = Model()
        one = evaluated(
            tmp_path, *rows, methods="snne,luq", models=[model], cache=tmp_path / "kept"
        )
        found.append({name: row.uncertainty for name, row in by_name(one).items()})
        asked.append(model.asked)

    assert asked == [12, 0]
    assert found[0] == found[1]
    assert found[0]["luq[model]"]


def test_a_model_that_nobody_can_tell_from_others_is_not_kept(tmp_path: Path) -> None:
    for _ in range(2):
        model = Model(cache_key=None)
        evaluated(
            tmp_path,
            *questions(3),
            methods="snne",
            models=[model],
            cache=tmp_path / "kept",
        )
        assert model.asked == 3


def test_the_verdicts_of_a_judge_are_kept_and_count_as_calls(tmp_path: Path) -> None:
    rows = questions(12)
    calls: list[float | None] = []
    sent: list[int] = []
    for _ in range(2):
        judge = EntailmentJudge(lambda _: "neutral", name="toy")
        one = evaluated(
            tmp_path, *rows, methods="dse", models=[judge], cache=tmp_path / "kept"
        )
        method = by_name(one)["dse[judge:toy]"]
        assert method.status == "evaluated"
        calls.append(method.calls)
        sent.append(judge.calls)

    # What the method costs, whether the cache knew it or not.
    assert calls == [5 + sent[0] / 12] * 2
    assert sent[0] > 0
    assert sent[1] == 0


@pytest.mark.parametrize("first", ["dse", "snne", "snne,dse"])
def test_what_a_judge_costs_is_counted_once(tmp_path: Path, first: str) -> None:
    rows = questions(6)
    calls: list[float | None] = []
    for methods in (first, "dse,snne", "snne", "dse"):
        judge = EntailmentJudge(lambda _: "neutral", name="toy")
        one = evaluated(
            tmp_path, *rows, methods=methods, models=[judge], cache=tmp_path / "kept"
        )
        found = by_name(one)
        calls += [found[name].calls for name in found if "judge" in name]

    assert len(set(calls)) == 1
    assert float(calls[0] or 0) > 5


def test_a_similarity_whose_calls_are_no_number_is_kept_all_the_same(
    tmp_path: Path,
) -> None:
    model = Model()
    model.calls = lambda: 3
    with SimilarityCache(tmp_path) as cache:
        cached = Cached(model, cache, "one")
        np.testing.assert_array_equal(cached(TEXTS), rouge_l(TEXTS))
        assert cached.calls() == 3


def test_a_judge_that_fails_is_a_reason(tmp_path: Path) -> None:
    def fail(prompt: str) -> str:
        del prompt
        msg = "no such host"
        raise ConnectionError(msg)

    judge = EntailmentJudge(fail, name="toy")
    one = evaluated(tmp_path, *questions(6), methods="dse", models=[judge])

    method = by_name(one)["dse[judge:toy]"]
    assert method.status == "skipped"
    assert ScoringError.__name__ in str(method.why)
    assert one.clusters_by is None
    assert one.auroc_by_clusters == ()
    assert by_name(one)["dse[exact]"].status == "evaluated"
