"""Findings about n, log-probabilities, seeds, caches, limits: a case for each rule."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from snne_guard.sampling.collect import Reply
from snne_guard.sampling.probes import Abilities, Observations, Seen
from snne_guard.types import Cost, Sample
from tests.sampling.diagnosing import (
    BAD_REQUEST,
    BRIEF,
    COUNTED,
    HOT,
    LATE,
    NAMED,
    OTHER_LIMIT,
    SEEDED,
    WHOLE,
    failed,
    found,
    good,
    repeating,
    seen,
)

MISALIGNED = Seen(reply=Reply(samples=(Sample(text="b", misaligned=True),)))


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
        (  # some first letters are alike, by chance, and no word
            good(cold=[seen("stone", logprobs=None), seen("storm", logprobs=None)]),
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
    # Where replies are all alike, that is said of their variation.
    assert finding.trusted is ("differ at 0 as much" not in message)
    assert bool(finding.fix) is not finding.trusted


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
