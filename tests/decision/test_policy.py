"""From an uncertainty, or the lack of one, to what happens to the answer."""

from __future__ import annotations

import math
from typing import Any

import pytest

from snne_guard.decision.policy import Policy, Verdict
from snne_guard.errors import ConfigurationError

ABOVE_HALF = math.nextafter(0.5, 1.0)

ACCEPT = ("accept", "answer")
FLAG = ("flag", "answer")
REFUSE = ("refuse", "refusal")
FALLBACK = ("fallback", "fallback")
RAISE = ("refuse", "nothing")
ASK = ("flag", "replacement")
UNSCORED = ("unscored", "answer")
NOTHING = (None, "answer")


def pair(verdict: Verdict) -> tuple[str | None, str]:
    return verdict.decision, verdict.delivery


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
@pytest.mark.parametrize("u", [ABOVE_HALF, 1.0, math.nan, None])
def test_only_u_up_to_the_threshold_is_accepted(
    on_uncertain: Any, expected: tuple[str, str], u: float | None
) -> None:
    policy = Policy(threshold=0.5, on_uncertain=on_uncertain)
    assert pair(policy.scored(u)) == expected
    assert pair(policy.scored(0.5)) == ACCEPT
    assert pair(policy.scored(0.0)) == ACCEPT
    assert pair(policy.scored(0.0, covered=False)) == expected


@pytest.mark.parametrize("u", [0.0, 1.0, None])
def test_without_a_threshold_nothing_is_decided(u: float | None) -> None:
    assert pair(Policy().scored(u, covered=False)) == NOTHING
    assert pair(Policy().unscored()) == NOTHING
    assert pair(Policy().skipped()) == NOTHING


@pytest.mark.parametrize(
    ("on_uncertain", "between", "above"),
    [
        ("flag", FLAG, REFUSE),
        ("fallback", FALLBACK, REFUSE),
        ("raise", RAISE, RAISE),
        (ask_me, ASK, REFUSE),
    ],
)
def test_a_pair_refuses_above_the_second_limit(
    on_uncertain: Any, between: tuple[str, str], above: tuple[str, str]
) -> None:
    policy = Policy(threshold=0.5, refuse_above=0.75, on_uncertain=on_uncertain)
    assert pair(policy.scored(0.5)) == ACCEPT
    assert pair(policy.scored(0.1, covered=False)) == between
    assert pair(policy.scored(0.75)) == between
    assert pair(policy.scored(0.76)) == above
    assert pair(policy.scored(math.nan)) == above
    assert pair(policy.scored(None)) == above
    assert pair(policy.unscored()) == above


@pytest.mark.parametrize(
    ("on_error", "expected"),
    [
        ("uncertain", FALLBACK),
        ("accept", UNSCORED),
        ("raise", ("unscored", "nothing")),
    ],
)
def test_what_could_not_be_scored_is_handled_as_told(
    on_error: Any, expected: tuple[str, str]
) -> None:
    policy = Policy(threshold=0.5, on_uncertain="fallback", on_error=on_error)
    assert pair(policy.unscored()) == expected
    assert pair(policy.skipped()) == UNSCORED


@pytest.mark.parametrize(
    ("options", "withholds"),
    [
        ({}, False),
        ({"threshold": 0.5}, False),
        ({"threshold": 0.5, "on_error": "accept"}, False),
        ({"threshold": 0.5, "on_uncertain": "refuse"}, True),
        ({"threshold": 0.5, "on_uncertain": ask_me}, True),
        ({"threshold": 0.5, "refuse_above": 0.9}, True),
        ({"on_error": "raise"}, True),
    ],
)
def test_it_says_whether_an_answer_may_be_withheld(
    options: dict[str, Any], *, withholds: bool
) -> None:
    assert Policy(**options).may_withhold is withholds


@pytest.mark.parametrize(
    ("word", "expected"),
    [("flag", FLAG), ("refuse", REFUSE), ("fallback", FALLBACK), ("raise", RAISE)],
)
def test_a_callable_chooses_by_a_word(word: str, expected: tuple[str, str]) -> None:
    assert pair(Policy(threshold=0.5, on_uncertain=ask_me).chosen(word)) == expected


@pytest.mark.parametrize("word", ["The answer is 42", ["flag"]])
def test_another_word_is_an_error_that_quotes_nothing(word: object) -> None:
    with pytest.raises(ConfigurationError, match="'flag', 'refuse'") as caught:
        Policy(threshold=0.5, on_uncertain=ask_me).chosen(word)
    assert "42" not in str(caught.value)


@pytest.mark.parametrize(
    "options",
    [
        {"threshold": 1.5},
        {"threshold": 0.5, "refuse_above": -1.0},
        {"threshold": 0.5, "refuse_above": 0.4},
        {"refuse_above": 0.4},
        {"on_uncertain": "refuse"},
        {"threshold": 0.5, "on_uncertain": "ignore"},
        {"on_error": "ignore"},
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        Policy(**options)


# -- Documents -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("on_uncertain", "expected"),
    [("flag", FLAG), ("refuse", REFUSE), ("raise", RAISE), (ask_me, ASK)],
)
@pytest.mark.parametrize("threshold", [None, 0.5])
@pytest.mark.parametrize("grounded", [0.0, 0.2999, math.nan, None])
def test_only_what_is_grounded_is_accepted(
    threshold: Any, on_uncertain: Any, expected: tuple[str, str], grounded: Any
) -> None:
    options = {"threshold": threshold, "on_uncertain": on_uncertain}
    policy = Policy(min_grounded=0.3, **options)
    assert pair(policy.scored(0.0, grounded=grounded)) == expected
    assert pair(policy.scored(0.0, grounded=0.3)) == ACCEPT
    # Without a threshold no u is too high.
    above = ACCEPT if threshold is None else expected
    assert pair(policy.scored(1.0, grounded=1.0)) == above
    assert pair(policy.scored(None, grounded=1.0)) == above


def test_what_is_not_grounded_is_refused_by_u_alone() -> None:
    policy = Policy(threshold=0.2, refuse_above=0.6, min_grounded=0.3)
    assert pair(policy.scored(0.1, grounded=0.0)) == FLAG
    assert pair(policy.scored(0.7, grounded=1.0)) == REFUSE


@pytest.mark.parametrize(
    ("on_error", "grounded", "expected"),
    [
        ("uncertain", 1.0, REFUSE),
        ("accept", 1.0, UNSCORED),
        ("accept", 0.2, REFUSE),
        ("accept", None, REFUSE),
        ("raise", 1.0, ("unscored", "nothing")),
    ],
)
def test_without_a_score_an_answer_must_be_grounded_still(
    on_error: Any, grounded: Any, expected: tuple[str, str]
) -> None:
    for threshold in (None, 0.5):
        policy = Policy(
            threshold=threshold,
            min_grounded=0.3,
            on_uncertain="refuse",
            on_error=on_error,
        )
        assert pair(policy.unscored(grounded=grounded)) == expected
        assert pair(policy.skipped()) == UNSCORED


def test_a_pair_needs_a_threshold() -> None:
    with pytest.raises(ConfigurationError, match="needs both"):
        Policy(min_grounded=0.3, refuse_above=0.5)
