"""Draws from LangChain chat models."""

from __future__ import annotations

from snne_guard.sampling.langchain.messages import (
    as_chunk,
    is_refusal,
    question_of,
    sample_of,
)
from snne_guard.sampling.langchain.providers import (
    Provider,
    RejectedParameters,
    answer_settings_of,
    capabilities,
    model_name_of,
    register_provider,
)
from snne_guard.sampling.langchain.requests import has_side_effects, wants_schema
from snne_guard.sampling.langchain.sender import LangChainSender
from snne_guard.sampling.langchain.wrappers import (
    ChatRunnable,
    bound_models,
    models_in,
    rebuild,
    retries_itself,
)

__all__ = [
    "ChatRunnable",
    "LangChainSender",
    "Provider",
    "RejectedParameters",
    "answer_settings_of",
    "as_chunk",
    "bound_models",
    "capabilities",
    "has_side_effects",
    "is_refusal",
    "model_name_of",
    "models_in",
    "question_of",
    "rebuild",
    "register_provider",
    "retries_itself",
    "sample_of",
    "wants_schema",
]
