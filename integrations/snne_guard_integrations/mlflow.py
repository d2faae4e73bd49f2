"""MLflow: the uncertainty of an answer as an assessment on its trace."""

from __future__ import annotations

import json
from typing import Any

from snne_guard import Assessment, MissingExtraError
from snne_guard_integrations._report import langchain_run, metadata, scores, summary

try:
    import mlflow
    from mlflow.entities import AssessmentSource, LiveSpan
    from mlflow.tracing.provider import safe_set_span_in_context
except ImportError as error:
    raise MissingExtraError(needed="mlflow-tracing", extra="mlflow") from error


class MLflowObserver:
    """Logs the uncertainty of each guarded call as feedback on its MLflow trace.

    The feedback ``snne_guard.uncertainty`` is ``u``; ``snne_guard.decision`` is the
    decision, if the guard has a threshold. Reasons and cost are their rationale.

    Feedback goes to the span of the guarded model where ``mlflow.langchain.autolog()``
    traces it, else to the active span, else to a trace of its own.

    Args:
        content: Whether to add the texts of the question, the answer (a withheld one
            too) and the samples to the metadata.
    """

    def __init__(self, *, content: bool = False) -> None:
        self._content = content

    def on_assessment(self, assessment: Assessment) -> None:
        """Log feedback on the span of the call."""
        span = _span_of_run(assessment) or mlflow.get_current_active_span()
        if span is None:
            with mlflow.start_span("snne_guard") as own:
                self._log(own, assessment)
            return
        # MLflow adds feedback to a live trace only if its span is the active one.
        with safe_set_span_in_context(span):
            self._log(span, assessment)

    def _log(self, span: LiveSpan, assessment: Assessment) -> None:
        shared: dict[str, Any] = {
            "trace_id": span.trace_id,
            "span_id": span.span_id,
            "source": AssessmentSource("CODE", "snne-guard"),
            "rationale": summary(assessment),
            "metadata": _strings(metadata(assessment, content=self._content)),
        }
        # An assessment in MLflow has a value and no label, so the decision is another.
        for name, value in scores(assessment).items():
            mlflow.log_feedback(name=name, value=value, **shared)


def _span_of_run(assessment: Assessment) -> LiveSpan | None:
    """Return the span that MLflow's tracer has open for the LangChain run.

    In async code that span is not the active one.
    """
    run_id, handlers = langchain_run(assessment)
    for handler in handlers:
        # MLflow has no public way from a run to its span.
        spans: dict[str, Any] = getattr(handler, "_run_span_mapping", {})
        if str(run_id) in spans:
            span: LiveSpan = spans[str(run_id)].span
            return span
    return None


def _strings(values: dict[str, Any]) -> dict[str, str]:
    """Return values as strings, the only type that MLflow keeps as metadata."""
    return {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in values.items()
        if value is not None
    }
