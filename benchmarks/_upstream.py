"""A chat model that costs nothing but the guard's own work, for workers of Ray."""

from __future__ import annotations

import random
from itertools import count
from typing import Any

from langchain_core.language_models import SimpleChatModel
from langchain_core.messages import BaseMessage

__all__ = ["Upstream"]

WORDS = 60
_drawn = count()


class Upstream(SimpleChatModel):
    """Answers at once, in words that differ from draw to draw."""

    temperature: float = 0.0

    def _call(
        self,
        messages: list[BaseMessage],
        *_: Any,  # noqa: ANN401 - of LangChain
        **__: Any,  # noqa: ANN401 - likewise
    ) -> str:
        words = random.Random(f"{messages[-1].content}{next(_drawn)}")  # noqa: S311
        return " ".join(f"word{words.randrange(150)}" for _ in range(WORDS))

    @property
    def _llm_type(self) -> str:
        return "upstream"
