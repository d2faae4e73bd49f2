"""Sending draws to a LangChain model without callbacks, cache or tracing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGenerationChunk

from snne_guard.sampling.langchain.providers import RejectedParameters
from snne_guard.sampling.langchain.wrappers import ChatRunnable
from snne_guard.sampling.replies import Draw, Reply

__all__ = ["LangChainDraws"]


class LangChainDraws:
    """The draws of one guarded call: a door's ``send`` for one list of messages.

    Every ``Reply.samples`` is in the order of the provider; ``Reply.raw`` of an answer
    is its ``AIMessage``, without log-probabilities that only the guard asked for.

    Args:
        model: A chat model, or wrappers around one or several.
        messages: The whole conversation.
        stop: Texts at which a reply ends.
        kwargs: Options of the call, which override bound ones.
        temperature: Temperature of samples; the answer keeps the user's own settings.
        logprobs: Whether log-probabilities are asked for, answer and samples alike.
        rejected: What the models have rejected; one object a guard.

    Raises:
        ConfigurationError: If there is anything else than a chat model inside.
    """

    def __init__(
        self,
        model: ChatRunnable,
        messages: Sequence[BaseMessage],
        *,
        stop: Sequence[str] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        temperature: float = 1.0,
        logprobs: bool = False,
        rejected: RejectedParameters | None = None,
    ) -> None:
        raise NotImplementedError

    def send(self, draw: Draw) -> Reply:
        """Send one draw and wait for its reply; the model's own error is raised."""
        raise NotImplementedError

    async def asend(self, draw: Draw) -> Reply:
        """Send one draw from a task."""
        raise NotImplementedError

    def stream(self) -> Iterator[ChatGenerationChunk]:
        """Stream the answer; a model without streaming gives one chunk."""
        raise NotImplementedError

    def astream(self) -> AsyncIterator[ChatGenerationChunk]:
        """Stream the answer from a task."""
        raise NotImplementedError

    def join(self, chunks: Iterable[ChatGenerationChunk]) -> Reply:
        """Return the streamed answer as a whole."""
        raise NotImplementedError
