"""Graders by name: references, labels, unanswerable questions, functions of users."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pytest

from snne_guard.errors import ConfigurationError, InputError, MissingExtraError
from snne_guard.evaluation import (
    ABSTENTIONS,
    GRADERS,
    FunctionGrader,
    Grade,
    Grader,
    LabelsFirst,
    Recording,
    ReferenceGrader,
    grade_all,
    is_abstention,
    is_unanswerable,
    resolve_grader,
    rouge_l_f1,
    squad_normalised,
)
from snne_guard.evaluation.grading import reference_grader
from tests.support.grading import answered

BY_REFERENCE = ["squad_f1", "squad_em", "contains", "numeric", "rouge_l"]


@pytest.mark.parametrize("quality", [-0.1, 1.1, float("nan"), float("inf")])
def test_a_quality_is_in_the_unit_interval(quality: float) -> None:
    with pytest.raises(InputError, match=r"quality in \[0, 1\] from grader 'g'"):
        Grade(quality=quality, correct=None, grader="g")


def test_right_is_one_and_wrong_is_zero() -> None:
    with pytest.raises(InputError, match="0, 1 or None from grader 'g', got 2"):
        Grade(quality=1.0, correct=2, grader="g")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "quality", "correct"),
    [
        ("squad_f1", 0.5, 1),  # without the article
        ("squad_em", 0.0, 0),
        ("contains", 1.0, 1),
        ("numeric", 1.0, 1),
        ("rouge_l", 0.4, None),
    ],
)
def test_one_answer_by_each(
    name: str, quality: float, correct: Literal[0, 1] | None
) -> None:
    grade = GRADERS[name]()(answered("18 of the apples", "19", "18"))

    assert grade == Grade(quality=quality, correct=correct, grader=name)


@pytest.mark.parametrize("name", BY_REFERENCE)
def test_nothing_to_grade_by(name: str) -> None:
    grader = GRADERS[name]()

    assert grader(answered("Paris")) is None
    assert grader(answered("Paris", unanswerable=True, is_impossible=False)) is None


def test_references_that_cannot_be_compared_with() -> None:
    assert GRADERS["numeric"]()(answered("18", "many", "a few")) is None


@pytest.mark.parametrize("name", BY_REFERENCE)
@pytest.mark.parametrize("answer", ["", "?!", "\u6771\u4eac", " "])
def test_odd_answers_are_wrong(name: str, answer: str) -> None:
    grade = GRADERS[name]()(answered(answer, "18 Paris"))

    assert grade is not None
    assert grade.quality == 0


@pytest.mark.parametrize("name", BY_REFERENCE)
def test_a_question_without_an_answer(name: str) -> None:
    grader = GRADERS[name]()
    qualities = {
        answer: grade.quality
        for answer in ("unknown", "I don\u2019t know.", "", "18", "Paris 18")
        if (grade := grader(answered(answer, unanswerable=True)))
    }

    assert qualities == {
        "unknown": 1.0,
        "I don\u2019t know.": 1.0,
        "": 1.0,
        "18": 0.0,
        "Paris 18": 0.0,
    }


def test_what_makes_a_question_unanswerable() -> None:
    assert is_unanswerable(answered("x", unanswerable=True))
    assert is_unanswerable(answered("x", "Paris", is_impossible=True))
    assert not is_unanswerable(answered("x"))
    assert not is_unanswerable(answered("x", "Paris"))
    assert not is_unanswerable(answered("x", unanswerable=True, is_impossible=False))
    assert is_unanswerable(answered("x", unanswerable=True, is_impossible=None))


def test_an_abstention_is_all_of_the_reply() -> None:
    assert {squad_normalised(text) for text in ABSTENTIONS} == ABSTENTIONS
    for text in ("Unknown", "I don't know.", "N/A", "It cannot be determined!"):
        assert is_abstention(text) == (text != "It cannot be determined!")
    assert not is_abstention("unknown soldier")
    assert not is_abstention("I don't know, perhaps Paris")


def test_an_abstention_where_there_is_an_answer_is_wrong() -> None:
    grade = GRADERS["squad_f1"]()(answered("unknown", "Paris"))

    assert grade == Grade(quality=0.0, correct=0, grader="squad_f1")


def test_rouge_l_is_of_the_best_reference() -> None:
    assert rouge_l_f1("the cat sat", ["a dog", "the cat sat"]) == 1.0
    assert rouge_l_f1("running", ["run"]) == 0.0  # no stemmer
    assert rouge_l_f1("\u6771\u4eac", ["\u6771\u4eac"]) == 0.0
    grader = GRADERS["rouge_l"](threshold=0.3)
    assert grader.name == "rouge_l[threshold=0.3]"
    assert grader(answered("the cat", "the dog")) == Grade(
        quality=0.5, correct=1, grader=grader.name
    )


def test_rouge_l_without_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "rouge_score.rouge_scorer", None)
    reference_grader._rouge_scorer.cache_clear()

    with pytest.raises(MissingExtraError, match="rouge-score is not installed") as told:
        resolve_grader("rouge_l")
    assert told.value.extra == "eval"


def test_a_label_wins_unless_told_otherwise() -> None:
    row = answered("Paris", "Lyon", label=1)

    first, alone = resolve_grader(), resolve_grader("squad_f1", labels_first=False)
    assert first(row) == Grade(quality=1.0, correct=1, grader="label")
    assert alone(row) == Grade(quality=0.0, correct=0, grader="squad_f1")
    assert grade_all([row, answered("Lyon", "Lyon"), answered("Lyon")], first) == [
        Grade(quality=1.0, correct=1, grader="label"),
        Grade(quality=1.0, correct=1, grader="squad_f1"),
        None,
    ]
    assert first.lexical
    assert first.name == "label, else squad_f1"


def test_labels_alone() -> None:
    grader = resolve_grader("label")

    assert grader(answered("x", label=0)) == Grade(
        quality=0.0, correct=0, grader="label"
    )
    assert grader(answered("x", "x")) is None
    assert not grader.lexical
    assert resolve_grader(first := resolve_grader()) is first


def test_thresholds() -> None:
    grader = resolve_grader("squad_f1", labels_first=False, threshold=0.8)
    row = answered("one two three", "one two")  # F1 0.8 in fractions

    assert grader.name == "squad_f1[threshold=0.8]"
    assert grader(row) == Grade(quality=0.8, correct=1, grader=grader.name)
    for threshold in (0, -1, 1.5, float("nan")):
        with pytest.raises(ConfigurationError, match=r"in \(0, 1\] or None"):
            resolve_grader("squad_f1", threshold=threshold)
    rational = resolve_grader("squad_f1", labels_first=False, rational=True)
    assert rational.name == "squad_f1[rational]"


def test_every_name_makes_a_grader_of_that_name() -> None:
    for name in ("label", *BY_REFERENCE):
        grader = GRADERS[name]()
        assert grader.name == name
        assert grader.lexical == (name not in {"label", "numeric"})


@pytest.mark.parametrize(
    ("grader", "options", "message"),
    [
        ("f1", {}, r"'module:function' or one of \['label', 'squad_f1'"),
        ("squad_f1", {"treshold": 0.5}, r"'squad_f1' among \['threshold', 'rational'"),
        ("label", {"threshold": 0.5}, r"options of grader 'label' among \[\]"),
        (3, {}, "a grader, a function or a name, got int"),
        (GRADERS["label"](), {"threshold": 0.5}, "callable|no options beside"),
        ("math:", {}, "as module:object, got 'math:'"),
        ("math:no", {}, "expected 'no' in module 'math'"),
        ("math:pi", {}, "'math:pi' to be a function, got float"),
        ("no_such_module_here:f", {}, "a module 'no_such_module_here' in"),
        ("../evil:f", {}, "as module:object"),
    ],
)
def test_graders_that_make_no_sense(
    grader: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        resolve_grader(grader, **options)


@pytest.mark.parametrize(
    ("said", "quality", "correct"),
    [
        (True, 1.0, 1),
        (False, 0.0, 0),
        (np.bool_(True), 1.0, 1),  # noqa: FBT003 - what a comparison in numpy gives
        (1, 1.0, 1),
        (0, 0.0, 0),
        (np.int64(1), 1.0, 1),
        (0.25, 0.25, None),
        (1.0, 1.0, None),
        (np.float32(0.5), 0.5, None),
    ],
)
def test_what_a_function_may_say(
    said: Any, quality: float, correct: Literal[0, 1] | None
) -> None:
    grade = FunctionGrader(function=lambda _: said, name="mine")(answered("x"))

    assert grade == Grade(quality=quality, correct=correct, grader="mine")


def test_a_function_may_grade_by_itself_or_not_at_all() -> None:
    own = Grade(quality=0.5, correct=0, grader="other")

    assert FunctionGrader(function=lambda _: own)(answered("x")) is own
    assert FunctionGrader(function=lambda _: None)(answered("x")) is None


@pytest.mark.parametrize("said", ["yes", [], 0.5j])
def test_a_function_that_says_something_else(said: Any) -> None:
    with pytest.raises(InputError, match="bool or None from grader 'mine', got "):
        FunctionGrader(function=lambda _: said, name="mine")(answered("x"))


@pytest.mark.parametrize("said", [2, -1, 1.5, float("nan")])
def test_a_function_whose_number_is_no_quality(said: float) -> None:
    with pytest.raises(InputError, match=r"\[0, 1\] from grader 'mine'"):
        FunctionGrader(function=lambda _: said, name="mine")(answered("x"))


def test_a_function_with_a_threshold() -> None:
    def share(recording: Recording) -> float:
        return len(recording.main_answer) / 10

    grader = resolve_grader(share, threshold=0.4, lexical=True, labels_first=False)

    assert [grade and grade.correct for grade in grade_all(LENGTHS, grader)] == [1, 0]
    assert grader.name == "share"
    assert grader.lexical
    with pytest.raises(ConfigurationError, match=r"in \(0, 1\]"):
        resolve_grader(share, threshold=2)


LENGTHS = [answered("four"), answered("two")]


class Counted:
    """A grader of a user's own that takes all recordings at once."""

    name = "counted"
    lexical = False

    def __init__(self, *grades: Any) -> None:
        self.grades = list(grades)
        self.seen: list[int] = []

    def __call__(self, recording: Recording, /) -> Grade | None:
        return self.grade_all([recording])[0]

    def grade_all(self, recordings: Sequence[Recording], /) -> list[Grade | None]:
        self.seen.append(len(recordings))
        return self.grades


def test_a_grader_of_ones_own_gets_all_that_have_no_label_at_once() -> None:
    said = Grade(quality=0.3, correct=None, grader="counted")
    counted = Counted(said, None)
    grader = resolve_grader(counted)
    rows = [answered("a"), answered("b", label=1), answered("c")]

    grades = grade_all(rows, grader)

    assert isinstance(grader, LabelsFirst)
    assert counted.seen == [2]
    assert grades == [said, Grade(quality=1.0, correct=1, grader="label"), None]


@pytest.mark.parametrize(
    ("grades", "message"),
    [((), "expected 1 grades from 'counted', got 0"), ((0.5,), "got float")],
)
def test_a_grader_of_ones_own_that_is_wrong(
    grades: tuple[Any, ...], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        grade_all([answered("a")], Counted(*grades))


def test_a_measure_of_ones_own() -> None:
    def first_letter(answer: str, references: Sequence[str]) -> float:
        return float(any(answer[:1] == text[:1] for text in references))

    grader: Grader = ReferenceGrader(name="initial", measure=first_letter)

    assert grade_all([answered("Lyon", "Lille")], grader) == [
        Grade(quality=1.0, correct=1, grader="initial")
    ]
