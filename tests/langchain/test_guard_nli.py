"""A guard whose answers are compared by an NLI model or by an LLM as judge."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from snne_guard import SNNEGuard, score
from snne_guard.errors import SamplingError
from snne_guard.langchain import ChatGenerate
from snne_guard.similarity import NLI, EntailmentJudge
from tests.support.chat_server import ChatServer, Reply, always, chat_openai
from tests.support.guarding import WHOLE, ask, record, split
from tests.support.tiny_nli import Counted, save_model

SAMPLES = ["it is Paris", "Lyon", "it is Paris", "no, Rome"]
MEMBERS = ["Paris", *SAMPLES]
QUESTION = "what is the capital of France"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save_model(tmp_path_factory.mktemp("nli"))


def guard_of(server: ChatServer, similarity: Any, **options: Any) -> SNNEGuard:
    settings = {"method": "dse", "threshold": 0.3, "on_uncertain": "refuse", **options}
    return SNNEGuard(chat_openai(server), similarity=similarity, **settings)


@pytest.mark.parametrize("way", WHOLE)
@pytest.mark.parametrize("method", ["dse", "snne", "sum_eigv", "luq"])
def test_the_score_is_that_of_the_members(folder: str, way: str, method: str) -> None:
    with ChatServer(split("Paris", SAMPLES)) as server:
        found = record(ask(guard_of(server, NLI(folder), method=method), QUESTION, way))
    # Samples arrive in any order, on which none of these depends.
    alone = score(MEMBERS, question=QUESTION, method=method, similarity=NLI(folder))
    assert found["uncertainty"] == pytest.approx(alone.uncertainty, abs=1e-6)
    assert found["decision"] == ("refuse" if found["uncertainty"] > 0.3 else "accept")
    assert found["n_used"] == 5
    told = score(MEMBERS, question="why", method=method, similarity=NLI(folder))
    assert method == "dse" or told.value != alone.value


def test_by_its_name(folder: str) -> None:
    with ChatServer(split("Paris", SAMPLES)) as server:
        named = guard_of(server, f"nli:{folder}").assess(QUESTION)
    assert named.method == "dse"
    assert named.uncertainty is not None


async def test_the_event_loop_goes_on_while_the_model_works(folder: str) -> None:
    loop, working, go_on = (
        asyncio.get_running_loop(),
        asyncio.Event(),
        threading.Event(),
    )
    with Counted(folder) as counted, ChatServer(split("Paris", SAMPLES)) as server:

        def wait() -> None:
            loop.call_soon_threadsafe(working.set)
            assert go_on.wait(30), "the loop stood still"

        counted.before = wait
        guard = guard_of(server, f"nli:{folder}")  # by name, too, it is no quick one
        call = asyncio.create_task(guard.ainvoke(QUESTION))
        await working.wait()
        go_on.set()
        assert record(await call)["n_used"] == 5


@pytest.mark.parametrize("way", WHOLE)
def test_a_model_that_is_not_there_follows_on_error(tmp_path: Path, way: str) -> None:
    gone = NLI(tmp_path / "gone")
    with ChatServer(split("Paris", SAMPLES)) as server:
        refused = record(ask(guard_of(server, gone), QUESTION, way))
        passed = record(ask(guard_of(server, gone, on_error="accept"), QUESTION, way))
        with pytest.raises(SamplingError) as caught:
            ask(guard_of(server, gone, on_error="raise"), QUESTION, way)
    assert (refused["decision"], refused["reasons"]) == ("refuse", ["scoring_failed"])
    assert passed["decision"] != "refuse"
    assert passed["reasons"] == ["scoring_failed"]
    assert "scoring_failed" in caught.value.reasons


@pytest.mark.parametrize("way", WHOLE)
def test_rounds_ask_of_new_pairs_alone(folder: str, way: str) -> None:
    with Counted(folder) as counted, ChatServer(split("Paris", SAMPLES)) as server:
        guard = guard_of(server, NLI(folder), method="snne", rounds=(3, 5))
        found = record(ask(guard, QUESTION, way))
    assert found["n_used"] in {3, 5}
    distinct = 4 if found["n_used"] == 5 else 3
    assert counted.pairs <= distinct * (distinct - 1)


@pytest.mark.parametrize("way", WHOLE)
def test_an_llm_as_judge_beside_the_model(way: str) -> None:
    def verdict(request: Any) -> Reply:
        other = "Lyon" in request.prompt or "Rome" in request.prompt
        return Reply(texts=("contradiction" if other else "entailment",))

    with ChatServer(split("Paris", SAMPLES)) as server, ChatServer(verdict) as court:
        judge = EntailmentJudge(ChatGenerate(chat_openai(court)), name="court")
        found = record(ask(guard_of(server, judge), QUESTION, way))
        expected = score(["a", "a", "b", "a", "c"], method="dse", similarity="exact")
        assert found["uncertainty"] == pytest.approx(expected.uncertainty)
        assert judge.calls == len(court.requests) == 7
        assert all(QUESTION in request.prompt for request in court.requests)
        court.script = always("error", status=500)
        lost = EntailmentJudge(ChatGenerate(chat_openai(court)))
        found = record(ask(guard_of(server, lost), QUESTION, way))
    assert (found["decision"], found["reasons"]) == ("refuse", ["scoring_failed"])
