"""A guard among other runnables: chains, fallbacks, models chosen for the call."""

from __future__ import annotations

from typing import Any

import pytest
from langchain.chat_models import init_chat_model
from langchain_core.callbacks import UsageMetadataCallbackHandler
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import ConfigurableField

from snne_guard import (
    GuardedChatModel,
    SNNEGuard,
)
from tests.support.chat_server import (
    ChatServer,
    Gate,
    always,
    chat_openai,
)
from tests.support.guarding import (
    AGREE,
    DIFFER,
    WAYS,
    WHOLE,
    ask,
    record,
    split,
)


@pytest.mark.parametrize("way", WAYS)
def test_fallback_answers_instead(way: str) -> None:
    with (
        ChatServer(split("Paris", DIFFER)) as server,
        ChatServer(always("Ask an atlas.")) as other,
    ):
        guard = SNNEGuard(
            chat_openai(server),
            threshold=0.4,
            on_uncertain="fallback",
            fallback=chat_openai(other),
        )
        message = ask(guard, "Capital of France?", way)
        assert [request.prompt for request in other.requests] == ["Capital of France?"]
    assert message.content == "Ask an atlas."
    assert record(message)["decision"] == "fallback"


@pytest.mark.parametrize("way", WHOLE)
def test_a_fallback_may_be_any_runnable_that_gives_text(way: str) -> None:
    with ChatServer(split("Paris", DIFFER)) as server:
        guard = SNNEGuard(
            chat_openai(server),
            threshold=0.4,
            on_uncertain="fallback",
            fallback=lambda _messages: "Ask a librarian.",
        )
        message = ask(guard, "Capital of France?", way)
    assert isinstance(message, AIMessage)
    assert message.content == "Ask a librarian."


@pytest.mark.parametrize("way", WAYS)
def test_with_fallbacks_takes_over_after_raise(way: str) -> None:
    with ChatServer(split("Paris", DIFFER)) as server, ChatServer(always("B")) as other:
        guard = SNNEGuard(chat_openai(server), threshold=0.4, on_uncertain="raise")
        chain = guard.with_fallbacks([chat_openai(other)]) | StrOutputParser()
        if way == "invoke":
            assert chain.invoke("x") == "B"
        if way == "stream":
            assert "".join(chain.stream("x")) == "B"


def test_a_chain_with_prompt_and_parser_works_unchanged() -> None:
    with ChatServer(split("Paris", AGREE)) as server:
        prompt = ChatPromptTemplate.from_messages([("system", "S"), ("human", "{q}")])
        chain = (
            prompt | SNNEGuard(chat_openai(server), threshold=0.4) | StrOutputParser()
        )
        assert chain.invoke({"q": "Capital?"}) == "Paris"
        assert "".join(chain.stream({"q": "Capital?"})) == "Paris"
        assert chain.batch([{"q": "1"}, {"q": "2"}]) == ["Paris", "Paris"]
        assert {tuple(r.texts) for r in server.requests} == {
            ("S", "Capital?"),
            ("S", "1"),
            ("S", "2"),
        }


@pytest.mark.parametrize("way", WHOLE)
@pytest.mark.parametrize("given", [HumanMessage("Ask."), "Ask.", 42])
def test_what_a_fallback_gives_becomes_an_answer(way: str, given: Any) -> None:
    with ChatServer(split("Paris", DIFFER)) as server:
        guard = SNNEGuard(
            chat_openai(server),
            threshold=0.4,
            on_uncertain="fallback",
            fallback=lambda _messages: given,
        )
        message = ask(guard, "x", way)
    assert isinstance(message, AIMessage)
    assert message.content == ("42" if given == 42 else "Ask.")


@pytest.mark.parametrize("way", WHOLE)
def test_a_model_that_is_chosen_by_the_configuration_is_the_one_that_is_sampled(
    way: str,
) -> None:
    with ChatServer(split("Paris", AGREE)) as one, ChatServer(split("B", ["B"])) as two:
        model = chat_openai(one).configurable_alternatives(
            ConfigurableField(id="which"), default_key="one", two=chat_openai(two)
        )
        guard = SNNEGuard(model, threshold=0.4, on_uncertain="refuse")
        message = ask(guard, "x", way, {"configurable": {"which": "two"}})
        assert (len(one.requests), len(two.requests)) == (0, 2)
    assert (message.content, record(message)["decision"]) == ("B", "accept")


@pytest.mark.parametrize("way", WHOLE)
def test_init_chat_model_with_its_model_left_open_is_guarded(way: str) -> None:
    with ChatServer(split("Paris", AGREE)) as server:
        model = init_chat_model(
            configurable_fields=("model", "temperature"),
            model_provider="openai",
            base_url=server.url,
            api_key="test",
        )
        guard = SNNEGuard(model, threshold=0.4, on_uncertain="refuse")
        message = ask(guard, "x", way, {"configurable": {"model": "chosen"}})
        assert {request.body["model"] for request in server.requests} == {"chosen"}
    assert record(message)["decision"] == "accept"


def test_types_of_input_and_output_are_the_models() -> None:
    with ChatServer(always("x")) as server:
        model = chat_openai(server)
        guard = SNNEGuard(model)
        assert guard.InputType == model.InputType
        assert guard.OutputType is AIMessage
        assert guard.get_input_jsonschema() == {
            **model.get_input_jsonschema(),
            "title": "SNNEGuardInput",
        }
        assert not SNNEGuard.is_lc_serializable()


@pytest.mark.parametrize("way", WHOLE)
def test_a_fallback_waits_for_no_sample_and_counts_those_that_came(way: str) -> None:
    gate = Gate()
    script = split(always("", status=401), always("Paris", gate=gate))
    with ChatServer(script) as server:
        guard = SNNEGuard(
            chat_openai(server), threshold=0.4, fallback=lambda _messages: "B"
        )
        message = ask(guard, "x", way)
        gate.open()
    assert message.content == "B"
    assert record(message)["cost"]["calls"] == 0


@pytest.mark.parametrize("fallback", ["lambda", "model"])
@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream"])
def test_usage_of_a_guarded_chat_model_counts_its_fallback(
    way: str, fallback: str
) -> None:
    handler = UsageMetadataCallbackHandler()
    with (
        ChatServer(split("Paris", DIFFER)) as server,
        ChatServer(always("Ask an atlas.")) as other,
    ):
        guard = SNNEGuard(
            chat_openai(server),
            threshold=0.4,
            on_uncertain="fallback",
            fallback=chat_openai(other) if fallback == "model" else lambda _m: "B",
        )
        message = ask(GuardedChatModel(guard), "x", way, {"callbacks": [handler]})
        billed = server.billed.completion_tokens + other.billed.completion_tokens
    assert message.usage_metadata is not None
    assert message.usage_metadata["output_tokens"] == billed
    counted = handler.usage_metadata.values()
    assert sum(usage["output_tokens"] for usage in counted) == billed
