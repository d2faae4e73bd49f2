"""An answer as a stream: its chunks, and the one with the assessment on its end."""

from __future__ import annotations

from langchain_core.messages import AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk

from snne_guard.engine import Outcome
from snne_guard.langchain.delivery import KEY, Record, usage_of


def chunk_of(item: ChatGenerationChunk | Outcome) -> ChatGenerationChunk:
    """Return the chunk to deliver for one of the answer, or for the call's end.

    The chunk for the end has the assessment and the usage of all draws, so the others
    have no usage.
    """
    if not isinstance(item, Outcome):
        if getattr(item.message, "usage_metadata", None) is None:
            return item
        plain = item.message.model_copy(update={"usage_metadata": None})
        return item.model_copy(update={"message": plain})
    if item.error is not None:
        raise item.error
    end = AIMessageChunk(
        content="",
        response_metadata={KEY: Record(item.assessment.to_metadata())},
        usage_metadata=usage_of(item.assessment.own_cost),
        chunk_position="last",
    )
    return ChatGenerationChunk(message=end)
