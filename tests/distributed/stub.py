"""A chat model whose replies follow from the question, for workers of Ray."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path
from typing import Any

from langchain_core.language_models import SimpleChatModel
from langchain_core.messages import BaseMessage

__all__ = ["KNOWN", "Stub"]

KNOWN = ("Paris", "Rome", "Oslo", "Bonn")


class Stub(SimpleChatModel):
    """Answers by the question's number, after a while, and says in a file that it did.

    A question with "fail" in it fails.
    """

    asked: Path
    seconds: float = 0.0
    temperature: float = 0.0

    def _call(self, messages: list[BaseMessage], *_: Any, **__: Any) -> str:
        question = str(messages[-1].content)
        time.sleep(self.seconds)
        with self.asked.open("a") as stream:
            stream.write(f"{os.getpid()} {question}\n")
        if "fail" in question:
            msg = f"no answer to {question}"
            raise ValueError(msg)
        return random.Random(question).choice(KNOWN)  # noqa: S311 - a stub

    @property
    def _llm_type(self) -> str:
        return "stub"
