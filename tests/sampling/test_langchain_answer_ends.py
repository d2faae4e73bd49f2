"""Where a LangChain model's answers end, as far as its settings say it."""

from __future__ import annotations

import math
from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel

from snne_guard.sampling.langchain_models import answer_settings, resolve
from tests.support.chat_server import ChatServer, chat_openai

KEY = {"api_key": "test"}
CLASSES: list[tuple[str, str, dict[str, Any], str, int | None]] = [
    ("openai", "ChatOpenAI", KEY, "max_tokens", None),
    ("anthropic", "ChatAnthropic", KEY, "max_tokens", 4096),
    ("google_genai", "ChatGoogleGenerativeAI", KEY, "max_output_tokens", None),
    ("aws", "ChatBedrockConverse", {"provider": "amazon"}, "max_tokens", None),
    ("mistralai", "ChatMistralAI", KEY, "max_tokens", None),
    ("groq", "ChatGroq", KEY, "max_tokens", None),
    ("ollama", "ChatOllama", {}, "num_predict", None),
    ("fireworks", "ChatFireworks", KEY, "max_tokens", None),
]
EACH = pytest.mark.parametrize(
    ("package", "kind", "own", "limit", "default"),
    CLASSES,
    ids=[each[0] for each in CLASSES],
)


def chat(package: str, kind: str, own: dict[str, Any], **options: Any) -> Any:
    made = getattr(pytest.importorskip(f"langchain_{package}"), kind)
    return made(model="m", **own, **options)


def said(model: Any, **kwargs: Any) -> tuple[Any, Any]:
    [candidate] = resolve(model)
    found = candidate.answer_settings(kwargs)
    return set(found["max_tokens"]), set(found["stop"])


@pytest.fixture(autouse=True)
def _region(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")


@EACH
def test_they_are_the_call_s_the_binding_s_or_the_model_s(
    package: str, kind: str, own: dict[str, Any], limit: str, default: int | None
) -> None:
    bare = chat(package, kind, own)
    assert said(bare) == ({default}, {None})
    model = chat(package, kind, own, stop=["a"], **{limit: 9})
    assert said(model) == ({9}, {("a",)})
    assert said(model, stop=None) == ({9}, {("a",)})  # as LangChain passes it
    assert said(model, stop=["b"]) == ({9}, {("b",)})
    bound = bare.bind(stop=["b", "c"], **{limit: 5})
    assert said(bound) == ({5}, {("b", "c")})
    assert said(bound, **{limit: 7}) == ({7}, {("b", "c")})


@pytest.mark.parametrize(
    ("place", "package", "kind", "own"),
    [
        ({"extra_body": {"max_tokens": 5, "stop": "x"}}, *CLASSES[0][:3]),
        ({"extra_body": {"max_completion_tokens": 5, "stop": "x"}}, *CLASSES[0][:3]),
        (
            {"generation_config": {"max_output_tokens": 5, "stop_sequences": ["x"]}},
            *CLASSES[2][:3],
        ),
        (
            {"generation_config": {"maxOutputTokens": 5, "stopSequences": ["x"]}},
            *CLASSES[2][:3],
        ),
        (
            {"inferenceConfig": {"maxTokens": 5, "stopSequences": ["x"]}},
            *CLASSES[3][:3],
        ),
        (
            {"inference_config": {"max_tokens": 5, "stop_sequences": ["x"]}},
            *CLASSES[3][:3],
        ),
        ({"options": {"num_predict": 5, "stop": ["x"]}}, *CLASSES[6][:3]),
    ],
)
def test_options_inside_of_others_are_read_too(
    place: dict[str, Any], package: str, kind: str, own: dict[str, Any]
) -> None:
    model = chat(package, kind, own)
    assert said(model, **place) == said(model.bind(**place)) == ({5}, {("x",)})


@pytest.mark.parametrize("value", ["many", 1.5, True, math.nan, math.inf, [5]])
def test_what_is_no_limit_is_not_known(value: object) -> None:
    with ChatServer() as server:
        assert said(chat_openai(server), max_tokens=value)[0] == set()
        assert said(chat_openai(server), max_tokens=5.0)[0] == {5}


@pytest.mark.parametrize(
    ("value", "found"),
    [(5, set()), ([5], set()), ([], {None}), ((), {None}), ("x", {("x",)})],
)
def test_stops_are_texts(value: object, found: set[Any]) -> None:
    with ChatServer() as server:
        assert said(chat_openai(server), stop=value)[1] == found


def test_of_a_class_without_such_fields_nobody_knows() -> None:
    model = FakeListChatModel(responses=["x"])
    assert said(model) == (set(), set())
    assert said(model, max_tokens=5, stop=["x"]) == ({5}, {("x",)})


def test_any_of_several_models_may_answer() -> None:
    with ChatServer() as server:
        one, two = chat_openai(server, max_tokens=5), chat_openai(server, stop=["x"])
        found = answer_settings(one.with_fallbacks([two]))
    assert (found["max_tokens"], found["stop"]) == ({5, None}, {None, ("x",)})
