"""The providers under test: each one's own LangChain class, pointed at a server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel

from snne_guard.sampling.langchain_provider import Provider
from snne_guard.sampling.langchain_providers import PROVIDERS, SERVERS, provider_of
from tests.support import provider_protocols as protocols
from tests.support.chat_server import Script
from tests.support.google_server import GoogleServer
from tests.support.guarding import WHOLE
from tests.support.provider_server import Protocol, ProviderServer

__all__ = ["CASES", "Case", "asked", "google_version"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One provider under test.

    Attributes:
        row: Name of its row in the table.
        package: The package that has the class.
        kind: Name of the class.
        protocol: What its servers speak.
        settings: Options that point it at a server.
        model: Name of the model that is asked, empty where the class names the server.
        acting: Options of a call that let the provider act on its own.
        seeded: Options of the class that seed it, empty where there are none.
        limit: Field of the token limit.
        ways: How it can be called.
        serve: The server that answers it.
        over: What its requests go over, where there are several.
        streams: Whether its server can stream the answer.
    """

    row: str
    package: str
    kind: str
    protocol: Protocol = protocols.OPENAI
    settings: Callable[[ProviderServer], Mapping[str, Any]]
    model: str = "test-model"
    acting: Mapping[str, Any] = field(default_factory=dict[str, Any])
    seeded: Mapping[str, Any] = field(default_factory=dict[str, Any])
    limit: str = "max_tokens"
    ways: tuple[str, ...] = WHOLE
    serve: type[ProviderServer] = ProviderServer
    over: str = ""
    streams: bool = True

    @property
    def name(self) -> str:
        """The row, and what tells it from others of the same row."""
        return f"{self.row}, {self.over}" if self.over else self.row

    def server(self, script: Script) -> ProviderServer:
        """Return a server that speaks the provider's protocol."""
        pytest.importorskip(self.package)
        return self.serve(self.protocol, script)

    @property
    def told(self) -> Provider:
        """The row of the table, as it is written there."""
        return next(row for row in (*PROVIDERS, *SERVERS) if row.name == self.row)

    def chat(self, server: ProviderServer, **options: Any) -> BaseChatModel:
        """Return the provider's own class, pointed at a server."""
        kind: Any = getattr(pytest.importorskip(self.package), self.kind)
        made = kind(**{**self.settings(server), "temperature": 0.3, **options})
        assert isinstance(made, BaseChatModel)
        if self.row not in {row.name for row in SERVERS}:
            assert provider_of(made).name == self.row
        return made


def _openai_like(key: str = "api_key", **more: Any) -> Callable[[ProviderServer], Any]:
    return lambda server: {
        "model": "test-model",
        key: "test",
        "base_url": server.url,
        **more,
    }


def _hugging_face(server: ProviderServer) -> dict[str, Any]:
    kind: Any = pytest.importorskip("langchain_huggingface").HuggingFaceEndpoint
    return {"llm": kind(endpoint_url=server.root), "model_id": "test-model"}


@cache
def _aws_session() -> Any:
    boto3: Any = pytest.importorskip("boto3")
    return boto3.Session(
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",  # noqa: S106 - of a server on this machine
    )


def _bedrock(server: ProviderServer) -> dict[str, Any]:
    # The class would make a session for each model, which takes much of a second.
    client = _aws_session().client("bedrock-runtime", endpoint_url=server.root)
    return {
        "model": "anthropic.claude-3-5-sonnet-20241022-v2:0",
        "client": client,
        "bedrock_client": client,
    }


def google_version() -> int:
    """Return the first number of langchain-google-genai's version, 0 without it."""
    try:
        return int(metadata.version("langchain-google-genai").partition(".")[0])
    except metadata.PackageNotFoundError:
        return 0


def _google() -> list[Case]:
    """Return the cases of Google: over HTTP, and before version 4 also over gRPC."""
    old = {"transport": "rest"} if google_version() < _ONE_TRANSPORT else {}
    common: dict[str, Any] = {
        "row": "Google Gemini",
        "package": "langchain_google_genai",
        "kind": "ChatGoogleGenerativeAI",
        "protocol": protocols.GOOGLE,
        "model": "gemini-2.5-flash",
        "acting": {"tools": [{"google_search": {}}]},
        "limit": "max_output_tokens",
    }
    named = {"model": "gemini-2.5-flash", "google_api_key": "test"}
    rest = Case(
        **common,
        settings=lambda server: {**named, **old, "base_url": server.root},
        # Its first version had no asynchronous calls over HTTP.
        ways=("invoke",) if old else WHOLE,
        over="REST",
    )
    grpc = Case(
        **common,
        settings=lambda server: {
            **named,
            "client_options": {"api_endpoint": server.address},
            "timeout": 20,
        },
        serve=GoogleServer,
        over="gRPC",
        streams=False,
    )
    return [rest, grpc] if old else [rest]


_ONE_TRANSPORT = 4
SEARCH = {"tools": [{"type": "web_search"}]}

CASES = {
    case.name: case
    for case in (
        Case(
            row="OpenAI",
            package="langchain_openai",
            kind="ChatOpenAI",
            settings=_openai_like(),
            acting={"web_search_options": {}},
            seeded={"seed": 7},
        ),
        Case(
            row="Azure OpenAI",
            package="langchain_openai",
            kind="AzureChatOpenAI",
            settings=lambda server: {
                "model": "test-model",
                "azure_endpoint": server.root,
                "azure_deployment": "mine",
                "api_version": "2025-04-01-preview",
                "api_key": "test",
            },
            acting={"web_search_options": {}},
            seeded={"seed": 7},
        ),
        Case(
            row="vLLM",
            package="langchain_openai",
            kind="ChatOpenAI",
            protocol=protocols.VLLM,
            settings=_openai_like(),
            acting={"web_search_options": {}},
            seeded={"seed": 7},
        ),
        Case(
            row="Anthropic",
            package="langchain_anthropic",
            kind="ChatAnthropic",
            protocol=protocols.ANTHROPIC,
            settings=lambda server: {
                "model": "claude-test",
                "api_key": "test",
                "base_url": server.root,
            },
            model="claude-test",
            acting={"tools": [{"type": "web_search_20250305", "name": "web_search"}]},
        ),
        *_google(),
        Case(
            row="Amazon Bedrock, Converse",
            package="langchain_aws",
            kind="ChatBedrockConverse",
            protocol=protocols.BEDROCK,
            settings=_bedrock,
            model="anthropic.claude-3-5-sonnet-20241022-v2:0",
            acting={"toolConfig": {"tools": [{"systemTool": {"name": "nova"}}]}},
            streams=False,
        ),
        Case(
            row="Amazon Bedrock, InvokeModel",
            package="langchain_aws",
            kind="ChatBedrock",
            protocol=protocols.BEDROCK_INVOKE,
            settings=_bedrock,
            model="anthropic.claude-3-5-sonnet-20241022-v2:0",
            streams=False,
        ),
        Case(
            row="Mistral",
            package="langchain_mistralai",
            kind="ChatMistralAI",
            protocol=protocols.MISTRAL,
            settings=_openai_like(),
            acting={"tools": [{"type": "web_search"}]},
            seeded={"random_seed": 7},
        ),
        Case(
            row="Groq",
            package="langchain_groq",
            kind="ChatGroq",
            settings=lambda server: {
                "model": "test-model",
                "api_key": "test",
                "base_url": server.root,
            },
            acting={"tools": [{"type": "browser_search"}]},
        ),
        Case(
            row="Ollama",
            package="langchain_ollama",
            kind="ChatOllama",
            protocol=protocols.OLLAMA,
            settings=lambda server: {"model": "test-model", "base_url": server.root},
            seeded={"seed": 7},
            limit="num_predict",
            streams=False,  # this class always does, and has no switch
        ),
        Case(
            row="Hugging Face, endpoints",
            package="langchain_huggingface",
            kind="ChatHuggingFace",
            protocol=protocols.TGI,
            settings=_hugging_face,
            model="",
            acting=SEARCH,
        ),
        Case(
            row="Fireworks",
            package="langchain_fireworks",
            kind="ChatFireworks",
            settings=_openai_like(),
            acting=SEARCH,
        ),
        Case(
            row="Together",
            package="langchain_together",
            kind="ChatTogether",
            protocol=protocols.TOGETHER,
            settings=_openai_like(),
            acting={"web_search_options": {}},
            seeded={"seed": 7},
        ),
        Case(
            row="DeepSeek",
            package="langchain_deepseek",
            kind="ChatDeepSeek",
            settings=_openai_like(),
            acting={"web_search_options": {}},
            seeded={"seed": 7},
        ),
        Case(
            row="xAI",
            package="langchain_xai",
            kind="ChatXAI",
            settings=_openai_like(),
            acting={"extra_body": {"search_parameters": {"mode": "auto"}}},
            seeded={"seed": 7},
        ),
    )
}


def asked(
    holds: Callable[[Case], object] = lambda _case: True,
) -> pytest.MarkDecorator:
    """Return the mark that runs a test for the providers for which something holds."""
    found = [
        pytest.param(case, way, id=f"{name}-{way}")
        for name, case in CASES.items()
        if holds(case)
        for way in case.ways
    ]
    return pytest.mark.parametrize(("case", "way"), found)
