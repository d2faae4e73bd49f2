"""A calibration and where replies end: its token limit and its stop texts."""

from __future__ import annotations

from typing import Any

import pytest

from snne_guard import ConfigurationError
from snne_guard.decision import Calibration
from tests.support.calibrated import calibration


@pytest.mark.parametrize(
    ("made", "here", "differs"),
    [
        ({}, {"max_tokens": 32}, False),  # nobody knows what the graded ones had
        ({"max_tokens": 32}, {}, False),  # each call says it
        ({"max_tokens": 32}, {"max_tokens": 32.0}, False),
        ({"max_tokens": None}, {"max_tokens": None}, False),
        ({"max_tokens": None}, {"max_tokens": 1024}, True),
        ({"max_tokens": 32}, {"max_tokens": None}, True),
        ({"max_tokens": 32}, {"max_tokens": 1024}, True),
        ({"max_tokens": 1024}, {"max_tokens": 32}, True),
        ({}, {"stop": ["."]}, False),
        ({"stop": ["."]}, {}, False),
        ({"stop": None}, {"stop": ()}, False),
        ({"stop": [".", "\n"]}, {"stop": ("\n", ".")}, False),
        ({"stop": ["\n", "\n\n", "."]}, {"stop": (".", "\n")}, False),
        ({"stop": ["\n", "."]}, {"stop": ("\n",)}, True),
        ({"stop": None}, {"stop": ("\n",)}, True),
        ({"stop": ["\n"]}, {"stop": None}, True),
    ],
)
def test_where_replies_end_is_compared_where_both_say_it(
    made: dict[str, Any], here: dict[str, Any], *, differs: bool
) -> None:
    found = calibration(**made)
    [name] = {**made, **here}
    assert list(found.differences(here)) == [name] * differs
    again = Calibration.from_dict(found.to_dict())
    assert again == found
    assert list(again.differences(here)) == [name] * differs


@pytest.mark.parametrize("value", [True, "many", [5]])
def test_a_token_limit_is_a_number(value: object) -> None:
    told = "max_tokens of a calibration is a number or None; got"
    with pytest.raises(ConfigurationError, match=told):
        calibration(max_tokens=value)


@pytest.mark.parametrize("value", ["\n", 5, [5], {"\n": 1}])
def test_stops_are_a_list_of_texts(value: object) -> None:
    told = "stop of a calibration is a list of texts or None; got"
    with pytest.raises(ConfigurationError, match=told):
        calibration(stop=value)
