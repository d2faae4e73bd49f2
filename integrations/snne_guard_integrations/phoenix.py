"""Phoenix: the uncertainty as an annotation on the span of the guarded call."""

from __future__ import annotations

import os
import sys
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from uuid import UUID

from snne_guard import Assessment
from snne_guard.errors import ConfigurationError
from snne_guard_integrations._extras import required
from snne_guard_integrations._report import SCORE, explained, label, texts

if TYPE_CHECKING:
    from opentelemetry.trace import Span, SpanContext
    from phoenix.client import Client

__all__ = ["PhoenixObserver"]


class PhoenixObserver:
    """Annotates the span of each guarded call in Phoenix with its uncertainty.

    The annotation ``snne_guard.uncertainty`` has ``u`` in [0, 1] as score, the decision
    as label (``"unscored"``, and no score, where there is no ``u``), and reasons and
    cost as explanation. It belongs to the span of the guard's LangChain run, where
    OpenInference instruments LangChain; else to the span that the call was made in;
    else to one of its own. Spans reach Phoenix by OpenTelemetry, as you have set it up;
    an annotation that is there first waits for its span for ten minutes.

    Args:
        base_url: Where Phoenix is; None: what ``PHOENIX_ENDPOINT`` and its kin say, or
            else ``http://localhost:6006``.
        api_key: Its key; None: ``PHOENIX_API_KEY``.
        content: Whether question, answer and samples are added to the metadata.

    Raises:
        MissingExtraError: If a package is not installed, or too old.

    Example:
        >>> from snne_guard import SNNEGuard
        >>> guard = SNNEGuard(model, observers=[PhoenixObserver()])  # doctest: +SKIP
    """

    def __init__(
        self,
        base_url: str | None = None,
        *,
        api_key: str | None = None,
        content: bool = False,
    ) -> None:
        required(
            "phoenix.client",
            extra="phoenix",
            at_least="3.5",
            distribution="arize-phoenix-client",
        )
        required(
            "opentelemetry.trace",
            extra="phoenix",
            at_least="1.45",
            distribution="opentelemetry-api",
        )
        self._base_url, self._api_key, self._content = base_url, api_key, content

    def on_assessment(self, assessment: Assessment) -> None:
        """Send what was found, for the span of the call that it belongs to.

        Raises:
            ConfigurationError: If there is no span, and no tracer that makes one.
            httpx.HTTPError: If Phoenix does not take it.
        """
        from opentelemetry import trace

        span = _span_of_run(assessment.run_id) or trace.get_current_span()
        context = span.get_span_context()
        if not context.is_valid:
            context = _own_span()
        # A span that the sampler left out never comes, and Phoenix would wait for it.
        if context.trace_flags.sampled:
            self._annotate(assessment, format(context.span_id, "016x"))

    def _annotate(self, assessment: Assessment, span_id: str) -> None:
        metadata: dict[str, Any] = assessment.to_metadata()
        metadata["run_id"] = assessment.run_id
        if self._content:
            metadata |= texts(assessment)
        client = _client(self._base_url, self._api_key, os.getpid())
        client.spans.add_span_annotation(
            span_id=span_id,
            annotation_name=SCORE,
            annotator_kind="CODE",
            score=assessment.uncertainty,
            label=label(assessment),
            explanation=explained(assessment),
            metadata=metadata,
            # Several guarded calls may share a span; each keeps its annotation.
            identifier=assessment.id,
        )


@lru_cache(maxsize=16)
def _client(base_url: str | None, api_key: str | None, _pid: int) -> Client:
    """Return the client of this process; a connection cannot be shared with a fork."""
    from phoenix.client import Client

    return Client(base_url=base_url, api_key=api_key)


def _span_of_run(run_id: str | None) -> Span | None:
    """Return the span that OpenInference has open for a LangChain run."""
    instrumentation = sys.modules.get("openinference.instrumentation.langchain")
    if run_id is None or instrumentation is None:
        return None
    instrumentor = instrumentation.LangChainInstrumentor()
    if not instrumentor.is_instrumented_by_opentelemetry:
        return None
    span: Span | None = instrumentor.get_span(UUID(run_id))
    return span


def _own_span() -> SpanContext:
    """Return the context of a short span that is there to carry the annotation."""
    from opentelemetry import trace

    with trace.get_tracer("snne_guard").start_as_current_span("snne_guard") as span:
        context = span.get_span_context()
    if not context.is_valid:
        msg = (
            "Phoenix annotates spans, and there is none: set up OpenTelemetry, for "
            "example by phoenix.otel.register(), before the guard is called"
        )
        raise ConfigurationError(msg)
    return context
