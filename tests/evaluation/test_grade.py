from __future__ import annotations

import sys
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snne_guard.errors import MissingExtraError
from snne_guard.evaluation import (
    GRADERS,
    Grade,
    Recording,
    graded,
    numeric_match,
    resolve_grader,
    squad_f1,
    word_f1,
)
from snne_guard.evaluation.grade import contains, is_abstention
from tests.evaluation.support import recording
from tests.scorers.vectors import NEEDS_VECTORS, vectors

LONG = "x1 x2 x3 x4 x5 x6"


@pytest.mark.parametrize(
    ("answer", "references", "expected"),
    [
        ("Neil Armstrong", ["Neil Armstrong", "Armstrong"], 1.0),
        ("Armstrong", ["Neil Alden Armstrong"], 0.5),
        ("The U.S.A.", ["USA"], 1.0),
        ("18 apples", ["18"], 0.6666666666666666),
        ("18.0", ["18"], 0.0),
        ("", ["Paris"], 0.0),
        ("a", ["the"], 1.0),
        ("one two three", ["one four five", "two six"], 0.4),
        ("東京都", ["東京"], 0.0),
        # An F1 of one half that floats put below it, as SQuAD's script does.
        (
            f"{LONG} p1 p2 p3 p4 p5",
            [f"{LONG} g1 g2 g3 g4 g5 g6 g7"],
            0.4999999999999999,
        ),
    ],
)
def test_squad_f1_literals(answer: str, references: list[str], expected: float) -> None:
    assert squad_f1(answer, references) == expected


SAME = [
    ("東京。", "東京"),
    ("दिल्ली।", "दिल्ली"),
    ("طهران؟", "طهران"),
    ("\u201eFaust\u201c", "Faust"),
    ("\u00ab\u00a0Faust\u00a0\u00bb", "faust"),
    ("cafe\u0301", "caf\u00e9"),
    ("\uff13\uff10\uff05", "30%"),
    ("\u22125", "-5"),
    ("(C)", "c"),
    ("A", "(A)"),
    ("The", "the"),
    ("The Danube", "danube"),
    ("The U.K.", "UK"),
    ("$3.50", "$3.5"),
    ("18.0", "18"),
    ("$18", "18"),
    ("\u2014Oslo\u2014", "Oslo"),
    ("50%", "50"),
    ("l'Aida", "Aida"),
    ("option A", "A"),
    ("A\nBecause.", "A"),
    ("10.50%", "10.5"),
]
OTHER = [
    ("-5", "5"),
    ("5", "-5"),
    ("F#", "F"),
    ("C", "C++"),
    ("3.05", "3.5"),
    ("10.0", "1"),
    ("an", "A"),
    ("A pear", "A"),
    ("x\u00b2", "x2"),
    ("-7 \u00b0C", "7 \u00b0C"),
    ("17 red apples", "18 red apples"),
    ("\u20ac7", "$7"),
    ("Paris", ""),
]


@pytest.mark.parametrize(
    ("answer", "reference", "same"),
    [*((*pair, True) for pair in SAME), *((*pair, False) for pair in OTHER)],
)
def test_words_of_every_script(answer: str, reference: str, same: bool) -> None:
    row = recording(main_answer=answer, answers=[reference])
    for name in ("contains", "word_f1"):
        (grade,) = resolve_grader(name)([row])
        assert grade is not None
        assert grade.correct == same


def test_word_f1_literals() -> None:
    assert word_f1("It was Neil Armstrong", ["Aldrin", "Neil Armstrong"]) == 2 / 3
    assert word_f1("東京都", ["東京"]) == 0.8
    assert word_f1(f"{LONG} p1 p2 p3 p4 p5", [f"{LONG} q r s t u v w"]) == 0.5
    assert word_f1("", [""]) == 1.0


@NEEDS_VECTORS
def test_squad_f1_agrees_with_the_vectors() -> None:
    for case in vectors()["squad_f1"]:
        answer, references = case["prediction"], case["references"]
        assert squad_f1(answer, references) == case["f1"], case
        row = recording(main_answer=answer, answers=references)
        (grade,) = resolve_grader("squad_f1")([row])
        assert grade is not None
        assert grade.correct == case["correct(f1>=0.5)"], case


def test_rouge_l_takes_the_best_reference_and_draws_no_line() -> None:
    row = recording(main_answer="the cat sat", answers=["a dog", "the cat sat down"])
    assert resolve_grader("rouge_l")([row]) == [
        Grade(quality=6 / 7, correct=None, grader="rouge_l")
    ]


@given(st.text(), st.lists(st.text(), min_size=1, max_size=3))
def test_measures_stay_within_bounds(answer: str, references: list[str]) -> None:
    for measure in (squad_f1, word_f1, contains):
        assert 0 <= measure(answer, references) <= 1
    if squad_f1(answer, [""]) == 0.0:  # else the reference is none and left out
        assert squad_f1(answer, [*references, answer]) == 1.0
    for measure in (squad_f1, word_f1, contains):
        assert measure(answer, [answer]) == 1.0
    assert numeric_match(answer, references) in {0.0, 1.0, None}


def test_contains_wants_whole_words_in_a_row() -> None:
    assert contains("It was Neil Armstrong, in 1969.", ["Armstrong"]) == 1.0
    assert contains("Armstrong, Neil", ["Neil Armstrong"]) == 0.0
    assert contains("strongly", ["strong"]) == 0.0
    assert contains("", ["Paris"]) == 0.0
    assert contains("the", ["a", "Paris"]) == 0.0
    assert contains("答案是東京。", ["東京"]) == 1.0
    assert contains("Group A has it", ["A"]) == 1.0


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("$18", "18 apples", True),
        ("18%", "18", True),
        ("0.333333333", "1/3", True),
        (r"\boxed{\frac{3}{4}}", "0.75", True),
        ("So 5 * 2 = 10 dollars.\n#### 10", "10", True),
        ("The answer is 9. I used 3 steps.", "9", True),
        ("The final answer: 1,200, three times as much as 400", "1200", True),
        ("18", "180", False),
        ("10-5", "-5", False),
        ("33.33", "33.3333", False),
        ("18%", "18.5", False),
        ("-5", "-$5", True),
        ("5", "-$5", False),
        ("1.5e6", "1.5 x 10^6", True),
        ("1.5e6", "1.5 \u00d7 10^6", True),
        ("about $1.5 million", "1500000", True),
        ("1.5 million", "1.5", False),
        ("1.5 million", "1.5 billion", False),
        ("5%", "5\u2030", False),
    ],
)
def test_numbers_are_compared_by_value(first: str, second: str, same: bool) -> None:
    assert numeric_match(first, [second]) == float(same)
    assert numeric_match(second, [first]) == float(same)


def test_numbers_that_are_none() -> None:
    for text in ("", "none", "H2O", "x2", "-", "%", "$", "9" * 1000):
        assert numeric_match("12", [text]) is None
    assert numeric_match("none", ["12"]) == 0.0
    assert numeric_match("12", ["none"]) is None
    assert numeric_match("12", ["none", "12"]) == 1.0


@pytest.mark.parametrize(
    "text",
    [
        "1,",
        "1/",
        "answer is ",
        "\\frac{1}",
        "a.a",
        "the ",
    ],
)
def test_answers_are_read_in_linear_time(text: str) -> None:
    word_f1(text * 100_000, ["1"])
    numeric_match(text * 100_000, ["1"])  # seconds at most, where quadratic takes hours


def test_without_references_there_is_no_grade() -> None:
    for name in set(GRADERS) - {"bert_score", "math_verify"}:
        assert resolve_grader(name)([recording()]) == [None]
    assert resolve_grader("numeric")([recording(answers=["none"])]) == [None]


def test_only_an_abstention_answers_the_unanswerable() -> None:
    texts = ["", "I don\u2019t know.", "Unknown!", "Unknown, perhaps Paris", "1912"]
    rows = [recording(main_answer=text, answers=[]) for text in texts]
    for name in set(GRADERS) - {"bert_score", "math_verify"}:
        qualities = [grade and grade.quality for grade in resolve_grader(name)(rows)]
        assert qualities == [1.0, 1.0, 1.0, 0.0, 0.0]


@pytest.mark.parametrize(
    "text",
    [
        "Not stated.",
        "I'm not sure.",
        "The question cannot be answered.",
        "Not enough information",
    ],
)
def test_the_usual_words_are_an_abstention(text: str) -> None:
    assert is_abstention(text)
    assert not is_abstention(f"{text} Perhaps Paris")


@pytest.mark.parametrize(
    ("answer", "reference", "correct"),
    [
        (r"So it is \boxed{\frac{3}{4}}.", "0.75", 1),
        (r"\boxed{5\sqrt{2}}", r"\sqrt{50}", 1),
        (r"The answer is $x^2+1$.", "1+x^2", 1),
        (r"\boxed{\{1,2\}}", r"\{2,1\}", 1),
        ("That makes 1,200 litres.", "1200", 1),
        ("-5", "5", 0),
        (r"\boxed{(1,2]}", "(1,2)", 0),
        ("I cannot say.", "3", 0),
        ("3", "many", None),
    ],
)
def test_mathematics_is_compared_by_value(
    answer: str, reference: str, correct: int | None
) -> None:
    pytest.importorskip("math_verify")
    grader = resolve_grader("math_verify")
    (grade,) = grader([recording(main_answer=answer, answers=[reference])])
    assert (grade and grade.correct) == correct


# The signal that ends it may come while Python ends an object, where it is only a
# warning.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_no_log_holds_an_answer_that_takes_too_long(
    caplog: pytest.LogCaptureFixture,
) -> None:
    pytest.importorskip("math_verify")
    caplog.set_level("DEBUG")
    slow = recording(main_answer=f"$1{'+1' * 14_000}$", answers=["3"])
    (grade,) = resolve_grader("math_verify")([slow])
    assert grade is not None
    assert grade.correct == 0
    assert "+1+1" not in caplog.text


def test_without_its_extra_no_mathematics_is_graded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "math_verify", None)
    with pytest.raises(MissingExtraError, match=r"snne-guard\[math\]"):
        resolve_grader("math_verify")


def test_reasoning_before_an_answer_is_not_graded() -> None:
    rows = [
        recording(main_answer="<think>Not Rome?</think>Paris", answers=["Rome"]),
        recording(main_answer=" <think>Rome?</think>\nUnknown", answers=[]),
        recording(main_answer="Rome</think>Paris", answers=["Rome"]),
    ]
    grades = resolve_grader("contains")(rows)
    assert [grade and grade.correct for grade in grades] == [0, 1, 1]


def test_labels_go_before_a_grader() -> None:
    rows = [
        recording(main_answer="x", answers=["x"], label=0),
        recording(main_answer="x", answers=["x"]),
    ]
    grades = [grade for _, grade in graded(rows, resolve_grader("squad_f1"))]
    assert grades == [
        Grade(quality=0.0, correct=0, grader="label"),
        Grade(quality=1.0, correct=1, grader="squad_f1"),
    ]


def test_many_recordings_are_graded_a_few_at_a_time() -> None:
    calls: list[int] = []

    def grader(recordings: Sequence[Recording], /) -> list[Grade | None]:
        calls.append(len(recordings))
        return [Grade(quality=0.5, correct=None, grader=row.id) for row in recordings]

    made = [recording(id=n, label=1 if n % 5 == 0 else None) for n in range(301)]
    pairs = [*graded(iter(made), grader)]
    assert [row for row, _ in pairs] == made
    assert [grade and grade.grader for _, grade in pairs] == [
        "label" if n % 5 == 0 else str(n) for n in range(301)
    ]
    assert sum(calls) == 240
    assert max(calls) <= 64
