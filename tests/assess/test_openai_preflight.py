"""Preflight through the ``openai`` package, in threads and in tasks."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from snne_guard import (
    AsyncOpenAIGuard,
    ConfigurationError,
    GuardTimeoutError,
    OpenAIGuard,
)
from snne_guard.assess.preflight import Preflight
from tests.support.chat_samplers import Sampler
from tests.support.chat_server import (
    ChatServer,
    Reply,
    Script,
    error,
    in_turn,
    rejecting,
    response,
)
from tests.support.examining import GOOD, statuses
from tests.support.openai_clients import BOTH, async_client, client

pytestmark = pytest.mark.usefixtures("same_prompts")


def examined(server: ChatServer, way: str, **options: Any) -> Preflight:
    timeout = options.pop("timeout", 20.0)
    settings = {"model": "test-model", **options}
    if way == "threads":
        with client(server) as whom:
            return OpenAIGuard(whom, **settings).preflight(timeout=timeout)

    async def run() -> Preflight:
        async with async_client(server) as whom:
            guard = AsyncOpenAIGuard(whom, **settings)
            return await guard.preflight(timeout=timeout)

    return asyncio.run(run())


@pytest.mark.parametrize("way", BOTH)
@pytest.mark.parametrize(
    ("script", "ok", "differs"),
    [
        (Sampler(), True, {}),
        (
            Sampler(ignores=frozenset({"n", "temperature", "logprobs"})),
            False,
            {
                "variation": "ignored",
                "temperature": "ignored",
                "n": "ignored",
                "logprobs": "missing",
                "seed": "unknown",
            },
        ),
        (
            Sampler(cache="request"),
            False,
            {"variation": "ignored", "cache": "broken"},
        ),
        (
            rejecting("logprobs", rejecting("seed", Sampler())),
            True,
            {"logprobs": "rejected", "seed": "rejected"},
        ),
    ],
)
def test_servers_are_told_apart(
    script: Script, differs: dict[str, str], way: str, *, ok: bool
) -> None:
    with ChatServer(script) as server:
        report = examined(server, way)
        sent = len(server.requests)
    assert statuses(report) == GOOD | differs
    assert report.ok is ok
    assert report.cost.attempts == sent
    assert report.model == "test-model"


def test_what_is_found_is_known_to_later_calls() -> None:
    with ChatServer(rejecting("logprobs", Sampler())) as server, client(server) as whom:
        guard = OpenAIGuard(whom, model="test-model")
        assert guard.preflight().settings == {"method": "snne"}
        before = len(server.requests)
        assert guard.assess("x").method == "snne"
        assert len(server.requests) == before + 2  # neither of them was refused


def test_a_seed_of_the_users_own_is_what_a_fixed_seed_needs() -> None:
    with ChatServer(Sampler(fixed_seed=3)) as server:
        assert "seed=1" in examined(server, "tasks").finding("seed").fix
        report = examined(server, "tasks", options={"seed": 1})
    assert report.ok
    assert "yours is counted up" in report.finding("seed").message


def test_the_responses_api_has_neither_n_nor_seed() -> None:
    hot = in_turn([response(f"village {number}") for number in range(9)])
    cold = response("village")
    with ChatServer(lambda r: cold if r.temperature == 0 else hot(r)) as server:
        report = examined(server, "threads", api="responses")
    assert report.ok
    found = statuses(report)
    assert (found["n"], found["seed"]) == ("missing", "missing")


@pytest.mark.parametrize("way", BOTH)
def test_what_goes_wrong_is_told(way: str) -> None:
    with ChatServer([Reply(stall=True)]) as server:
        with pytest.raises(GuardTimeoutError, match="no reply within"):
            examined(server, way, timeout=0.2)
        server.script = in_turn([error(401, "bad key")])
        with pytest.raises(Exception, match="bad key"):
            examined(server, way)
        sent = len(server.requests)
        with pytest.raises(ConfigurationError, match="nothing to examine"):
            examined(server, way, options={"web_search_options": {}})
        assert len(server.requests) == sent
