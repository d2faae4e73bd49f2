"""LangSmith: the uncertainty of an answer as feedback on its run."""

from __future__ import annotations

from uuid import UUID

from snne_guard import Assessment, MissingExtraError
from snne_guard_integrations._report import UNCERTAINTY, metadata, summary

try:
    from langsmith import Client
    from langsmith.run_helpers import get_tracing_context
    from langsmith.run_trees import RunTree, get_cached_client
    from langsmith.utils import (
        LangSmithNotFoundError,
        get_tracer_project,
        tracing_is_enabled,  # pyright: ignore[reportUnknownVariableType] - a bare dict
    )
except ImportError as error:
    raise MissingExtraError(needed="langsmith", extra="langsmith") from error


class LangSmithObserver:
    """Adds the uncertainty of each answer to its LangSmith run, as feedback.

    The feedback ``snne_guard.uncertainty`` has ``u`` as its score and the decision as
    its value; reasons and cost are the comment, the remaining metadata is in the
    source. It goes to the run of the guarded model or, outside LangChain, to the
    current ``@traceable`` run. Calls that LangSmith does not trace get none.

    Args:
        client: The client to send with. None: the one that traces the run.
        content: Whether to add the texts of the question, the answer (a withheld one
            too) and the samples.
    """

    def __init__(self, *, client: Client | None = None, content: bool = False) -> None:
        self._client, self._content = client, content
        self._project_ids: dict[tuple[str, str | None], UUID] = {}

    def on_assessment(self, assessment: Assessment) -> None:
        """Add feedback to the run of the call, if there is one."""
        context = get_tracing_context()
        parent: RunTree | None = context["parent"]
        run_id = assessment.run_id or (str(parent.id) if parent else None)
        # "local" means that runs are recorded but not sent.
        if run_id is None or tracing_is_enabled() is not True:
            return
        inherited = parent.client if parent else context["client"]
        client = self._client or inherited or get_cached_client()
        project: str | None = parent.session_name if parent else context["project_name"]
        client.create_feedback(  # pyright: ignore[reportUnknownMemberType] - a bare dict
            run_id,
            UNCERTAINTY,
            score=assessment.uncertainty,
            value=assessment.decision,
            comment=summary(assessment),
            # With the trace's id the client queues feedback rather than posting it.
            trace_id=parent.trace_id if parent else run_id,
            session_id=self._project_id(client, project or get_tracer_project()),
            source_info=metadata(assessment, content=self._content),
        )

    def _project_id(self, client: Client, name: str | None) -> UUID | None:
        """Look up the id of a project, once; None while the project does not exist."""
        key = (client.api_url, name)
        if key not in self._project_ids:
            try:
                self._project_ids[key] = client.read_project(project_name=name).id
            except LangSmithNotFoundError:
                return None
        return self._project_ids[key]
