"""What every tracing tool is told of a guarded call, in the same words."""

from __future__ import annotations

from typing import Any

from snne_guard import Assessment

__all__ = ["SCORE", "explained", "label", "texts"]

SCORE = "snne_guard.uncertainty"
"""What the score is called everywhere: ``u`` in [0, 1], 0: all answers alike."""


def label(assessment: Assessment) -> str | None:
    """Return the decision, ``"unscored"`` where there is no ``u`` to decide by.

    Example:
        >>> label(Assessment(id="1", answer=None, uncertainty=0.4, decision="flag"))
        'flag'
        >>> label(Assessment(id="1", answer=None, decision="accept"))
        'unscored'
    """
    return "unscored" if assessment.uncertainty is None else assessment.decision


def explained(assessment: Assessment) -> str:
    """Return reasons and cost in one line, without anything that was said.

    Example:
        >>> explained(Assessment(id="1", answer=None, reasons=("tool_calls",)))
        'reasons: tool_calls; 0 of 0 answers compared; cost: 0 requests, 0 + 0 tokens,
        0.00 s'
    """
    cost = assessment.cost
    parts = [
        f"reasons: {', '.join(assessment.reasons) or 'none'}",
        f"{assessment.n_used} of {assessment.n_requested} answers compared"
        + (f" by {assessment.method}" if assessment.method else ""),
        f"cost: {cost.calls} requests, {cost.prompt_tokens} + "
        f"{cost.completion_tokens} tokens, {cost.seconds:.2f} s"
        + ("" if cost.money is None else f", {cost.money:.6f} in money"),
    ]
    return "; ".join(parts)


def texts(assessment: Assessment) -> dict[str, Any]:
    """Return what was asked and answered, for users who want it in their tool.

    Example:
        >>> texts(Assessment(id="1", answer=None, question="Why?"))
        {'question': 'Why?', 'answer': None, 'samples': []}
    """
    return {
        "question": assessment.question,
        "answer": assessment.answer.text if assessment.answer else None,
        "samples": [sample.text for sample in assessment.samples],
    }
