"""SNNEGuard for LangChain, and a small local model to try it on."""

from snne_guard.langchain.embedded import embedded_model
from snne_guard.langchain.guard import SNNEGuard
from snne_guard.langchain.messages import is_refusal
from snne_guard.langchain.providers import Provider

__all__ = ["Provider", "SNNEGuard", "embedded_model", "is_refusal"]
