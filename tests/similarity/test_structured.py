"""JSON field by field."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snne_guard.errors import InputError
from snne_guard.similarity import canonical_json, rouge_l, structured

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["name", "args", "id", "a"]), inner, max_size=3
        )
    ),
    max_leaves=8,
)

# text, text, similarity
PAIRS: list[tuple[str, str, float]] = [
    # numbers by value
    ("1", "1.0", 1.0),
    ("1e3", "1000", 1.0),
    ("0.1", "0.10", 1.0),
    ("-0", "0", 1.0),
    ("5", "-5", 0.0),
    ("5", "50", 0.0),
    ("9007199254740993", "9007199254740992", 0.0),
    ("1e400", "1e401", 0.0),
    # booleans, null and kinds
    ("true", "true ", 1.0),
    ("true", "false", 0.0),
    ("true", "1", 0.0),
    ("null", "0", 0.0),
    ("null", "false", 0.0),
    ("null", '""', 0.0),
    ('"5"', "5", 0.0),
    ("{}", "[]", 0.0),
    ("[]", '""', 0.0),
    # strings by the text similarity
    ('"the cat sat"', '"the cat ran"', 2 / 3),
    ('""', '" "', 1.0),
    # objects: the mean over the union of the keys
    ("{}", "{}", 1.0),
    ("{}", '{"a": 1}', 0.0),
    ('{"a": 1, "b": 2}', '{"b": 2.0, "a": 1}', 1.0),
    ('{"a": 1, "b": 2}', '{"a": 1, "b": 3}', 0.5),
    ('{"a": 1, "b": 2}', '{"a": 1}', 0.5),
    ('{"a": 1, "b": 2}', '{"a": 1, "c": 2}', 1 / 3),
    ('{"a": {"b": 1, "c": 2}}', '{"a": {"b": 1, "c": 3}}', 0.5),
    ('{"a": null}', "{}", 0.0),
    ('{"city": "New York"}', '{"city": "York"}', 2 / 3),
    # lists in order
    ("[]", "[ ]", 1.0),
    ("[]", "[1]", 0.0),
    ("[1, 2]", "[2, 1]", 0.0),
    ("[1, 2, 3]", "[1, 2, 4]", 2 / 3),
    ("[1, 2]", "[1, 2, 3]", 2 / 3),
    ("[[1], [2]]", "[[1], [3]]", 0.5),
    # tool calls
    (
        '[{"name": "pay", "args": {"to": "Bo"}}]',
        '[{"name": "ask", "args": {"to": "Bo"}}]',
        0.0,
    ),
    ('[{"name": "pay", "args": {}}]', '[{"name": "pay_back", "args": {}}]', 0.0),
    (
        '[{"name": "pay", "args": {"eur": 5}}]',
        '[{"name": "pay", "args": {"eur": -5}}]',
        0.5,
    ),
    (
        '[{"name": "pay", "args": {"eur": 5}}]',
        '[{"name": "pay", "args": {"eur": 5.0}}]',
        1.0,
    ),
    (
        '[{"name": "pay", "args": {"eur": 5}, "id": "x", "type": "tool_call"}]',
        '[{"name": "pay", "args": {"eur": 5}, "id": "y"}]',
        1.0,
    ),
    ('[{"name": "pay", "args": {}}]', "[]", 0.0),
    ('{"name": "Jo Ann", "args": 1}', '{"name": "Jo", "args": 1}', 5 / 6),
    ('{"name": "Jo Ann", "age": 1}', '{"name": "Jo", "age": 1}', 5 / 6),
    ('{"name": 1, "args": {}}', '{"name": 2, "args": {}}', 0.5),
    # what is no JSON is a text
    ("The cat sat.", "The cat ran.", 2 / 3),
    ("True", "true", 1.0),
    ("42", "42 km", 2 / 3),
    ("NaN", "nan", 1.0),
    ("", "{}", 0.0),
    ("", " ", 1.0),
    ('{"a": 1', '{"a": 1}', 1.0),
    ('```json\n{"a": 1}\n```', '{"a": 1.0}', 1.0),
    ("```\n[1, 2]\n```", "[1, 3]", 0.5),
    ("```yaml\n5\n```", "yaml 5.0", 0.5),
    ("```", "5", 0.0),
]


@pytest.mark.parametrize(("one", "other", "expected"), PAIRS)
def test_pairs(one: str, other: str, expected: float) -> None:
    for pair in ([one, other], [other, one]):
        assert structured(pair) == pytest.approx(
            np.array([[1, expected], [expected, 1]])
        )


@given(st.lists(JSON.map(json.dumps) | st.text(max_size=8), max_size=4))
def test_matrix(texts: list[str]) -> None:
    matrix = structured([*texts, *texts[:1]])
    n = len(texts) + min(len(texts), 1)
    assert matrix.shape == (n, n)
    assert matrix.dtype == np.float64
    assert (matrix == matrix.T).all()
    assert ((matrix >= 0) & (matrix <= 1)).all()
    assert (matrix.diagonal() == 1).all()
    if texts:
        assert matrix[0, -1] == 1
        pair = structured([texts[-1], texts[0]])
        assert pair[0, 1] == matrix[0, len(texts) - 1]


@given(JSON)
def test_a_value_is_like_its_canonical_form(value: Any) -> None:
    assert structured([json.dumps(value), canonical_json(value)])[0, 1] == 1


@given(st.lists(st.text("ab {[", max_size=8), max_size=4))
def test_texts_without_json_are_compared_as_texts(texts: list[str]) -> None:
    assert (structured(texts) == rouge_l(texts)).all()


@pytest.mark.parametrize(
    "text",
    ["[" * 200 + "]" * 200, "[" * 100_000 + "]" * 100_000, "1e99999999999999999999"],
    ids=["deep", "too deep for the parser", "too large an exponent"],
)
def test_json_that_is_too_much_is_a_text(text: str) -> None:
    assert structured([text, text + " "])[0, 1] == 1
    assert structured([text, "Paris"])[0, 1] == 0


def test_deep_json_is_still_json() -> None:
    deep = ["[" * 90 + number + "]" * 90 for number in ("1", "1.0", "2")]
    assert structured(deep).tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 1]]


def test_a_number_of_many_digits() -> None:
    digits = "7" * 5000
    assert structured([digits, f"{digits}.0", digits[1:]]).tolist() == [
        [1, 1, 0],
        [1, 1, 0],
        [0, 0, 1],
    ]


def test_bad_input() -> None:
    with pytest.raises(InputError, match="sequence of texts"):
        structured("{}")


def test_no_text() -> None:
    assert structured([], question="?").shape == (0, 0)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"b": 1, "a": 2}, '{"a":2,"b":1}'),
        ([1.0, 1e3, -0.0, 0.5, True, None], "[1,1000,0,0.5,true,null]"),
        (1e300, "1e+300"),
        (("a", {"x": (1.0,)}), '["a",{"x":[1]}]'),
        ("\u6771\u4eac", '"\u6771\u4eac"'),
        ({1: "a"}, '{"1":"a"}'),
    ],
)
def test_canonical_json(value: Any, expected: str) -> None:
    assert canonical_json(value) == expected


def test_canonical_json_refuses_what_json_has_no_form_for() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    for value in (float("nan"), float("inf"), object(), {"a": {1, 2}}, {(1,): 2}, deep):
        with pytest.raises(InputError, match="expected a value that JSON can hold"):
            canonical_json(value)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ('{"a": 1, "b": [1, 2]}', '{"b": [1.0, 2e0], "a": 1}', True),
        ("[1, 2]", "[2, 1]", False),
        ("1", "true", False),
        ('"1"', "1", False),
        ('{"a": "Paris"}', '{"a": "Paris."}', False),
        ('```json\n{"a": 1}\n```', '{"a":1}', True),
        ('{"name": "f", "args": {}, "id": "1"}', '{"name": "f", "args": {}}', True),
        ('{"name": "f", "args": {}}', '{"name": "g", "args": {}}', False),
        ('{"a": 1}', '{"a": 1, "id": "1"}', False),
        ("Paris.", "paris", True),
        ("Paris", '"Paris"', False),
    ],
)
def test_which_values_are_the_same(one: str, other: str, *, same: bool) -> None:
    assert structured.equivalent([one, other])[0, 1] == same
    assert structured.equivalent([other, one])[0, 1] == same
