"""SNNEGuard for LangChain, and local models to guard.

Importing this package loads LangChain but not torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from snne_guard.langchain.errors import SamplingError, UncertainAnswerError
from snne_guard.langchain.guard import SNNEGuard
from snne_guard.sampling.langchain.messages import is_refusal

if TYPE_CHECKING:
    from snne_guard.langchain.embedded import embedded_model
    from snne_guard.langchain.transformers import TransformersChatModel

__all__ = [
    "SNNEGuard",
    "SamplingError",
    "TransformersChatModel",
    "UncertainAnswerError",
    "embedded_model",
    "is_refusal",
]

_LATE = {"TransformersChatModel": "transformers", "embedded_model": "embedded"}


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(import_module(f"{__name__}.{_LATE[name]}"), name)
