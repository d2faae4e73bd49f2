"""What the score is told of a prompt: the user's question, not the context with it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import ConfigurableField, Runnable, RunnableLambda

from snne_guard import ConfigurationError, GuardedChatModel, SNNEGuard
from snne_guard.similarity import rouge_l
from snne_guard.types import FloatArray
from tests.support.chat_server import ChatServer, always, chat_openai
from tests.support.guarding import WAYS, WHOLE, Witness, ask, record, run_in_loop

PARIS = always("Paris")
PROMPT = ChatPromptTemplate.from_template("{context}\n\nQuestion: {question}")
GIVEN = {"context": "France is a country.", "question": "Its capital?"}
WHOLE_TEXT = "France is a country.\n\nQuestion: Its capital?"
KEY = "snne_guard_question"


class Hearing:
    """A similarity that keeps the question that it is told."""

    def __init__(self) -> None:
        self.heard: set[str | None] = set()

    def __call__(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> FloatArray:
        self.heard.add(question)
        return rouge_l(texts)


def after_the_mark(messages: Sequence[BaseMessage]) -> str:
    return str(messages[-1].text).rpartition("Question: ")[2]


def as_it_is(guard: SNNEGuard) -> Runnable[Any, Any]:
    return guard


def in_a_chain(guard: SNNEGuard) -> Runnable[Any, Any]:
    return PROMPT | guard


def as_a_model(guard: SNNEGuard) -> Runnable[Any, Any]:
    return GuardedChatModel(guard)


def model_in_a_chain(guard: SNNEGuard) -> Runnable[Any, Any]:
    return PROMPT | GuardedChatModel(guard)


def inside_a_function(guard: SNNEGuard) -> Runnable[Any, Any]:
    """A model that is called without a configuration, as in a node of a graph."""
    model = GuardedChatModel(guard)

    async def acalled(given: dict[str, str]) -> Any:
        return await model.ainvoke(PROMPT.invoke(given))

    return RunnableLambda(lambda given: model.invoke(PROMPT.invoke(given)), acalled)


Place = Callable[[SNNEGuard], Runnable[Any, Any]]
PLACES = [as_it_is, in_a_chain, as_a_model, model_in_a_chain]


def value(place: Place) -> Any:
    return WHOLE_TEXT if place in {as_it_is, as_a_model} else GIVEN


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("way", WAYS)
def test_a_function_says_what_the_question_is(way: str, place: Place) -> None:
    similarity, witness = Hearing(), Witness()
    with ChatServer(PARIS) as server:
        guard = SNNEGuard(
            chat_openai(server),
            threshold=0.5,
            similarity=similarity,
            question=after_the_mark,
            observers=[witness],
        )
        found = record(ask(place(guard), value(place), way))
        assert {request.prompt for request in server.requests} == {WHOLE_TEXT}
    assert similarity.heard == {"Its capital?"}
    assert witness.last.question == "Its capital?"
    assert (found["decision"], found["reasons"]) == ("accept", [])


@pytest.mark.parametrize(
    ("place", "way"),
    [
        *((place, way) for place in PLACES for way in WAYS),
        *((inside_a_function, way) for way in WAYS if "stream" not in way),
    ],
)
def test_one_call_says_it_through_its_configuration(place: Place, way: str) -> None:
    similarity = Hearing()
    with ChatServer(PARIS) as server:
        guard = SNNEGuard(
            chat_openai(server), similarity=similarity, question=after_the_mark
        )
        asked: Any = {"metadata": {KEY: "The capital of France?"}}
        found = record(ask(place(guard), value(place), way, asked))
        assert {request.prompt for request in server.requests} == {WHOLE_TEXT}
        ask(place(guard), value(place), way)
    assert similarity.heard == {"The capital of France?", "Its capital?"}
    assert found["reasons"] == ["no_threshold"]


def test_each_member_of_a_batch_has_a_question_of_its_own() -> None:
    similarity = Hearing()
    with ChatServer(PARIS) as server:
        chain = PROMPT | SNNEGuard(chat_openai(server), similarity=similarity)
        asked: Any = [{"metadata": {KEY: name}} for name in ("one", "two")]
        chain.batch([GIVEN, GIVEN], asked)
    assert similarity.heard == {"one", "two"}


def test_a_configuration_bound_to_the_guard_counts_too() -> None:
    similarity = Hearing()
    with ChatServer(PARIS) as server:
        guard = SNNEGuard(chat_openai(server), similarity=similarity)
        guard.with_config(metadata={KEY: "bound"}).invoke("x")
    assert similarity.heard == {"bound"}


@pytest.mark.parametrize("way", ["assess", "aassess"])
def test_an_assessment_is_told_the_question(way: str) -> None:
    asked: Any = {"metadata": {KEY: "The capital?"}}
    with ChatServer(PARIS) as server:
        guard = SNNEGuard(chat_openai(server), question=after_the_mark)

        def assess(config: Any) -> str | None:
            if way == "assess":
                return guard.assess(WHOLE_TEXT, config).question
            return run_in_loop(guard.aassess(WHOLE_TEXT, config)).question

        assert assess(None) == "Its capital?"
        assert assess(asked) == "The capital?"


def test_without_either_it_is_the_last_message_of_the_user() -> None:
    similarity = Hearing()
    with ChatServer(PARIS) as server:
        guard = SNNEGuard(chat_openai(server), similarity=similarity)
        guard.invoke([("system", "Context."), ("user", "Hm?"), ("ai", "Yes?")])
    assert similarity.heard == {"Hm?"}


async def later(messages: Sequence[BaseMessage]) -> str:
    await asyncio.sleep(0)
    return str(messages[0].text)


def its_coroutine(messages: Sequence[BaseMessage]) -> Any:
    return later(messages)


@pytest.mark.parametrize(
    "question",
    [
        lambda messages: messages["no such key"],
        lambda _messages: None,
        lambda _messages: "  ",
        lambda messages: messages[-1],
        its_coroutine,
    ],
    ids=["raises", "none", "blank", "no text", "async"],
)
@pytest.mark.parametrize("way", WHOLE)
def test_a_function_that_fails_loses_nothing(
    way: str, question: Callable[[Any], Any], caplog: pytest.LogCaptureFixture
) -> None:
    similarity = Hearing()
    with ChatServer(PARIS) as server:
        guard = SNNEGuard(
            chat_openai(server), threshold=0.5, similarity=similarity, question=question
        )
        message = ask(guard, "secret", way)
    assert similarity.heard == {"secret"}
    assert record(message)["reasons"] == ["question_failed"]
    assert (record(message)["decision"], message.content) == ("accept", "Paris")
    assert "secret" not in caplog.text


def test_of_an_error_only_its_type_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def failing(messages: list[BaseMessage]) -> str:
        raise LookupError(messages)

    with ChatServer(PARIS) as server:
        SNNEGuard(chat_openai(server), question=failing).invoke("secret")
    assert "question failed with LookupError" in caplog.text
    assert "secret" not in caplog.text


@pytest.mark.parametrize("said", ["", 7, ["Its capital?"]])
def test_a_configuration_that_says_no_text_is_named(said: Any) -> None:
    with ChatServer(PARIS) as server:
        guard = SNNEGuard(chat_openai(server), question=after_the_mark)
        found = guard.assess(WHOLE_TEXT, {"metadata": {KEY: said}})
    assert found.question == WHOLE_TEXT
    assert "question_failed" in found.reasons


def test_a_function_cannot_change_what_is_asked() -> None:
    def emptying(messages: list[BaseMessage]) -> str:
        messages.clear()
        return "x"

    with ChatServer(PARIS) as server:
        SNNEGuard(chat_openai(server), question=emptying).invoke("Is it?")
        assert {request.prompt for request in server.requests} == {"Is it?"}


def test_a_guard_that_is_switched_off_calls_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SNNE_GUARD_DISABLED", "1")
    called: list[Any] = []
    with ChatServer(PARIS) as server:
        guard = SNNEGuard(chat_openai(server), question=called.append)
        assert record(guard.invoke("x"))["reasons"] == ["no_threshold", "disabled"]
    assert called == []


@pytest.mark.parametrize("way", WAYS)
def test_a_model_that_is_chosen_by_the_same_call_is_told_it_too(way: str) -> None:
    similarity = Hearing()
    with ChatServer(PARIS) as server:
        open_model = chat_openai(server).configurable_fields(
            max_tokens=ConfigurableField(id="limit")
        )
        model = GuardedChatModel(SNNEGuard(open_model, similarity=similarity))
        said: Any = {"metadata": {KEY: "Hm?"}, "configurable": {"limit": 9}}
        ask(model, "x", way, said)
        limits = {request.body["max_completion_tokens"] for request in server.requests}
    assert limits == {9}
    assert similarity.heard == {"Hm?"}


@pytest.mark.parametrize("question", ["Its capital?", later])
def test_what_is_no_plain_function_is_refused(question: Any) -> None:
    with (
        ChatServer(PARIS) as server,
        pytest.raises(ConfigurationError, match="question must be a plain function"),
    ):
        SNNEGuard(chat_openai(server), question=question)


def test_a_guard_made_from_it_asks_the_same_function() -> None:
    with ChatServer(PARIS) as server:
        guard = SNNEGuard(chat_openai(server), question=after_the_mark)
        other = guard.on(chat_openai(server), n=3)
        assert other.assess([HumanMessage(WHOLE_TEXT)]).question == "Its capital?"
