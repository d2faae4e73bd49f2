"""The columns of the data sets as the hub has them, from tables on this disk."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from snne_guard.errors import ConfigurationError, InputError, MissingExtraError
from snne_guard.evaluation import Question
from snne_guard.evaluation.data.dataset_reader import read_dataset
from snne_guard.evaluation.data.hub import Rows

Table = list[dict[str, Any]]


def squad(number: int) -> dict[str, Any]:
    texts = [] if number % 3 == 0 else [f"A{number}", f"B{number}"]
    return {
        "id": f"id{number}",
        "title": "T",
        "context": "Never shown.",
        "question": f"What is {number}?",
        "answers": {"text": texts, "answer_start": [0] * len(texts)},
    }


def triviaqa(number: int) -> dict[str, Any]:
    row = squad(3 * number + 1)
    return {name: row[name] for name in ("id", "question", "context", "answers")}


def nq_open(number: int) -> dict[str, Any]:
    return {"question": f"what is {number}", "answer": [f"A{number}", "other"]}


def svamp(number: int) -> dict[str, Any]:
    return {
        "ID": f"chal-{number}",
        "Body": f"He has {number}",
        "Question": "How many?",
        "Equation": "( 1.0 )",
        "Answer": f"{number}",
        "Type": "Addition",
        "question_concat": f"He has {number} How many?",
    }


def xsum(number: int) -> dict[str, Any]:
    return {"document": f"Text {number}.", "summary": f"S{number}", "id": f"{number}"}


def aeslc(number: int) -> dict[str, Any]:
    return {"email_body": f"Dear {number}.", "subject_line": f"S{number}"}


def wmt14(number: int) -> dict[str, Any]:
    return {"translation": {"de": f"Satz {number}.", "en": f"S{number}"}}


def saved(folder: Path, **splits: Table) -> Path:
    library = import_module("datasets")
    tables = {name: library.Dataset.from_list(rows) for name, rows in splits.items()}
    library.DatasetDict(tables).save_to_disk(str(folder))
    return folder


def questions(*args: Any, **options: Any) -> list[Question]:
    rows = [row for _, row in read_dataset(*args, **options)]
    return [row for row in rows if isinstance(row, Question)]


def chosen(places: Sequence[int], size: int, *, seed: int = 10) -> list[int]:
    """Return what Python draws, as the authors do."""
    return random.Random(seed).sample(places, size)  # noqa: S311 - no secret


def test_squad(tmp_path: Path) -> None:
    train = [squad(number) for number in range(30)]
    rows = [squad(number) for number in range(100, 112)]
    folder = saved(tmp_path / "squad", train=train, validation=rows)
    found = questions("squad", path=folder)
    assert len(found) == 8  # the others have no answer
    answered = [number for number in range(30) if number % 3]
    shots = chosen(answered, 5)
    asked = chosen([n for n in range(100, 112) if n % 3], 8)
    assert [each.id for each in found] == [f"id{number}" for number in asked]
    shown = "".join(f"Question: What is {n}?\nAnswer: A{n}\n\n" for n in shots)
    assert found[0].prompt == (
        "Answer the following question as briefly as possible.\n"
        f"{shown}Question: What is {asked[0]}?\nAnswer:"
    )
    assert found[0].answers == (f"A{asked[0]}", f"B{asked[0]}")
    assert list(found[0].fields) == ["id", "question", "answers", "dataset", "prompt"]
    numbers = [number for number, _ in read_dataset("squad", path=folder)]
    assert numbers == [number - 99 for number in asked]


def test_triviaqa_is_divided_as_the_authors_do(tmp_path: Path) -> None:
    rows = [triviaqa(number) for number in range(33)]
    folder = saved(tmp_path / "trivia", unmodified=rows)
    table = import_module("datasets").Dataset.from_list(rows)
    parts = table.train_test_split(test_size=0.2, seed=10)
    found = questions("triviaqa", path=folder)
    assert {each.id for each in found} == set(parts["test"]["id"])
    train = parts["train"]
    shots = [train[place] for place in chosen(range(len(train)), 5)]
    shown = "".join(
        f"Question: {shot['question']}\nAnswer: {shot['answers']['text'][0]}\n\n"
        for shot in shots
    )
    assert shown in found[0].prompt


@pytest.mark.parametrize("size", [1, 7, 40, 101])
@pytest.mark.parametrize("share", [0.2, 0.8])
def test_a_share_is_what_train_test_split_takes(size: int, share: float) -> None:
    library = import_module("datasets")
    table = library.Dataset.from_dict({"place": list(range(size))})
    asked, rest = Rows([{"place": place} for place in range(size)]).divided(
        share, seed=10
    )
    if len(rest):  # which the package does not do without
        parts = table.train_test_split(test_size=share, seed=10)
        assert [row["place"] for row in asked] == list(parts["test"]["place"])
        assert [row["place"] for row in rest] == list(parts["train"]["place"])
    assert len(asked) + len(rest) == size


def test_nq_open(tmp_path: Path) -> None:
    train = [nq_open(number) for number in range(6)]
    rows = [nq_open(number) for number in range(6, 9)]
    folder = saved(tmp_path / "nq", train=train, validation=rows)
    found = questions("nq_open", path=folder)
    assert {each.text for each in found} == {f"what is {n}?" for n in (6, 7, 8)}
    assert found[0].answers is not None
    assert found[0].answers[1] == "other"
    assert found[0].prompt.count("?\nAnswer: A") == 5


def test_svamp(tmp_path: Path) -> None:
    train = [svamp(number) for number in range(6)]
    rows = [svamp(number) for number in range(6, 9)]
    folder = saved(tmp_path / "svamp", train=train, test=rows)
    found = questions("svamp", path=folder)
    assert {each.id for each in found} == {"chal-6", "chal-7", "chal-8"}
    [six] = [each for each in found if each.id == "chal-6"]
    assert six.answers == ("6",)
    assert six.fields["context"] == "He has 6"
    assert six.prompt.endswith("Context: He has 6\nQuestion: How many?\nAnswer:")
    assert six.prompt.count("\nContext: ") == 6


@pytest.mark.parametrize(
    ("name", "row", "text"),
    [
        ("xsum", xsum, "Text 1."),
        ("aeslc", aeslc, "Dear 1."),
        ("wmt14_de_en", wmt14, "Satz 1."),
    ],
)
def test_texts_to_work_on(
    tmp_path: Path, name: str, row: Callable[[int], dict[str, Any]], text: str
) -> None:
    folder = saved(tmp_path / name, test=[row(1)])
    [found] = questions(name, path=folder)
    assert (found.text, found.answers) == (text, ("S1",))
    assert text in found.prompt
    assert found.fields["dataset"] == name


def bioasq(number: int, **fields: Any) -> dict[str, Any]:
    return {"id": f"b{number}", "body": f"What is {number}?", "type": "list", **fields}


def test_bioasq_as_its_owner_gives_it_out(tmp_path: Path) -> None:
    answers: list[Any] = [[["A", "a"], ["B"]], ["A", "B"], "yes", [["A"], []]]
    rows = [bioasq(n, exact_answer=answers[n % 4]) for n in range(40)]
    path = tmp_path / "training11b.json"
    path.write_text(json.dumps({"questions": [bioasq(40), *rows]}))
    found = questions("bioasq", path=path)
    assert len(found) == 32
    expected = [("A", "B"), ("A", "B"), ("yes",), ("A",)]
    for each in found:
        assert each.answers == expected[int(each.id[1:]) % 4]
    assert found[0].prompt.count("Question:") == 6


def test_one_split_serves_for_both(tmp_path: Path) -> None:
    rows = [svamp(number) for number in range(9)]
    path = tmp_path / "SVAMP.json"
    path.write_text(json.dumps(rows))
    library = import_module("datasets")
    folder = tmp_path / "one"
    library.Dataset.from_list(rows).save_to_disk(str(folder))
    for place in (path, folder):
        found = questions("svamp", path=place)
        assert len(found) == 4
        shown = found[0].prompt.rpartition("Context: ")[0]
        assert not any(f"{each.context}\n" in shown for each in found)


def test_a_row_without_a_text_or_that_comes_twice_is_left_out(tmp_path: Path) -> None:
    rows = [aeslc(1), {"email_body": " ", "subject_line": "x"}, aeslc(1), aeslc(2)]
    found = questions("aeslc", path=saved(tmp_path / "mail", test=rows))
    assert sorted(each.text for each in found) == ["Dear 1.", "Dear 2."]


def test_no_rows(tmp_path: Path) -> None:
    path = tmp_path / "none.json"
    path.write_text("[]")
    assert questions("aeslc", path=path) == []


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("{", "to be JSON"),
        ("5", "to hold a list or an object of lists"),
        ('{"train": []}', r"expected a split 'test' in .*, got \['train'\]"),
        ('{"test": 5}', "to have rows with the columns"),
        ("[5]", r"to have rows with the columns \['email_body'"),
        ('[{"text": ""}]', "'subject_line'] of aeslc, got none"),
    ],
)
def test_a_file_of_something_else(tmp_path: Path, content: str, told: str) -> None:
    path = tmp_path / "in.json"
    path.write_text(content)
    with pytest.raises(InputError, match=told):
        questions("aeslc", path=path)


def test_a_folder_of_something_else(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected what save_to_disk of `datasets`"):
        questions("aeslc", path=tmp_path)
    folder = saved(tmp_path / "other", test=[xsum(1)])
    with pytest.raises(InputError, match=r"got \['document', 'summary', 'id'\]"):
        questions("aeslc", path=folder)


def test_a_missing_package_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtraError, match=r"snne-guard\[eval\]"):
        questions("aeslc", path=tmp_path)
    with pytest.raises(MissingExtraError, match=r"snne-guard\[eval\]"):
        questions("aeslc")


def test_without_a_hub_a_file_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    told = (
        r"svamp cannot be had from the Hugging Face hub as 'ChilleD/SVAMP' \(.*\); give"
    )
    with pytest.raises(ConfigurationError, match=told):
        questions("svamp")
    with pytest.raises(ConfigurationError, match=r"bioasq is not on the hub.*the file"):
        questions("bioasq")


class Hub:
    """Stands for ``load_dataset``: the hub is not reached here."""

    def __init__(self, **splits: Table) -> None:
        self._splits = splits
        self.asked: list[tuple[Any, ...]] = []

    def __call__(
        self,
        path: str,
        name: str | None,
        *,
        split: str,
        streaming: bool,
        revision: str | None = None,
    ) -> Any:
        self.asked.append((path, name, split, streaming, revision))
        if path == "wmt/wmt14" and revision is None:
            msg = "Dataset scripts are no longer supported, but found wmt14.py"
            raise RuntimeError(msg)
        table = import_module("datasets").Dataset.from_list(self._splits[split])
        return table.to_iterable_dataset() if streaming else table


@pytest.mark.parametrize("offline", [False, True])
def test_one_split_of_the_hub_is_streamed_if_it_can_be(
    monkeypatch: pytest.MonkeyPatch, *, offline: bool
) -> None:
    hub = Hub(test=[wmt14(1)])
    monkeypatch.setattr("datasets.load_dataset", hub)
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", offline)
    assert questions("wmt14_de_en")[0].text == "Satz 1."
    assert hub.asked == [
        ("wmt/wmt14", "de-en", "test", not offline, None),
        ("wmt/wmt14", "de-en", "test", not offline, "refs/convert/parquet"),
    ]


def test_two_splits_of_the_hub_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    train = [nq_open(number) for number in range(6)]
    hub = Hub(train=train, validation=[nq_open(7)])
    monkeypatch.setattr("datasets.load_dataset", hub)
    assert questions("nq_open")[0].text == "what is 7?"
    name = "google-research-datasets/nq_open"
    assert hub.asked == [
        (name, None, "validation", False, None),
        (name, None, "train", False, None),
    ]


def test_another_failure_of_the_package_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def load(*_: Any, **__: Any) -> Any:
        msg = "disk is full"
        raise RuntimeError(msg)

    monkeypatch.setattr("datasets.load_dataset", load)
    with pytest.raises(ConfigurationError, match="RuntimeError: disk is full"):
        questions("xsum")
