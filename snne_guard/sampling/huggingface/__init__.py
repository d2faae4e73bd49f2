"""Local models: replies, log-probabilities and hidden states, by ``transformers``."""

from snne_guard.sampling.huggingface.model import HuggingFaceModel
from snne_guard.sampling.huggingface.settings import (
    Completion,
    GenerationSettings,
    Message,
    Prompt,
)

__all__ = [
    "Completion",
    "GenerationSettings",
    "HuggingFaceModel",
    "Message",
    "Prompt",
]
