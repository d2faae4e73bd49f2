"""Graders by name, as the option ``--grader`` of the commands names them."""

from __future__ import annotations

from snne_guard.cli.models import generate_with
from snne_guard.evaluation.grade import Grader, resolve_grader

__all__ = ["named_grader"]


def named_grader(name: str, /, *, base_url: str | None = None) -> Grader | None:
    """Return the grader that an option names, None for labels alone.

    Args:
        name: ``"label"``, ``"judge:MODEL"``, or what ``resolve_grader`` takes.
        base_url: Where a judge's model is served.

    Raises:
        ConfigurationError: There is no such grader, or its model cannot be set up.
        MissingExtraError: A package that it needs is not installed.
    """
    if name == "label":
        return None
    kind, _, model = name.partition(":")
    if kind != "judge":
        return resolve_grader(name)
    from snne_guard.evaluation.model_graders import JudgeGrader

    return JudgeGrader(generate_with(model, base_url=base_url), name=name)
