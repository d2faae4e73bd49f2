"""Chat models as judges: over the wire, wrapped, failing, unseen by handlers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import openai
import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableLambda
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from snne_guard.errors import ConfigurationError, ScoringError
from snne_guard.langchain import ChatGenerate
from snne_guard.sampling.openai_generate import OpenAIGenerate
from snne_guard.similarity.judge import EntailmentJudge
from snne_guard.types import Generate
from tests.support.chat_server import (
    ChatServer,
    Reply,
    Request,
    always,
    chat_openai,
    error,
)

ANSWERS = ["Paris", "It is Paris.", "Lyon", "Paris"]
QUESTION = "The capital of France?"


def verdict(request: Request) -> Reply:
    """Lyon is not Paris; whatever does not speak of Lyon is the same."""
    return Reply(
        texts=("Contradiction." if "Lyon" in request.prompt else "entailment",)
    )


def client_of(server: ChatServer, **options: Any) -> openai.OpenAI:
    return openai.OpenAI(base_url=server.url, api_key="test", max_retries=0, **options)


@pytest.mark.parametrize("through", ["langchain", "bound", "openai"])
def test_a_judge_over_the_wire(through: str) -> None:
    with ChatServer(verdict) as server:
        chat = chat_openai(server, temperature=0)
        makers: dict[str, Callable[[], Generate]] = {
            "langchain": lambda: ChatGenerate(chat),
            "bound": lambda: ChatGenerate(chat.bind(stop=["!"]).with_retry()),
            "openai": lambda: OpenAIGenerate(
                client_of(server), model="test-model", temperature=0
            ),
        }
        generate = makers[through]()
        judge = EntailmentJudge(generate)
        found = judge.equivalent(ANSWERS, question=QUESTION)
    assert judge.name == "judge:test-model"
    assert found.tolist() == [[a == b for b in (0, 0, 1, 0)] for a in (0, 0, 1, 0)]
    assert judge.calls == len(server.requests) == 4
    assert all(QUESTION in request.prompt for request in server.requests)
    assert all(request.temperature == 0 for request in server.requests)
    assert judge.unclear == 0


@pytest.mark.parametrize("through", ["langchain", "openai"])
def test_a_judge_whose_server_fails(through: str) -> None:
    def flaky(request: Request) -> Reply:
        return error(500) if request.index == 0 else verdict(request)

    with ChatServer(flaky) as server:
        generate: Any = (
            ChatGenerate(chat_openai(server))
            if through == "langchain"
            else OpenAIGenerate(client_of(server), model="m")
        )
        judge = EntailmentJudge(generate, max_concurrency=1)
        with pytest.raises(ScoringError, match="failed with"):
            judge(ANSWERS)
        assert judge.equivalent(ANSWERS)[0].tolist() == [True, True, False, True]


def test_reasoning_is_no_verdict() -> None:
    with ChatServer(always("<think>Surely entailment.</think>neutral")) as server:
        generate = ChatGenerate(chat_openai(server))
        assert generate("Does it follow?") == "neutral"


def test_nothing_that_could_be_read() -> None:
    with ChatServer(always("x", choices=0)) as server:
        generate = OpenAIGenerate(client_of(server), model="m")
        with pytest.raises(ScoringError, match="expected a reply"):
            generate("prompt")


def test_what_is_no_chat_model() -> None:
    with pytest.raises(ConfigurationError, match="chat model"):
        ChatGenerate("gpt-4o")  # type: ignore[arg-type]
    chat = FakeListChatModel(responses=["neutral"])
    assert ChatGenerate(chat).name == "FakeListChatModel"
    assert repr(ChatGenerate(chat, name="toy")) == "ChatGenerate(name='toy')"
    with ChatServer() as server:
        generate = OpenAIGenerate(client_of(server), model="m")
        assert repr(generate) == "OpenAIGenerate(name='m')"


class Handler(BaseCallbackHandler):
    def __init__(self) -> None:
        self.seen: list[str] = []

    def on_chat_model_start(self, *_args: Any, **_kwargs: Any) -> None:
        self.seen.append("start")

    def on_llm_end(self, *_args: Any, **_kwargs: Any) -> None:
        self.seen.append("end")


def test_handlers_of_the_run_around_it_see_nothing() -> None:
    generate = ChatGenerate(FakeListChatModel(responses=["neutral"]))
    handler = Handler()
    chain = RunnableLambda(generate)
    assert chain.invoke("prompt", {"callbacks": [handler]}) == "neutral"
    assert handler.seen == []
    own = FakeListChatModel(responses=["neutral"], callbacks=[handler])
    assert ChatGenerate(own)("prompt") == "neutral"
    assert "start" in handler.seen


def test_what_is_no_message(monkeypatch: pytest.MonkeyPatch) -> None:
    chat = FakeListChatModel(responses=["neutral"])
    structured: Any = chat.bind()
    monkeypatch.setattr(type(structured), "invoke", lambda *_: {"verdict": "neutral"})
    with pytest.raises(ScoringError, match="got dict"):
        ChatGenerate(structured)("prompt")


def test_the_embedded_model_as_judge(embedded: ChatOpenAI) -> None:
    # Much too small to judge well: what it says must be counted, not believed.
    judge = EntailmentJudge(ChatGenerate(embedded.bind(temperature=0, max_tokens=8)))
    found = judge.equivalent(["Paris", "Lyon", "Paris"], question=QUESTION)
    assert found[0].tolist() in ([True, False, True], [True, True, True])
    assert 1 <= judge.calls <= 2
    assert judge.unclear <= judge.calls
    assert judge.name.startswith("judge:SmolLM2")
    assert isinstance(embedded.invoke([HumanMessage("Hi")]), AIMessage)


def test_what_replies_depend_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def served(url: str | None, **options: Any) -> str:
        chat = ChatOpenAI(model="m", base_url=url, api_key=SecretStr("sk-secret"))
        return ChatGenerate(chat.bind(**options), name="m").cache_key

    monkeypatch.setenv("OPENAI_BASE_URL", "http://c/v1")
    keys = [
        served("http://a/v1", temperature=0),
        served("http://b/v1", temperature=0),
        served("http://a/v1", temperature=1),
        served(None, temperature=0),
    ]
    assert len({*keys}) == 4
    assert served("http://a/v1", temperature=0) == keys[0]
    assert "sk-secret" not in str(keys)


def test_what_replies_of_a_client_depend_on() -> None:
    def served(url: str, **options: Any) -> str:
        client = openai.OpenAI(base_url=url, api_key="sk-secret")
        return OpenAIGenerate(client, model="m", **options).cache_key

    keys = [served("http://a"), served("http://b"), served("http://a", temperature=0)]
    assert len({*keys}) == 3
    assert served("http://a") == keys[0]
    assert "sk-secret" not in str(keys)
