"""The figures of the benchmark of fields, on objects whose ranking is known."""

from __future__ import annotations

import json
from typing import Any

import pytest

from benchmarks import fields


@pytest.mark.parametrize(
    ("value", "gold", "right"),
    [
        ("the Warsaw area", ["Warsaw area"], True),
        ("in 1939", ["1939"], True),
        ("Warsaw", ["Warsaw area enlargement"], True),
        (1939, ["1939"], True),
        ("1945", ["1939", "1940"], False),
        ("", ["1939"], False),
        (None, ["1939"], False),
    ],
)
def test_a_field_is_right_by_squad_s_words(
    value: Any, gold: Any, *, right: bool
) -> None:
    assert fields.is_right(value, gold) is right


def test_wrong_fields_are_ranked_by_their_own_values(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def line(a: str) -> Any:
        main = {"a1": "Bern", "a2": "oak"}
        samples = [json.dumps({**main, "a2": tree}) for tree in ("elm", "fir", a)]
        given = {"ds": "squad", "questions": ["Where?", "What?"]}
        gold = [["Bern"], ["lime"]]
        return {**given, "gold": gold, "main": json.dumps(main), "samples": samples}

    rows = [fields.prepared(line(a)) for a in ("ash", "yew", "oak")]
    assert fields.prepared({**line("a"), "main": "Bern"}) is None
    assert fields.table("both", [row for row in rows if row]) == (1.0, 1.0)
    assert "3 objects, 6 fields, 3 of them wrong" in capsys.readouterr().out


def test_a_list_is_timed() -> None:
    assert 0 < fields.seconds(5, share=0.5) < 5
