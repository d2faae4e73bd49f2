"""Clusters from a relation: the authors' rule and connected components."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snne_guard.errors import InputError
from snne_guard.scorers import component_clusters, greedy_clusters
from snne_guard.similarity.entailment import equivalence
from snne_guard.types import BoolArray, IntArray
from tests.support.graphs import clusterings, relations
from tests.support.known_answers import NLI

BOTH = pytest.mark.parametrize("cluster", [greedy_clusters, component_clusters])


def relation(n: int, *pairs: tuple[int, int]) -> BoolArray:
    matrix = np.eye(n, dtype=bool)
    for i, j in pairs:
        matrix[i, j] = matrix[j, i] = True
    return matrix


def slow_greedy(equivalent: BoolArray) -> list[int]:
    """Each answer is in the cluster of the last founder that it is equivalent to."""
    founders: list[int] = []
    ids = []
    for i in range(len(equivalent)):
        friends = [founder for founder in founders if equivalent[founder, i]]
        if not friends:
            founders.append(i)
            friends = [i]
        ids.append(founders.index(friends[-1]))
    return ids


def slow_components(equivalent: BoolArray) -> list[int]:
    """Two answers are together where a chain of equivalents leads to the other."""
    reach = equivalent.astype(int)
    for _ in equivalent:
        reach = ((reach @ reach) > 0).astype(int)
    firsts = [int(row.argmax()) for row in reach]
    order = sorted(set(firsts))
    return [order.index(first) for first in firsts]


@pytest.mark.parametrize(
    ("equivalent", "greedy", "components"),
    [
        (relation(3, (0, 2), (1, 2)), [0, 1, 1], [0, 0, 0]),
        (relation(3, (0, 1), (1, 2)), [0, 0, 1], [0, 0, 0]),
        (relation(4, (0, 1), (1, 2), (2, 3)), [0, 0, 1, 1], [0, 0, 0, 0]),
        (relation(4, (0, 3), (1, 2)), [0, 1, 1, 0], [0, 1, 1, 0]),
        (relation(3), [0, 1, 2], [0, 1, 2]),
        (np.ones((3, 3), dtype=bool), [0, 0, 0], [0, 0, 0]),
        (relation(1), [0], [0]),
        (equivalence(NLI), [0, 0, 0, 1, 0], [0, 0, 0, 1, 0]),
    ],
)
def test_known_relations(
    equivalent: BoolArray, greedy: list[int], components: list[int]
) -> None:
    assert greedy_clusters(equivalent).tolist() == greedy
    assert component_clusters(equivalent).tolist() == components


@given(relations())
def test_both_are_their_literal_definitions(equivalent: BoolArray) -> None:
    assert greedy_clusters(equivalent).tolist() == slow_greedy(equivalent)
    assert component_clusters(equivalent).tolist() == slow_components(equivalent)


@given(relations())
def test_the_clusters_of_the_first_answers_never_change(equivalent: BoolArray) -> None:
    whole = greedy_clusters(equivalent)
    for n in range(1, len(equivalent) + 1):
        assert np.array_equal(greedy_clusters(equivalent[:n, :n]), whole[:n])


@BOTH
@given(equivalent=relations())
def test_numbers_are_contiguous_in_the_order_of_first_members(
    cluster: Any, equivalent: BoolArray
) -> None:
    ids = cluster(equivalent).tolist()

    firsts = [ids.index(number) for number in range(max(ids) + 1)]
    assert firsts == sorted(firsts)


@BOTH
@given(wanted=clusterings(), data=st.data())
def test_a_transitive_relation_has_the_same_clusters_in_any_order(
    cluster: Any, wanted: list[int], data: st.DataObject
) -> None:
    order = data.draw(st.permutations(range(len(wanted))))
    shuffled = np.array(wanted)[order]

    ids = cluster(shuffled[:, None] == shuffled)

    assert np.array_equal(ids[:, None] == ids, shuffled[:, None] == shuffled)


@given(relations(), st.data())
def test_components_do_not_depend_on_the_order(
    equivalent: BoolArray, data: st.DataObject
) -> None:
    order = data.draw(st.permutations(range(len(equivalent))))

    def together(ids: IntArray) -> BoolArray:
        same: BoolArray = ids[:, None] == ids
        return same

    assert np.array_equal(
        together(component_clusters(equivalent[np.ix_(order, order)])),
        together(component_clusters(equivalent))[np.ix_(order, order)],
    )


@BOTH
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (np.eye(2), r"matrix of booleans with n >= 1, got float64 of shape \(2, 2\)"),
        (np.ones((2, 3), dtype=bool), r"got bool of shape \(2, 3\)"),
        (np.ones((0, 0), dtype=bool), r"got bool of shape \(0, 0\)"),
        (np.True_, r"got bool of shape \(\)"),
        (np.triu(np.ones((2, 2), dtype=bool)), r"but \(0, 1\) is not \(1, 0\)"),
    ],
)
def test_what_is_no_relation(cluster: Any, wrong: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        cluster(wrong)
