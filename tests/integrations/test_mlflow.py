"""Uncertainty on the trace in MLflow, read back from a real server."""

from __future__ import annotations

import contextvars
import json
import pickle
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from langchain_core.callbacks import BaseCallbackHandler

from snne_guard import Assessment, GuardedChatModel, MissingExtraError, SNNEGuard
from snne_guard.types import Cost, Sample
from snne_guard_integrations.mlflow import MLflowObserver
from tests.integrations.conftest import Needs
from tests.support.chat_server import ChatServer, chat_openai
from tests.support.examples import run
from tests.support.guarding import split
from tests.support.tracing_servers import TracingServer

QUESTION = "Who founded the town of Ebnat?"
PRIVATE = ("zanzibar", "quetzal", "ytterbium")


class Read:
    """What one test finds in an experiment of its own."""

    def __init__(self, mlflow: Any) -> None:
        self._mlflow = mlflow
        mlflow.set_experiment(f"test {uuid4()}")

    def feedback(self) -> dict[str, dict[str, Any]]:
        """Return all feedback by name, each with the name of its span."""
        self._mlflow.flush_trace_async_logging()
        traces = self._mlflow.search_traces(return_type="list")
        return {
            found.name: {
                "span": [
                    span.name
                    for span in trace.data.spans
                    if span.span_id == found.span_id
                ],
                "value": found.feedback.value,
                "rationale": found.rationale,
                "metadata": found.metadata,
                "source": found.source.source_type,
            }
            for trace in traces
            for found in trace.info.assessments
        }


@pytest.fixture
def mlflow(mlflow_at: TracingServer, mlflow_client: Any) -> Iterator[Any]:
    mlflow_client.set_tracking_uri(mlflow_at.url)
    yield mlflow_client
    mlflow_client.flush_trace_async_logging()


@pytest.fixture
def read(mlflow: Any) -> Read:
    return Read(mlflow)


@pytest.fixture
def autolog(mlflow: Any, needs: Needs) -> Iterator[None]:
    needs("mlflow.langchain")
    mlflow.langchain.autolog(silent=True)
    yield
    mlflow.langchain.autolog(disable=True, silent=True)


@pytest.fixture
def chat() -> Iterator[ChatServer]:
    with ChatServer(split("Wendelin", ["Bonifaz", "Gallus"])) as server:
        yield server


def guarded(chat: ChatServer, **options: Any) -> SNNEGuard:
    options = {"n": 3, "method": "snne", "threshold": 0.2, **options}
    observers = options.pop("observers", [MLflowObserver()])
    return SNNEGuard(chat_openai(chat), observers=observers, **options)


def test_the_score_is_on_the_span_that_the_call_was_made_in(
    mlflow: Any, read: Read, chat: ChatServer
) -> None:
    guard = guarded(chat)
    with mlflow.start_span("outer"), mlflow.start_span("inner"):
        guard.invoke(QUESTION)
    found = read.feedback()
    assert sorted(found) == ["snne_guard.decision", "snne_guard.uncertainty"]
    score = found["snne_guard.uncertainty"]
    assert score["span"] == ["inner"]
    assert 0.2 < score["value"] <= 1
    assert score["source"] == "CODE"
    assert score["rationale"].startswith("reasons: none; 3 of 3 answers compared by")
    assert score["metadata"]["decision"] == "flag"
    assert json.loads(score["metadata"]["cost"])["calls"] == 2
    assert found["snne_guard.decision"]["value"] == "flag"
    assert guard.observer_failures == 0


def test_without_a_trace_it_gets_one_of_its_own(read: Read, chat: ChatServer) -> None:
    guarded(chat, threshold=None).invoke(QUESTION)
    found = read.feedback()
    assert list(found) == ["snne_guard.uncertainty"]  # nothing was decided
    assert found["snne_guard.uncertainty"]["span"] == ["snne_guard"]
    assert "no_threshold" in found["snne_guard.uncertainty"]["rationale"]


async def test_async_calls_in_a_trace_are_scored_there(
    mlflow: Any, read: Read, chat: ChatServer
) -> None:
    guard = guarded(chat)
    with mlflow.start_span("outer"):
        await guard.ainvoke(QUESTION)
    assert read.feedback()["snne_guard.uncertainty"]["span"] == ["outer"]


@pytest.mark.usefixtures("autolog")
@pytest.mark.parametrize("wrapped", [False, True])
def test_under_autolog_it_is_on_the_guards_own_span(
    wrapped: bool, read: Read, chat: ChatServer, caplog: pytest.LogCaptureFixture
) -> None:
    guard = guarded(chat)
    asked = GuardedChatModel(guard) if wrapped else guard
    asked.invoke(QUESTION)
    span = read.feedback()["snne_guard.uncertainty"]["span"]
    assert span == [type(asked).__name__]
    assert guard.observer_failures == 0
    assert "during autologging" not in caplog.text


@pytest.mark.usefixtures("autolog")
async def test_under_autolog_async_calls_find_their_span_by_their_run(
    read: Read, chat: ChatServer
) -> None:
    guard = guarded(chat)
    await guard.ainvoke(QUESTION, {"callbacks": [BaseCallbackHandler()]})
    found = read.feedback()
    assert found["snne_guard.uncertainty"]["span"] == ["SNNEGuard"]
    assert found["snne_guard.decision"]["span"] == ["SNNEGuard"]
    assert guard.observer_failures == 0


@pytest.mark.usefixtures("autolog")
async def test_an_async_chat_model_is_scored_in_the_trace_around_it(
    mlflow: Any, read: Read, chat: ChatServer
) -> None:
    with mlflow.start_span("outer"):
        await GuardedChatModel(guarded(chat)).ainvoke(QUESTION)
    assert read.feedback()["snne_guard.uncertainty"]["span"] == ["outer"]


def test_a_score_that_comes_after_its_trace_is_put_on_the_server(
    mlflow: Any, read: Read
) -> None:
    with mlflow.start_span("over"):
        context = contextvars.copy_context()
    mlflow.flush_trace_async_logging()
    found = Assessment(id="late", answer=None, uncertainty=0.5, decision="flag")
    context.run(MLflowObserver().on_assessment, found)
    assert read.feedback()["snne_guard.uncertainty"]["span"] == ["over"]


def test_a_score_waits_until_its_trace_has_reached_the_server(
    mlflow: Any, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    with mlflow.start_span("over"):
        context = contextvars.copy_context()
    mlflow.flush_trace_async_logging()
    put, refused = mlflow.log_feedback, iter([True, True])

    def not_yet(**feedback: Any) -> Any:
        trace_id = "tr-" + "0" * 32 if next(refused, False) else feedback["trace_id"]
        return put(**{**feedback, "trace_id": trace_id})

    monkeypatch.setattr(mlflow, "log_feedback", not_yet)
    found = Assessment(id="late", answer=None, uncertainty=0.5)
    context.run(MLflowObserver().on_assessment, found)
    assert next(refused, None) is None
    assert read.feedback()["snne_guard.uncertainty"]["span"] == ["over"]


def test_what_was_not_scored_says_why_and_has_no_number(read: Read) -> None:
    found = Assessment(
        id="1",
        answer=Sample(text="lookup()"),
        threshold=0.2,
        decision="accept",
        reasons=("tool_calls",),
        cost=Cost(calls=1, prompt_tokens=9),
    )
    MLflowObserver().on_assessment(found)
    (name, said), *others = read.feedback().items()
    assert not others
    assert (name, said["value"]) == ("snne_guard.decision", "unscored")
    assert said["rationale"].startswith("reasons: tool_calls; ")
    assert said["metadata"]["reasons"] == '["tool_calls"]'


@pytest.mark.parametrize("content", [False, True])
def test_texts_are_stored_only_where_they_are_asked_for(
    content: bool, mlflow_at: TracingServer, read: Read
) -> None:
    secret = [f"{word}{content}".lower() for word in PRIVATE]
    question, answer, sample = secret
    with ChatServer(split(answer, [sample])) as chat:
        observers = [MLflowObserver(content=content)]
        guarded(chat, n=2, observers=observers).invoke(question)
    metadata = read.feedback()["snne_guard.uncertainty"]["metadata"]
    stored = mlflow_at.stored()
    assert [word.encode() in stored for word in secret] == [content] * 3
    if content:
        assert metadata["question"] == question
        assert json.loads(metadata["samples"]) == [sample]
    else:
        assert not {"question", "answer", "samples"} & set(metadata)


def test_an_observer_travels_to_another_process(needs: Needs) -> None:
    needs("mlflow")
    again = pickle.loads(pickle.dumps(MLflowObserver(content=True)))  # noqa: S301 - ours
    assert isinstance(again, MLflowObserver)


@pytest.mark.parametrize("client", ["mlflow-skinny", "mlflow-tracing"])
def test_either_client_of_mlflow_may_be_missing(
    client: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from importlib.metadata import PackageNotFoundError

    from snne_guard_integrations import _extras
    from snne_guard_integrations import mlflow as adapter

    def version(name: str) -> str:
        if name != client:
            raise PackageNotFoundError
        return "3.1"

    monkeypatch.setattr(adapter, "version", version)
    monkeypatch.setattr(_extras, "version", version)
    with pytest.raises(MissingExtraError, match=f"{client} 3.17 or later .found 3.1"):
        MLflowObserver()


@pytest.mark.usefixtures("embedded")
def test_the_example_reads_back_what_it_logged(mlflow_at: TracingServer) -> None:
    done = run("integrations/with_mlflow", mlflow_at.url)
    assert done.returncode == 0, done.stderr
    print(done.stdout)  # noqa: T201 - what was read back, with pytest -s
    assert "Au" in done.stdout
    assert "span ask: snne_guard.uncertainty = 0." in done.stdout
    assert "span ask: snne_guard.decision = accept" in done.stdout
    assert "source CODE snne-guard" in done.stdout
