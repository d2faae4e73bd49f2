"""``preflight`` against a server that draws, and fails to in one way at a time."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from snne_guard import SNNEGuard
from snne_guard.scorers import METHODS
from tests.support.chat_samplers import Sampler
from tests.support.chat_server import (
    ChatServer,
    Reply,
    Request,
    Script,
    chat_openai,
    rejecting,
    rejecting_n,
)
from tests.support.examining import GOOD, WAYS, examined, statuses
from tests.support.guarding import record

pytestmark = pytest.mark.usefixtures("same_prompts")

COLD = {"variation": "ignored", "temperature": "ignored", "seed": "unknown"}
DRAWN = Sampler()  # one for all of its requests, which draw on


def misaligned(request: Request) -> Reply:
    return replace(DRAWN(request), logprobs=[[-1.0] * 3])


def positive(request: Request) -> Reply:
    reply = DRAWN(request)
    assert reply.texts is not None
    values = [[0.5] * len(str(text).split()) for text in reply.texts]
    return replace(reply, logprobs=values)


def capped(request: Request) -> Reply:
    return replace(DRAWN(request), choices=min(2, request.n))


def uncounted(request: Request) -> Reply:
    return replace(DRAWN(request), usage=None)


DEAF = frozenset({"n", "temperature", "logprobs"})
SERVERS: list[tuple[str, Script, bool, dict[str, str]]] = [
    ("honours everything", Sampler(), True, {}),
    (
        "ignores n, temperature and logprobs",
        Sampler(ignores=DEAF),
        False,
        {**COLD, "n": "ignored", "logprobs": "missing"},
    ),
    (
        "ignores the token limit too",
        Sampler(ignores=DEAF | {"max_tokens"}),
        False,
        {
            **COLD,
            "n": "ignored",
            "logprobs": "missing",
            "cache": "unknown",
            "max_tokens": "ignored",
        },
    ),
    (
        "has a cache by prompt",
        Sampler(cache="prompt"),
        False,
        {
            "variation": "ignored",
            "cache": "broken",
            "temperature": "unknown",
            "seed": "unknown",
            "n": "ignored",
        },
    ),
    (
        "has a cache by request",
        Sampler(cache="request"),
        False,
        {"variation": "ignored", "cache": "broken"},
    ),
    (
        "repeats whole responses",
        Sampler(cache="response"),
        False,
        {"variation": "ignored", "cache": "broken"},
    ),
    ("has a fixed seed", Sampler(fixed_seed=3), False, {"variation": "ignored"}),
    ("copies choices", Sampler(copies=True), False, {"n": "broken"}),
    ("rejects n", rejecting_n(Sampler()), True, {"n": "rejected"}),
    ("rejects n above 2", rejecting_n(Sampler(), max_n=2), True, {}),
    ("gives two at most", capped, True, {}),
    (
        "draws at a temperature of its own",
        Sampler(hot=True),
        False,
        {"temperature": "ignored"},
    ),
    (
        "rejects temperature",
        rejecting("temperature", Sampler()),
        True,
        {"temperature": "rejected"},
    ),
    (
        "rejects logprobs",
        rejecting("logprobs", Sampler()),
        True,
        {"logprobs": "rejected"},
    ),
    ("rejects seeds", rejecting("seed", Sampler()), True, {"seed": "rejected"}),
    (
        "ignores seeds",
        Sampler(ignores=frozenset({"seed"})),
        True,
        {"seed": "ignored"},
    ),
    ("has wrong logprobs", misaligned, True, {"logprobs": "broken"}),
    ("has positive logprobs", positive, True, {"logprobs": "broken"}),
    ("counts nothing", uncounted, True, {"usage": "missing"}),
]


@pytest.mark.parametrize(
    ("way", "script", "ok", "differs"),
    [(WAYS[place % 2], *server[1:]) for place, server in enumerate(SERVERS)],
    ids=[server[0] for server in SERVERS],
)
def test_every_server_gets_a_report_of_its_own(
    way: str, script: Script, differs: dict[str, str], *, ok: bool
) -> None:
    with ChatServer(script) as server:
        report = examined(SNNEGuard(chat_openai(server)), way)
        sent, billed = len(server.requests), server.billed
    assert statuses(report) == GOOD | differs
    assert report.ok is ok
    trusted = [finding.trusted for finding in report.findings]
    assert all(trusted) is ok
    works = report.finding("logprobs").status == "works"
    assert report.settings == {"method": "wsnne" if works else "snne"}
    assert report.cost.attempts == sent <= 12
    assert report.cost.calls == billed.requests
    if ok and script is not uncounted:
        assert report.cost.prompt_tokens == billed.prompt_tokens
        assert report.cost.completion_tokens == billed.completion_tokens
    assert report.model == "test-model"
    assert json.loads(json.dumps(report.to_dict()))["ok"] is ok


def test_what_is_found_is_known_to_later_calls() -> None:
    script = rejecting("logprobs", rejecting("temperature", rejecting_n(Sampler())))
    with ChatServer(script) as server:
        guard = SNNEGuard(chat_openai(server))
        report = guard.preflight()
        before = len(server.requests)
        found = record(guard.invoke("x"))
        later = server.requests[before:]
    assert statuses(report) == GOOD | {
        "n": "rejected",
        "temperature": "rejected",
        "logprobs": "rejected",
    }
    assert len(later) == 5  # the answer and four samples, none refused
    assert found["method"] == "snne"
    assert "logprobs_missing" not in found["reasons"]


@pytest.mark.parametrize(
    ("script", "sizes"),
    [
        (rejecting_n(Sampler(), max_n=2), [2, 2]),
        (capped, [2, 2]),
        (Sampler(copies=True), [1, 1, 1, 1]),
        (Sampler(ignores=frozenset({"n"})), [1, 1, 1, 1]),
        (Sampler(), [4]),
    ],
)
def test_later_calls_ask_for_as_many_as_come(script: Script, sizes: list[int]) -> None:
    with ChatServer(script) as server:
        guard = SNNEGuard(chat_openai(server), schedule="answer_first")
        guard.preflight()
        before = len(server.requests)
        guard.invoke("x")
        later = server.requests[before + 1 :]
    assert [request.n for request in later] == sizes


def test_copies_are_trusted_once_the_guard_asks_for_each_by_itself() -> None:
    with ChatServer(Sampler(copies=True)) as server:
        guard = SNNEGuard(chat_openai(server))
        assert not guard.preflight().ok
        report = guard.preflight()
    assert report.ok
    assert report.finding("n").status == "missing"


def test_logprobs_that_are_wrong_are_not_used() -> None:
    with ChatServer(misaligned) as server:
        guard = SNNEGuard(chat_openai(server))
        guard.preflight()
        assert record(guard.invoke("x"))["method"] == "snne"


def test_a_seed_of_the_users_own_is_what_a_fixed_seed_needs() -> None:
    with ChatServer(Sampler(fixed_seed=3)) as server:
        report = SNNEGuard(chat_openai(server)).preflight()
        assert "seed=1" in report.finding("seed").fix
        report = SNNEGuard(chat_openai(server, seed=1)).preflight()
    assert report.ok
    assert "yours is counted up" in report.finding("seed").message
    assert statuses(report) == GOOD


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        ({"method": "snne"}, {"method": "snne"}),
        ({"method": "wsnne"}, {"method": "wsnne"}),
        ({"temperature": 0.0}, {"temperature": 1.0, "method": "wsnne"}),
        ({"temperature": 0.7}, {"method": "wsnne"}),
    ],
)
def test_settings_keep_what_the_user_chose(
    options: dict[str, Any], settings: dict[str, Any]
) -> None:
    with ChatServer(Sampler()) as server:
        report = SNNEGuard(chat_openai(server), **options).preflight()
        asked = [request.logprobs for request in server.requests]
    assert report.settings == settings
    assert all(asked) is (options.get("method") != "snne")
    assert report.ok is (options.get("temperature") != 0.0)


def test_a_method_of_the_users_own_is_left_to_the_user() -> None:
    with ChatServer(Sampler()) as server:
        guard = SNNEGuard(chat_openai(server), method=METHODS["wsnne"])
        assert guard.preflight().settings == {}


@pytest.mark.parametrize("way", WAYS)
def test_the_samples_own_limits_hold(way: str) -> None:
    with ChatServer(Sampler()) as server:
        guard = SNNEGuard(
            chat_openai(server, max_tokens=999), sample_max_tokens=4, max_concurrency=1
        )
        assert examined(guard, way).ok
        limits = {r.body["max_completion_tokens"] for r in server.requests}
        assert (limits, server.peak) == ({4, 2}, 1)
