"""From an uncertainty, or the lack of one, to what happens to the answer."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snne_guard.decision import Policy, Threshold, Verdict
from snne_guard.errors import ConfigurationError

HALF = Threshold.fixed(0.5)
ABOVE_HALF = math.nextafter(0.5, 1.0)

ACCEPT = ("accept", "deliver")
FLAG = ("flag", "deliver")
REFUSE = ("refuse", "refuse")
FALLBACK = ("fallback", "fallback")
RAISE = ("refuse", "raise")
ASK = ("flag", "ask")
UNSCORED = ("unscored", "deliver")
UNSCORED_RAISE = ("unscored", "raise")
NOTHING = (None, "deliver")


def pair(verdict: Verdict) -> tuple[str | None, str]:
    return verdict.decision, verdict.action


def ask_me(_assessment: object) -> str:
    return "flag"


@pytest.mark.parametrize(
    ("on_uncertain", "expected"),
    [
        ("flag", FLAG),
        ("refuse", REFUSE),
        ("fallback", FALLBACK),
        ("raise", RAISE),
        (ask_me, ASK),
    ],
)
@pytest.mark.parametrize("u", [ABOVE_HALF, 1.0, None])
def test_what_is_not_accepted_is_dealt_with_as_told(
    on_uncertain: Any, expected: tuple[str, str], u: float | None
) -> None:
    policy = Policy(threshold=HALF, on_uncertain=on_uncertain)
    assert pair(policy.scored(u)) == expected
    assert pair(policy.scored(0.5)) == ACCEPT
    assert pair(policy.scored(0.0)) == ACCEPT


@pytest.mark.parametrize("u", [0.0, 1.0, None])
def test_without_a_threshold_nothing_is_decided(u: float | None) -> None:
    assert pair(Policy().scored(u)) == NOTHING
    assert pair(Policy().unscored()) == NOTHING
    assert pair(Policy().skipped()) == NOTHING


def test_a_threshold_of_minus_one_accepts_nothing() -> None:
    policy = Policy(threshold=Threshold(value=-1.0), on_uncertain="refuse")
    assert pair(policy.scored(0.0)) == REFUSE


@pytest.mark.parametrize(
    ("on_uncertain", "between", "above"),
    [
        ("flag", FLAG, REFUSE),
        ("fallback", FALLBACK, REFUSE),
        ("refuse", REFUSE, REFUSE),
        ("raise", RAISE, RAISE),
        (ask_me, ASK, REFUSE),
    ],
)
def test_a_pair_refuses_above_the_second_limit(
    on_uncertain: Any, between: tuple[str, str], above: tuple[str, str]
) -> None:
    policy = Policy(threshold=HALF, refuse_above=0.75, on_uncertain=on_uncertain)
    assert pair(policy.scored(0.5)) == ACCEPT
    assert pair(policy.scored(0.75)) == between
    assert pair(policy.scored(math.nextafter(0.75, 1.0))) == above
    assert pair(policy.scored(None)) == above
    assert pair(policy.unscored()) == above


@pytest.mark.parametrize("method", ["snne", "", "another"])
@pytest.mark.parametrize("u", [0.0, 0.2, 0.5, None])
def test_a_promise_for_one_method_accepts_no_score_of_another(
    method: str, u: float | None
) -> None:
    certified = Threshold(
        value=0.5, kind="error_rate", status="certified", level=0.1, method="wsnne"
    )
    policy = Policy(threshold=certified, on_uncertain="refuse")
    assert pair(policy.scored(u, method=method)) == REFUSE
    assert pair(policy.scored(0.5, method="wsnne")) == ACCEPT


def test_the_score_of_another_method_is_only_just_uncertain() -> None:
    certified = Threshold(
        value=0.5, kind="error_rate", status="certified", level=0.1, method="wsnne"
    )
    policy = Policy(threshold=certified, refuse_above=0.75, on_uncertain="flag")
    assert pair(policy.scored(0.1, method="snne")) == FLAG
    assert pair(policy.scored(0.9, method="snne")) == REFUSE


@pytest.mark.parametrize(
    ("on_error", "expected"),
    [("uncertain", FALLBACK), ("accept", UNSCORED), ("raise", UNSCORED_RAISE)],
)
def test_what_could_not_be_scored_is_dealt_with_as_told(
    on_error: Any, expected: tuple[str, str]
) -> None:
    policy = Policy(threshold=HALF, on_uncertain="fallback", on_error=on_error)
    assert pair(policy.unscored()) == expected
    assert pair(policy.skipped()) == UNSCORED


def test_on_error_raises_even_where_nothing_is_decided() -> None:
    assert pair(Policy(on_error="raise").unscored()) == UNSCORED_RAISE
    assert pair(Policy(on_error="accept").unscored()) == NOTHING


@pytest.mark.parametrize(
    ("word", "expected"),
    [("flag", FLAG), ("refuse", REFUSE), ("fallback", FALLBACK), ("raise", RAISE)],
)
def test_a_callable_chooses_among_four_words(
    word: str, expected: tuple[str, str]
) -> None:
    assert pair(Policy().chosen(word)) == expected


@pytest.mark.parametrize("word", ["accept", None, 1, "", ["flag"]])
def test_a_callable_that_says_something_else_is_refused(word: object) -> None:
    with pytest.raises(ConfigurationError, match="on_uncertain's result must be one"):
        Policy().chosen(word)


def test_a_callable_that_returns_the_answer_does_not_put_it_into_an_error() -> None:
    with pytest.raises(ConfigurationError, match=r"got another str$"):
        Policy().chosen("Max Frei won it")


@pytest.mark.parametrize("on_uncertain", ["refuse", "fallback", "raise", ask_me])
def test_what_is_never_uncertain_needs_no_policy(on_uncertain: Any) -> None:
    with pytest.raises(ConfigurationError, match="needs a threshold"):
        Policy(on_uncertain=on_uncertain)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"on_uncertain": "shrug"}, "on_uncertain must be one of 'flag', 'refuse'"),
        ({"on_uncertain": None}, "got None"),
        ({"on_error": "pass"}, "on_error must be one of 'uncertain', 'accept'"),
    ],
)
def test_options_that_are_no_choice_are_refused(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        Policy(threshold=HALF, **options)


@pytest.mark.parametrize(
    ("options", "withholds"),
    [
        ({}, False),
        ({"threshold": HALF}, False),
        ({"threshold": HALF, "on_error": "accept"}, False),
        ({"on_error": "raise"}, True),
        ({"threshold": HALF, "refuse_above": 0.9}, True),
        ({"threshold": HALF, "on_uncertain": "refuse"}, True),
        ({"threshold": HALF, "on_uncertain": "fallback"}, True),
        ({"threshold": HALF, "on_uncertain": "raise"}, True),
        ({"threshold": HALF, "on_uncertain": ask_me}, True),
    ],
)
def test_whether_an_answer_can_be_withheld_is_known_before(
    options: dict[str, Any], withholds: object
) -> None:
    assert Policy(**options).may_withhold is withholds


words = st.sampled_from(["flag", "refuse", "fallback", "raise", ask_me])
limits = st.one_of(st.none(), st.floats(0, 1))


@given(
    value=st.one_of(st.just(-1.0), st.floats(0, 1)),
    refuse_above=limits,
    on_uncertain=words,
    on_error=st.sampled_from(["uncertain", "accept", "raise"]),
    u=limits,
)
def test_accept_if_and_only_if_u_is_within_the_threshold(
    value: float,
    refuse_above: float | None,
    on_uncertain: Any,
    on_error: Any,
    u: float | None,
) -> None:
    policy = Policy(
        threshold=Threshold(value=value),
        refuse_above=refuse_above,
        on_uncertain=on_uncertain,
        on_error=on_error,
    )
    verdict = policy.scored(u)
    assert (verdict.decision == "accept") is (u is not None and u <= value)
    if not policy.may_withhold:
        assert verdict.action == policy.unscored().action == "deliver"
