"""LangSmith: the uncertainty of an answer as feedback on its run."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from langchain_core.runnables.config import var_child_runnable_config

from snne_guard import Assessment, __version__
from snne_guard_integrations._extras import required
from snne_guard_integrations._report import SCORE, explained, label, texts

required("langsmith", extra="langsmith", at_least="0.14.9")
from langsmith import Client  # noqa: E402 - after the check
from langsmith.run_helpers import (  # noqa: E402
    get_current_run_tree,
    get_tracing_context,
)
from langsmith.run_trees import RunTree, get_cached_client  # noqa: E402
from langsmith.utils import (  # noqa: E402
    LangSmithNotFoundError,
    get_tracer_project,
    tracing_is_enabled,  # pyright: ignore[reportUnknownVariableType] - a bare dict
)

__all__ = ["LangSmithObserver"]


class LangSmithObserver:
    """Puts the uncertainty of each answer on its LangSmith run, as feedback.

    The feedback ``snne_guard.uncertainty`` has the uncertainty as its score (0 all
    answers alike, 1 all different), the decision as its value (``unscored``, and no
    score, where there is no uncertainty), and reasons and cost as its comment. It is on
    the guard's own run, on the chat model's under ``GuardedChatModel``, and inside
    ``@traceable`` functions on the function's. Calls that LangSmith does not trace get
    none.

    The client sends it in the background together with the runs, and logs what goes
    wrong there.

    Args:
        client: Who sends it. None: the client that traces the run.
        content: Whether the feedback holds the texts of question, answer and samples,
            also of an answer that was withheld.

    Raises:
        MissingExtraError: If ``langsmith`` is missing or too old; this module raises it
            when it is imported.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> from snne_guard import SNNEGuard
        >>> model = FakeListChatModel(responses=["Paris"])
        >>> guard = SNNEGuard(model, observers=[LangSmithObserver()])
        >>> guard.invoke("The capital of France?").content
        'Paris'
    """

    def __init__(self, *, client: Client | None = None, content: bool = False) -> None:
        self._client, self._content = client, content
        self._projects: dict[tuple[str, str | None], UUID] = {}

    def on_assessment(self, assessment: Assessment) -> None:
        """Give feedback on the run, where there is one.

        Raises:
            langsmith.utils.LangSmithError: If it could not be sent.
        """
        run = get_current_run_tree()
        run_id = assessment.run_id or (None if run is None else str(run.id))
        # "local" means that runs are made and not sent.
        if run_id is None or tracing_is_enabled() is not True:
            return
        client, project = self._place(run)
        client.create_feedback(  # pyright: ignore[reportUnknownMemberType] - a bare dict
            run_id,
            SCORE,
            score=assessment.uncertainty,
            value=label(assessment),
            comment=explained(assessment),
            trace_id=run.trace_id if run else _root(run_id),
            session_id=self._project_id(client, project),
            feedback_id=UUID(assessment.id),
            source_info={"snne_guard": __version__, **_source(assessment)},
            extra=texts(assessment) if self._content else None,
            stop_after_attempt=3,
        )

    def _place(self, run: RunTree | None) -> tuple[Client, str | None]:
        """Return who traces the run, and in which project."""
        if run is not None:
            return self._client or run.client, run.session_name
        context = get_tracing_context()
        client = self._client or context["client"] or get_cached_client()
        return client, context["project_name"] or get_tracer_project()

    def _project_id(self, client: Client, name: str | None) -> UUID | None:
        """Return the id of a project, None where it does not exist yet."""
        known = (client.api_url, name)
        if known not in self._projects:
            try:
                project = client.read_project(project_name=name)
            except LangSmithNotFoundError:
                return None
            self._projects[known] = project.id
        return self._projects[known]


def _root(run_id: str) -> str | None:
    """Return the trace of a run of which nothing but its id is known.

    Outside of any other run it is its own; inside, LangSmith has to find out.
    """
    return None if (var_child_runnable_config.get() or {}).get("callbacks") else run_id


def _source(assessment: Assessment) -> dict[str, Any]:
    return {
        "assessment_id": assessment.id,
        "method": assessment.method,
        "score": assessment.score,
        "threshold": assessment.threshold,
        "certified": assessment.certified,
        "p_wrong": assessment.p_wrong,
        "audit": assessment.audit,
        "decision": assessment.decision,
        "reasons": list(assessment.reasons),
    }
