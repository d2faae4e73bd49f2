"""langchain-tests' suites: nothing fails that the bare model passes.

The unit suite skips two tests of its own: ``test_init_from_env``, for a guard takes a
model and no environment, and ``test_serdes``, for LangChain loads no classes of other
packages.
"""

import inspect
import json
import re
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_openai import ChatOpenAI
from langchain_tests.integration_tests import ChatModelIntegrationTests
from langchain_tests.unit_tests import ChatModelUnitTests
from pydantic import SecretStr

from snne_guard import SNNEGuard
from tests.support.openai_server import JSON, Answer, Asked, Server, calling

# One loop for all, as in an application: the client keeps its connections.
one_loop = pytest.mark.asyncio(loop_scope="module")
pytestmark = [
    pytest.mark.filterwarnings(
        "ignore:The test .* is marked with:pytest.PytestWarning"
    ),
    # One test passes a model of pydantic 1, and the client says what it makes of it.
    pytest.mark.filterwarnings("ignore:Received a Pydantic BaseModel V1:UserWarning"),
    # The openai package dumps a parsed reply that its own model does not expect.
    pytest.mark.filterwarnings("ignore:Pydantic serializer warnings:UserWarning"),
]


# -- A provider that does as it is told ------------------------------------------------


def obedient(asked: Asked) -> Answer:
    """Call a tool where one fits, fill a schema where one is given, else say yes."""
    prompt = json.dumps(asked.body.get("messages", []), ensure_ascii=False)
    function, schema = _wanted_function(asked), _wanted_schema(asked, prompt)
    if function is not None:
        arguments = _filled(function.get("parameters") or {}, prompt)
        return calling(arguments, name=function["name"])
    said = "Yes, and gladly." if schema is None else json.dumps(_filled(schema, prompt))
    return Answer(texts=[said], model=asked.body["model"])


def _wanted_function(asked: Asked) -> JSON | None:
    tools = asked.body.get("tools") or []
    answered = asked.body["messages"][-1]["role"] == "tool"
    choice = asked.body.get("tool_choice")
    if not tools or answered or choice == "none":
        return None
    functions = {tool["function"]["name"]: tool["function"] for tool in tools}
    forced = choice["function"]["name"] if isinstance(choice, dict) else None
    wanted: JSON = functions[forced or next(iter(functions))]
    return wanted


def _wanted_schema(asked: Asked, prompt: str) -> JSON | None:
    wanted = asked.body.get("response_format") or {}
    if wanted.get("type") == "json_schema":
        schema: JSON = wanted["json_schema"]["schema"]
        return schema
    if wanted.get("type") == "json_object":
        names = re.findall(r"'(\w+)'", prompt)
        return {"properties": {name: {"type": "string"} for name in names}}
    return None


def _filled(schema: JSON, prompt: str) -> JSON:
    """Fill numbers and texts with what the prompt has in brackets and quotes."""
    number = re.search(r"\((-?\d+)\)", prompt)
    quoted = re.search(r"'([^']+)'", prompt)
    integer, text = int(number[1]) if number else 0, quoted[1] if quoted else "some"
    return {
        name: integer if part.get("type") == "integer" else text
        for name, part in (schema.get("properties") or {}).items()
    }


# -- The suites ------------------------------------------------------------------------

OPTIONS = frozenset(inspect.signature(SNNEGuard).parameters) - {"model"}


class GuardedChatOpenAI(SNNEGuard):
    """A guard that is made with the model's own options, as the suites make models."""

    def __init__(self, **given: Any) -> None:
        known = OPTIONS | frozenset(SNNEGuard.model_fields)
        options = {name: given[name] for name in given if name in known}
        own = {name: given[name] for name in given if name not in known}
        model = options.pop("guarded", None) or ChatOpenAI(**own)
        super().__init__(model, **options)


class TestUnit(ChatModelUnitTests):
    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return GuardedChatOpenAI

    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {"model": "test-model", "api_key": SecretStr("test")}

    @property
    def standard_chat_model_params(self) -> dict[str, Any]:
        return {}


class Suite(ChatModelIntegrationTests):
    """What both servers take; neither shows images, sound or files."""

    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return GuardedChatOpenAI

    @property
    def standard_chat_model_params(self) -> dict[str, Any]:
        return {}

    @property
    def supports_json_mode(self) -> bool:
        return True

    @property
    def supports_image_inputs(self) -> bool:
        return False


class Scripted(Suite):
    server: ClassVar[Server]

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def serve(cls) -> Iterator[None]:
        with Server(obedient) as cls.server:
            yield

    @property
    def model_override_value(self) -> str:
        return "another-model"

    @property
    def bare(self) -> dict[str, Any]:
        return {
            "model": "test-model",
            "api_key": "test",
            "base_url": self.server.url,
            "stream_usage": True,
        }


@one_loop
class TestMeasuring(Scripted):
    """A guard without a threshold: streams as the answer comes."""

    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {**self.bare, "n": 3}


@one_loop
class TestWithholding(Scripted):
    """A guard that holds each answer back until it has decided."""

    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {
            **self.bare,
            "n": 3,
            "threshold": 0.9,
            "on_uncertain": "raise",
            "tool_calls": "score",
        }


NO_TOOLS = "the chat template of the embedded model knows no tools"
NO_END = "the embedded model may write on and on in a JSON string, to the token limit"


@pytest.mark.slow
class Embedded(Suite):
    """What this small model cannot do, the bare client shows first."""

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
    bare: ClassVar[dict[str, Any]] = {}

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def serve(cls, embedded: ChatOpenAI) -> None:
        cls.bare = {
            "model": embedded.model_name,
            "api_key": "none-needed",
            "base_url": embedded.openai_api_base,
            "max_retries": 0,
            "max_tokens": 48,
            "seed": 1,
            "stream_usage": True,
            "temperature": 0,
            "use_responses_api": False,
        }

    @property
    def model_override_value(self) -> str:
        return str(self.bare["model"])


@one_loop
class TestEmbeddedBare(Embedded):
    is_bare = True

    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return ChatOpenAI

    @property
    def chat_model_params(self) -> dict[str, Any]:
        return self.bare


@one_loop
class TestEmbeddedGuarded(Embedded):
    @property
    def chat_model_params(self) -> dict[str, Any]:
        # Samples after the answer, so that its reply is the bare one to the last bit.
        model = ChatOpenAI(**self.bare)
        return {"guarded": model, "n": 3, "schedule": "answer_first"}
