"""LangChain's side of the guard: a runnable, a chat model, errors, messages."""

from snne_guard.assess.preflight import Preflight
from snne_guard.langchain.chat_model import GuardedChatModel
from snne_guard.langchain.errors import (
    GuardTimeoutError,
    SamplingError,
    UncertainAnswerError,
)
from snne_guard.langchain.generate import ChatGenerate
from snne_guard.langchain.guard import SNNEGuard
from snne_guard.langchain.messages import is_refusal
from snne_guard.sampling.evidence import Finding
from snne_guard.sampling.langchain_provider import Provider
from snne_guard.sampling.langchain_providers import PROVIDERS, provider_of
from snne_guard.sampling.langchain_runs import (
    ANSWER_TAG,
    SAMPLE_TAG,
)
from snne_guard.sampling.langchain_transformers import TransformersChatModel

__all__ = [
    "ANSWER_TAG",
    "PROVIDERS",
    "SAMPLE_TAG",
    "ChatGenerate",
    "Finding",
    "GuardTimeoutError",
    "GuardedChatModel",
    "Preflight",
    "Provider",
    "SNNEGuard",
    "SamplingError",
    "TransformersChatModel",
    "UncertainAnswerError",
    "is_refusal",
    "provider_of",
]
