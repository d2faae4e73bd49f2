"""Chat models of LangChain that are asked for nothing."""

from __future__ import annotations

from typing import Any

from langchain_core.language_models import FakeListChatModel
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

__all__ = ["fake", "gpt"]


def fake(text: str = "x") -> FakeListChatModel:
    return FakeListChatModel(responses=[text])


def gpt(**options: Any) -> ChatOpenAI:
    settings = {"model": "m", "api_key": SecretStr("test"), **options}
    return ChatOpenAI(**settings)
