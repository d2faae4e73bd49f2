"""A local server that speaks as much of Langfuse's API as its client needs."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from langfuse import Langfuse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
)
from opentelemetry.sdk.trace import TracerProvider

from tests.support.collector import Collector

__all__ = ["LangfuseServer"]

_numbers = itertools.count()


class LangfuseServer(Collector):
    """Keeps the observations and the scores that a real client sends."""

    @contextmanager
    def client(self) -> Iterator[Langfuse]:
        """Give the real client, pointed here; at the end it has sent everything.

        Langfuse keeps one client for each key, and would set the process's global
        tracer provider.
        """
        self.key = f"pk-lf-{next(_numbers)}"
        client = Langfuse(
            public_key=self.key,
            secret_key="sk-lf-test",  # noqa: S106 - not a secret
            base_url=self.url,
            tracer_provider=TracerProvider(),
            timeout=60,
        )
        try:
            yield client
        finally:
            client.shutdown()

    @property
    def scores(self) -> list[dict[str, Any]]:
        """Every score, in the order of arrival."""
        return [
            score
            for body in self.bodies("/api/public/scores")
            for score in json.loads(body)
        ]

    @property
    def observations(self) -> dict[str, tuple[str, str]]:
        """From the id of an observation to its name and its trace."""
        return {
            span.span_id.hex(): (span.name, span.trace_id.hex())
            for body in self.bodies("/api/public/otel/v1/traces")
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        }
