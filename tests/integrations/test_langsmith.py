"""Feedback on runs, from LangSmith's client to a stub of its server."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from email.parser import BytesParser
from typing import Any

import pytest
from langchain_core.prompts import ChatPromptTemplate
from langsmith import Client, traceable
from langsmith.run_helpers import tracing_context

from snne_guard import SNNEGuard
from snne_guard_integrations.callback import SNNECallbackHandler
from snne_guard_integrations.langsmith import LangSmithObserver
from tests.integrations.support import (
    ASSESSMENT,
    SECRETS,
    STREAMED,
    UNSCORED,
    WHOLE,
    Request,
    ScriptedModel,
    StubServer,
    ask,
    chained,
    guarded,
)

PROJECT_ID = "0b3ab1ce-2a7e-4b9f-8a5e-5f0f4f2f1a11"
PROJECT = {
    "id": PROJECT_ID,
    "name": "a-project",
    "tenant_id": "5f0f4f2f-2a7e-4b9f-8a5e-0b3ab1ce1a11",
    "start_time": "2026-11-21T00:00:00Z",
    "reference_dataset_id": None,
}
INFO = {
    "version": "0.13.0",
    "batch_ingest_config": {
        "use_multipart_endpoint": True,
        "size_limit": 100,
        "size_limit_bytes": 20_971_520,
        "scale_up_qsize_trigger": 1000,
        "scale_up_nthreads_limit": 16,
        "scale_down_nempty_trigger": 4,
    },
}


class LangSmithServer(StubServer):
    """Runs and feedback that the client has sent."""

    def __init__(self) -> None:
        super().__init__({"/info": INFO, "/sessions": [PROJECT]})

    @property
    def parts(self) -> dict[str, Any]:
        return {
            name: value
            for request in self.requests
            if request.path == "/runs/multipart"
            for name, value in _parts(request)
        }

    @property
    def runs(self) -> dict[str, dict[str, Any]]:
        """Runs by name."""
        return {
            value["name"]: value
            for name, value in self.parts.items()
            if name.startswith("post.") and name.count(".") == 1
        }

    @property
    def feedback(self) -> list[dict[str, Any]]:
        return [
            value for name, value in self.parts.items() if name.startswith("feedback.")
        ]


def _parts(request: Request) -> list[tuple[str, Any]]:
    head = f"Content-Type: {request.headers['content-type']}\r\n\r\n".encode()
    message = BytesParser().parsebytes(head + request.body)
    parts: list[tuple[str, Any]] = []
    for part in message.walk():
        if not part.is_multipart():
            name = str(part.get_param("name", header="content-disposition"))
            payload: Any = part.get_payload(decode=True)
            parts.append((name, json.loads(payload or b"null")))
    return parts


@contextmanager
def traced(server: LangSmithServer) -> Iterator[Client]:
    """Trace to the server; at the end everything has been sent."""
    client = Client(api_url=server.url, api_key="lsv2_test")
    with tracing_context(enabled=True, client=client, project_name="a-project"):
        yield client
    client.close()


@pytest.fixture
def server() -> Iterator[LangSmithServer]:
    with LangSmithServer() as server:
        yield server


@pytest.mark.parametrize("way", WHOLE)
def test_feedback_is_on_the_run_of_the_guarded_model(
    way: str, server: LangSmithServer
) -> None:
    with traced(server):
        ask(guarded(LangSmithObserver()), way)
    (feedback,) = server.feedback
    run = server.runs["SNNEGuard"]
    assert (feedback["run_id"], feedback["trace_id"]) == (run["id"], run["id"])
    assert feedback["key"] == "snne_guard.uncertainty"
    assert (feedback["score"], feedback["value"]) == (1.0, "flag")
    assert feedback["comment"].startswith(
        "reasons: none; 2 of 2 answers compared by snne"
    )
    assert feedback["session_id"] == PROJECT_ID
    source = feedback["feedback_source"]["metadata"]
    assert source["method"] == "snne"
    assert source["cost"]["calls"] == 2
    assert server.bodies("/feedback") == []  # it went with the batch of runs


@pytest.mark.parametrize("way", WHOLE)
def test_in_a_chain_it_belongs_to_the_chain_s_trace(
    way: str, server: LangSmithServer
) -> None:
    with traced(server):
        ask(chained(LangSmithObserver()), way)
    (feedback,) = server.feedback
    root, run = server.runs["RunnableSequence"], server.runs["SNNEGuard"]
    assert run["parent_run_id"] == root["id"]
    assert (feedback["run_id"], feedback["trace_id"]) == (run["id"], root["id"])


@pytest.mark.parametrize("way", STREAMED)
def test_a_stream_is_scored_on_the_run_around_it(
    way: str, server: LangSmithServer
) -> None:
    with traced(server):
        ask(guarded(LangSmithObserver()), way)
        assert server.feedback == []
        ask(chained(LangSmithObserver()), way)
    (feedback,) = server.feedback
    assert feedback["run_id"] == server.runs["RunnableSequence"]["id"]


def test_in_shadow_mode_it_is_on_the_run_that_was_watched(
    server: LangSmithServer,
) -> None:
    model = ScriptedModel(answer="zanzibar", samples=("ytterbium",))
    guard = SNNEGuard(model, n=2, method="snne", observers=[LangSmithObserver()])
    prompt = ChatPromptTemplate.from_messages([("user", "{question}")])
    with traced(server), SNNECallbackHandler(guard) as handler:
        ask(prompt | model, "invoke", {"callbacks": [handler]})
    (feedback,) = server.feedback
    root, run = server.runs["RunnableSequence"], server.runs["ScriptedModel"]
    assert (feedback["run_id"], feedback["trace_id"]) == (run["id"], root["id"])
    begun = [name for name in server.parts if re.fullmatch(r"post\.[^.]+", name)]
    assert len(begun) == 3  # chain, prompt and model, and no sample


@pytest.mark.parametrize("enabled", [False, "local"])
def test_a_call_that_is_not_traced_gets_no_feedback(
    enabled: Any, server: LangSmithServer
) -> None:
    client = Client(api_url=server.url, api_key="lsv2_test")
    observer = LangSmithObserver(client=client)
    with tracing_context(enabled=enabled):
        ask(guarded(observer), "invoke")
        observer.on_assessment(ASSESSMENT)
    client.close()
    assert server.feedback == []
    assert {each.path for each in server.requests} <= {"/info"}


def test_an_unscored_answer_has_a_value_and_no_score(server: LangSmithServer) -> None:
    @traceable(name="outer")
    def outer() -> None:
        LangSmithObserver().on_assessment(UNSCORED)

    with traced(server):
        outer()
    (feedback,) = server.feedback
    assert feedback["run_id"] == server.runs["outer"]["id"]
    assert (feedback["score"], feedback["value"]) == (None, "unscored")
    assert feedback["comment"].startswith(
        "reasons: tool_calls; 1 of 2 answers compared;"
    )


@pytest.mark.parametrize("content", [False, True])
def test_texts_are_sent_only_if_asked_for(
    content: bool, server: LangSmithServer
) -> None:
    with traced(server):
        ask(
            guarded(LangSmithObserver(content=content), on_uncertain="refuse"), "invoke"
        )
    sent = json.dumps(server.feedback)
    assert [secret in sent for secret in SECRETS] == [content] * 3
