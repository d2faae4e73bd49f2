"""What a call asks of the provider, what it costs, and which question it answers."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from langchain_core.caches import BaseCache
from langchain_core.globals import set_llm_cache
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from snne_guard import SNNEGuard
from tests.langchain.support import (
    CALLS,
    MODEL,
    REFUSING,
    WHOLE,
    ask,
    chat_openai,
    guarded,
    metadata_of,
)
from tests.support.observers import Watcher
from tests.support.openai_server import APART, Answer, Server, always, split

# -- What is asked of the provider -----------------------------------------------------


@pytest.mark.parametrize("way", CALLS)
def test_log_probabilities_go_to_those_alone_who_asked_for_them(way: str) -> None:
    with Server(always()) as server:
        model = chat_openai(server)
        bare = ask(SNNEGuard(model), way)
        asked = ask(SNNEGuard(model.bind(logprobs=True)), way)
    assert metadata_of(bare)["method"] == metadata_of(asked)["method"] == "wsnne"
    assert bare.response_metadata.get("logprobs") is None
    assert asked.response_metadata["logprobs"]["content"][0]["logprob"] == -0.1


def test_paper_draws_ten_samples_and_leaves_the_answer_out() -> None:
    watcher = Watcher()
    with Server(split("Paris", *APART)) as server:
        guard = SNNEGuard.paper(chat_openai(server), observers=[watcher])
        assert guard.n == 11  # the answer too is paid for
        record = metadata_of(guard.invoke("Where?"))
        assert [asked.n for asked in server.samples] == [10]
        assert not any(asked.logprobs for asked in server.requests)
    assert (record["method"], record["n_used"]) == ("snne", 10)
    assert watcher.only.matrix is not None
    assert watcher.only.matrix.shape == (10, 10)
    assert "Paris" not in watcher.only.reply_set


def test_answer_first_draws_samples_after_the_answer() -> None:
    with Server(lambda _: Answer(delay=0.05)) as server:
        guarded(server, schedule="answer_first").invoke("Where?")
        assert [asked.is_sample for asked in server.requests] == [False, True]


def test_sample_rate_leaves_calls_unsampled_and_says_so() -> None:
    with Server(always()) as server:
        guard = guarded(server, **REFUSING, sample_rate=0.0)
        message = guard.invoke("Where?")
        assert len(server.requests) == 1
    record = metadata_of(message)
    assert (record["decision"], record["reasons"]) == ("unscored", ["not_sampled"])
    assert message.text == "Paris"


@pytest.mark.parametrize("way", CALLS)
def test_a_disabled_guard_is_its_bare_model_visibly(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SNNE_GUARD_DISABLED", "1")
    with Server(split("Paris", *APART)) as server:
        guard = guarded(server, threshold=0.1, on_uncertain="raise")
        message = ask(guard, way)
        assert [asked.logprobs for asked in server.requests] == [False]
    record = metadata_of(message)
    assert (message.text, record["reasons"]) == ("Paris", ["disabled"])
    assert record["decision"] == "unscored"


@pytest.mark.parametrize("value", ["", "0", "false", "no", "off"])
def test_only_a_yes_disables_a_guard(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SNNE_GUARD_DISABLED", value)
    with Server(split("Paris", *APART)) as server:
        guard = guarded(server, threshold=0.1)
        assert metadata_of(guard.invoke("x"))["decision"] == "flag"


class Untouchable(BaseCache):
    """A cache that nobody may use."""

    def lookup(self, prompt: str, llm_string: str) -> None:
        raise AssertionError

    def update(self, prompt: str, llm_string: str, return_val: Any) -> None:
        raise AssertionError

    def clear(self, **_: Any) -> None:
        raise AssertionError


@pytest.mark.parametrize("way", WHOLE)
def test_no_cache_answers_for_the_model_or_keeps_a_reply(way: str) -> None:
    set_llm_cache(Untouchable())
    try:
        with Server(split("Paris", *APART)) as server:
            for cache in (None, True, Untouchable()):
                guard = SNNEGuard(chat_openai(server, cache=cache))
                assert metadata_of(ask(guard, way))["uncertainty"] == 1.0
            assert len(server.requests) == 6
    finally:
        set_llm_cache(None)


# -- The question ----------------------------------------------------------------------

CONTEXT = "A long retrieved page about France. " * 100


@pytest.mark.parametrize("way", WHOLE)
def test_the_question_is_the_users_last_message_unless_given(way: str) -> None:
    watcher = Watcher()
    messages = [SystemMessage("Be brief."), HumanMessage("Hi"), HumanMessage("Where?")]
    config = {"metadata": {"snne_guard_question": "Which town?"}}

    def loudly(messages: list[BaseMessage]) -> str:
        return messages[0].text.upper()

    with Server(always()) as server:
        for question in (None, loudly):
            guard = guarded(server, observers=[watcher], question=question)
            ask(guard, way, messages=messages)
            ask(guard, way, config, messages=messages)
    questions = [assessment.question for assessment in watcher.assessments]
    assert questions == ["Where?", "Which town?", "BE BRIEF.", "Which town?"]


def test_a_long_message_warns_once_without_its_text(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, logger="snne_guard")
    guard = SNNEGuard(MODEL)
    for _ in range(2):
        guard.invoke(CONTEXT)
    (record,) = caplog.records
    assert "question=" in record.getMessage()
    assert "France" not in record.getMessage()
    SNNEGuard(MODEL, question=lambda _: "Where?").invoke(CONTEXT)
    assert len(caplog.records) == 1
