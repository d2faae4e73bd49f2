"""Recordings that a test of graders writes down in one line, and vectors."""

from __future__ import annotations

from typing import Any, Literal

from snne_guard.evaluation import Recording

__all__ = ["answered"]


def answered(
    main_answer: str,
    *answers: str,
    unanswerable: bool = False,
    label: Literal[0, 1] | None = None,
    samples: tuple[str, ...] = (),
    **extra: Any,
) -> Recording:
    """Return a recording of an answer and its references; none of them is unknown."""
    return Recording(
        id="q",
        question="What?",
        main_answer=main_answer,
        samples=samples,
        answers=answers if answers or unanswerable else None,
        label=label,
        extra=extra,
    )
