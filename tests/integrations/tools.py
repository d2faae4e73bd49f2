"""Tracing tools, each with a stub of its server, and what observers told them."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from email.parser import BytesParser
from functools import partial
from typing import Any

import mlflow
import pytest
from langfuse import Langfuse
from langfuse.langchain import CallbackHandler
from langsmith import Client, trace
from langsmith.run_helpers import tracing_context
from mlflow.entities.trace_location import MlflowExperimentLocation
from mlflow.langchain.langchain_tracer import MlflowLangchainTracer
from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from phoenix.client import Client as PhoenixClient

from snne_guard_integrations.langfuse import LangfuseObserver
from snne_guard_integrations.langsmith import LangSmithObserver
from snne_guard_integrations.mlflow import MLflowObserver
from snne_guard_integrations.phoenix import PhoenixObserver
from tests.integrations.support import Request, StubServer

UNCERTAINTY, DECISION = "snne_guard.uncertainty", "snne_guard.decision"


@dataclass(frozen=True, kw_only=True)
class Report:
    """What a tool was told of one answer; ``where`` is the name of its span or run."""

    where: str
    uncertainty: float | None
    decision: str | None
    why: str
    metadata: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A tracing tool.

    Attributes:
        observer: Makes an observer that reports to the tool.
        span: Opens a span named "request".
        langchain: Traces LangChain; gives the configuration for its calls.
        reports: What the tool was told in blocks of these two that have ended.
        server: The stub of its server.
    """

    observer: Callable[..., Any]
    span: Callable[[], AbstractContextManager[Any]]
    langchain: Callable[[], AbstractContextManager[Any]]
    reports: Callable[[], list[Report]]
    server: StubServer


def _kept_spans() -> tuple[TracerProvider, Callable[[], dict[str, str]]]:
    """Return a provider, and what gives the names of its spans by their ids."""
    provider, spans = TracerProvider(), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(spans))

    def names() -> dict[str, str]:
        return {
            format(context.span_id, "016x"): span.name
            for span in spans.get_finished_spans()
            if (context := span.get_span_context())
        }

    return provider, names


def _of_pairs(told: Iterable[tuple[str, str, Any, str, Any]]) -> list[Report]:
    """Return the reports of a tool that is told number and decision apart.

    Each is where it is, its name, its value, why, and the metadata.
    """
    found: dict[str, dict[str, Any]] = {}
    for where, name, value, why, metadata in told:
        found.setdefault(where, {"why": why, "metadata": metadata})[name] = value
    return [
        Report(
            where=where,
            uncertainty=each.get(UNCERTAINTY),
            decision=each[DECISION],
            why=each["why"],
            metadata=each["metadata"],
        )
        for where, each in found.items()
    ]


# -- Langfuse --------------------------------------------------------------------------

_numbers = itertools.count()


@contextmanager
def langfuse() -> Iterator[Tool]:
    """Two scores for an answer: the number, and the decision."""
    key = f"pk-lf-{next(_numbers)}"  # Langfuse keeps one client a key
    provider, names = _kept_spans()
    with StubServer() as server:
        client = Langfuse(
            public_key=key,
            secret_key="sk-lf-test",  # noqa: S106 - a made-up key
            base_url=server.url,
            tracer_provider=provider,
        )

        def reports() -> list[Report]:
            client.flush()
            bodies = map(json.loads, server.bodies("/api/public/scores"))
            scores = [each for body in bodies for each in body]
            for each in scores:
                stem = each["name"].removeprefix("snne_guard.")
                assert each["id"] == f"{each['metadata']['id']}-{stem}"
                kinds = {UNCERTAINTY: "NUMERIC", DECISION: "CATEGORICAL"}
                assert each["dataType"] == kinds[each["name"]]
            return _of_pairs(
                (
                    names()[each["observationId"]],
                    each["name"],
                    each["value"],
                    each["comment"],
                    each["metadata"],
                )
                for each in scores
            )

        yield Tool(
            observer=partial(LangfuseObserver, client=client),
            span=lambda: client.start_as_current_observation(name="request"),
            langchain=lambda: nullcontext(
                {"callbacks": [CallbackHandler(public_key=key)]}
            ),
            reports=reports,
            server=server,
        )
        client.shutdown()


# -- LangSmith -------------------------------------------------------------------------

_PROJECT = {
    "id": "0b3ab1ce-2a7e-4b9f-8a5e-5f0f4f2f1a11",
    "name": "a-project",
    "tenant_id": "5f0f4f2f-2a7e-4b9f-8a5e-0b3ab1ce1a11",
    "start_time": "2026-11-21T00:00:00Z",
    "reference_dataset_id": None,
}
_INFO = {
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


@contextmanager
def langsmith() -> Iterator[Tool]:
    """One feedback for an answer, which travels with the runs."""
    with StubServer({"/info": _INFO, "/sessions": [_PROJECT]}) as server:

        @contextmanager
        def traced() -> Iterator[None]:
            client = Client(api_url=server.url, api_key="lsv2_test")
            with tracing_context(enabled=True, client=client, project_name="a-project"):
                yield
            client.close()

        @contextmanager
        def span() -> Iterator[None]:
            with traced(), trace("request"):
                yield

        def reports() -> list[Report]:
            assert server.bodies("/feedback") == []
            sent = [each for each in server.requests if each.path == "/runs/multipart"]
            parts = [part for request in sent for part in _parts_of(request)]
            begun = [each for name, each in parts if re.fullmatch(r"post\.[^.]+", name)]
            runs = {run["id"]: run for run in begun}
            found = [each for name, each in parts if name.startswith("feedback.")]
            for each in found:
                assert each["key"] == UNCERTAINTY
                assert each["trace_id"] == runs[each["run_id"]]["trace_id"]
                assert each["session_id"] == _PROJECT["id"]
            return [
                Report(
                    where=runs[each["run_id"]]["name"],
                    uncertainty=each["score"],
                    decision=each["value"],
                    why=each["comment"],
                    metadata=each["feedback_source"]["metadata"],
                )
                for each in found
            ]

        yield Tool(
            observer=LangSmithObserver,
            span=span,
            langchain=traced,
            reports=reports,
            server=server,
        )


def _parts_of(request: Request) -> Iterator[tuple[str, Any]]:
    head = f"Content-Type: {request.headers['content-type']}\r\n\r\n".encode()
    for part in BytesParser().parsebytes(head + request.body).walk():
        if not part.is_multipart():
            payload: Any = part.get_payload(decode=True)
            name = part.get_param("name", header="content-disposition")
            yield str(name), json.loads(payload or b"null")


# -- MLflow ----------------------------------------------------------------------------

_TRACES = "/api/3.0/mlflow/traces"


@contextmanager
def mlflow_() -> Iterator[Tool]:
    """Two assessments for an answer: the number, and the decision."""
    replies = {_TRACES: lambda request: json.loads(request.body)}
    names: dict[str, str] = {}

    def note(span: Any) -> None:
        names[span.span_id] = span.name

    with StubServer(replies) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_ENABLE_ASYNC_TRACE_LOGGING", "false")
        mlflow.set_tracking_uri(server.url)
        mlflow.tracing.set_destination(MlflowExperimentLocation("0"))
        mlflow.tracing.configure(span_processors=[note])

        def reports() -> list[Report]:
            bodies = map(json.loads, server.bodies(_TRACES))
            traces = [body["trace"]["trace_info"] for body in bodies]
            found = [each for trace in traces for each in trace["assessments"]]
            for each in found:
                assert set(each["source"].values()) == {"CODE", "snne-guard"}
            return _of_pairs(
                (
                    names[each["span_id"]],
                    each["assessment_name"],
                    each["feedback"]["value"],
                    each["rationale"],
                    each["metadata"],
                )
                for each in found
            )

        yield Tool(
            observer=MLflowObserver,
            span=lambda: mlflow.start_span("request"),
            langchain=lambda: nullcontext({"callbacks": [MlflowLangchainTracer()]}),
            reports=reports,
            server=server,
        )
        mlflow.tracing.configure(span_processors=[])
        reset: Any = mlflow.tracing.reset  # it has no types
        reset()


# -- Phoenix ---------------------------------------------------------------------------

_ANNOTATIONS = "/v1/span_annotations"


@contextmanager
def phoenix() -> Iterator[Tool]:
    """One annotation for an answer."""
    provider, names = _kept_spans()
    with StubServer({_ANNOTATIONS: {"data": []}}) as server:

        @contextmanager
        def langchain() -> Iterator[None]:
            LangChainInstrumentor().instrument(tracer_provider=provider)
            try:
                yield
            finally:
                LangChainInstrumentor().uninstrument()

        def reports() -> list[Report]:
            bodies = map(json.loads, server.bodies(_ANNOTATIONS))
            found = [each for body in bodies for each in body["data"]]
            for each in found:
                assert (each["name"], each["annotator_kind"]) == (UNCERTAINTY, "CODE")
                assert each["identifier"] == each["metadata"]["id"]
            return [
                Report(
                    where=names()[each["span_id"]],
                    uncertainty=each["result"].get("score"),
                    decision=each["result"]["label"],
                    why=each["result"]["explanation"],
                    metadata=each["metadata"],
                )
                for each in found
            ]

        tracer = provider.get_tracer("application")
        yield Tool(
            observer=partial(
                PhoenixObserver, client=PhoenixClient(base_url=server.url)
            ),
            span=lambda: tracer.start_as_current_span("request"),
            langchain=langchain,
            reports=reports,
            server=server,
        )


TOOLS = {
    "langfuse": langfuse,
    "langsmith": langsmith,
    "mlflow": mlflow_,
    "phoenix": phoenix,
}
