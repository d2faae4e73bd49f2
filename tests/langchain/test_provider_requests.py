"""What the LangChain classes of real providers would send for answers and samples."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage
from pydantic import BaseModel

from snne_guard.engine import Draw, asks_for_schema, may_act
from snne_guard.errors import ConfigurationError
from snne_guard.langchain.others import bound_to_each, tree_of
from snne_guard.langchain.sender import LangChainSender
from snne_guard.langchain.structured import structured_step
from snne_guard.langchain.wrappers import ModelTree

KEY = {"model": "m", "api_key": "test"}
CLAUDE = "anthropic.claude-3-5-sonnet-20241022-v2:0"


class SentError(BaseException):
    """Carries the body of a request; no client catches or repeats it."""

    def __init__(self, body: bytes) -> None:
        super().__init__("a request")
        self.body: dict[str, Any] = json.loads(body)


@cache
def bedrock() -> Any:
    """Return a client of AWS's Bedrock with the credentials of nobody."""
    boto3 = pytest.importorskip("boto3")
    session = boto3.Session(
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",  # noqa: S106 - of nobody
    )
    return session.client("bedrock-runtime")


@pytest.fixture(autouse=True)
def nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Replace the sending of every HTTP client that the providers' packages use."""

    def send(_self: Any, request: Any, **_: Any) -> Any:
        raise SentError(request.read())

    async def asend(_self: Any, request: Any, **_: Any) -> Any:
        raise SentError(await request.aread())

    def send_to_bedrock(request: Any, **_: Any) -> Any:
        raise SentError(request.body)

    for name in ("httpx", "httpx2"):
        with suppress(ImportError):
            module: Any = importlib.import_module(name)
            monkeypatch.setattr(module.Client, "send", send)
            monkeypatch.setattr(module.AsyncClient, "send", asend)
    events = bedrock().meta.events
    events.register("before-send", send_to_bedrock)
    yield
    events.unregister("before-send", send_to_bedrock)


@dataclass(frozen=True, kw_only=True)
class Case:
    """One class: how it is made, and where in its request body the settings are."""

    options: Any = field(default_factory=dict)
    temperature: str = "temperature"
    n: str = ""
    logprobs: str = ""
    seed: str = ""
    retries: bool = True
    ways: tuple[str, ...] = ("send", "asend")


def bedrock_options() -> Any:
    return {"model": CLAUDE, "client": bedrock(), "bedrock_client": bedrock()}


def endpoint_options() -> Any:
    endpoint = importlib.import_module("langchain_huggingface").HuggingFaceEndpoint
    return {"llm": endpoint(endpoint_url="http://127.0.0.1:9"), "model_id": "m"}


OPENAI = Case(options={**KEY, "seed": 7}, n="n", logprobs="logprobs", seed="seed")
CASES: dict[str, Case] = {
    "langchain_openai.ChatOpenAI": OPENAI,
    "langchain_openai.AzureChatOpenAI": replace(
        OPENAI,
        options={
            **OPENAI.options,
            "azure_endpoint": "http://127.0.0.1:9",
            "azure_deployment": "d",
            "api_version": "2025-04-01-preview",
        },
    ),
    "langchain_together.ChatTogether": replace(OPENAI, logprobs=""),
    "langchain_xai.ChatXAI": OPENAI,
    "langchain_deepseek.ChatDeepSeek": replace(OPENAI, n=""),
    "langchain_anthropic.ChatAnthropic": Case(options=KEY),
    "langchain_google_genai.ChatGoogleGenerativeAI": Case(
        options={"model": "gemini-2.5-flash", "google_api_key": "test", "seed": 7},
        temperature="generationConfig.temperature",
        n="generationConfig.candidateCount",
        seed="generationConfig.seed",
        ways=("send",),  # in a task it asks by another client
    ),
    "langchain_aws.ChatBedrockConverse": Case(
        options=bedrock_options, temperature="inferenceConfig.temperature"
    ),
    "langchain_aws.ChatBedrock": Case(options=bedrock_options),
    "langchain_mistralai.ChatMistralAI": Case(
        options={**KEY, "random_seed": 7}, n="n", seed="random_seed", retries=False
    ),
    "langchain_groq.ChatGroq": Case(options=KEY),
    "langchain_ollama.ChatOllama": Case(
        options={"model": "m", "seed": 7},
        temperature="options.temperature",
        logprobs="logprobs",
        seed="options.seed",
        retries=False,
    ),
    "langchain_fireworks.ChatFireworks": Case(options=KEY, n="n", logprobs="logprobs"),
    "langchain_huggingface.ChatHuggingFace": Case(
        options=endpoint_options, logprobs="logprobs", retries=False
    ),
}

EVERY = pytest.mark.parametrize(
    ("name", "way"), [(name, way) for name, case in CASES.items() for way in case.ways]
)


def chat(name: str, **more: Any) -> BaseChatModel:
    package, _, kind = name.partition(".")
    chat_model = getattr(pytest.importorskip(package), kind)
    options = CASES[name].options
    options = options() if callable(options) else options
    model = chat_model(**{"temperature": 0.3, **options, **more})
    assert isinstance(model, BaseChatModel)
    return model


def draws(model: Any, **kwargs: Any) -> LangChainSender:
    messages = [HumanMessage("The capital of France?")]
    return LangChainSender(ModelTree(model, kwargs), messages)


ANSWER = Draw(role="answer", logprobs=True)
SAMPLE = Draw(role="sample", temperature=1.0, logprobs=True)
SEVERAL = replace(SAMPLE, n=3)


async def body(asking: LangChainSender, draw: Draw, way: str = "send") -> Any:
    """Return the body of the request that a draw sends."""
    with pytest.raises(SentError) as sent:
        asking.send(draw) if way == "send" else await asking.asend(draw)
    return sent.value.body


def at(sent: Any, path: str) -> Any:
    """Return what stands at a path of a body, None for no path."""
    value = sent if path else None
    for name in path.split(".") if path else ():
        value = value.get(name) if isinstance(value, dict) else None
    return value


@EVERY
async def test_samples_are_asked_for_as_the_table_says(name: str, way: str) -> None:
    case, model = CASES[name], chat(name)
    takes = ModelTree(model).parameters
    wanted = ("n" in takes, "logprobs" in takes)
    assert wanted == (bool(case.n), bool(case.logprobs))
    assert not any(map(may_act, ModelTree(model).levels))
    assert ModelTree(model).retries_itself is case.retries
    asking = draws(model, stop=["."])
    answer = await body(asking, ANSWER, way)
    sample = await body(asking, SEVERAL, way)
    assert at(answer, case.temperature) == 0.3
    assert at(sample, case.temperature) == 1.0
    assert at(answer, case.seed) == (7 if case.seed else None)
    assert at(sample, case.seed) is None
    assert at(answer, case.n) in (None, 1)
    assert at(sample, case.n) == (3 if case.n else None)
    assert bool(at(answer, case.logprobs)) is bool(case.logprobs)
    assert bool(at(sample, case.logprobs)) is bool(case.logprobs)
    assert "France" in str(sample)
    assert "'.'" in str(sample)


ODD: dict[str, Any] = {
    "langchain_google_genai.ChatGoogleGenerativeAI": {
        "generation_config": {"temperature": 0.0, "candidate_count": 2, "top_k": 3}
    },
    "langchain_aws.ChatBedrockConverse": {"inferenceConfig": {"maxTokens": 500}},
    "langchain_mistralai.ChatMistralAI": {"temperature": 0.0, "n": 2, "random_seed": 5},
    "langchain_ollama.ChatOllama": {"options": {"num_ctx": 99, "seed": 5}},
}
"""Where users may put what samples set anew."""


@pytest.mark.parametrize("name", ODD)
async def test_samples_are_hot_wherever_the_user_set_the_temperature(name: str) -> None:
    case, model = CASES[name], chat(name)
    for asking in (draws(model.bind(**ODD[name])), draws(model, **ODD[name])):
        sample = await body(asking, SAMPLE)
        assert at(sample, case.temperature) == 1.0
        assert at(sample, case.n) in (None, 1)
        assert at(sample, case.seed) is None


SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
FORMS: dict[str, tuple[str, dict[str, Any]]] = {
    "langchain_anthropic.ChatAnthropic": (
        "output_config.format",
        {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
    ),
    "langchain_google_genai.ChatGoogleGenerativeAI": (
        "generationConfig.responseMimeType",
        {"response_mime_type": "application/json", "response_schema": SCHEMA},
    ),
    "langchain_aws.ChatBedrockConverse": (
        "outputConfig.textFormat",
        {
            "output_config": {
                "textFormat": {
                    "type": "json_schema",
                    "structure": {"jsonSchema": {"schema": json.dumps(SCHEMA)}},
                }
            }
        },
    ),
    "langchain_ollama.ChatOllama": ("format", {"format": "json"}),
}
"""Where users may ask for JSON, and where that is in the body of a request."""


@pytest.mark.parametrize("name", FORMS)
async def test_a_self_check_has_no_schema_wherever_the_user_set_it(name: str) -> None:
    path, options = FORMS[name]
    check = Draw(role="self_check", turns=("Paris", "Right?"), logprobs=True)
    for model in (chat(name, **options), chat(name).bind(**options)):
        assert any(map(asks_for_schema, ModelTree(model).levels))
        assert at(await body(draws(model), SAMPLE), path)
        assert not at(await body(draws(model), check), path)


@pytest.mark.parametrize(
    ("name", "wanted", "sent"),
    [
        ("langchain_anthropic.ChatAnthropic", 1.5, 1.0),
        ("langchain_openai.ChatOpenAI", 3.0, 2.0),
        ("langchain_ollama.ChatOllama", 3.0, 3.0),
    ],
)
async def test_a_temperature_is_moved_into_the_providers_range(
    name: str, wanted: float, sent: float
) -> None:
    sample = await body(draws(chat(name)), replace(SAMPLE, temperature=wanted))
    assert at(sample, CASES[name].temperature) == sent


async def test_the_responses_api_is_asked_one_by_one_and_stores_nothing() -> None:
    model = chat("langchain_openai.ChatOpenAI", use_responses_api=True, seed=None)
    assert ModelTree(model).parameters.isdisjoint({"n", "logprobs"})
    asking = draws(model)
    answer = await body(asking, ANSWER)
    sample = await body(asking, SEVERAL, "asend")
    assert (answer.get("store"), sample["store"]) == (None, False)
    assert {"n", "logprobs"}.isdisjoint(sample)


class City(BaseModel):
    """Where it is."""

    name: str


async def test_a_structured_sample_is_hot_beside_options_of_the_body() -> None:
    extra = {"temperature": 0.0, "top_k": 5}
    model: Any = chat("langchain_openai.ChatOpenAI", extra_body=extra)
    asking = draws(model.bind(response_format=City))
    answer = await body(asking, ANSWER)
    sample = await body(asking, SAMPLE)
    assert (answer["temperature"], sample["temperature"]) == (0.0, 1.0)
    assert answer["response_format"] == sample["response_format"]
    assert (answer["top_k"], "top_k" in sample) == (5, False)


# -- As another model ------------------------------------------------------------------


@EVERY
async def test_another_model_is_asked_at_its_own_settings(name: str, way: str) -> None:
    case = CASES[name]
    for model in (chat(name), chat(name).bind(stop=[";"]).with_retry()):
        call = {"stop": ["."], "max_tokens": 19, "temperature": 0.9, "n": 4, "x": 1}
        asking = LangChainSender(
            ModelTree(model),
            [HumanMessage("The capital of France?")],
            others={"b": tree_of(model, call)},
        )
        sent = await body(asking, Draw(role="sample", other_model="b"), way)
        assert at(sent, case.temperature) == 0.3
        assert at(sent, case.seed) == (7 if case.seed else None)
        assert at(sent, case.n) in (None, 1)
        assert not at(sent, case.logprobs)
        assert [*leaves(sent)].count(19) == 1
        assert "'.'" in str(sent)
        assert "';'" not in str(sent)


def leaves(value: Any) -> Iterator[Any]:
    """Yield every value of a body that holds no others."""
    if isinstance(value, dict):
        for each in value.values():
            yield from leaves(each)
    else:
        yield value


@pytest.mark.parametrize("name", CASES)
def test_another_model_is_bound_to_a_schema_in_its_own_form(name: str) -> None:
    model = chat(name)
    if name == "langchain_huggingface.ChatHuggingFace":
        with pytest.raises(ConfigurationError, match="'m' cannot be bound"):
            bound_to_each([model], ["m"], partial(structured_step, schema=City))
        return
    (bound,) = bound_to_each([model], ["m"], partial(structured_step, schema=City))
    levels = ModelTree(bound).levels
    assert any(level.get("tools") or asks_for_schema(level) for level in levels)
