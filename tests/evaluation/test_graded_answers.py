"""Who says which answers are right, and which grades can promise nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.evaluation import Label, Labels, LabelStore, Recording, answer_digest
from snne_guard.evaluation.calibrating.graded import graded, read_answers, repeated
from tests.cli.lines import write
from tests.support.calibrating import asked, rows


def labels(*said: tuple[Recording, int | None], order: str = "random") -> Labels:
    found = [
        Label.from_dict(
            {"id": row.id, "label": label, "answer": answer_digest(row), "order": order}
        )
        for row, label in said
    ]
    return Labels(by_id={one.id: one for one in found})


def test_people_win_then_labels_then_the_grader() -> None:
    one = asked("1", answers=["a"], label=1)
    two = asked("2", answers=["a"], label=0)
    three = asked("3", answers=["a"])
    four = asked("4")
    found = graded([([one, two, three, four], labels((one, 0)))], grader="squad_em")
    assert found.correct == (0, 0, 1, None)
    assert found.graders == {"hand": 1, "label": 1, "squad_em": 1}
    assert [row.label for row in found.recordings] == [0, 0, None, None]


def test_without_a_grader_only_labels_count() -> None:
    one, two = asked("1", answers=["a"]), asked("2", label=1)
    found = graded([([one, two], Labels())])
    assert found.correct == (None, 1)
    assert found.partial


def test_what_was_skipped_is_counted_and_no_grade() -> None:
    one, two = asked("1"), asked("2")
    found = graded([([one, two], labels((one, None), (two, 1)))])
    assert (found.correct, found.skipped, found.partial) == ((None, 1), 1, False)


def test_labels_of_the_hardest_answers_are_refused() -> None:
    one, two = asked("1"), asked("2")
    with pytest.raises(InputError, match="1 labels were given with the most uncertain"):
        graded([([one, two], labels((one, 1), order="hardest_first"))])
    # Those of other answers are nobody's.
    other = labels((asked("1", main_answer="z"), 1), order="hardest_first")
    assert graded([([one, two], other)]).correct == (None, None)


def test_a_grader_must_say_which_are_right() -> None:
    row = asked("1", answers=["a"])

    def half(_: Recording) -> float:
        return 0.5

    with pytest.raises(ConfigurationError, match="and not which are right"):
        graded([([row], Labels())], grader=half)


def test_the_digest_is_of_labels_alone() -> None:
    one, two = asked("1"), asked("2")
    by_hand = graded([([one, two], labels((one, 1), (two, 0)))])
    turned = graded([([two], labels((two, 0))), ([one], labels((one, 1)))])
    changed = graded([([one, two], labels((one, 1), (two, 1)))])
    fewer = graded([([one, two], labels((one, 1)))])
    assert by_hand.digest == turned.digest
    assert len({by_hand.digest, changed.digest, fewer.digest}) == 3


def test_labels_are_found_beside_each_file(tmp_path: Path) -> None:
    paths = [
        write(tmp_path / f"{seed}.jsonl", *rows(2, seed=seed, label=None))
        for seed in (1, 2)
    ]
    for path in paths:
        for found, _ in read_answers([path]):
            with LabelStore(path.with_name(f"{path.stem}.labels.jsonl")) as store:
                store.add(
                    Label(id=found[0].id, label=1, answer=answer_digest(found[0]))
                )
    assert graded(read_answers(paths)).correct == (1, None, 1, None)
    named = tmp_path / "other.jsonl"
    with pytest.raises(FileNotFoundError):
        read_answers(paths[:1], labels=named)
    named.touch()
    assert graded(read_answers(paths[:1], labels=named)).correct == (None, None)
    with pytest.raises(ConfigurationError, match="got 2 recordings"):
        read_answers(paths, labels=named)


def test_labels_can_be_named_beside_recordings(tmp_path: Path) -> None:
    kept = tmp_path / "x.jsonl"
    row = asked("1")
    with LabelStore(kept) as store:
        store.add(Label(id="1", label=0, answer=answer_digest(row)))
    assert graded(read_answers([[row]], labels=kept)).correct == (0,)


def test_a_line_or_an_id_that_cannot_be(tmp_path: Path) -> None:
    path = write(tmp_path / "r.jsonl", *rows(1), b"nonsense")
    with pytest.raises(InputError, match=r"r\.jsonl: line 2: expected a JSON object"):
        read_answers([path])
    one = write(tmp_path / "1.jsonl", *rows(2))
    two = write(tmp_path / "2.jsonl", *rows(1))
    with pytest.raises(InputError, match="1 ids come more than once, such as 's3q0'"):
        read_answers([one, two])


def test_the_same_question_in_other_letters_is_the_same() -> None:
    texts = ["Who won?", "who won", " Who  won ?", "Who lost?"]
    found = [asked(str(n), question=text) for n, text in enumerate(texts)]
    assert repeated(found) == 2
    apart = [
        asked("1", question="?", context="a"),
        asked("2", question="?", context="b"),
    ]
    assert repeated(apart) == 0
    assert repeated([asked("1", question=None), asked("2", question=None)]) == 0
