"""Prices: which make sense, what a cost is worth, and how amounts add up."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snne_guard import ConfigurationError, Cost, Prices

tokens = st.integers(0, 10**7)
price = st.floats(0, 1000, allow_nan=False)
costs = st.builds(
    Cost,
    calls=st.integers(0, 9),
    prompt_tokens=tokens,
    cached_tokens=tokens,
    completion_tokens=tokens,
)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"prompt": -1, "completion": 1}, "prompt must be .* got -1"),
        ({"prompt": 1, "completion": math.nan}, "completion must be"),
        ({"prompt": 1, "completion": math.inf}, "completion must be"),
        ({"prompt": True, "completion": 1}, "prompt must be .* got True"),
        ({"prompt": None, "completion": 1}, "prompt must be .* got None"),
        ({"prompt": 1, "completion": 1, "cached": "1"}, "cached must be .* got '1'"),
    ],
)
def test_prices_that_make_no_sense_are_refused(
    options: dict[str, Any], named: str
) -> None:
    with pytest.raises(ConfigurationError, match=named):
        Prices(**options)


@pytest.mark.parametrize("text", ["", "2", "2,8,1,1", "2;8", "a,b", "2,"])
def test_a_text_that_holds_no_prices_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="PROMPT,COMPLETION"):
        Prices.parse(text)


def test_prices_are_read_from_a_text() -> None:
    assert Prices.parse(" 2.5, 10") == Prices(prompt=2.5, completion=10)
    assert Prices.parse("2,8,0") == Prices(prompt=2, completion=8, cached=0)


def test_what_a_cost_is_worth() -> None:
    cost = Cost(prompt_tokens=1_000_000, cached_tokens=400_000, completion_tokens=1)
    assert Prices(prompt=3, completion=0).money(cost) == 3.0
    assert Prices(prompt=3, completion=0, cached=1).money(cost) == pytest.approx(2.2)
    assert Prices(prompt=0, completion=7).money(cost) == 7e-6
    # A provider that counts cached tokens beside the others cannot make it negative.
    odd = Cost(prompt_tokens=10, cached_tokens=30)
    assert Prices(prompt=1, completion=0, cached=0).money(odd) == 0.0


@given(parts=st.lists(costs, max_size=5), prompt=price, completion=price)
def test_the_price_of_a_sum_is_the_sum_of_the_prices(
    parts: list[Cost], prompt: float, completion: float
) -> None:
    prices = Prices(prompt=prompt, completion=completion)
    whole = sum(parts, Cost())
    priced = sum((prices.priced(part) for part in parts), Cost())
    assert priced.money == (
        None if not parts else pytest.approx(prices.money(whole), rel=1e-9)
    )


def test_an_amount_is_known_only_if_all_tokens_have_one() -> None:
    priced, free = Cost(prompt_tokens=5, money=0.5), Cost(attempts=1)
    assert (priced + priced).money == 1.0
    assert (priced + free).money == 0.5
    assert (free + priced).money == 0.5
    assert (priced + Cost(prompt_tokens=1)).money is None
    assert (Cost(completion_tokens=1) + priced).money is None
    assert (free + free).money is None
