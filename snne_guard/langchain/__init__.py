"""LangChain's side of the guard: a runnable, a chat model, errors, messages."""

from snne_guard.langchain.chat_model import GuardedChatModel
from snne_guard.langchain.errors import (
    GuardTimeoutError,
    SamplingError,
    UncertainAnswerError,
)
from snne_guard.langchain.guard import SNNEGuard
from snne_guard.langchain.messages import is_refusal

__all__ = [
    "GuardTimeoutError",
    "GuardedChatModel",
    "SNNEGuard",
    "SamplingError",
    "UncertainAnswerError",
    "is_refusal",
]
