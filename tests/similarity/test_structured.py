"""JSON and tool calls, value by value."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snne_guard.similarity import content_f1
from snne_guard.similarity.json_values import NOT_JSON, read_json
from tests.similarity.support import is_similarity

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["a", "a b", ""]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from("xyz"), inner, max_size=3)
    ),
    max_leaves=6,
)


def alike(one: Any, other: Any) -> float:
    return float(content_f1([json.dumps(one), json.dumps(other)])[0, 1])


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ({"a": 1, "b": 2}, {"b": 2.0, "a": 1}, 1.0),
        ({"a": 1, "b": 2}, {"a": 1, "b": 3}, 0.25),
        ({"a": 1}, {"a": 1, "b": 2}, 0.25),
        ([1, 2, 3, 4], [1, 2, 3], 0.375),
        ({"a": None}, {}, 0.0),
        # Sentences that are alike do not add up to a difference; short texts do.
        ({"a": "it is an old town"}, {"a": "it was an old town"}, 18 / 19),
        ({"a": "you owe 5 euros", "b": 1}, {"a": "you owe 6 euros", "b": 1}, 87 / 304),
        ({"a": "the old town", "b": 1}, {"a": "the old city", "b": 1}, 43 / 136),
        ({"a": "Old Town", "b": 1}, {"a": "old town", "b": 1}, 1.0),
        # id and type are values like any other.
        ({"id": 1, "type": "x"}, {"id": 2, "type": "x"}, 0.25),
    ],
)
def test_literal_values(one: Any, other: Any, expected: float) -> None:
    assert alike(one, other) == pytest.approx(expected)
    assert alike(other, one) == alike(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "DELETE FROM orders WHERE customer = 5",
            "DELETE FROM orders WHERE customer = 5 AND status = 'open'",
        ),
        ("transfer - 500 to the account", "transfer 500 to the account"),
    ],
)
def test_a_text_that_differs_makes_calls_differ(one: str, other: str) -> None:
    def call(argument: str) -> list[dict[str, Any]]:
        return [{"name": "run", "args": {"query": argument, "limit": 1}}]

    calls = [json.dumps(call(text)) for text in (one, other)]
    assert content_f1(calls)[0, 1] <= 0.5
    # Beside a text of the reply as well, and calls of which one is another.
    beside = [json.dumps(["Here you are.", call(text)]) for text in (one, other)]
    assert content_f1(beside)[0, 1] <= 0.5


def test_calls_that_differ_in_case_alone_are_different() -> None:
    calls = [f'[{{"name":"f","args":{{"id":"{x}","n":5}}}}]' for x in ("aBc", "AbC")]
    assert content_f1(calls)[0, 1] <= 0.5


def test_a_fence_does_not_count_and_other_text_is_compared_as_text() -> None:
    texts = ['```json\n{"a": 1}\n```', '{"a":1}', "a 1"]
    matrix = content_f1(texts)
    assert matrix[0, 1] == 1
    assert matrix[1, 2] == 0.2


def test_very_deep_and_very_large_values_are_texts() -> None:
    deep = "[" * 100_000 + "]" * 100_000
    assert content_f1([deep, deep + " ", "1"])[0, 2] == 0
    digits = "9" * 5_000
    assert content_f1([digits, digits[1:]])[0, 1] == 0


@given(st.lists(VALUES, max_size=4))
def test_any_values(values: list[Any]) -> None:
    texts = [json.dumps([value]) for value in values]
    assert is_similarity(content_f1(texts), len(texts))
    sorted_texts = [json.dumps([value], sort_keys=True) for value in values]
    expected = [[one == other for other in sorted_texts] for one in sorted_texts]
    assert content_f1.equivalent(texts).tolist() == expected


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("aB3xY", "ab3xy"),
        ("#general", "general"),
        ("all users", "all users except admins"),
    ],
)
def test_a_short_text_that_differs_is_a_difference(one: str, other: str) -> None:
    calls = [
        json.dumps({"from": "A. Berg", "to": to, "note": 1}) for to in (one, other)
    ]
    assert content_f1(calls)[0, 1] <= 0.5


@pytest.mark.parametrize(
    "twice",
    [
        '{"to": "Ann", "to": "Bo"}',
        '{"to": "Ann", "to": "Ann"}',
        '[{"a": {"b": 1, "c": 2, "b": 3}}]',
        '```json\n{"x": 1, "x": 1}\n```',
    ],
)
def test_json_with_a_key_twice_is_not_read(twice: str) -> None:
    assert read_json(twice) is NOT_JSON


def test_a_key_twice_is_not_the_object_with_its_last_value() -> None:
    texts = ['{"to": "Ann", "to": "Bo"}', '{"to": "Bo"}', '{"to": "Ann"}']
    matrix = content_f1(texts)
    assert matrix[0, 1] < 1
    assert matrix[0, 2] < 1
    assert read_json('[{"a": 1}, {"a": 2}]') == [{"a": 1}, {"a": 2}]
