"""Who draws the samples in place of a class that cannot draw several at once."""

from __future__ import annotations

from typing import Any

from langchain_core.language_models import BaseChatModel

from snne_guard.errors import ConfigurationError
from snne_guard.sampling.hf_load import check_model, held

__all__ = ["can_be_drawn_from", "on_the_same_weights"]


def can_be_drawn_from(model: Any) -> bool:  # noqa: ANN401 - any provider's class
    """Return whether the weights inside it can be drawn from without the class."""
    try:
        check_model(held(model).model)
    except ConfigurationError:
        return False
    return True


def on_the_same_weights(model: Any) -> BaseChatModel:  # noqa: ANN401 - likewise
    """Return a chat model that draws many replies at once from what it holds."""
    from snne_guard.sampling.langchain_transformers import PipelineSamples

    return PipelineSamples.of(model, top_k=None, top_p=None)
