"""Feedback on runs, from LangSmith's released client to a local server."""

from __future__ import annotations

import asyncio
import json
import pickle
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda
from langsmith import Client, traceable
from langsmith.run_helpers import tracing_context
from langsmith.utils import LangSmithConnectionError

from snne_guard import (
    Assessment,
    GuardedChatModel,
    OpenAIGuard,
    SNNEGuard,
    UncertainAnswerError,
)
from snne_guard_integrations.langsmith import LangSmithObserver
from tests.support.chat_server import ChatServer, Reply, ToolCall, chat_openai
from tests.support.examples import printed
from tests.support.guarding import (
    WAYS,
    WHOLE,
    ask,
    record,
    run_in_loop,
    split,
    until,
)
from tests.support.langsmith_server import PROJECT, LangSmithServer
from tests.support.openai_clients import client as openai_client
from tests.support.patience import PATIENT

QUESTION = "What is the capital of Atlantis?"
APART = ["Rome", "Lyon", "Bonn", "Oslo"]
ANSWERS = split("Poseidonia", APART)


def guarded(server: ChatServer, **options: Any) -> SNNEGuard:
    observer = LangSmithObserver(
        content=options.pop("content", False), client=options.pop("client", None)
    )
    settings = {"n": 3, "threshold": 0.4, "method": "snne", **options}
    return SNNEGuard(chat_openai(server), observers=[observer], **settings)


@contextmanager
def traced(smith: LangSmithServer, *, drain: bool = True) -> Iterator[Client]:
    """Trace to the server, and have everything sent at the end, or dropped."""
    client = smith.client()
    with tracing_context(enabled=True, client=client, project_name=PROJECT):
        yield client
    client.close(timeout=None if drain else 0)


# --- which run ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("way", "as_model"), [*((way, False) for way in WAYS), *((w, True) for w in WHOLE)]
)
def test_feedback_is_on_the_run_of_the_guard(way: str, *, as_model: bool) -> None:
    with LangSmithServer() as smith, ChatServer(ANSWERS) as server:
        guard = guarded(server)
        with traced(smith):
            message = ask(GuardedChatModel(guard) if as_model else guard, QUESTION, way)
        assert guard.observer_failures == 0
        (found,) = smith.feedback
        run = smith.runs[found["run_id"]]
        # It came in the batch: the client had been told whose trace it is.
        assert smith.bodies("/feedback") == []
    assert run["name"] == ("GuardedChatModel" if as_model else "SNNEGuard")
    assert (found["trace_id"], run["trace_id"]) == (run["id"], run["id"])
    assert (found["key"], found["score"]) == ("snne_guard.uncertainty", 1.0)
    assert found["value"] == "flag"
    assert found["comment"].startswith("reasons: none; 3 of 3 answers compared by snne")
    assert found["session_id"] == smith.project_id
    source = found["feedback_source"]["metadata"]
    assert source["assessment_id"] == record(message)["id"]
    assert source["audit"] == record(message)["audit"]
    assert UUID(found["id"]) == UUID(record(message)["id"])
    assert {each.headers["x-api-key"] for each in smith.requests} == {"lsv2_test"}


@pytest.mark.parametrize("way", WHOLE)
@pytest.mark.parametrize("as_model", [False, True])
def test_inside_a_chain_it_is_in_the_chain_s_trace(way: str, *, as_model: bool) -> None:
    prompt = ChatPromptTemplate.from_messages([("user", "{question}")])
    with LangSmithServer() as smith, ChatServer(ANSWERS) as server:
        guard = guarded(server)
        chain = prompt | (GuardedChatModel(guard) if as_model else guard)
        with traced(smith):
            if way == "invoke":
                chain.invoke({"question": QUESTION})
            else:
                run_in_loop(chain.ainvoke({"question": QUESTION}))
        (found,) = smith.feedback
        run = smith.runs[found["run_id"]]
        (root,) = (
            each for each in smith.runs.values() if not each.get("parent_run_id")
        )
    assert root["name"] == "RunnableSequence"
    assert run["parent_run_id"] == root["id"]
    assert found["trace_id"] == root["id"]


def test_a_streaming_chat_model_is_not_told_its_run_so_the_chain_s_gets_it() -> None:
    with LangSmithServer() as smith, ChatServer(ANSWERS) as server:
        model = GuardedChatModel(guarded(server))
        with traced(smith):
            list(model.stream(QUESTION))
            assert smith.feedback == []

            def step(question: str) -> str:
                return "".join(chunk.text for chunk in model.stream(question))

            RunnableLambda(step, name="step").invoke(QUESTION)
        (found,) = smith.feedback
        assert smith.runs[found["run_id"]]["name"] == "step"


def test_inside_a_traceable_function_without_langchain_it_is_on_the_function() -> None:
    with (
        LangSmithServer() as smith,
        ChatServer(ANSWERS) as server,
        openai_client(server) as client,
    ):
        guard = OpenAIGuard(client, model="m", n=3, observers=[LangSmithObserver()])

        @traceable(name="inner")
        def inner() -> Assessment:
            return guard.assess(QUESTION)

        @traceable(name="outer")
        def outer() -> Assessment:
            return inner()

        with traced(smith):
            assessment = outer()
        (found,) = smith.feedback
        by_name = {run["name"]: run for run in smith.runs.values()}
    assert assessment.run_id is None
    assert found["run_id"] == by_name["inner"]["id"]
    assert found["trace_id"] == by_name["outer"]["id"]
    assert (found["score"], found["value"]) == (1.0, None)


def test_what_is_not_traced_gets_no_feedback() -> None:
    class Watching(BaseCallbackHandler):
        """Gives the guard a run of which LangSmith knows nothing."""

    with LangSmithServer() as smith, ChatServer(ANSWERS) as server:
        guard = guarded(server, client=smith.client())
        guard.invoke(QUESTION, {"callbacks": [Watching()]})
        with tracing_context(enabled=False):
            guard.invoke(QUESTION)
        with tracing_context(enabled="local"):
            guard.invoke(QUESTION)
        with openai_client(server) as client:
            OpenAIGuard(client, model="m", n=3, observers=[LangSmithObserver()]).assess(
                QUESTION
            )
        assert guard.observer_failures == 0
        assert {each.path for each in smith.requests} <= {"/info"}


def test_many_at_once_each_on_its_own_run() -> None:
    async def asking(guard: SNNEGuard) -> list[str]:
        messages = await asyncio.gather(*(guard.ainvoke(QUESTION) for _ in range(20)))
        return [record(message)["id"] for message in messages]

    with LangSmithServer() as smith, ChatServer(ANSWERS) as server:
        with traced(smith):
            ids = run_in_loop(asking(guarded(server)))
        found = smith.feedback
        roots = [each for each in smith.runs.values() if not each.get("parent_run_id")]
        projects = [each for each in smith.requests if each.path == "/sessions"]
    assert {UUID(each["id"]) for each in found} == {UUID(each) for each in ids}
    assert {each["run_id"] for each in found} == {each["id"] for each in roots}
    assert len(found) == len(roots) == 20
    assert len(projects) == 1


# --- what it says ---------------------------------------------------------------------


def test_without_an_uncertainty_there_is_a_label_and_no_number() -> None:
    call = ToolCall(name="find", arguments={"what": "Atlantis"})
    with (
        LangSmithServer() as smith,
        ChatServer([Reply(texts=[""], tool_calls=[[call]])]) as server,
    ):
        with traced(smith):
            guarded(server).invoke(QUESTION)
        (found,) = smith.feedback
    assert (found["score"], found["value"]) == (None, "unscored")
    assert "tool_calls" in found["comment"]


def test_feedback_holds_texts_only_if_they_are_asked_for() -> None:
    with LangSmithServer() as smith, ChatServer(ANSWERS) as server:
        with traced(smith):
            for content in (False, True):
                guard = guarded(server, content=content, on_uncertain="raise")
                with pytest.raises(UncertainAnswerError):
                    guard.invoke(QUESTION)
        without, with_texts = smith.feedback
    assert without["extra"] is None
    said = json.dumps(without)
    assert [t for t in (QUESTION, "Poseidonia", *APART) if t in said] == []
    said = with_texts["extra"]
    assert (said["question"], said["answer"]) == (QUESTION, "Poseidonia")
    assert len(said["samples"]) == 2
    assert set(said["samples"]) <= set(APART)


# --- what LangSmith does not know yet -------------------------------------------------


@pytest.mark.filterwarnings("ignore:Creating feedback for a run without session_id")
def test_a_project_that_does_not_exist_yet_is_left_out_and_asked_for_again() -> None:
    with LangSmithServer(has_project=False) as smith, ChatServer(ANSWERS) as server:
        guard = guarded(server)
        with traced(smith):
            guard.invoke(QUESTION)
            guard.invoke(QUESTION)
        assert [each["session_id"] for each in smith.feedback] == [None, None]
        assert len([each for each in smith.requests if each.path == "/sessions"]) == 2
    assert guard.observer_failures == 0


def test_a_run_of_a_trace_that_is_gone_gets_its_feedback_all_the_same() -> None:
    with LangSmithServer() as smith, ChatServer(ANSWERS) as server:
        with traced(smith) as client:
            observer = LangSmithObserver(client=client)
            assessment = guarded(server).assess(QUESTION)
            run_id = "01a2000d-1e8a-7403-932b-9867690cb9b5"
            late = Assessment(id=assessment.id, answer=None, run_id=run_id)

            def report(_: str) -> None:
                with tracing_context(parent=False, enabled=True, project_name=PROJECT):
                    observer.on_assessment(late)

            RunnableLambda(report).invoke("x")
        (found,) = map(json.loads, smith.bodies("/feedback"))
    assert found["run_id"] == run_id
    assert "trace_id" not in found


# --- faults ---------------------------------------------------------------------------


@pytest.mark.parametrize("status", [401, 500])
def test_a_server_that_refuses_leaves_the_answer_alone(status: int) -> None:
    with LangSmithServer(status=status) as smith, ChatServer(ANSWERS) as server:
        guard = guarded(server)
        with traced(smith, drain=False):
            message = guard.invoke(QUESTION)
    assert message.text == "Poseidonia"
    assert record(message)["decision"] == "flag"
    assert guard.observer_failures >= 1


def test_a_server_that_is_down_leaves_the_answer_alone() -> None:
    with LangSmithServer() as smith:
        pass
    with ChatServer(ANSWERS) as server:
        guard = guarded(server)
        with traced(smith, drain=False):
            message = guard.invoke(QUESTION)
    assert message.text == "Poseidonia"
    assert guard.observer_failures >= 1


def test_the_error_of_a_server_that_is_down_is_the_client_s() -> None:
    with LangSmithServer() as smith:
        pass
    observer = LangSmithObserver(client=smith.client(auto_batch_tracing=False))
    run_id = "01a2000d-1e8a-7403-932b-9867690cb9b5"
    assessment = Assessment(id=UUID(int=1).hex, answer=None, run_id=run_id)
    with tracing_context(enabled=True), pytest.raises(LangSmithConnectionError):
        observer.on_assessment(assessment)


PROGRAM = """
    from langchain_core.language_models import FakeListChatModel
    from langsmith import Client, tracing_context
    from snne_guard import SNNEGuard
    from snne_guard_integrations.langsmith import LangSmithObserver

    model = FakeListChatModel(responses=["Atlantis"])
    guard = SNNEGuard(model, n=3, observers=[LangSmithObserver()])
    with tracing_context(client=Client(timeout_ms={timeout})):
        print(guard.invoke("?").text, flush=True)
"""


@pytest.mark.parametrize("answers", [True, False])
def test_a_process_that_traces_by_its_environment_ends(*, answers: bool) -> None:
    with LangSmithServer(answers=answers) as smith:
        program = textwrap.dedent(PROGRAM.format(timeout=60_000 if answers else 200))
        program = (PATIENT if answers else "") + program
        switches = {
            "LANGSMITH_TRACING": "true",
            "LANGSMITH_ENDPOINT": smith.url,
            "LANGSMITH_API_KEY": "lsv2_test",
            "LANGSMITH_PROJECT": PROJECT,
            # Without it the client alone keeps a process from ending for minutes.
            **({} if answers else {"LANGSMITH_USE_DAEMON": "true"}),
        }
        done = subprocess.run(  # noqa: S603 - this interpreter, the program above
            [sys.executable, "-c", program],
            env={"PYTHONPATH": ":".join(sys.path), **switches},
            capture_output=True,
            text=True,
            timeout=900,
            check=True,
        )
        assert done.stdout == "Atlantis\n"
        if answers:
            (found,) = smith.feedback
            assert found["run_id"] in smith.runs
        else:
            run_in_loop(until(lambda: smith.requests))


# --- the rest -------------------------------------------------------------------------


def test_it_travels_to_another_process() -> None:
    observer = LangSmithObserver(content=True)
    again = pickle.loads(pickle.dumps(observer))  # noqa: S301 - made in this line
    assert again._content


@pytest.mark.usefixtures("embedded")
def test_the_example_prints_the_feedback_on_the_guard_s_run() -> None:
    answer, feedback, value, comment = printed("integrations/with_langsmith")
    assert answer.startswith("answer: ")
    assert feedback.startswith("feedback on SNNEGuard: snne_guard.uncertainty = 0.")
    assert value in {"value: accept", "value: flag"}
    assert comment.startswith("comment: reasons: none; 5 of 5 answers compared")
