"""Findings from what was seen: one literal case for each rule, in its words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from snne_guard.sampling.collect import Reply
from snne_guard.sampling.diagnosis import CHECKS, diagnose
from snne_guard.sampling.evidence import Case, Finding
from snne_guard.sampling.probes import Abilities, Observations, Seen
from snne_guard.types import Cost, Sample

COUNTED = Cost(calls=1, prompt_tokens=9, completion_tokens=12)
BAD_REQUEST = NotImplementedError("no")
MISALIGNED = Seen(reply=Reply(samples=(Sample(text="b", misaligned=True),)))


def seen(
    *texts: str,
    logprobs: tuple[float, ...] | None = (-2.0,) * 6,
    cost: Cost = COUNTED,
    cut: bool = True,
    **options: Any,
) -> Seen:
    finish = "length" if cut else "stop"
    samples = tuple(
        Sample(text=text, token_logprobs=logprobs, finish_reason=finish)
        for text in texts
    )
    return Seen(reply=Reply(samples=samples, cost=cost), **options)


def failed(error: BaseException) -> list[Seen]:
    return [Seen(error=error)]


def good(**parts: Any) -> Observations:
    """Return what a model that behaves is seen to do, some parts as given."""
    wrote: dict[str, Any] = {
        "first": seen("one a"),
        "short": [seen("two b"), seen("ten c")],
        "cold": [seen("likely", logprobs=(-0.5,) * 6)] * 2,
        "batch": [
            seen("three", "four", "five", cost=replace(COUNTED, completion_tokens=18))
        ],
        "seeded": [seen("six"), seen("six"), seen("seven")],
    }
    return Observations(**(wrote | parts))


def repeating(text: str = "one two three", **parts: Any) -> Observations:
    """Return what a model is seen to do that decodes greedily, parts as given."""
    short = parts.get("short", [seen(text.split(maxsplit=1)[0])] * 2)
    again = [seen(*short[0].texts)]
    greedy: dict[str, Any] = {
        "first": seen(text),
        "short": short,
        "cold": again,
        "batch": again,
    }
    return Observations(**(greedy | parts))


def found(check: str, observations: Observations, **known: Any) -> Finding:
    findings = diagnose(Case(seen=observations, **known))
    assert [finding.check for finding in findings] == list(CHECKS)
    return findings[CHECKS.index(check)]


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


# --- replies that agree --------------------------------------------------------------

HOT: dict[str, Any] = {"cold": [seen("likely")]}
WHOLE: dict[str, Any] = {"short": [seen("one two three")] * 2}
BRIEF: dict[str, Any] = {"first": seen("x", cut=False), "short": [seen("x")] * 2}
OTHER_LIMIT: dict[str, Any] = {"short": [seen("ten four")] * 2}
NAMED: dict[str, Any] = {
    "first": seen("x", response_id="1"),
    "short": [seen("x", response_id="1"), seen("x", response_id=None)],
    "other": [seen("else", response_id="2")],
}
LONG = seen("one two three", cost=replace(COUNTED, completion_tokens=50))
SEEDED: dict[str, Any] = {"seeded": [seen("a"), seen("a"), seen("b")]}
LATE: dict[str, Any] = {"short": [seen("one"), Seen(error=TimeoutError())]}


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


# --- the other checks ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("observations", "known", "status", "message"),
    [
        (good(), {"rejected": frozenset({"temperature"})}, "rejected", "takes none"),
        (good(), {"abilities": Abilities(temperature=False)}, "missing", "none to set"),
        (repeating(), {}, "ignored", "the same words come at 0"),
        (repeating(cold=[]), {}, "ignored", "no reply differs"),
        (good(cold=failed(BAD_REQUEST)), {}, "unknown", "no replies came at 0"),
        (repeating(**WHOLE), {}, "unknown", "a cache answers"),
        (
            repeating(**WHOLE, batch=[seen("a", "b", "c")]),
            {},
            "works",
            "the replies to one request differ",
        ),
        (repeating(**HOT), {}, "works", "other words come at 0"),
        (
            good(cold=[seen("one b"), seen("one c")]),
            {"temperature": 0.7},
            "works",
            "begin alike at 0, not at 0.7",
        ),
        (
            good(cold=[seen("x", logprobs=(-0.1,)), seen("y", logprobs=(-0.2,))]),
            {},
            "works",
            "likelier words at 0 than at 1",
        ),
        (
            good(cold=[seen("x", logprobs=(-0.1,)), seen("y", logprobs=(-2.1,))]),
            {},
            "ignored",
            "differ at 0 as much as at 1",
        ),
        (
            good(cold=[seen("x", logprobs=None), seen("y", logprobs=None)]),
            {},
            "ignored",
            "differ at 0 as much as at 1",
        ),
    ],
)
def test_temperature(
    observations: Observations, known: dict[str, Any], status: str, message: str
) -> None:
    finding = found("temperature", observations, **known)
    assert finding.status == status
    assert message in finding.message
    assert finding.trusted


@pytest.mark.parametrize(
    ("parts", "status", "message"),
    [
        ({"batch": [seen("a")]}, "ignored", "asked for 3 replies, got 1"),
        ({"batch": [seen("a", "b")]}, "works", "got 2, and then for the rest"),
        ({"batch": failed(TimeoutError())}, "unknown", "no replies came"),
        (
            {"batch": failed(BAD_REQUEST), "fewer": [seen("a", "b")]},
            "works",
            "3 replies to one request are refused, 2 are given",
        ),
        (
            {"batch": failed(BAD_REQUEST), "fewer": failed(BAD_REQUEST)},
            "rejected",
            "are refused",
        ),
        ({"batch": failed(BAD_REQUEST), "fewer": [seen("a")]}, "rejected", "refused"),
        (
            {"batch": failed(BAD_REQUEST), "fewer": failed(TimeoutError())},
            "unknown",
            "no replies came",
        ),
    ],
)
def test_n(parts: dict[str, Any], status: str, message: str) -> None:
    finding = found("n", good(**parts))
    assert finding.status == status
    assert message in finding.message
    assert finding.trusted


def test_copies_in_one_request_are_not_trusted() -> None:
    finding = found("n", good(batch=[seen("a", "a", "a")]))
    assert (finding.status, finding.trusted) == ("broken", False)
    assert "preflight" in finding.fix
    # Where nothing varies at all, they are no fault of their own.
    assert found("n", repeating(batch=[seen("a", "a", "a")])).status == "works"
    assert found("n", good(), abilities=Abilities(batch=False)).status == "missing"


@pytest.mark.parametrize(
    ("observations", "status", "message"),
    [
        (good(short=[seen("a"), seen("b", garbled=True)]), "broken", "above 0"),
        (good(short=[seen("a"), MISALIGNED]), "broken", "not those of"),
        (good(short=[seen("a"), seen("b", logprobs=None)]), "broken", "only 5 of 6"),
        (
            good(
                first=seen("a", logprobs=None),
                short=[seen("b", logprobs=None)],
                batch=[seen("c", logprobs=None)],
            ),
            "missing",
            "left out without a word",
        ),
        (
            good(
                first=seen("a", logprobs=(0.0,)),
                short=[seen("b", logprobs=(0.0,))],
                batch=[],
            ),
            "broken",
            "all are 0",
        ),
        (good(cold=[]), "works", "-2.00 nats on average"),
        (
            good(cold=[seen("x", logprobs=(0.0, -0.0001))] * 2),
            "works",
            "after the temperature is applied",
        ),
    ],
)
def test_logprobs(observations: Observations, status: str, message: str) -> None:
    finding = found("logprobs", observations)
    assert finding.status == status
    assert message in finding.message


def test_logprobs_that_are_refused_or_never_asked_for() -> None:
    refused = found("logprobs", good(), rejected=frozenset({"logprobs"}))
    assert refused.status == "rejected"
    able = Abilities(logprobs=False)
    assert found("logprobs", good(), abilities=able).status == "missing"


@pytest.mark.parametrize(
    ("observations", "status", "message"),
    [
        (good(seeded=failed(BAD_REQUEST)), "rejected", "refuses one"),
        (good(seeded=failed(TimeoutError())), "unknown", "no replies came"),
        (good(seeded=[seen("a"), seen("a")]), "unknown", "no replies came"),
        (good(seeded=[seen("a"), seen("b"), seen("c")]), "ignored", "something else"),
        (good(seeded=[seen("a")] * 3), "unknown", "nothing varies"),
        (repeating(), "unknown", "nothing varies"),
        (
            repeating(**HOT, **SEEDED),
            "works",
            "without one, every request draws the same",
        ),
    ],
)
def test_seed(observations: Observations, status: str, message: str) -> None:
    finding = found("seed", observations)
    assert finding.status == status
    assert message in finding.message


def test_a_model_without_a_seed() -> None:
    assert found("seed", good(), abilities=Abilities(seed=False)).status == "missing"


@pytest.mark.parametrize(
    ("observations", "status", "message"),
    [
        (repeating(**NAMED), "broken", "by its name"),
        (repeating(**WHOLE), "broken", "the very same words"),
        (repeating(**OTHER_LIMIT), "broken", "another token limit does not"),
        (repeating(**BRIEF), "unknown", "it would look the same"),
        (repeating(**LATE), "unknown", "no request was answered twice"),
        (repeating(), "works", "none answers"),
        (good(short=[]), "unknown", "no request was answered twice"),
    ],
)
def test_cache(observations: Observations, status: str, message: str) -> None:
    finding = found("cache", observations)
    assert finding.status == status
    assert message in finding.message


def test_a_cache_of_langchain_is_gone_round() -> None:
    assert "LangChain's is on" in found("cache", good(), own_cache=True).message


@pytest.mark.parametrize(
    ("parts", "status"),
    [
        ({"first": seen("a", cut=False)}, "unknown"),
        ({"first": seen("a", cost=Cost(completion_tokens=13))}, "ignored"),
    ],
)
def test_token_limit(parts: dict[str, Any], status: str) -> None:
    assert found("max_tokens", good(**parts)).status == status


NOTHING = seen("a", cost=Cost(lower_bound=True))
FEW = Cost(calls=1, prompt_tokens=9, completion_tokens=11)


@pytest.mark.parametrize(
    ("parts", "status"),
    [
        ({"first": NOTHING, "short": [NOTHING] * 2}, "missing"),
        ({"batch": [seen("a", "b", cost=FEW)]}, "broken"),
        ({"batch": [seen("a", "b", cost=FEW, cut=False)]}, "works"),
        (
            {"batch": [seen("a", "b", cost=replace(COUNTED, lower_bound=True))]},
            "broken",
        ),
        ({"batch": failed(TimeoutError())}, "works"),
    ],
)
def test_usage(parts: dict[str, Any], status: str) -> None:
    assert found("usage", good(**parts)).status == status
