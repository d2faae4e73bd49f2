"""Models of Pydantic AI that say what a test wants."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle
from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    ModelResponsePart,
    TextPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

APART = ("Rome", "Lyon", "Bonn", "Oslo")
REFUSAL = "I am not certain enough of the answer to give one."
QUESTION = "Capital of France?"

Reply = str | ModelResponse
Asked = list[dict[str, Any]]


def scripted(
    answer: Reply, *samples: Reply, asked: Asked | None = None, name: str = "scripted"
) -> Any:
    """Answer with one reply; give each sample the next of the others."""
    others: Iterator[Reply] = cycle(samples or (answer,))

    async def reply(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        settings = dict(info.model_settings or {})
        if asked is not None:
            asked.append(settings)
        given = next(others) if settings.get("temperature") == 1.0 else answer
        if isinstance(given, str):
            return ModelResponse(parts=[TextPart(given)], finish_reason="stop")
        return given

    return FunctionModel(reply, model_name=name)


def responding(*parts: ModelResponsePart, **fields: Any) -> ModelResponse:
    return ModelResponse(parts=[*parts], **fields)


def record_of(result: Any) -> dict[str, Any]:
    metadata = result.response.metadata
    assert metadata is not None
    record: dict[str, Any] = metadata["snne_guard"]
    return record
