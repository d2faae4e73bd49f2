"""The uncertainty of each field: values, lists, shapes, and what is bad input."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from snne_guard import Field, score, score_fields
from snne_guard.errors import InputError
from snne_guard.similarity import content_f1


def supports(answer: Any, *samples: Any, **options: Any) -> dict[str, int]:
    """Return how many samples support each field."""
    found = score_fields(answer, samples, **options)
    for field in found:
        assert 0 <= field.uncertainty <= 1
        assert (field.uncertainty == 0) <= (field.supported == len(samples))
    assert len({field.path for field in found}) == len(found)
    return {field.path: field.supported for field in found}


def us(answer: Any, *samples: Any) -> dict[str, float]:
    return {field.path: field.uncertainty for field in score_fields(answer, samples)}


# -- Values ----------------------------------------------------------------------------

SAME: list[tuple[Any, Any]] = [
    (1, 1.0),
    (1, "1"),
    (0.1, Decimal("0.10")),
    ("12.50", 12.5),
    (10**30, float(10**30)),
    (math.nan, math.nan),
    (math.nan, Decimal("NaN")),
    (-math.inf, -math.inf),
    (True, True),
    ("2024-01-05", "5 January 2024"),
    ("2024-1-5", "Jan 5, 2024"),
    ("2024-01-05", date(2024, 1, 5)),
    ("2024-01-05T10:00:00Z", "2024-01-05T12:00:00+02:00"),
    (None, ""),
    (" ", None),
    ("ACME GmbH", " Acme GmbH "),
    ("1,300,000", "1300000"),
    ("São Paulo", "Sa\u0303o Paulo"),
    ({}, {}),
    ([], []),
]
OTHER: list[tuple[Any, Any]] = [
    (1, 2),
    (1, True),
    (0, False),
    (0, None),
    (False, None),
    ("007", 7),
    ("007", "7"),
    (10**30, 10**30 + 1),
    (math.nan, 1),
    (math.inf, -math.inf),
    ("2024-01-05", "2024-01-06"),
    ("5 January 2024", "5 June 2024"),
    ("2024-13-05", "2024-13-06"),
    ("Paris", None),
    ("Paris", {"name": "Paris"}),
    ("Paris", ["Paris"]),
    ({}, None),
    ({}, []),
    ([], None),
    ("INV-0012", "INV-0013"),
]


@pytest.mark.parametrize(("value", "other"), SAME, ids=repr)
def test_equal_values_support_one_another(value: Any, other: Any) -> None:
    assert us({"a": value}, {"a": other}) == {"/a": 0}
    assert us({"a": other}, {"a": value}) == {"/a": 0}


@pytest.mark.parametrize(("value", "other"), OTHER, ids=repr)
def test_other_values_do_not(value: Any, other: Any) -> None:
    for one, another in ((value, other), (other, value)):
        found = supports({"a": one, "b": 1}, {"a": another, "b": 1})
        assert found.pop("/b") == 1
        assert set(found.values()) == {0}


def test_null_and_absent_are_the_same() -> None:
    assert us({"a": None, "b": 1}, {"b": 1}, {"a": None, "b": 1}) == {"/a": 0, "/b": 0}
    assert supports({"a": 5, "b": 1}, {"b": 1}) == {"/a": 0, "/b": 1}


def test_texts_are_scored_as_a_guard_scores_whole_answers() -> None:
    texts = ["the Bay of Pigs", "Bay of Pigs", "Cuba", "the Bay"]
    question = "Where was it?"
    (field,) = score_fields(
        {"a": texts[0]}, [{"a": t} for t in texts[1:]], question=question
    )
    whole = score(texts, question=question)
    assert field.uncertainty == pytest.approx(whole.uncertainty)
    alike = content_f1(texts, question=question)[0, 1:]
    assert field.supported == int((alike > 0.5).sum())


def test_the_words_of_the_question_hardly_count() -> None:
    answer, sample = {"a": "the tall oak tree"}, {"a": "the tall elm tree"}
    plain = score_fields(answer, [sample])[0].uncertainty
    asked = score_fields(answer, [sample], question="Which tall tree?")[0].uncertainty
    assert asked > plain


# -- Shapes ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sample",
    ["Paris", "{", 5, None, [1], [{"a": 1}], {"error": "no"}, '{"a": 1, "a": 1}', "[]"],
)
def test_a_sample_of_another_shape_supports_no_field(sample: Any) -> None:
    answer = {"a": 1, "b": None, "c": {"d": "x"}}
    assert supports(answer, sample) == {"/a": 0, "/b": 0, "/c/d": 0}
    # One that fits beside it counts as ever.
    assert supports(answer, sample, answer) == {"/a": 1, "/b": 1, "/c/d": 1}


def test_a_part_of_another_shape_supports_no_field_in_it() -> None:
    answer = {"a": {"b": None, "c": 1}, "d": 1}
    samples = [{"a": "x", "d": 1}, {"a": [1], "d": 1}, {"a": None, "d": 1}]
    assert supports(answer, *samples) == {"/a/b": 1, "/a/c": 0, "/d": 3}


def test_what_only_samples_have_is_a_field_too() -> None:
    answer = {"a": 1}
    assert supports(answer, {"a": 1, "b": 2}, {"a": 1}) == {"/a": 2, "/b": 1}
    most = {"a": 1, "b": {"c": 2}}
    assert us(answer, most, most, most)["/b"] > 0.8
    rows: dict[str, Any] = {"r": [1]}
    assert supports(rows, {"r": [1, 2]}, {"r": [1]}) == {"/r/0": 2, "/r/-": 1}


def test_paths_are_json_pointers() -> None:
    answer: dict[str, Any] = {"a/b": 1, "m~n": {"": 2, " ": 3}, "größe": [{"日本": 4}]}
    assert [*supports(answer, answer)] == [
        "/a~1b",
        "/m~0n/",
        "/m~0n/ ",
        "/größe/0/日本",
    ]
    assert [*supports({"~1": 1}, {"~1": 1})] == ["/~01"]


@pytest.mark.parametrize("empty", [{}, [], "{}", "[]", {"a": {}}, {"a": []}, [[]]])
def test_what_is_empty_is_a_field(empty: Any) -> None:
    ((_, supported),) = supports(empty, empty).items()
    assert supported == 1


def test_objects_texts_and_models_are_the_same() -> None:
    class City(BaseModel):
        name: str
        founded: date

    model = City(name="Bern", founded=date(1191, 1, 5))
    given = {"name": "Bern", "founded": "1191-01-05"}
    text = f"```json\n{json.dumps(given)}\n```"
    for answer in (model, given, text):
        assert supports(answer, model, given, text) == {"/name": 3, "/founded": 3}


# -- Lists -----------------------------------------------------------------------------

ROWS: list[dict[str, Any]] = [
    {"item": f"{wood} {thing}", "count": count}
    for count, (wood, thing) in enumerate(
        [("oak", "table"), ("elm", "shelf"), ("fir", "desk"), ("ash", "stool")]
    )
]


def test_another_order_costs_nothing() -> None:
    assert set(us(ROWS, ROWS[::-1], [ROWS[2], *ROWS[:2], ROWS[3]]).values()) == {0}
    assert set(us({"r": ["b", "a"]}, {"r": ["a", "b"]}).values()) == {0}
    nested = [[1, 2], [3, 4]]
    assert set(us(nested, [[4, 3], [2, 1]]).values()) == {0}


@pytest.mark.parametrize("missing", range(4))
def test_a_missing_row_costs_its_own_fields_alone(missing: int) -> None:
    sample = [row for place, row in enumerate(ROWS) if place != missing]
    found = supports(ROWS, sample[::-1])
    lost = {path for path, supported in found.items() if not supported}
    assert lost == {f"/{missing}/item", f"/{missing}/count"}


def test_a_row_is_found_though_some_of_it_differs() -> None:
    sample = [{**row, "count": 9} for row in ROWS[::-1]]
    found = supports(ROWS, sample)
    assert {path for path, supported in found.items() if supported} == {
        f"/{place}/item" for place in range(4)
    }
    other = [{**row, "item": row["item"].split()[0]} for row in ROWS[::-1]]
    assert all(us(ROWS, other)[f"/{place}/count"] == 0 for place in range(4))


def test_what_many_rows_share_matches_none() -> None:
    rows = [{"id": n, "kind": "tool", "of": "EUR"} for n in "abc"]
    sample = [{"id": "c", "kind": "tool", "of": "USD"}, rows[1], rows[0]]
    found = supports(rows, sample)
    assert [path for path, supported in found.items() if not supported] == ["/2/of"]


def test_duplicate_rows_are_counted() -> None:
    row = {"item": "oak table", "count": 1}
    assert supports([row, row, row], [row, row]) == {
        **dict.fromkeys(["/0/item", "/0/count", "/1/item", "/1/count"], 1),
        **dict.fromkeys(["/2/item", "/2/count"], 0),
    }
    assert supports([row], [row, row]) == {"/0/item": 1, "/0/count": 1, "/-": 0}


def test_longer_lists_are_compared_by_position() -> None:
    rows = [*range(201)]
    assert set(us(rows, rows).values()) == {0}
    assert set(supports(rows, rows[1:]).values()) == {0}
    assert sum(supports(rows[:200], rows[1:200]).values()) == 199


@given(st.lists(st.sampled_from(["a", "b", "a b", 1, 2, None, True]), max_size=8))
def test_any_order_of_any_rows_is_the_same(rows: list[Any]) -> None:
    shuffled = sorted(rows, key=str, reverse=True)
    assert set(us(rows, shuffled).values()) == {0}


# -- Bad input -------------------------------------------------------------------------


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    ("answer", "samples"),
    [
        ({"a": 1}, []),
        ({"a": 1}, "text"),
        ({"a": 1}, {"a": 1}),
        ("Paris", [{"a": 1}]),
        (5, [{"a": 1}]),
        (None, [{"a": 1}]),
        ('{"a": 1, "a": 2}', [{"a": 1}]),
        (deep(100_000), [{"a": 1}]),
    ],
)
def test_what_makes_no_sense_is_refused(answer: Any, samples: Any) -> None:
    with pytest.raises(InputError) as caught:
        score_fields(answer, samples)
    assert "Paris" not in str(caught.value)


@pytest.mark.parametrize("levels", [100, 101, 400, 1_000, 100_000])
def test_a_sample_that_is_nested_deeply_spoils_no_other(levels: int) -> None:
    text = '{"a":' * levels + "1" + "}" * levels
    for sample in (deep(levels), text, [deep(levels)]):
        assert supports({"a": 1}, sample, {"a": 1}) == {"/a": 1}
    try:
        found = supports(text, text)
    except InputError:
        assert levels > 100
    else:
        assert (levels, set(found.values())) == (100, {1})


def test_no_key_or_value_steers_the_comparison() -> None:
    answer = {"kind": "text", "elsewhere": "null", "None": "None"}
    assert set(us(answer, answer).values()) == {0}
    assert supports({"a": "None"}, {"a": None}) == {"/a": 0}
    assert supports({"a": "NaN"}, {"a": math.nan}) == {"/a": 1}


def seconds(run: Callable[[], object]) -> float:
    spent = []
    for _ in range(3):
        begin = time.perf_counter()
        run()
        spent.append(time.perf_counter() - begin)
    return min(spent)


def test_very_long_texts_take_time_that_grows_with_their_length() -> None:
    random = Random(0)  # noqa: S311 - no secret
    words = [f"w{random.randrange(5000)}" for _ in range(20_000)]

    def run(n: int) -> None:
        score_fields({"a": " ".join(words[:n])}, [{"a": " ".join(words[n::-1])}] * 4)

    assert seconds(lambda: run(20_000)) < 20 * seconds(lambda: run(4_000)) + 0.5


def test_a_table_takes_a_time_that_grows_with_its_rows() -> None:
    def table(n: int) -> list[Any]:
        return [
            {"id": place, "item": f"item {place}", "n": place % 7} for place in range(n)
        ]

    def run(n: int) -> list[Field]:
        rows = table(n)
        return score_fields(rows, [rows[::-1], rows[1:]])

    assert seconds(lambda: run(200)) < 8 * seconds(lambda: run(50)) + 0.2
