"""What real servers of tracing tools show; ``make test-integrations`` installs them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import mlflow
import pytest
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from phoenix.client import Client

from snne_guard_integrations.mlflow import MLflowObserver
from snne_guard_integrations.phoenix import PhoenixObserver
from tests.integrations.support import ASSESSMENT
from tests.support.asgi import free_port

pytestmark = pytest.mark.slow


def test_mlflow_shows_the_feedback_on_its_trace(tmp_path: Path) -> None:
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
        (found,) = mlflow.search_traces(return_type="list")
        reset: Any = mlflow.tracing.reset  # it has no types
        reset()
    values = {each.name: each.feedback.value for each in found.info.assessments}
    assert values == {"snne_guard.uncertainty": 0.75, "snne_guard.decision": "flag"}


def test_phoenix_shows_the_annotation_on_its_span(tmp_path: Path) -> None:
    # Its server cannot share an environment with MLflow's, so it may be elsewhere.
    beside = shutil.which("phoenix", path=str(Path(sys.executable).parent))
    command = os.environ.get("SNNE_GUARD_PHOENIX") or beside
    if command is None:
        pytest.skip("needs Phoenix's server; SNNE_GUARD_PHOENIX names its program")
    url = f"http://127.0.0.1:{(port := free_port())}"
    env = {
        "PHOENIX_WORKING_DIR": str(tmp_path),
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": str(port),
        "PHOENIX_GRPC_PORT": str(free_port()),
        "PHOENIX_TELEMETRY_ENABLED": "false",
    }
    with process([command, "serve"], env=env, ready=f"{url}/healthz", folder=tmp_path):
        provider = TracerProvider()
        exporter = OTLPSpanExporter(f"{url}/v1/traces")
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        tracer = provider.get_tracer("application")
        with tracer.start_as_current_span("request") as span:
            client = Client(base_url=url)
            PhoenixObserver(client=client).on_assessment(ASSESSMENT)
        span_id = trace.format_span_id(span.get_span_context().span_id)
        found = read_annotations(client, span_id)
    assert found[0]["result"]["score"] == 0.75
    assert found[0]["result"]["label"] == "flag"


def read_annotations(client: Client, span_id: str) -> list[dict[str, Any]]:
    """Return a span's annotations; Phoenix looks for the span every ten seconds.

    Until it has found one, there is no project, and the client raises.
    """
    for _ in range(60):
        with suppress(httpx.HTTPStatusError):
            found = client.spans.get_span_annotations(
                span_ids=[span_id], project_identifier="default"
            )
            if found:
                return [dict(each) for each in found]
        time.sleep(1)
    pytest.fail("no annotation has arrived")


@contextmanager
def process(
    command: Sequence[str], *, env: Mapping[str, str], ready: str, folder: Path
) -> Iterator[None]:
    """Run a server until the block ends; enter it once its URL ``ready`` answers."""
    with (folder / "log.txt").open("wb") as log:
        server = subprocess.Popen(  # noqa: S603 - a server that the tests install
            command,
            env={**os.environ, **env},
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        deadline = time.monotonic() + 300
        while not _answers(ready):
            assert server.poll() is None, (folder / "log.txt").read_text()
            assert time.monotonic() < deadline, f"{ready} does not answer"
            time.sleep(0.5)
        yield
    finally:
        # Its session is all that it has started, and nothing else.
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(timeout=60)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5):  # noqa: S310 - this machine
            return True
    except OSError:
        return False
