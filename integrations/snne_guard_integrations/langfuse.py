"""Langfuse: the uncertainty of an answer as a score on its observation."""

from __future__ import annotations

from typing import Any

from snne_guard import Assessment, MissingExtraError
from snne_guard_integrations._report import (
    UNCERTAINTY,
    langchain_run,
    metadata,
    scores,
    summary,
)

try:
    from langfuse import Langfuse, get_client
    from langfuse.langchain import CallbackHandler
    from opentelemetry import trace
except ImportError as error:
    raise MissingExtraError(needed="langfuse", extra="langfuse") from error


class LangfuseObserver:
    """Scores the trace and the observation of each guarded call in Langfuse.

    The numeric score ``snne_guard.uncertainty`` is ``u``; the categorical score
    ``snne_guard.decision`` is the decision, if the guard has a threshold. Reasons and
    cost are in the comments.

    The observation is that of the guarded model where Langfuse's ``CallbackHandler``
    watches the chain, else the current one. Calls outside any get no score.

    Args:
        client: The client to send with. None: ``langfuse.get_client()``.
        content: Whether to add the texts of the question, the answer (a withheld one
            too) and the samples to the metadata.
    """

    def __init__(
        self, *, client: Langfuse | None = None, content: bool = False
    ) -> None:
        self._client, self._content = client, content

    def on_assessment(self, assessment: Assessment) -> None:
        """Score the observation of the call, if there is one."""
        ids = _observation_of_run(assessment) or _current_observation()
        if ids is None:
            return
        client = self._client or get_client()
        shared: dict[str, Any] = {
            "trace_id": ids[0],
            "observation_id": ids[1],
            "comment": summary(assessment),
            "metadata": metadata(assessment, content=self._content),
        }
        value: Any
        for name, value in scores(assessment).items():
            kind: Any = "NUMERIC" if name == UNCERTAINTY else "CATEGORICAL"
            shared["score_id"] = f"{assessment.id}-{name.removeprefix('snne_guard.')}"
            client.create_score(name=name, value=value, data_type=kind, **shared)


def _observation_of_run(assessment: Assessment) -> tuple[str, str] | None:
    """Return the ids of the run's trace and observation, None if it is not traced.

    LangChain calls handlers of async code in another context, so there the run's
    observation is not the current one.
    """
    run_id, handlers = langchain_run(assessment)
    for handler in handlers:
        if isinstance(handler, CallbackHandler):
            # Langfuse has no public way from a run to its observation.
            observation: Any = getattr(handler, "_runs", {}).get(run_id)
            if observation is not None:
                return observation.trace_id, observation.id
    return None


def _current_observation() -> tuple[str, str] | None:
    context = trace.get_current_span().get_span_context()
    if not context.is_valid:
        return None
    trace_id = trace.format_trace_id(context.trace_id)
    return trace_id, trace.format_span_id(context.span_id)
