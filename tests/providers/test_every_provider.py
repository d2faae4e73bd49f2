"""Every provider's own LangChain class, guarded, against a server of its protocol."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.globals import set_llm_cache

from snne_guard import SNNEGuard
from snne_guard.sampling.langchain_providers import PROVIDERS, SERVERS
from tests.providers.cases import CASES, Case, asked
from tests.providers.table import PAGE, TABLES, page_with_tables
from tests.support.chat_server import always, cycle, error, rejecting_n
from tests.support.guarding import Witness, ask, is_sample, record, split
from tests.support.provider_protocols import OPENAI
from tests.support.provider_server import ProviderServer

TEXTS = ["Paris", "Rome in Italy", "Oslo", "Bern", "Wien", "Riga", "Lima", "Kyiv"]


@asked()
def test_a_guarded_call_asks_bills_and_scores_as_its_row_says(
    case: Case, way: str
) -> None:
    witness = Witness()
    with case.server(split("Paris in France", TEXTS)) as server:
        model = case.chat(server)
        before = model.model_dump()
        found = ask(SNNEGuard(model, observers=[witness]), "Capital?", way)
        assert model.model_dump() == before
        billed, sent = server.billed, sorted(server.asked, key=is_sample)
    row = case.told
    assert [request.temperature for request in sent[:2]] == [0.3, 1.0]
    assert [request.n for request in sent] == ([1, 4] if row.n else [1] * 5)
    assert {request.logprobs for request in sent} == {row.supports_logprobs}
    assert found.text == "Paris in France"
    assert "logprobs" not in found.response_metadata
    last = witness.last
    assert last.method == ("wsnne" if row.supports_logprobs else "snne")
    assert set(last.reasons) == {"no_threshold"}
    assert sorted(sample.text for sample in last.samples) == sorted(TEXTS[:4])
    members = [last.answer, *last.samples]
    assert {member.model for member in members if member} == {case.model or server.root}
    assert {member.finish_reason for member in members if member} != {None}
    for member in members:
        assert member is not None
        words = len(member.text.split())
        logprobs = (-0.1,) * words if row.supports_logprobs else None
        assert member.token_logprobs == logprobs
    cost = last.cost
    assert (cost.calls, cost.attempts, cost.lower_bound) == (
        len(sent),
        len(sent),
        False,
    )
    assert cost.prompt_tokens == billed.prompt_tokens
    assert cost.completion_tokens == billed.completion_tokens


@pytest.mark.parametrize("status", [429, 503])
@asked()
def test_the_class_does_not_retry_for_samples(
    case: Case, way: str, status: int
) -> None:
    fault = error(status, "too much")
    with case.server(split("Paris", lambda _request: fault)) as server:
        guard = SNNEGuard(case.chat(server, **retries(case, 3)), n=3, max_attempts=1)
        found = record(ask(guard, "x", way))
        sent = [request for request in server.asked if is_sample(request)]
        assert len(sent) == (1 if case.told.n else 2)
        assert found["cost"]["attempts"] == len(server.requests)
    assert "samples_failed" in found["reasons"]


def retries(case: Case, number: int) -> dict[str, Any]:
    """Return the option with which users set the class's own retries."""
    return {} if case.package == "langchain_ollama" else {"max_retries": number}


@asked()
def test_neither_cache_nor_streaming_reaches_the_samples(case: Case, way: str) -> None:
    witness = Witness()
    set_llm_cache(InMemoryCache())
    try:
        with case.server(split("Paris in France", TEXTS)) as server:
            model = case.chat(server, **({"streaming": True} if case.streams else {}))
            guard = SNNEGuard(model, observers=[witness])
            for _ in range(2):
                found = ask(guard, "Capital?", way)
                assert found.text == "Paris in France"
                texts = [sample.text for sample in witness.last.samples]
                assert len(set(texts)) == len(texts) == 4
            samples = [request for request in server.asked if is_sample(request)]
            answers = [request for request in server.asked if not is_sample(request)]
    finally:
        set_llm_cache(None)
    assert len(answers) == 1
    assert len(samples) == (2 if case.told.n else 8)
    assert not any(request.stream for request in samples)


@asked(lambda case: case.acting)
def test_what_acts_at_the_provider_is_not_sampled(case: Case, way: str) -> None:
    with case.server(split("Paris", TEXTS)) as server:
        model = case.chat(server).bind(**case.acting)
        found = record(ask(SNNEGuard(model, threshold=0.4), "x", way))
        assert len(server.requests) == 1
    assert found["uncertainty"] is None
    assert "side_effects" in found["reasons"]


@asked(lambda case: case.told.n)
@pytest.mark.parametrize("how", ["ignored", "refused"])
def test_where_n_does_not_work_the_samples_come_one_by_one(
    case: Case, way: str, how: str
) -> None:
    def no_candidates(request: Any) -> Any:
        if request.n > 1:
            return error(400, "Multiple candidates is not enabled for this model")
        return always("Rome")(request)

    scripts: dict[str, Any] = {
        "ignored": cycle(["Rome"], choices=1),
        "refused": no_candidates if case.over else rejecting_n(always("Rome")),
    }
    with case.server(split("Paris", scripts[how])) as server:
        found = record(ask(SNNEGuard(case.chat(server)), "x", way))
        billed, sent = server.billed, [r for r in server.asked if is_sample(r)]
    assert found["n_used"] == 5
    assert max(r.n for r in sent) == 4
    # A connection that breaks is tried again, which is no more that was asked for.
    again = found["cost"]["attempts"] - found["cost"]["calls"]
    assert len(sent) - again <= 4
    assert found["cost"]["completion_tokens"] == billed.completion_tokens


@asked(lambda case: case.seeded)
def test_a_seed_gives_each_sample_its_own(case: Case, way: str) -> None:
    with case.server(split("Paris", TEXTS)) as server:
        model = case.chat(server, **case.seeded)
        for n in (2, 3):
            record(ask(SNNEGuard(model, n=n, max_attempts=1), "x", way))
        answers = {r.body["seed"] for r in server.asked if not is_sample(r)}
        seeds = [r.body["seed"] for r in server.asked if is_sample(r)]
    assert answers == {7}
    assert set(seeds) == ({8} if case.told.n else {8, 9})


@asked()
def test_a_token_limit_of_samples_reaches_them_alone(case: Case, way: str) -> None:
    with case.server(split("Paris", TEXTS)) as server:
        model = case.chat(server, **{case.limit: 500})
        ask(SNNEGuard(model, n=2, sample_max_tokens=9), "x", way)
        answer, sample = sorted(server.asked, key=is_sample)
    limits = [
        request.body.get("max_completion_tokens", request.body.get("max_tokens"))
        for request in (answer, sample)
    ]
    assert limits == [500, 9]


@asked(lambda case: case.told.temperature_range[1] == 1.0)
def test_a_temperature_that_is_too_high_is_moved_inside_and_told(
    case: Case, way: str
) -> None:
    with case.server(split("Paris", TEXTS)) as server:
        guard = SNNEGuard(case.chat(server), n=2, temperature=1.5)
        found = record(ask(guard, "x", way))
        assert sorted(r.temperature or 0.0 for r in server.asked) == [0.3, 1.0]
    assert "temperature_capped" in found["reasons"]


def test_supported_is_what_is_tested_here() -> None:
    local = {"Hugging Face, in this process", "Hugging Face, local text generation"}
    elsewhere = {"OpenAI, Responses API", "llama.cpp", *local}
    rows = {row.name for row in (*PROVIDERS, *SERVERS) if row.tested}
    assert rows - elsewhere == {case.row for case in CASES.values()}


def test_the_page_has_the_tables_of_the_code() -> None:
    page = PAGE.read_text("utf-8")
    assert page_with_tables(page) == page, "python -m tests.providers.table writes it"
    assert all(table in page for table in TABLES.values())


def test_a_server_has_no_further_address_unless_it_speaks_two_protocols() -> None:
    with pytest.raises(NotImplementedError):
        _ = ProviderServer(OPENAI, split("x", ["y"])).address
