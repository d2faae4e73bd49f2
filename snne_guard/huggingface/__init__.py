"""Local models: replies, log-probabilities and hidden states, by ``transformers``.

``TransformersChatModel`` makes one a chat model of LangChain, which is loaded with it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from snne_guard.huggingface.model import HuggingFaceModel
from snne_guard.huggingface.settings import (
    Completion,
    GenerationSettings,
    Message,
    Prompt,
)

if TYPE_CHECKING:
    from snne_guard.huggingface.chat_model import TransformersChatModel

__all__ = [
    "Completion",
    "GenerationSettings",
    "HuggingFaceModel",
    "Message",
    "Prompt",
    "TransformersChatModel",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - the type follows from the name
    if name == "TransformersChatModel":
        return import_module(f"{__name__}.chat_model").TransformersChatModel
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
