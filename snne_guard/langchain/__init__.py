"""SNNEGuard for LangChain, and local models to guard.

Importing this package loads LangChain but not torch.
"""

from snne_guard.langchain.embedded import embedded_model
from snne_guard.langchain.guard import SNNEGuard
from snne_guard.langchain.transformers import TransformersChatModel
from snne_guard.sampling.langchain.messages import is_refusal

__all__ = ["SNNEGuard", "TransformersChatModel", "embedded_model", "is_refusal"]
