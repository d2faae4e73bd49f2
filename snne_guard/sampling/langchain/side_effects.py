"""Whether a further draw would do more than answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from snne_guard.sampling.langchain.wrappers import ChatRunnable

__all__ = ["has_side_effects"]


def has_side_effects(
    model: ChatRunnable, kwargs: Mapping[str, Any] | None = None
) -> bool:
    """Return whether a sample could act on the world, so that none may be drawn."""
    raise NotImplementedError
