"""Langfuse: the uncertainty of an answer as a score on its trace and observation."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from langchain_core.runnables.config import var_child_runnable_config

from snne_guard import Assessment, __version__
from snne_guard_integrations._extras import required
from snne_guard_integrations._report import SCORE, explained, label, texts

required("langfuse", extra="langfuse", at_least="5.0")
from langfuse import Langfuse, get_client  # noqa: E402 - after the check
from langfuse.langchain import CallbackHandler  # noqa: E402
from opentelemetry import trace  # noqa: E402 - Langfuse is built on it

__all__ = ["LangfuseObserver"]

_DECISION = "snne_guard.decision"


class LangfuseObserver:
    """Scores the trace and the observation of each guarded call in Langfuse.

    Two scores: ``snne_guard.uncertainty``, numeric (0 all answers alike, 1 all
    different), and ``snne_guard.decision``, categorical. Where there is no uncertainty
    the second alone is given, as ``unscored``. Reasons and cost are their comment.

    The observation is the guard's run (under ``GuardedChatModel`` the chat model's)
    where Langfuse's ``CallbackHandler`` watches it, else the current one, as
    ``start_as_current_observation`` and ``@observe`` set it. Calls outside of any get
    no score.

    The client sends scores in the background and logs what goes wrong there.

    Args:
        client: Who sends them. None: the client that ``langfuse.get_client()`` gives.
        content: Whether the scores' metadata hold the texts of question, answer and
            samples, also of an answer that was withheld.

    Raises:
        MissingExtraError: If ``langfuse`` is missing or too old; this module raises it
            when it is imported.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> from snne_guard import SNNEGuard
        >>> model = FakeListChatModel(responses=["Paris"])
        >>> guard = SNNEGuard(model, observers=[LangfuseObserver()])
        >>> guard.invoke("The capital of France?").content
        'Paris'
    """

    def __init__(
        self, *, client: Langfuse | None = None, content: bool = False
    ) -> None:
        self._client, self._content = client, content

    def on_assessment(self, assessment: Assessment) -> None:
        """Score the observation, where there is one."""
        place = _watched(assessment.run_id) or _current()
        if place is None:
            return
        trace_id, observation_id = place
        client = self._client or get_client()
        shared: dict[str, Any] = {
            "trace_id": trace_id,
            "observation_id": observation_id,
            "comment": explained(assessment),
            "metadata": self._metadata(assessment),
        }
        if assessment.uncertainty is not None:
            client.create_score(
                name=SCORE,
                value=assessment.uncertainty,
                data_type="NUMERIC",
                score_id=f"{assessment.id}-uncertainty",
                **shared,
            )
        if decision := label(assessment):
            client.create_score(
                name=_DECISION,
                value=decision,
                data_type="CATEGORICAL",
                score_id=f"{assessment.id}-decision",
                **shared,
            )

    def _metadata(self, assessment: Assessment) -> dict[str, Any]:
        said = texts(assessment) if self._content else {}
        return {
            "snne_guard": __version__,
            "assessment_id": assessment.id,
            "method": assessment.method,
            "score": assessment.score,
            "threshold": assessment.threshold,
            "certified": assessment.certified,
            "p_wrong": assessment.p_wrong,
            "audit": assessment.audit,
            "reasons": list(assessment.reasons),
            **said,
        }


def _watched(run_id: str | None) -> tuple[str, str] | None:
    """Return trace and observation of a run that a ``CallbackHandler`` watches.

    LangChain calls it in another context where the call is async, so its observation
    is not the current one there.
    """
    manager: Any = (var_child_runnable_config.get() or {}).get("callbacks")
    wanted = UUID(run_id) if run_id else getattr(manager, "parent_run_id", None)
    # No public name leads from a run to its observation.
    runs: list[dict[UUID | None, Any]] = [
        getattr(handler, "_runs", {})
        for handler in getattr(manager, "handlers", ())
        if isinstance(handler, CallbackHandler)
    ]
    found = next((each[wanted] for each in runs if wanted in each), None)
    return None if found is None else (found.trace_id, found.id)


def _current() -> tuple[str, str] | None:
    """Return trace and observation that are current where the guard was called."""
    context = trace.get_current_span().get_span_context()
    if not context.is_valid:
        return None
    trace_id = trace.format_trace_id(context.trace_id)
    return trace_id, trace.format_span_id(context.span_id)
