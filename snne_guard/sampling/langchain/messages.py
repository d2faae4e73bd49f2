"""LangChain messages as samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from langchain_core.messages import BaseMessage

from snne_guard.types import Cost, Sample

__all__ = ["cost_of", "question_of", "sample_of", "without_logprobs"]

M = TypeVar("M", bound=BaseMessage)


def question_of(messages: Sequence[BaseMessage]) -> str | None:
    """Return the text of the last human message, None if there is none."""
    raise NotImplementedError


def sample_of(
    message: BaseMessage, *, names_ending: bool = False, model: str | None = None
) -> Sample:
    """Return what is compared of a message."""
    raise NotImplementedError


def cost_of(message: BaseMessage | None, samples: Sequence[Sample]) -> Cost:
    """Return the tokens of one request, from the usage on one of its messages."""
    raise NotImplementedError


def without_logprobs(message: M) -> M:
    """Return the message without log-probabilities in its metadata."""
    raise NotImplementedError
