"""Preflight on every provider's own LangChain class, against its protocol."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from snne_guard import SNNEGuard
from tests.providers.cases import CASES, Case
from tests.support.chat_samplers import Sampler
from tests.support.chat_server import Reply, Request, Script
from tests.support.examining import statuses

pytestmark = pytest.mark.usefixtures("same_prompts")

GOOGLE = "Google Gemini"
"""It names the limit, and the end that it brings, in words of its own."""


def script(case: Case, **options: Any) -> Script:
    sampler = Sampler(**options)

    def answer(request: Request) -> Reply:
        reply = sampler(request)
        ended = "MAX_TOKENS" if reply.finish_reasons == ["length"] else "STOP"
        return replace(reply, finish_reasons=[ended])

    return answer if case.row == GOOGLE else sampler


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_model_that_behaves_is_trusted(case: Case) -> None:
    with case.server(script(case)) as server:
        report = SNNEGuard(case.chat(server)).preflight()
        sent = len(server.asked)
    row = case.told
    assert report.ok
    found = statuses(report)
    limit = found.pop("max_tokens")
    assert limit == "works" or case.row == GOOGLE
    assert found == {
        "variation": "works",
        "temperature": "works",
        "n": "works" if row.supports_batch else "missing",
        "logprobs": "works" if row.supports_logprobs else "missing",
        "seed": "works" if row.seed and not row.seed_is_field else "missing",
        "cache": "works",
        "usage": "works",
    }
    assert report.cost.attempts == report.cost.calls == sent
    assert report.settings["method"] == ("wsnne" if row.supports_logprobs else "snne")


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_one_that_repeats_itself_is_not(case: Case) -> None:
    deaf = frozenset({"n", "temperature", "logprobs", "seed"})
    with case.server(script(case, ignores=deaf)) as server:
        report = SNNEGuard(case.chat(server)).preflight()
    found = statuses(report)
    assert not report.ok
    assert (found["variation"], found["temperature"]) == ("ignored", "ignored")
    assert found["n"] == ("ignored" if case.told.supports_batch else "missing")
    assert found["logprobs"] == "missing"
