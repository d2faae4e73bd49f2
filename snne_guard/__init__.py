"""Know when a language model is making it up.

The names below are loaded when they are first used, so that importing the package
loads neither LangChain nor torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from snne_guard._version import __version__
    from snne_guard.assess.openai import AsyncOpenAIGuard, OpenAIGuard
    from snne_guard.assess.openai_turn import AsyncOpenAITurn, OpenAITurn
    from snne_guard.assess.settings import GuardSettings
    from snne_guard.decision import Monitor, SqliteStore
    from snne_guard.errors import (
        ConfigurationError,
        GuardTimeoutError,
        InputError,
        MissingExtraError,
        ModelCancelledError,
        MonitorStoreError,
        SamplingError,
        ScoringError,
        SnneGuardError,
        UncertainAnswerError,
    )
    from snne_guard.langchain import GuardedChatModel, SNNEGuard, TransformersChatModel
    from snne_guard.sampling import Breaker, Budget, Prices
    from snne_guard.sampling.openai import AsyncOpenAISampler, OpenAISampler
    from snne_guard.scorers import score
    from snne_guard.types import Assessment, Cost, Decision, ResponseSet, Sample, Score

_HOMES = {
    "Assessment": "types",
    "AsyncOpenAIGuard": "assess.openai",
    "AsyncOpenAISampler": "sampling.openai",
    "AsyncOpenAITurn": "assess.openai_turn",
    "Breaker": "sampling",
    "Budget": "sampling",
    "ConfigurationError": "errors",
    "Cost": "types",
    "Decision": "types",
    "GuardSettings": "assess.settings",
    "GuardTimeoutError": "errors",
    "GuardedChatModel": "langchain",
    "InputError": "errors",
    "MissingExtraError": "errors",
    "ModelCancelledError": "errors",
    "Monitor": "decision",
    "MonitorStoreError": "errors",
    "OpenAIGuard": "assess.openai",
    "OpenAISampler": "sampling.openai",
    "OpenAITurn": "assess.openai_turn",
    "Prices": "sampling",
    "ResponseSet": "types",
    "SNNEGuard": "langchain",
    "Sample": "types",
    "SamplingError": "errors",
    "Score": "types",
    "ScoringError": "errors",
    "SnneGuardError": "errors",
    "SqliteStore": "decision",
    "TransformersChatModel": "langchain",
    "UncertainAnswerError": "errors",
    "__version__": "_version",
    "score": "scorers",
}

__all__ = [
    "Assessment",
    "AsyncOpenAIGuard",
    "AsyncOpenAISampler",
    "AsyncOpenAITurn",
    "Breaker",
    "Budget",
    "ConfigurationError",
    "Cost",
    "Decision",
    "GuardSettings",
    "GuardTimeoutError",
    "GuardedChatModel",
    "InputError",
    "MissingExtraError",
    "ModelCancelledError",
    "Monitor",
    "MonitorStoreError",
    "OpenAIGuard",
    "OpenAISampler",
    "OpenAITurn",
    "Prices",
    "ResponseSet",
    "SNNEGuard",
    "Sample",
    "SamplingError",
    "Score",
    "ScoringError",
    "SnneGuardError",
    "SqliteStore",
    "TransformersChatModel",
    "UncertainAnswerError",
    "__version__",
    "score",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - the type follows from the name
    if name not in _HOMES:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
