"""Other models of two providers, on scripted servers."""

from __future__ import annotations

from typing import Any

from langchain_anthropic import ChatAnthropic
from pydantic import SecretStr

from tests.langchain.support import (
    chat_openai,
)
from tests.support.openai_server import (
    Answer,
    Asked,
    Scripted,
    Server,
)

OTHER = "other-model"


def other_openai(server: Server, **options: Any) -> Any:
    return chat_openai(server, **{"model": OTHER, **options})


def anthropic(server: Server, **options: Any) -> ChatAnthropic:
    settings: dict[str, Any] = {
        "model_name": "claude",
        "api_key": SecretStr("none"),
        "base_url": server.url.removesuffix("/v1"),
        "max_retries": 0,
        "timeout": 60,
        "stop": None,
        **options,
    }
    return ChatAnthropic(**settings)


def messages_api(text: str = "Paris", *, call: Any = None, name: str = "") -> Scripted:
    """Answer as Anthropic's API does, by a text or by a call as well."""

    def script(asked: Asked) -> Answer:
        del asked
        content: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
        if call is not None:
            used = {"type": "tool_use", "id": "toolu_1", "name": name, "input": call}
            content.append(used)
        body = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude-1",
            "content": content,
            "stop_reason": "end_turn" if call is None else "tool_use",
            "usage": {"input_tokens": 7, "output_tokens": 3},
        }
        return Answer(body=body)

    return script
