"""Phoenix: the uncertainty of an answer as an annotation on its span."""

from __future__ import annotations

import sys

from snne_guard import Assessment, MissingExtraError
from snne_guard_integrations._report import (
    UNCERTAINTY,
    langchain_run,
    metadata,
    summary,
)

try:
    from opentelemetry import trace
    from phoenix.client import Client
except ImportError as error:
    raise MissingExtraError(needed="arize-phoenix-client", extra="phoenix") from error


class PhoenixObserver:
    """Annotates the span of each guarded call in Phoenix with its uncertainty.

    The annotation ``snne_guard.uncertainty`` has ``u`` as its score, the decision as
    its label, and reasons and cost as its explanation.

    It goes to the span of the guarded model where OpenInference instruments LangChain,
    else to the current span; calls outside any span get none. One that arrives before
    its span waits there for ten minutes.

    Args:
        client: The client to send with. None: ``phoenix.client.Client()``, which reads
            ``PHOENIX_ENDPOINT`` and ``PHOENIX_API_KEY``.
        content: Whether to add the texts of the question, the answer (a withheld one
            too) and the samples to the metadata.
    """

    def __init__(self, *, client: Client | None = None, content: bool = False) -> None:
        self._client, self._content = client or Client(), content

    def on_assessment(self, assessment: Assessment) -> None:
        """Annotate the span of the call, if there is one."""
        span = _span_of_run(assessment) or trace.get_current_span()
        context = span.get_span_context()
        # Phoenix would wait in vain for a span that the sampler has dropped, or none.
        if not context.trace_flags.sampled:
            return
        self._client.spans.add_span_annotation(
            span_id=trace.format_span_id(context.span_id),
            annotation_name=UNCERTAINTY,
            annotator_kind="CODE",
            score=assessment.uncertainty,
            label=assessment.decision,
            explanation=summary(assessment),
            metadata=metadata(assessment, content=self._content),
            # Without it, the second call within a span would replace the first.
            identifier=assessment.id,
        )


def _span_of_run(assessment: Assessment) -> trace.Span | None:
    """Return the span that OpenInference has open for the LangChain run."""
    instrumentation = sys.modules.get("openinference.instrumentation.langchain")
    run_id, _ = langchain_run(assessment)
    if run_id is None or instrumentation is None:
        return None
    instrumentor = instrumentation.LangChainInstrumentor()
    if not instrumentor.is_instrumented_by_opentelemetry:
        return None
    span: trace.Span | None = instrumentor.get_span(run_id)
    return span
