"""Draws from LangChain chat models: wrappers, providers, requests, messages."""

from __future__ import annotations

from snne_guard.sampling.langchain.draws import LangChainDraws
from snne_guard.sampling.langchain.messages import question_of, sample_of
from snne_guard.sampling.langchain.providers import (
    Provider,
    RejectedParameters,
    capabilities,
    register_provider,
)
from snne_guard.sampling.langchain.requests import has_side_effects
from snne_guard.sampling.langchain.wrappers import (
    ChatRunnable,
    bound_models,
    models_in,
    rebuild,
    retries_itself,
)

__all__ = [
    "ChatRunnable",
    "LangChainDraws",
    "Provider",
    "RejectedParameters",
    "bound_models",
    "capabilities",
    "has_side_effects",
    "models_in",
    "question_of",
    "rebuild",
    "register_provider",
    "retries_itself",
    "sample_of",
]
