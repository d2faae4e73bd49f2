"""langchain-tests' integration suite against a server that does what it is asked.

The server shows no images, sound or PDF files, so the tests of those skip themselves,
for the bare ``ChatOpenAI`` too; so do those of a recorded stream.
"""

from collections.abc import Iterator
from typing import Any, ClassVar

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_openai import ChatOpenAI
from langchain_tests.integration_tests import ChatModelIntegrationTests

from snne_guard import GuardedChatModel, SNNEGuard
from tests.conformance.obedient import obedient
from tests.support.chat_server import ChatServer, chat_openai

pytestmark = [
    # One loop for all, as in an application: the client keeps its connections.
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.filterwarnings(
        "ignore:The test .* is marked with:pytest.PytestWarning"
    ),
    # One test passes a model of pydantic 1, and the client says what it makes of it.
    pytest.mark.filterwarnings("ignore:Received a Pydantic BaseModel V1:UserWarning"),
    # The openai package dumps a parsed reply that its own model does not expect.
    pytest.mark.filterwarnings("ignore:Pydantic serializer warnings:UserWarning"),
]


class Scripted(ChatModelIntegrationTests):
    server: ClassVar[ChatServer]

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def serve(cls) -> Iterator[None]:
        with ChatServer(obedient) as cls.server:
            yield

    @property
    def standard_chat_model_params(self) -> dict[str, Any]:
        return {}

    @property
    def supports_json_mode(self) -> bool:
        return True

    @property
    def supports_image_inputs(self) -> bool:
        return False

    @property
    def model_override_value(self) -> str:
        return "another-model"

    def bare(self) -> ChatOpenAI:
        return chat_openai(self.server, stream_usage=True)


class TestBare(Scripted):
    """Shows that what the guard is asked for can be had from this server."""

    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return ChatOpenAI

    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {
            "model": "test-model",
            "api_key": "test",
            "base_url": self.server.url,
            "stream_usage": True,
        }


class TestMeasuring(Scripted):
    """A guard without a threshold: streams as the answer comes."""

    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return GuardedChatModel

    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {"guard": SNNEGuard(self.bare(), n=3)}


class TestWithholding(Scripted):
    """A guard that holds each answer back until it has decided."""

    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return GuardedChatModel

    @property
    def chat_model_params(self) -> dict[str, Any]:
        guard = SNNEGuard(
            self.bare(), n=3, threshold=0.9, on_uncertain="raise", tool_calls="score"
        )
        return {"guard": guard}
