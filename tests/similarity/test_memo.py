"""What is remembered of pairs: the last ones, and never their texts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from snne_guard.similarity._memo import PairMemo, pair_key

PARTS = st.lists(st.text(st.characters()), max_size=4)


@given(PARTS, PARTS)
def test_only_the_same_texts_in_the_same_order_have_one_key(
    one: list[str], other: list[str]
) -> None:
    assert (pair_key(*one) == pair_key(*other)) == (one == other)


def test_the_last_ones_used_stay() -> None:
    memo: PairMemo[int] = PairMemo(2)
    memo.put(b"a", 1)
    memo.put(b"b", 2)
    assert memo.get(b"a") == 1
    memo.put(b"c", 3)
    assert [memo.get(key) for key in (b"a", b"b", b"c")] == [1, None, 3]
