"""MLflow that is down, slow or refuses: the answer does not know of it."""

from __future__ import annotations

import contextvars
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from snne_guard import Assessment, SNNEGuard
from snne_guard_integrations.mlflow import MLflowObserver
from tests.examples.doc_pages import ROOT
from tests.integrations.conftest import Needs
from tests.support.chat_server import ChatServer, always, chat_openai
from tests.support.patience import PATIENT
from tests.support.tracing_servers import TracingServer, faulty

PROGRAM = """
import os, sys
import mlflow
from snne_guard import SNNEGuard
from snne_guard_integrations.mlflow import MLflowObserver
from tests.support.chat_server import ChatServer, always, chat_openai

def ask(guard, name):
    with mlflow.start_span(name):
        print(name, guard.invoke("Who?").text, guard.observer_failures, flush=True)

with ChatServer(always("Paris")) as server:
    guard = SNNEGuard(
        chat_openai(server), n=2, method="snne", observers=[MLflowObserver()]
    )
    if sys.argv[1] == "fork":
        guard.assess("Who?", answer="Paris")
        child = os.fork()
        if child == 0:
            ask(guard, "child")
            mlflow.flush_trace_async_logging()
            os._exit(0)
        os.waitpid(child, 0)
    ask(guard, "parent")
    sys.stdout.flush()
"""


def run_program(url: str, what: str) -> subprocess.CompletedProcess[str]:
    """Run the program above, MLflow's own patience being short."""
    settings = {
        "MLFLOW_TRACKING_URI": url,
        "MLFLOW_EXPERIMENT_ID": "0",
        "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0",
        "MLFLOW_HTTP_REQUEST_TIMEOUT": "2",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    return subprocess.run(  # noqa: S603 - this interpreter, the program above
        [sys.executable, "-c", PATIENT + PROGRAM, what],
        env={**os.environ, **settings},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )


@contextmanager
def failing(status: int | None) -> Iterator[str]:
    """Yield the URL of a server that fails; 0: of one that has gone."""
    with faulty(status) as server:
        if status != 0:
            yield server.url
    if status == 0:
        yield server.url


@pytest.mark.parametrize("status", [0, None])
def test_the_answer_comes_and_the_process_ends(
    status: int | None, needs: Needs
) -> None:
    needs("mlflow")
    with failing(status) as url:
        done = run_program(url, "ask")
    assert done.returncode == 0, done.stderr
    said, answer, failures = done.stdout.split()
    assert (said, answer) == ("parent", "Paris")
    # The feedback goes out with its trace, and losing that is MLflow's to report; its
    # client asks a server that hangs for its version first, which is counted once.
    assert int(failures) <= (status is None)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows does not fork")
def test_a_forked_process_scores_its_own_trace(
    mlflow_at: TracingServer, mlflow_client: Any
) -> None:
    done = run_program(mlflow_at.url, "fork")
    assert done.stdout == "child Paris 0\nparent Paris 0\n", done.stderr
    client = mlflow_client.MlflowClient(mlflow_at.url)
    traces = client.search_traces(locations=["0"])
    found = {
        trace.data.spans[0].name: [each.name for each in trace.info.assessments]
        for trace in traces
    }
    assert found["child"] == found["parent"] == ["snne_guard.uncertainty"]


class Late:
    """Hands each assessment on when the trace that it belongs to has left."""

    def __init__(self, context: contextvars.Context) -> None:
        self.context, self.observer = context, MLflowObserver()

    def on_assessment(self, assessment: Assessment) -> None:
        self.context.run(self.observer.on_assessment, assessment)


@pytest.mark.parametrize("status", [0, 401, 500])
def test_a_late_score_that_is_refused_is_counted(
    status: int,
    mlflow_at: TracingServer,
    mlflow_client: Any,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    caplog.set_level(logging.WARNING, logger="snne_guard")
    mlflow_client.set_tracking_uri(mlflow_at.url)
    with mlflow_client.start_span("over"):
        late = Late(contextvars.copy_context())
    mlflow_client.flush_trace_async_logging()
    with ChatServer(always("Paris")) as chat, failing(status) as url:
        mlflow_client.set_tracking_uri(url)
        guard = SNNEGuard(chat_openai(chat), n=2, method="snne", observers=[late])
        answer = guard.invoke("Who?").text
    mlflow_client.set_tracking_uri(mlflow_at.url)
    assert (answer, guard.observer_failures) == ("Paris", 1)
    assert "observer Late raised" in caplog.text


def test_where_tracing_is_off_nothing_is_traced(
    mlflow_at: TracingServer, mlflow_client: Any
) -> None:
    mlflow_client.set_tracking_uri(mlflow_at.url)
    before = mlflow_client.get_last_active_trace_id()
    mlflow_client.tracing.disable()
    try:
        MLflowObserver().on_assessment(Assessment(id="1", answer=None, uncertainty=0.5))
    finally:
        mlflow_client.tracing.enable()
    assert mlflow_client.get_last_active_trace_id() == before
