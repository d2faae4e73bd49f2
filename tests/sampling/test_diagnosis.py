"""Findings from what was seen: one literal case for each rule, in its words."""

from __future__ import annotations

from typing import Any

import pytest

from snne_guard.sampling.diagnosis import diagnose
from snne_guard.sampling.evidence import Case
from snne_guard.sampling.probes import Observations, Seen
from tests.sampling.diagnosing import (
    BRIEF,
    HOT,
    LATE,
    LONG,
    NAMED,
    OTHER_LIMIT,
    SEEDED,
    WHOLE,
    found,
    good,
    repeating,
    seen,
)


def test_a_model_that_behaves_has_nothing_to_fix() -> None:
    findings = diagnose(Case(seen=good()))
    assert {finding.status for finding in findings} == {"works"}
    assert all(finding.trusted for finding in findings)
    assert {finding.fix for finding in findings} == {""}
    assert [finding.message for finding in findings] == [
        "6 replies to one prompt at temperature 1: all different",
        "replies are alike at 0, not at 1",
        "asked for 3 replies in one request, got 3",
        "one for each token, -2.00 nats on average, before the temperature is applied",
        "the same one draws the same again, another one does not",
        "none answers in place of the model",
        "replies end at 12 tokens when told to",
        "tokens are counted",
    ]
    assert findings[0].to_dict() == {
        "check": "variation",
        "status": "works",
        "message": "6 replies to one prompt at temperature 1: all different",
        "fix": "",
        "trusted": True,
    }


@pytest.mark.parametrize(
    ("observations", "cause", "fix"),
    [
        (repeating(), "greedy", "have the server draw at the temperature"),
        (repeating(short=[seen("one")]), "greedy", "have the server draw"),
        (repeating(**LATE), "greedy", "have the server draw"),
        (repeating(**NAMED), "cache", "have no cache answer for samples"),
        (repeating(**WHOLE), "cache", "have no cache"),
        (repeating(**OTHER_LIMIT), "cache", "have no cache"),
        (repeating(**HOT), "seed", "take the fixed seed off the server"),
        (repeating(**HOT, **SEEDED), "seed", "give the model a seed"),
        (repeating(batch=[seen("one", "b", "c")]), "seed", "take the fixed seed off"),
        (repeating(**HOT, **BRIEF), "seed", "take the fixed seed off"),
        (repeating(**BRIEF), "unclear", "have the server draw"),
        (repeating(cold=[]), "unclear", "have the server draw"),
        # It writes on after the limit, so half the limit shows nothing either.
        (repeating(**WHOLE | {"first": LONG}), "unclear", "have the server draw"),
    ],
)
def test_why_replies_agree(observations: Observations, cause: str, fix: str) -> None:
    assert Case(seen=observations).cause == cause
    finding = found("variation", observations)
    assert (finding.status, finding.trusted) == ("ignored", False)
    assert finding.fix.startswith(fix)


def test_of_a_reply_that_never_came_nothing_is_known() -> None:
    nothing = Case(seen=Observations())
    assert (nothing.cause, nothing.heeds_limit) == ("varied", None)


def test_a_server_that_gives_all_responses_one_name_has_no_cache_for_it() -> None:
    one: dict[str, Any] = {"response_id": "chatcmpl-1"}
    assert Case(seen=good(first=seen("a", **one), short=[seen("b", **one)])).cause == (
        "varied"
    )
    alike: dict[str, Any] = {
        "first": seen("x", cut=False, **one),
        "short": [seen("x", **one)] * 2,
    }
    assert Case(seen=repeating(**alike, other=[seen("x", **one)])).cause == "unclear"
    anew: dict[str, Any] = {
        "first": seen("x y", **one),
        "short": [seen("x", **one)] * 2,
    }
    named = repeating(**anew, batch=[seen("x", response_id="2")])
    assert Case(seen=named).cause == "greedy"


def test_agreement_is_shown_with_its_words_and_its_chance() -> None:
    message = found(
        "variation", repeating(short=[seen("one  " + "two " * 20)] * 2)
    ).message
    assert "'one two two two two two two two two two…'" in message
    # 6 tokens at -2 + ln(10/9) nats: 6 x 1.8946 / ln 10 = 4.9
    assert message.endswith("by their own log-probabilities in one case of 10^5")
    likely = repeating(short=[seen("one", logprobs=(-0.1,))] * 2)
    assert "log-probabilities" not in found("variation", likely).message
    unknown = repeating(short=[seen("one", logprobs=None)] * 2)
    assert "log-probabilities" not in found("variation", unknown).message


def test_one_reply_to_every_prompt_is_said_to_be_so() -> None:
    constant = repeating(**BRIEF, other=[seen("x")] * 2)
    assert "separate replies to two prompts" in found("variation", constant).message
    assert "separate replies to one prompt" in found("variation", repeating()).message


def test_at_temperature_zero_nothing_can_vary() -> None:
    assert found("variation", repeating(), temperature=0.0).fix == (
        "give the guard a temperature above 0"
    )
    assert found("temperature", repeating(), temperature=0.0).status == "unknown"


def test_a_model_that_varies_little_is_given_another_chance() -> None:
    little = repeating(**BRIEF, other=[seen("else"), seen("another")])
    finding = found("variation", little)
    assert (finding.status, finding.trusted) == ("works", True)
    assert "varies little" in finding.message


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"short": [Seen(error=TimeoutError())]}, "only one reply came"),
        ({"first": seen(""), "short": [seen(" ")]}, "no text that could be compared"),
    ],
)
def test_without_two_replies_nothing_is_trusted(
    parts: dict[str, Any], message: str
) -> None:
    finding = found("variation", good(**parts))
    assert (finding.status, finding.trusted) == ("unknown", False)
    assert message in finding.message


def test_some_replies_alike_are_counted() -> None:
    finding = found("variation", good(batch=[seen("one a", "one a", "x")]))
    assert "6 replies to one prompt at temperature 1: 4 of them" in finding.message
