"""Know when a language model is making it up.

The names below are loaded when they are first used, so that importing the package
loads neither LangChain nor torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from snne_guard._version import __version__
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
    from snne_guard.langchain import SNNEGuard
    from snne_guard.openai import guard_client
    from snne_guard.scorers import score
    from snne_guard.spans import render_marks, score_spans
    from snne_guard.types import (
        Assessment,
        Cost,
        Decision,
        Prices,
        Sample,
        Score,
        Span,
    )


_HOMES = {
    "Assessment": "types",
    "ConfigurationError": "errors",
    "Cost": "types",
    "Decision": "types",
    "GuardTimeoutError": "errors",
    "InputError": "errors",
    "MissingExtraError": "errors",
    "Prices": "types",
    "SNNEGuard": "langchain",
    "Sample": "types",
    "SamplingError": "errors",
    "Score": "types",
    "ScoringError": "errors",
    "SnneGuardError": "errors",
    "Span": "types",
    "UncertainAnswerError": "errors",
    "__version__": "_version",
    "guard_client": "openai",
    "render_marks": "spans",
    "score": "scorers",
    "score_spans": "spans",
}

__all__ = [
    "Assessment",
    "ConfigurationError",
    "Cost",
    "Decision",
    "GuardTimeoutError",
    "InputError",
    "MissingExtraError",
    "Prices",
    "SNNEGuard",
    "Sample",
    "SamplingError",
    "Score",
    "ScoringError",
    "SnneGuardError",
    "Span",
    "UncertainAnswerError",
    "__version__",
    "guard_client",
    "render_marks",
    "score",
    "score_spans",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - the type follows from the name
    if name not in _HOMES:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
