"""What observers report: the same names and words in every tracing tool."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import ensure_config

from snne_guard import Assessment

UNCERTAINTY = "snne_guard.uncertainty"
"""Name of the score: ``u`` in [0, 1]."""

DECISION = "snne_guard.decision"
"""Name of the decision, for tools in which a score has no label."""


def summary(assessment: Assessment) -> str:
    """Return reasons and cost in one line, without any text of the conversation."""
    cost = assessment.cost
    method = f" by {assessment.method}" if assessment.method else ""
    money = "" if cost.money is None else f", {cost.money:.6f} in money"
    return (
        f"reasons: {', '.join(assessment.reasons) or 'none'}; "
        f"{assessment.n_used} of {assessment.n_requested} answers compared{method}; "
        f"cost: {cost.calls} requests, {cost.prompt_tokens} + "
        f"{cost.completion_tokens} tokens, {cost.seconds:.2f} s{money}"
    )


def metadata(assessment: Assessment, *, content: bool) -> dict[str, Any]:
    """Return the metadata of the delivered message, and the texts if asked for."""
    fields = assessment.to_metadata()
    if content:
        answer = assessment.answer
        fields["question"] = assessment.question
        fields["answer"] = None if answer is None else answer.text
        fields["samples"] = [sample.text for sample in assessment.samples]
    return fields


def scores(assessment: Assessment) -> dict[str, float | str]:
    """Return the uncertainty and the decision by name, where there are any."""
    found = {UNCERTAINTY: assessment.uncertainty, DECISION: assessment.decision}
    return {name: value for name, value in found.items() if value is not None}


def langchain_run(
    assessment: Assessment,
) -> tuple[UUID | None, list[BaseCallbackHandler]]:
    """Return the LangChain run of a guarded call, and the handlers that watch it.

    A call without a run of its own, as by ``assess``, gets the run around it, or None.
    """
    manager = ensure_config().get("callbacks")
    run_id: UUID | None = getattr(manager, "parent_run_id", None)
    if assessment.run_id:
        run_id = UUID(assessment.run_id)
    return run_id, list(getattr(manager, "handlers", ()))
