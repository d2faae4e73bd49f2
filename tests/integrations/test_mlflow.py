"""Feedback on traces, from MLflow's client to a stub and to its real server."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import mlflow
import pytest
from mlflow.entities.trace_location import MlflowExperimentLocation
from mlflow.langchain.langchain_tracer import MlflowLangchainTracer

from snne_guard_integrations.mlflow import MLflowObserver
from tests.integrations.support import (
    ASSESSMENT,
    PLACES,
    SECRETS,
    SUMMARY,
    UNSCORED,
    StubServer,
    ask,
    chained,
    process,
)
from tests.support.asgi import free_port

reset: Any = mlflow.tracing.reset  # it has no types
TRACES = "/api/3.0/mlflow/traces"


class Server(StubServer):
    """What MLflow's client has sent."""

    def __init__(self) -> None:
        super().__init__({TRACES: lambda request: json.loads(request.body)})

    def assessments(self) -> dict[str, dict[str, Any]]:
        """Return the assessments of the one trace by name."""
        (body,) = self.bodies(TRACES)
        info = json.loads(body)["trace"]["trace_info"]
        return {each["assessment_name"]: each for each in info["assessments"]}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("MLFLOW_ENABLE_ASYNC_TRACE_LOGGING", "false")
    with Server() as server:
        mlflow.set_tracking_uri(server.url)
        mlflow.tracing.set_destination(MlflowExperimentLocation("0"))
        yield server
        reset()


def test_feedback_is_on_the_active_span(server: Server) -> None:
    with mlflow.start_span("outer"), mlflow.start_span("inner") as inner:
        MLflowObserver().on_assessment(ASSESSMENT)
    found = server.assessments()
    assert sorted(found) == ["snne_guard.decision", "snne_guard.uncertainty"]
    assert found["snne_guard.decision"]["feedback"] == {"value": "flag"}
    score = found["snne_guard.uncertainty"]
    assert score["feedback"] == {"value": 0.75}
    assert score["span_id"] == inner.span_id
    assert score["source"] == {"source_type": "CODE", "source_id": "snne-guard"}
    assert score["rationale"] == SUMMARY
    assert score["metadata"]["method"] == "snne"
    assert json.loads(score["metadata"]["cost"])["calls"] == 2


class Tracer(MlflowLangchainTracer):
    """Keeps the spans of runs by name."""

    def __init__(self) -> None:
        super().__init__()
        self.spans: dict[str, Any] = {}

    def on_chain_start(self, *args: Any, **kwargs: Any) -> None:
        super().on_chain_start(*args, **kwargs)
        self.spans.setdefault(
            "RunnableSequence", self._run_span_mapping[str(kwargs["run_id"])].span
        )

    def on_chat_model_start(self, *args: Any, **kwargs: Any) -> None:
        super().on_chat_model_start(*args, **kwargs)
        self.spans["SNNEGuard"] = self._run_span_mapping[str(kwargs["run_id"])].span


@pytest.mark.parametrize(("way", "where"), PLACES)
def test_in_a_chain_it_is_on_the_span_of_the_run(
    way: str, where: str, server: Server
) -> None:
    tracer = Tracer()
    ask(chained(MLflowObserver()), way, {"callbacks": [tracer]})
    found = server.assessments()["snne_guard.uncertainty"]
    assert found["span_id"] == tracer.spans[where].span_id


def test_an_unscored_answer_has_a_decision_alone(server: Server) -> None:
    MLflowObserver().on_assessment(UNSCORED)
    ((name, found),) = server.assessments().items()
    assert (name, found["feedback"]["value"]) == ("snne_guard.decision", "unscored")
    assert found["metadata"]["reasons"] == '["tool_calls"]'


@pytest.mark.parametrize("content", [False, True])
def test_texts_are_sent_only_if_asked_for(content: bool, server: Server) -> None:
    MLflowObserver(content=content).on_assessment(ASSESSMENT)
    server.assessments()
    sent = server.everything()
    assert [secret in sent for secret in SECRETS] == [content] * 3


@pytest.mark.slow
def test_a_real_server_shows_the_feedback_on_its_trace(tmp_path: Path) -> None:
    pytest.importorskip("mlflow.server", reason="needs MLflow's server")
    url = f"http://127.0.0.1:{(port := free_port())}"
    command = [
        *(sys.executable, "-m", "mlflow", "server"),
        *("--host", "127.0.0.1", "--port", str(port)),
        *("--workers", "1", "--backend-store-uri", f"sqlite:///{tmp_path}/mlflow.db"),
        *("--artifacts-destination", str(tmp_path / "artifacts")),
    ]
    env = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    with process(command, env=env, ready=f"{url}/health", folder=tmp_path):
        mlflow.set_tracking_uri(url)
        mlflow.set_experiment(f"test {uuid4()}")
        with mlflow.start_span("outer"):
            MLflowObserver().on_assessment(ASSESSMENT)
        mlflow.flush_trace_async_logging()
        (trace,) = mlflow.search_traces(return_type="list")
        reset()
    found = {each.name: each for each in trace.info.assessments}
    assert found["snne_guard.uncertainty"].feedback.value == 0.75
    assert found["snne_guard.decision"].feedback.value == "flag"
