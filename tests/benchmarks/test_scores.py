"""How the benchmark of scores grades the recordings that come with the project."""

import pytest

from benchmarks.scores import is_right, own_sets
from snne_guard.evaluation import Recording

CHOICES = ("Tom", "Baghdad")


@pytest.mark.parametrize(
    ("name", "answer", "reference", "right"),
    [
        ("facts", "It is the Baghdad.", "Baghdad", True),
        ("facts", "It is Baghdadi.", "Baghdad", False),
        ("facts", "In the U.S.A., an A-team", "USA a-team", True),
        ("who", "Tom, and not Baghdad.", "Baghdad", False),
        ("who", "Baghdad, not Tom", "Baghdad", True),
        ("who", "nobody", "Baghdad", False),
        ("sums", "Twenty-one and twenty-one is forty-two.", "42", True),
        ("sums", "21 + 21 = 42, and 7 are left", "42", True),
        ("sums", "42 and 43", "42", False),
        ("sums", "many", "42", False),
        ("counts", "She has 42 of 50.", "42", True),
        ("counts", "50 - 9 = 41, not 42", "42", False),
    ],
)
def test_answers_are_graded(
    name: str, answer: str, reference: str, *, right: bool
) -> None:
    asked = Recording(
        id="1",
        question="?",
        main_answer="",
        samples=(),
        answers=(reference,),
        extra={"choices": CHOICES},
    )
    assert is_right(answer, asked, name) == right


def test_the_recordings_are_all_there() -> None:
    sets = [*own_sets()]
    near = [one for one in sets if one.group.endswith("near greedy")]
    assert len(near) == 21
    assert sum(len(one.rows) for one in near) == 2280
    assert sum(one.counts for one in near) == 21
    assert all(len(one.rows[0].samples) == 10 for one in sets)
