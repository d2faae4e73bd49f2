"""The sharper certificate for ROUGE-L: no text that could be drawn beats it."""

from __future__ import annotations

from functools import partial
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snne_guard.scorers import METHODS, snne, uncertainty_range
from snne_guard.scorers.certificate import snne_limits
from snne_guard.scorers.triangle import MOST_MEMBERS, triangle_bounds
from snne_guard.similarity import rouge_l, rouge_l_paper, structured
from snne_guard.similarity.lexical import is_metric
from snne_guard.types import FloatArray, MethodInputs

TAUS = st.sampled_from([1.0, 1.5, 10.0])
TOKENS = st.lists(st.sampled_from("abcd"), max_size=6)
TEXTS = TOKENS.map(" ".join)
OWN = pytest.mark.parametrize("similarity", [rouge_l, rouge_l_paper])


def distances(similarity: FloatArray) -> FloatArray:
    return np.array(2 * (1 - similarity) / (2 - similarity))


@OWN
@given(
    texts=st.lists(
        TEXTS | st.sampled_from(["-5", "5", "é", " "]), min_size=3, max_size=8
    )
)
def test_rouge_l_comes_from_a_distance(similarity: Any, texts: list[str]) -> None:
    assert is_metric(similarity)
    far = distances(similarity(texts))
    n = len(texts)
    for i, k, j in product(range(n), repeat=3):
        if len({i, k, j}) == 3:
            assert far[i, k] <= far[i, j] + far[j, k] + 1e-12


def test_others_are_not_said_to() -> None:
    assert not is_metric(structured)
    assert not is_metric(partial(rouge_l, tokens="rouge"))


@OWN
@given(texts=st.lists(TEXTS, min_size=3, max_size=9), seen=st.integers(2, 8), tau=TAUS)
def test_no_texts_fall_below_it(
    similarity: Any, texts: list[str], seen: int, tau: float
) -> None:
    seen = min(seen, len(texts) - 1)
    whole = similarity(texts)
    bounds = triangle_bounds(whole[:seen, :seen], len(texts) - seen, tau=tau)
    for joined, bound in enumerate(bounds.tolist(), start=1):
        part = whole[: seen + joined, : seen + joined]
        assert snne(part, tau=tau) >= bound


# Every text of up to three tokens, and one that shares none of them.
EVERY = [
    " ".join(tokens) for size in range(4) for tokens in product("abc", repeat=size)
]


@settings(max_examples=15)
@given(seen=st.lists(st.sampled_from(EVERY), min_size=2, max_size=5))
def test_no_pair_of_all_short_texts_falls_below_it(seen: list[str]) -> None:
    m = len(seen)
    known = rouge_l([*seen, *EVERY])
    bounds = triangle_bounds(known[:m, :m], 2)
    one = min(
        snne(known[np.ix_(rows, rows)])
        for rows in ([*range(m), m + new] for new in range(len(EVERY)))
    )
    two = min(
        snne(known[np.ix_(rows, rows)])
        for rows in (
            [*range(m), m + first, m + second]
            for first, second in combinations_with_replacement(range(len(EVERY)), 2)
        )
    )
    assert one >= bounds[0]
    assert two >= bounds[1]


@given(
    points=st.lists(
        st.lists(st.floats(0, 1), min_size=3, max_size=3), min_size=2, max_size=6
    ),
    new=st.lists(st.floats(0, 1), min_size=3, max_size=3),
    missing=st.integers(1, 5),
)
def test_it_holds_for_any_distance(
    points: list[list[float]], new: list[float], missing: int
) -> None:
    # Points in a cube, the farthest corners at distance 1.
    places = np.array([*points, *[new] * missing])
    far = np.abs(places[:, None] - places).max(axis=2)
    similarity = (2 - 2 * far) / (2 - far)
    m = len(points)
    bounds = triangle_bounds(similarity[:m, :m], missing)
    assert snne(similarity) >= bounds[-1]


@given(texts=st.lists(TEXTS, min_size=2, max_size=7), missing=st.integers(1, 5))
def test_it_narrows_what_is_known_and_never_below_a_copy(
    texts: list[str], missing: int
) -> None:
    matrix = rouge_l(texts)
    plain = snne_limits(matrix, missing, tau=1.0)
    sharp = snne_limits(matrix, missing, tau=1.0, metric=True)
    assert (sharp[:, 1] == plain[:, 1]).all()
    assert (sharp[:, 0] >= plain[:, 0]).all()
    copies = [snne(rouge_l([*texts, *[text] * missing])) for text in texts]
    assert sharp[-1, 0] <= min(copies) + 1e-9


def test_what_it_is_for_is_settled_sooner() -> None:
    different = MethodInputs(similarity=np.eye(5), metric=True)
    plain = MethodInputs(similarity=np.eye(5))
    low, high = uncertainty_range(METHODS["snne"], different, 5) or (0, 0)
    wide, same = uncertainty_range(METHODS["snne"], plain, 5) or (0, 0)
    assert high == same
    assert wide < 0.3
    assert low > 0.4


@pytest.mark.parametrize(
    ("members", "tau", "narrower"),
    [
        (MOST_MEMBERS - 3, 1.0, True),
        (MOST_MEMBERS - 2, 1.0, False),
        (4, 0.9, False),
        (1, 1.0, False),
    ],
)
def test_where_it_is_not_proven_or_takes_long_it_is_not_used(
    members: int, tau: float, narrower: bool
) -> None:
    matrix = np.eye(members)
    plain = snne_limits(matrix, 3, tau=tau)
    sharp = snne_limits(matrix, 3, tau=tau, metric=True)
    assert (sharp[-1, 0] > plain[-1, 0]) == narrower
