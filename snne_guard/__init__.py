"""Know when a language model is making it up.

Importing the package loads neither LangChain nor torch: what needs more than numpy is
loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from snne_guard._version import __version__
from snne_guard.cost import Cost, Prices
from snne_guard.errors import (
    ConfigurationError,
    GuardTimeoutError,
    InputError,
    MissingExtraError,
    SamplingError,
    ScoringError,
    SnneGuardError,
    UncertainAnswerError,
)
from snne_guard.types import Assessment, Decision, Field, Reply, Score, Span

if TYPE_CHECKING:
    from snne_guard.evaluation.decision_log import DecisionLog
    from snne_guard.fields import render_fields, score_fields
    from snne_guard.langchain import SNNEGuard
    from snne_guard.openai import guard_client
    from snne_guard.scorers import score
    from snne_guard.spans import render_marks, score_spans

__all__ = [
    "Assessment",
    "ConfigurationError",
    "Cost",
    "Decision",
    "DecisionLog",
    "Field",
    "GuardTimeoutError",
    "InputError",
    "MissingExtraError",
    "Prices",
    "Reply",
    "SNNEGuard",
    "SamplingError",
    "Score",
    "ScoringError",
    "SnneGuardError",
    "Span",
    "UncertainAnswerError",
    "__version__",
    "guard_client",
    "render_fields",
    "render_marks",
    "score",
    "score_fields",
    "score_spans",
]

_LATE = {
    "DecisionLog": "evaluation.decision_log",
    "SNNEGuard": "langchain",
    "guard_client": "openai",
    "render_fields": "fields",
    "render_marks": "spans",
    "score": "scorers",
    "score_fields": "fields",
    "score_spans": "spans",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - the type follows from the name
    if name not in _LATE:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(import_module(f"{__name__}.{_LATE[name]}"), name)


def __dir__() -> list[str]:
    return __all__
