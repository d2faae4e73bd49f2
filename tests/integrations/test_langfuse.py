"""Scores on observations, from Langfuse's released client to a local server."""

from __future__ import annotations

import asyncio
import base64
import json
import pickle
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda
from langfuse import Langfuse
from langfuse.langchain import CallbackHandler

from snne_guard import (
    GuardedChatModel,
    OpenAIGuard,
    SNNEGuard,
    UncertainAnswerError,
)
from snne_guard_integrations.langfuse import LangfuseObserver
from tests.support.chat_server import ChatServer, Reply, ToolCall, chat_openai
from tests.support.examples import printed
from tests.support.guarding import WAYS, WHOLE, ask, record, run_in_loop, split
from tests.support.langfuse_server import LangfuseServer
from tests.support.openai_clients import client as openai_client
from tests.support.patience import PATIENT

QUESTION = "What is the capital of Atlantis?"
APART = ["Rome", "Lyon", "Bonn", "Oslo"]
ANSWERS = split("Poseidonia", APART)


def guarded(server: ChatServer, client: Langfuse, **options: Any) -> SNNEGuard:
    observer = LangfuseObserver(client=client, content=options.pop("content", False))
    settings = {"n": 3, "threshold": 0.4, "method": "snne", **options}
    return SNNEGuard(chat_openai(server), observers=[observer], **settings)


def places(fuse: LangfuseServer) -> list[tuple[str, str]]:
    """Return for each score its name, and that of the observation in its trace."""
    found: list[tuple[str, str]] = []
    for score in fuse.scores:
        name, trace_id = fuse.observations[score["observationId"]]
        assert trace_id == score["traceId"]
        found.append((score["name"], name))
    return found


def both(name: str) -> list[tuple[str, str]]:
    return [("snne_guard.uncertainty", name), ("snne_guard.decision", name)]


# --- which observation ----------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
def test_scores_are_on_the_guard_s_own_observation(way: str) -> None:
    with LangfuseServer() as fuse, ChatServer(ANSWERS) as server:
        with fuse.client() as client:
            guard = guarded(server, client)
            handler = CallbackHandler(public_key=fuse.key)
            message = ask(guard, QUESTION, way, {"callbacks": [handler]})
        number, decision = fuse.scores
        assert places(fuse) == both("SNNEGuard")
        paths = {request.path for request in fuse.requests}
        keys = {request.headers["authorization"] for request in fuse.requests}
    assert number["value"] == 1.0
    assert (number["dataType"], decision["dataType"]) == ("NUMERIC", "CATEGORICAL")
    assert decision["value"] == "flag"
    assert number["comment"].startswith(
        "reasons: none; 3 of 3 answers compared by snne"
    )
    found = record(message)
    assert number["id"] == f"{found['id']}-uncertainty"
    assert number["metadata"]["assessment_id"] == found["id"]
    assert number["metadata"]["audit"] == found["audit"]
    assert paths == {"/api/public/otel/v1/traces", "/api/public/scores"}
    basic = base64.b64encode(f"{fuse.key}:sk-lf-test".encode()).decode()
    assert keys == {f"Basic {basic}"}
    assert guard.observer_failures == 0


@pytest.mark.parametrize("way", ["invoke", "stream", "batch"])
def test_under_a_chat_model_they_are_on_the_chat_model_s(way: str) -> None:
    with LangfuseServer() as fuse, ChatServer(ANSWERS) as server:
        with fuse.client() as client:
            model = GuardedChatModel(guarded(server, client))
            handler = CallbackHandler(public_key=fuse.key)
            ask(model, QUESTION, way, {"callbacks": [handler]})
        assert places(fuse) == both("GuardedChatModel")


@pytest.mark.parametrize("way", WHOLE)
@pytest.mark.parametrize("name", ["SNNEGuard", "GuardedChatModel"])
def test_inside_a_chain_they_are_where_the_answer_was_made(way: str, name: str) -> None:
    prompt = ChatPromptTemplate.from_messages([("user", "{question}")])
    with LangfuseServer() as fuse, ChatServer(ANSWERS) as server:
        with fuse.client() as client:
            guard = guarded(server, client)
            model = guard if name == "SNNEGuard" else GuardedChatModel(guard)
            config: Any = {"callbacks": [CallbackHandler(public_key=fuse.key)]}
            chain = prompt | model
            if way == "invoke":
                chain.invoke({"question": QUESTION}, config)
            else:
                run_in_loop(chain.ainvoke({"question": QUESTION}, config))
        assert places(fuse) == both(name)


@pytest.mark.parametrize("way", ["ainvoke", "astream", "abatch"])
def test_an_async_chat_model_outside_of_a_chain_needs_an_inline_handler(
    way: str,
) -> None:
    with LangfuseServer() as fuse, ChatServer(ANSWERS) as server:
        with fuse.client() as client:
            model = GuardedChatModel(guarded(server, client))
            for inline in (False, True):
                handler = CallbackHandler(public_key=fuse.key)
                handler.run_inline = inline
                ask(model, QUESTION, way, {"callbacks": [handler]})
        assert places(fuse) == both("GuardedChatModel")


def test_a_streaming_chat_model_is_not_told_its_run_so_the_chain_s_gets_them() -> None:
    with LangfuseServer() as fuse, ChatServer(ANSWERS) as server:
        with fuse.client() as client:
            model = GuardedChatModel(guarded(server, client))

            async def step(question: str) -> str:
                return "".join([chunk.text async for chunk in model.astream(question)])

            chain = RunnableLambda(step, name="step")
            config: Any = {"callbacks": [CallbackHandler(public_key=fuse.key)]}
            run_in_loop(chain.ainvoke(QUESTION, config))
        assert places(fuse) == both("step")


@pytest.mark.parametrize("way", WHOLE)
def test_without_a_handler_they_are_on_the_current_observation(way: str) -> None:
    with LangfuseServer() as fuse, ChatServer(ANSWERS) as server:
        with fuse.client() as client:
            guard = guarded(server, client)
            with client.start_as_current_observation(name="request"):
                ask(guard, QUESTION, way)
        assert places(fuse) == both("request")


def test_the_openai_guard_scores_the_current_observation_too() -> None:
    with LangfuseServer() as fuse, ChatServer(ANSWERS) as server:
        with fuse.client() as client, openai_client(server) as asked:
            observer = LangfuseObserver(client=client)
            guard = OpenAIGuard(asked, model="m", n=3, observers=[observer])
            with client.start_as_current_observation(name="request"):
                guard.assess(QUESTION)
        # Nothing was decided: there is no threshold.
        assert places(fuse) == [("snne_guard.uncertainty", "request")]


def test_outside_of_any_observation_nothing_is_sent() -> None:
    with LangfuseServer() as fuse, ChatServer(ANSWERS) as server:
        with fuse.client() as client:
            guard = guarded(server, client)
            assert guard.invoke(QUESTION).text == "Poseidonia"
        assert fuse.requests == []
    assert guard.observer_failures == 0


def test_many_at_once_each_on_its_own() -> None:
    with LangfuseServer() as fuse, ChatServer(ANSWERS) as server:
        with fuse.client() as client:
            guard = guarded(server, client)
            handler = CallbackHandler(public_key=fuse.key)
            config: Any = {"callbacks": [handler]}

            def call(_: int) -> None:
                guard.invoke(QUESTION, config)

            async def calls() -> None:
                asked = (guard.ainvoke(QUESTION, config) for _ in range(20))
                await asyncio.gather(*asked)

            with ThreadPoolExecutor(20) as pool:
                list(pool.map(call, range(20)))
            run_in_loop(calls())
        assert sorted(places(fuse)) == sorted(both("SNNEGuard") * 40)
        assert len({score["observationId"] for score in fuse.scores}) == 40


# --- what they say --------------------------------------------------------------------


def test_without_an_uncertainty_there_is_a_label_and_no_number() -> None:
    call = ToolCall(name="find", arguments={"what": "Atlantis"})
    reply = Reply(texts=[""], tool_calls=[[call]])
    with LangfuseServer() as fuse, ChatServer([reply]) as server:
        with fuse.client() as client:
            guard = guarded(server, client)
            with client.start_as_current_observation(name="request"):
                guard.invoke(QUESTION)
        (decision,) = fuse.scores
    assert (decision["name"], decision["value"]) == ("snne_guard.decision", "unscored")
    assert "tool_calls" in decision["comment"]


def test_scores_hold_texts_only_if_they_are_asked_for() -> None:
    said: dict[bool, str] = {}
    for content in (False, True):
        with LangfuseServer() as fuse, ChatServer(ANSWERS) as server:
            with fuse.client() as client:
                guard = guarded(server, client, content=content, on_uncertain="raise")
                with (
                    client.start_as_current_observation(name="request"),
                    pytest.raises(UncertainAnswerError),
                ):
                    guard.invoke(QUESTION)
            said[content] = json.dumps(fuse.scores)
    found = {
        content: [text for text in (QUESTION, "Poseidonia", *APART) if text in scores]
        for content, scores in said.items()
    }
    assert found[False] == []
    assert found[True][:2] == [QUESTION, "Poseidonia"]
    assert len(found[True]) == 4  # two of them are samples


# --- faults ---------------------------------------------------------------------------


@pytest.mark.parametrize("status", [401, 500])
def test_a_server_that_refuses_leaves_the_answer_alone(status: int) -> None:
    with LangfuseServer(status=status) as fuse, ChatServer(ANSWERS) as server:
        with fuse.client() as client:
            guard = guarded(server, client)
            with client.start_as_current_observation(name="request"):
                message = guard.invoke(QUESTION)
        assert len(fuse.bodies("/api/public/scores")) == (1 if status == 401 else 3)
    assert message.text == "Poseidonia"
    assert guard.observer_failures == 0  # it failed in the client's own thread


def test_a_client_that_is_broken_is_counted() -> None:
    class Broken(Langfuse):
        def create_score(self, **_: Any) -> None:
            message = "broken"
            raise RuntimeError(message)

    with (
        LangfuseServer() as fuse,
        ChatServer(ANSWERS) as server,
        fuse.client() as client,
    ):
        guard = guarded(server, Broken(tracing_enabled=False))
        with client.start_as_current_observation(name="request"):
            message = guard.invoke(QUESTION)
    assert message.text == "Poseidonia"
    assert guard.observer_failures == 1


PROGRAM = """
    from langchain_core.language_models import FakeListChatModel
    from langfuse.langchain import CallbackHandler
    from snne_guard import SNNEGuard
    from snne_guard_integrations.langfuse import LangfuseObserver

    model = FakeListChatModel(responses=["Atlantis"])
    guard = SNNEGuard(model, n=3, observers=[LangfuseObserver()])
    print(guard.invoke("?", {"callbacks": [CallbackHandler()]}).text, flush=True)
"""


@pytest.mark.parametrize("answers", [True, False])
def test_a_process_that_knows_langfuse_from_its_environment_ends(
    *, answers: bool
) -> None:
    with LangfuseServer(answers=answers) as fuse:
        settings = {
            "LANGFUSE_BASE_URL": fuse.url,
            "LANGFUSE_PUBLIC_KEY": "pk-lf-test",
            "LANGFUSE_SECRET_KEY": "sk-lf-test",
            "LANGFUSE_TIMEOUT": "60" if answers else "1",
        }
        program = (PATIENT if answers else "") + textwrap.dedent(PROGRAM)
        done = subprocess.run(  # noqa: S603 - this interpreter, the program above
            [sys.executable, "-c", program],
            env={"PYTHONPATH": ":".join(sys.path), **settings},
            capture_output=True,
            text=True,
            timeout=900,
            check=True,
        )
        assert done.stdout == "Atlantis\n"
        if answers:
            assert places(fuse) == [("snne_guard.uncertainty", "SNNEGuard")]
        else:
            fuse.wait_for("/api/public/scores")


# --- the rest -------------------------------------------------------------------------


def test_it_travels_to_another_process() -> None:
    observer = LangfuseObserver(content=True)
    again = pickle.loads(pickle.dumps(observer))  # noqa: S301 - made in this line
    assert again._content


@pytest.mark.usefixtures("embedded")
def test_the_example_prints_the_scores_of_the_guard_s_observation() -> None:
    answer, number, decision = printed("integrations/with_langfuse")
    assert answer.startswith("answer: ")
    assert number.startswith("snne_guard.uncertainty on SNNEGuard: 0.")
    assert decision in {
        "snne_guard.decision on SNNEGuard: accept",
        "snne_guard.decision on SNNEGuard: flag",
    }
