"""The simulation of data sets of another size, on questions that are made up."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks._stopping_size import allowed, simulated, split


@pytest.mark.parametrize(
    ("questions", "expected"),
    [(100, -1), (228, 0), (266, 0), (500, 1), (530, 2), (1000, 5)],
)
def test_how_many_other_decisions_the_test_allows(
    questions: int, expected: int
) -> None:
    assert allowed(questions, 0.02) == expected


def test_copies_of_a_question_are_never_in_both_halves() -> None:
    names = np.arange(20) / 20
    paths = np.tile(names[:, None], (3, 1, 2))  # u tells which question it is
    table = split(paths, np.ones(20), 100, np.random.default_rng(1))
    # As fit_stop halves it with its seed.
    order = np.random.default_rng(0).permutation(100)
    learnt, tested = (set(table[part, 0]) for part in (order[:50], order[50:]))
    assert learnt
    assert not learnt & tested


def test_where_one_look_is_enough_the_rules_take_one() -> None:
    clear = np.repeat([0.0, 1.0], 60)
    paths = np.tile(clear[:, None], (2, 1, 2))
    found = simulated(paths, questions=300, rounds=(3, 10), accept=0.4, epsilon=0.05)
    assert found.never == 0
    assert found.mean == 3
    assert found.of_one_rule() == found.of_a_data_set() == (3, 3)


def test_where_it_says_nothing_they_hardly_ever_stop() -> None:
    rng = np.random.default_rng(2)
    paths = rng.random((2, 120, 2))
    found = simulated(paths, questions=300, rounds=(3, 10), accept=0.5, epsilon=0.02)
    assert found.mean > 9.5
    assert 0 < found.never < 1
    assert found.of_one_rule()[1] == 10
