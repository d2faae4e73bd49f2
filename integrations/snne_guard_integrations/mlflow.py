"""MLflow: the uncertainty as an assessment on the trace of the guarded call."""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from langchain_core.runnables import ensure_config
from tenacity import (
    Retrying,
    retry_if_exception,
    stop_after_delay,
    wait_exponential_jitter,
)

from snne_guard import Assessment
from snne_guard_integrations._extras import required
from snne_guard_integrations._report import SCORE, explained, label, texts

if TYPE_CHECKING:
    from mlflow.entities import LiveSpan

__all__ = ["MLflowObserver"]

DECISION = "snne_guard.decision"
"""What the decision is called: a feedback of its own, since MLflow's have no label."""

_EXPORT_SECONDS = 10.0
"""How long a trace that has ended may take to reach the server."""


class MLflowObserver:
    """Logs the uncertainty of each guarded call as feedback on its MLflow trace.

    The feedback ``snne_guard.uncertainty`` is ``u`` in [0, 1], and
    ``snne_guard.decision`` the decision, or ``"unscored"`` where there is no ``u``.
    Their rationale gives reasons and cost, their metadata what a delivered message
    carries. They belong to the span of the guard's LangChain run, under
    ``mlflow.langchain.autolog()``; else to the span that the call was made in, under
    ``@mlflow.trace`` and the like; else to a trace of their own. Where traces go is
    MLflow's own setting.

    Args:
        content: Whether question, answer and samples are added to the metadata.

    Raises:
        MissingExtraError: If MLflow is not installed, or too old.

    Example:
        >>> from snne_guard import SNNEGuard
        >>> guard = SNNEGuard(model, observers=[MLflowObserver()])  # doctest: +SKIP
    """

    def __init__(self, *, content: bool = False) -> None:
        required("mlflow", extra="mlflow", at_least="3.17", distribution=_client())
        self._content = content

    def on_assessment(self, assessment: Assessment) -> None:
        """Log what was found, where the call that it belongs to is traced.

        Raises:
            MlflowException: If the trace has ended and its server does not take more.
        """
        import mlflow
        from mlflow.tracing.provider import safe_set_span_in_context

        feedback = self._feedback(assessment)
        if (span := _span_of_run(assessment.run_id)) is not None:
            # Async code has no span in its context, so it is put there.
            with safe_set_span_in_context(span):
                _log(span.trace_id, span.span_id, feedback)
        elif (place := _place_of_caller()) is not None:
            _log(*place, feedback)
        else:
            with mlflow.start_span("snne_guard") as own:
                _log(own.trace_id, own.span_id, feedback)

    def _feedback(self, assessment: Assessment) -> list[dict[str, Any]]:
        values = {SCORE: assessment.uncertainty, DECISION: label(assessment)}
        metadata = assessment.to_metadata() | {"run_id": assessment.run_id}
        if self._content:
            metadata |= texts(assessment)
        shared = {"rationale": explained(assessment), "metadata": _strings(metadata)}
        return [
            {"name": name, "value": value, **shared}
            for name, value in values.items()
            if value is not None
        ]


def _client() -> str:
    """Return the distribution that MLflow's client comes from; full MLflow has both."""
    try:
        version("mlflow-skinny")
    except PackageNotFoundError:
        return "mlflow-tracing"
    return "mlflow-skinny"


def _span_of_run(run_id: str | None) -> LiveSpan | None:
    """Return the span that MLflow's tracer has open for a LangChain run."""
    callbacks = ensure_config().get("callbacks")
    for handler in getattr(callbacks, "handlers", ()):
        # The tracer has no public way to ask; without this one, the caller's span is
        # taken.
        spans = getattr(handler, "_run_span_mapping", {})
        if run_id in spans:
            span: LiveSpan = spans[run_id].span
            return span
    return None


def _place_of_caller() -> tuple[str, str] | None:
    """Return the ids of the trace and the span that the call was made in.

    Read from the span in the context rather than from ``get_current_active_span``,
    which no longer knows a span whose trace was exported meanwhile.
    """
    from mlflow.tracing.constant import SpanAttributeKey
    from mlflow.tracing.provider import get_current_otel_span

    span: Any = get_current_otel_span()
    attributes: Any = getattr(span, "attributes", None) or {}
    trace_id: str | None = attributes.get(SpanAttributeKey.REQUEST_ID)
    if trace_id is None:
        return None
    return json.loads(trace_id), format(span.get_span_context().span_id, "016x")


def _log(trace_id: str, span_id: str, feedback: list[dict[str, Any]]) -> None:
    """Log on a trace in memory, which goes out with it, or else on the server."""
    import mlflow
    from mlflow.entities import AssessmentSource

    source = AssessmentSource("CODE", "snne-guard")
    for each in feedback:
        # A trace that was exported a moment ago may not be on the server yet.
        for attempt in Retrying(
            retry=retry_if_exception(_is_not_there_yet),
            wait=wait_exponential_jitter(initial=0.1, max=2.0),
            stop=stop_after_delay(_EXPORT_SECONDS),
            reraise=True,
        ):
            with attempt:
                mlflow.log_feedback(
                    trace_id=trace_id, span_id=span_id, source=source, **each
                )


def _is_not_there_yet(error: BaseException) -> bool:
    return getattr(error, "error_code", None) == "RESOURCE_DOES_NOT_EXIST"


def _strings(metadata: dict[str, Any]) -> dict[str, str]:
    """Return what MLflow keeps as metadata: text for text."""
    return {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in metadata.items()
        if value is not None
    }
