"""langchain-tests' integration suite against the embedded model.

What this small model cannot do is shown by the bare ``ChatOpenAI``: it runs first, and
the guard is excused only where the bare model has failed the same test in this run. The
tests that skip themselves do so for both: no images, sound or PDF, no recordings.
"""

from typing import Any, ClassVar

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_openai import ChatOpenAI
from langchain_tests.integration_tests import ChatModelIntegrationTests

from snne_guard import GuardedChatModel, MissingExtraError, SNNEGuard
from snne_guard.langchain.embedded import MODEL_NAME, embedded_server_url

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

NO_TOOLS = "the chat template of the embedded model knows no tools"
NO_END = "the embedded model may write on and on in a JSON string, to the token limit"


class Embedded(ChatModelIntegrationTests):
    cannot: ClassVar[dict[str, str]] = {
        "test_agent_loop": NO_TOOLS,
        "test_bind_runnables_as_tools": NO_TOOLS,
        "test_json_mode": NO_END,
        "test_structured_output": NO_END,
        "test_structured_output_async": NO_END,
        "test_structured_output_optional_param": NO_END,
        "test_structured_output_pydantic_2_v1": NO_TOOLS,
        "test_tool_calling": NO_TOOLS,
        "test_tool_calling_async": NO_TOOLS,
        "test_tool_calling_with_no_arguments": NO_TOOLS,
        "test_tool_choice": NO_TOOLS,
        "test_unicode_tool_call_integration": NO_TOOLS,
    }

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def serve(cls) -> None:
        try:
            embedded_server_url()
        except MissingExtraError as error:
            pytest.skip(str(error))

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
        return MODEL_NAME

    @property
    def bare_params(self) -> dict[str, Any]:
        return {
            "model": MODEL_NAME,
            "api_key": "none-needed",
            "base_url": embedded_server_url(),
            "max_retries": 0,
            "max_tokens": 48,
            "seed": 1,
            "stream_usage": True,
            "temperature": 0,
            "use_responses_api": False,
        }


class TestBare(Embedded):
    is_bare = True

    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return ChatOpenAI

    @property
    def chat_model_params(self) -> dict[str, Any]:
        return self.bare_params


class TestGuarded(Embedded):
    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return GuardedChatModel

    @property
    def chat_model_params(self) -> dict[str, Any]:
        # Samples after the answer, so that its reply is the bare one to the last bit.
        return {
            "guard": SNNEGuard(
                ChatOpenAI(**self.bare_params),
                n=3,
                sample_max_tokens=12,
                schedule="answer_first",
            )
        }
