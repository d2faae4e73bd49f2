"""Labels of a recording: whose answer, which order, what a kill leaves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.evaluation.labelling.labels import (
    Label,
    Labels,
    answer_digest,
    labels_path,
)
from snne_guard.evaluation.labelling.order import hardest_first, random_order
from snne_guard.evaluation.labelling.store import LabelStore
from snne_guard.evaluation.recording.recordings import Recording


def row(name: str, *samples: str, answer: str = "a", **fields: object) -> Recording:
    own = {"id": name, "question": "?", "main_answer": answer, "samples": [*samples]}
    return Recording.from_dict({**own, **fields})


def said(recording: Recording, label: int | None, **fields: object) -> Label:
    own = {"id": recording.id, "label": label, "answer": answer_digest(recording)}
    return Label.from_dict({**own, "order": "random", **fields})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "r.labels.jsonl"


def test_the_file_is_beside_the_recording() -> None:
    assert labels_path("x/answers.jsonl") == Path("x/answers.labels.jsonl")
    assert labels_path("answers") == Path("answers.labels.jsonl")


def test_the_last_word_counts_and_places_stay(path: Path) -> None:
    a, b = row("a"), row("b")
    with LabelStore(path) as store:
        for label in (said(a, 0), said(b, 1), said(a, 1)):
            store.add(label)
        assert [*store.labels.by_id] == ["a", "b"]
    read = Labels.read(path)
    assert [*read.by_id] == ["a", "b"]
    assert (read.on(a).label, read.on(b).label) == (1, 1)
    assert all(one.at for one in read.by_id.values())


def test_a_label_of_another_answer_is_none_of_this_one(path: Path) -> None:
    before = row("a", answer="Paris")
    with LabelStore(path) as store:
        store.add(said(before, 1))
    labels = Labels.read(path)
    for other in (
        row("a", answer="Lyon"),
        row("a", answer="Paris", context="Now."),
        row("a", answer="Paris", question="Where?"),
        row("b", answer="Paris"),
    ):
        assert labels.of(other) is None
        assert labels.on(other) is other


def test_what_was_passed_over_has_no_label_and_keeps_its_own(path: Path) -> None:
    own = row("a", label=1)
    with LabelStore(path) as store:
        store.add(said(own, None))
        assert store.labels.on(own).label == 1


def test_no_file_has_no_labels(path: Path) -> None:
    assert Labels.read(path) == Labels()


@pytest.mark.parametrize("rest", [b'{"id": "b", "lab', b"\0\0\0"])
def test_a_torn_line_loses_no_other(path: Path, rest: bytes) -> None:
    with LabelStore(path) as store:
        store.add(said(row("a"), 1))
    with path.open("ab") as file:
        file.write(rest)
    assert [*Labels.read(path).by_id] == ["a"]
    with LabelStore(path) as store:
        assert store.torn == len(rest)
        store.add(said(row("b"), 0))
    assert [*Labels.read(path).by_id] == ["a", "b"]
    assert path.with_name("r.labels.jsonl.torn").read_bytes() == rest + b"\n"


def test_a_line_without_its_end_is_a_label(path: Path) -> None:
    with LabelStore(path) as store:
        store.add(said(row("a"), 1))
    path.write_bytes(path.read_bytes().rstrip() + b"\n\n")
    path.write_bytes(path.read_bytes().rstrip())
    assert [*Labels.read(path).by_id] == ["a"]
    with LabelStore(path) as store:
        assert store.torn == 0
        assert [*store.labels.by_id] == ["a"]


def test_two_cannot_write_one_file(path: Path) -> None:
    with (
        LabelStore(path),
        pytest.raises(ConfigurationError, match="another run is writing"),
    ):
        LabelStore(path)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({}, 'expected a field "id"'),
        ({"label": 2}, 'expected "label" to be 0, 1 or null, got 2'),
        ({"order": "best"}, "one of ['random', 'hardest_first'], got 'best'"),
        ({"seed": "x"}, 'expected "seed" to be a whole number'),
        ({"answer": None}, 'expected "answer" to be a text, got null'),
    ],
)
def test_a_line_that_is_no_label(
    path: Path, fields: dict[str, object], told: str
) -> None:
    good = {"id": "a", "label": 1, "answer": "0", "order": "random"}
    bad = {**good, **fields} if fields else {}
    path.write_text(f"{json.dumps(good)}\n\n{json.dumps(bad)}\n")
    with pytest.raises(InputError, match=r"r\.labels\.jsonl, line 3, is no") as error:
        Labels.read(path)
    assert told in str(error.value)
    with pytest.raises(InputError):
        LabelStore(path)
    with pytest.raises(InputError):  # and it is free for the next one
        LabelStore(path)


@given(st.sets(st.text(min_size=1), min_size=2), st.integers(0, 9), st.data())
def test_the_order_is_of_ids_alone(
    names: set[str], seed: int, data: st.DataObject
) -> None:
    rows = [row(name) for name in names]
    order = [one.id for one in random_order(rows, seed=seed)]
    assert sorted(order) == sorted(names)
    shuffled = data.draw(st.permutations(rows))
    assert [one.id for one in random_order(shuffled, seed=seed)] == order
    # What is added later falls in anywhere, and moves nothing else.
    fewer = rows[1:]
    kept = [one.id for one in random_order(fewer, seed=seed)]
    assert kept == [name for name in order if name != rows[0].id]


def test_another_seed_is_another_order() -> None:
    rows = [row(str(number)) for number in range(40)]
    orders = {tuple(one.id for one in random_order(rows, seed=s)) for s in range(5)}
    assert len(orders) == 5


def test_the_order_has_nothing_to_do_with_the_uncertainty() -> None:
    hard = [row(f"h{number}", "b", "c") for number in range(400)]
    easy = [row(f"e{number}", "a", "a") for number in range(400)]
    first = random_order([*hard, *easy])[:200]
    # 100 expected, with a standard deviation of 6.
    assert 70 < sum(one.id.startswith("h") for one in first) < 130


def test_the_hardest_come_first() -> None:
    alike, apart, mixed = row("1", "a", "a"), row("2", "b", "c"), row("3", "a", "b")
    found = hardest_first([alike, apart, row("4"), mixed])
    assert [one.id for one in found] == ["4", "2", "3", "1"]
