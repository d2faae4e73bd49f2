"""A learnt stopping rule as a value: what it says, refuses, and survives."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snne_guard.decision import CalibratedStop
from snne_guard.errors import ConfigurationError, InputError
from snne_guard.types import Score

RULE = CalibratedStop(
    rounds=(3, 5, 10),
    threshold=0.4,
    accept_at_most=(0.1, 0.3),
    reject_at_least=(None, 0.6),
)


def score(u: float | None, n: int, method: str = "snne") -> Score:
    return Score(
        value=0.0,
        uncertainty=u,
        method=method,
        similarity="rouge_l",
        tau=1.0,
        n=n,
        matrix=np.eye(n),
    )


@pytest.mark.parametrize(
    ("u", "n", "stops"),
    [
        (0.1, 3, True),
        (0.11, 3, False),
        (1.0, 3, False),  # no rejection was learnt for this round
        (0.3, 5, True),
        (0.4, 5, False),
        (0.6, 5, True),
        (None, 5, False),
    ],
)
def test_it_stops_below_the_one_limit_and_above_the_other(
    u: float | None, n: int, stops: bool
) -> None:
    assert RULE(score(u, n), 10 - n) is stops


def test_it_knows_nothing_of_other_sets() -> None:
    assert RULE(score(0.0, 5), 5)
    assert not RULE(score(0.0, 4), 5)  # one of five has left the set
    assert not RULE(score(0.0, 5), 4)
    assert not RULE(score(0.0, 4), 6)  # never seen in the recordings
    assert not RULE(score(0.0, 5, method="wsnne"), 5)


def test_replaying_is_asking_round_by_round() -> None:
    rng = np.random.default_rng(1)
    paths = rng.random((200, 3))
    paths[::7, 0] = np.nan
    ends, accepted = RULE.replay(paths)
    for path, end, decided in zip(paths, ends, accepted, strict=True):
        literal = 2
        for place in (1, 0):
            u = None if math.isnan(path[place]) else float(path[place])
            if RULE(score(u, RULE.rounds[place]), 10 - RULE.rounds[place]):
                literal = place
        assert (end, decided) == (literal, path[literal] <= 0.4)


@given(u=st.floats(0, 1), place=st.sampled_from([0, 1]))
def test_a_stopped_answer_is_accepted_by_its_own_u(u: float, place: int) -> None:
    n = RULE.rounds[place]
    if RULE(score(u, n), 10 - n):
        accept = RULE.accept_at_most[place]
        assert (u <= 0.4) == (accept is not None and u <= accept)


def test_it_survives_a_file(tmp_path: Path) -> None:
    rule = replace(RULE, threshold=0.1 + 0.2, mean_members=5.5, similarity="é", eta=0.1)
    rule.save(tmp_path / "stop.json")
    assert CalibratedStop.load(tmp_path / "stop.json") == rule
    assert json.loads((tmp_path / "stop.json").read_text("utf-8"))["rounds"] == [
        3,
        5,
        10,
    ]


def saved(**changed: Any) -> str:
    return json.dumps({"kind": "snne_guard.CalibratedStop", **asdict(RULE), **changed})


OLDER = json.dumps({k: v for k, v in json.loads(saved()).items() if k != "anchor"})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "Expecting value"),
        ("[]", "an object, got list"),
        ("3", "an object, got int"),
        ("{}", "of kind 'snne_guard.CalibratedStop', got None"),
        ('{"kind": "snne_guard.CalibratedStop"}', "expected a field 'accept_at_most'"),
        (saved(surprise=1), "surprise"),
        (saved(anchor="half"), r"anchor must be a number in \[0, 1\]; got 'half'"),
        (saved(rounds=5), "int"),
        (saved(rounds=["3", "5", "10"]), "rounds must rise"),
        (saved(threshold="0.4"), "not supported between"),
        (saved(accept_at_most=[0.1]), "limits for each of the 2 rounds"),
        (saved(reject_at_least=[0.4, 0.6]), "sides of the threshold 0.4; got 0.1 and"),
    ],
)
def test_a_file_without_a_rule_is_named(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "stop.json"
    path.write_text(text)
    with pytest.raises(InputError, match=said) as caught:
        CalibratedStop.load(path)
    assert "stop.json" in str(caught.value)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"rounds": (10,)}, r"rounds must rise .* got \(10,\)"),
        ({"rounds": (5, 3, 10)}, "rounds must rise"),
        ({"rounds": (1, 5, 10)}, "from at least 2"),
        ({"threshold": 1.1}, r"threshold must be in \[0, 1\]; got 1.1"),
        ({"anchor": True}, r"anchor must be a number in \[0, 1\]; got True"),
        ({"anchor": math.nan}, "got nan"),
        ({"epsilon": 0.0}, "epsilon must be above 0 and below 1; got 0.0"),
        ({"confidence": 1}, "confidence must be above 0 and below 1; got 1"),
        ({"accept_at_most": (0.5, None)}, "got 0.5 and None"),
        ({"accept_at_most": (math.nan, None)}, "got nan and None"),
        ({"reject_at_least": (None, math.nan)}, "got 0.3 and nan"),
    ],
)
def test_parts_that_contradict_each_other(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        replace(RULE, **changed)


def test_a_file_from_before_anchors_had_none(tmp_path: Path) -> None:
    path = tmp_path / "stop.json"
    path.write_text(OLDER)
    older = CalibratedStop.load(path)
    assert (older, older.anchor) == (RULE, 0.0)
    with pytest.raises(ConfigurationError, match=r"anchor=0\.0, and here it is 0\.5"):
        older.check({"anchor": 0.5})


def test_other_settings_are_named_all_at_once() -> None:
    RULE.check(RULE.settings)
    RULE.check({"n": 10})
    with pytest.raises(ConfigurationError) as caught:
        RULE.check({**RULE.settings, "anchor": 0.5, "tau": 0.5, "threshold": 0.3})
    assert str(caught.value) == (
        "the calibrated stop was learnt with anchor=0.0, and here it is 0.5; "
        "tau=1.0, and here it is 0.5; "
        "threshold=0.4, and here it is 0.3"
    )
