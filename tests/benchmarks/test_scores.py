"""How the benchmark of scores grades the recordings that come with the project."""

import pytest

from benchmarks.scores import bare, gain, is_right, mean, own_sets
from snne_guard.evaluation import Recording, bootstrap


def row(*answers: str, choices: tuple[str, ...] = ()) -> Recording:
    return Recording(
        id="1",
        question="?",
        main_answer="",
        samples=(),
        answers=answers,
        extra={"choices": choices},
    )


@pytest.mark.parametrize(
    ("name", "answer", "right"),
    [
        ("facts", "It is the Baghdad.", True),
        ("facts", "It is Baghdadi.", False),
        ("who", "Tom, and not Baghdad.", False),
        ("who", "Baghdad, not Tom", True),
        ("who", "nobody", False),
    ],
)
def test_words(name: str, answer: str, *, right: bool) -> None:
    asked = row("Baghdad", choices=("Tom", "Baghdad"))
    assert is_right(answer, asked, name) == right


@pytest.mark.parametrize(
    ("name", "answer", "right"),
    [
        ("sums", "Twenty-one and twenty-one is forty-two.", True),
        ("sums", "21 + 21 = 42, and 7 are left", True),
        ("sums", "42 and 43", False),
        ("sums", "many", False),
        ("counts", "She has 42 of 50.", True),
        ("counts", "50 - 9 = 41, not 42", False),
    ],
)
def test_numbers(name: str, answer: str, *, right: bool) -> None:
    assert is_right(answer, row("42"), name) == right


def test_bare_text() -> None:
    assert bare("The U.S.A., an A-team") == "usa ateam"


def test_the_recordings_are_all_there() -> None:
    sets = [*own_sets()]
    near = [one for one in sets if one.group.endswith("near greedy")]
    assert len(near) == 21
    assert sum(len(one.rows) for one in near) == 2280
    assert sum(one.counts for one in near) == 21
    assert all(len(one.rows[0].samples) == 10 for one in sets)


def test_means_and_gains() -> None:
    good = bootstrap({"paper": [0, 1], "default": [0, 1]}, [1, 0], draws=5)
    bad = bootstrap({"paper": [1, 0], "default": [0, 1]}, [1, 0], draws=5)
    assert mean([good, bad], "paper") == "0.500"
    assert gain([good, bad], "default").startswith("+0.500 [")
    assert mean([good], "five") == gain([good], "five") == "-"
