"""Other chat models beside the guarded one: what each is asked, and what is seen."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.callbacks import get_usage_metadata_callback
from langchain_core.globals import set_llm_cache
from langchain_core.language_models import FakeListChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.runnables import RunnableLambda

from snne_guard import ConfigurationError, Prices, SNNEGuard
from tests.langchain.leaks import SECRET, Handler, listening, places
from tests.langchain.others import OTHER, anthropic, messages_api, other_openai
from tests.langchain.support import (
    CALLS,
    MODEL,
    WHOLE,
    ask,
    chat_openai,
    guarded,
    in_loop,
    metadata_of,
)
from tests.support.calibrations import calibration
from tests.support.openai_server import (
    Answer,
    Server,
    always,
    calling,
    rejecting,
)

# -- What it is asked ------------------------------------------------------------------


@pytest.mark.parametrize("way", CALLS)
def test_each_other_model_is_asked_once_whichever_way(way: str) -> None:
    with Server(always()) as server, Server(messages_api()) as other:
        guard = guarded(server, other_models=[anthropic(other)])
        message = ask(guard, way)
        assert len(other.requests) == 1
        assert sum(asked.n for asked in server.requests) == 4
    record = metadata_of(message)
    assert (message.text, record["method"], record["n_used"]) == ("Paris", "snne", 5)
    assert record["other_models"] == {
        "claude": {
            "prompt_tokens": 7,
            "cached_tokens": 0,
            "completion_tokens": 3,
            "reasoning_tokens": 0,
            "money": None,
            "models": ["claude-1"],
        }
    }
    assert record["reasons"] == ["no_threshold"]


@pytest.mark.parametrize("way", CALLS)
def test_what_another_model_says_is_compared_and_never_delivered(way: str) -> None:
    with Server(always()) as server, Server(always("Rome", model=OTHER)) as other:
        others = [other_openai(other)]
        alone, beside = [
            ask(guarded(server, n=3, other_models=models), way)
            for models in ((), others)
        ]
    assert beside.text == "Paris"
    assert metadata_of(alone)["uncertainty"] < 0.1
    assert metadata_of(beside)["uncertainty"] > 0.3


def test_it_is_asked_at_its_own_settings() -> None:
    with Server(always()) as server, Server(always()) as other:
        model = other_openai(other, temperature=0.3, seed=7, top_p=0.5, store=True)
        guard = guarded(server, other_models=[model.bind(user="me")])
        bound = guard.bind(temperature=0.9, logit_bias={"1": 1}, user="caller")
        bound.invoke([SystemMessage("Be brief."), HumanMessage("Where?")])
        (asked,) = other.requests
        body = {k: v for k, v in asked.body.items() if k != "stream"}
        assert [turn["content"] for turn in body.pop("messages")] == [
            "Be brief.",
            "Where?",
        ]
    assert body == {
        "model": OTHER,
        "temperature": 0.3,
        "seed": 7,
        "top_p": 0.5,
        "store": False,
        "user": "me",
    }


@pytest.mark.parametrize("way", WHOLE)
@pytest.mark.parametrize("limit", ["max_tokens", "max_completion_tokens"])
def test_it_has_the_stop_texts_and_the_limit_of_the_call(way: str, limit: str) -> None:
    with (
        Server(always()) as server,
        Server(always()) as second,
        Server(messages_api()) as third,
    ):
        others = [other_openai(second), anthropic(third, max_tokens_to_sample=900)]
        guard = guarded(server, other_models=others)
        ask(guard.bind(stop=["."], **{limit: 20}), way)
        ask(guard, way)
        (asked, free), (by_messages, own) = second.requests, third.requests
    assert (asked.body["stop"], asked.body["max_completion_tokens"]) == (["."], 20)
    assert not {"stop", "max_completion_tokens", "max_tokens"} & free.body.keys()
    assert by_messages.body["stop_sequences"] == ["."]
    assert by_messages.body["max_tokens"] == 20
    assert "stop_sequences" not in own.body
    assert own.body["max_tokens"] == 900


WRAPPERS: dict[str, Any] = {
    "bare": lambda model: model,
    "bind": lambda model: model.bind(user="me"),
    "with_config": lambda model: model.with_config(tags=["other"]),
    "with_retry": lambda model: model.with_retry(stop_after_attempt=2),
    "with_fallbacks": lambda model: chat_openai_down().with_fallbacks([model]),
}


def chat_openai_down() -> FakeListChatModel:
    class Down(FakeListChatModel):
        def _call(self, *args: Any, **kwargs: Any) -> str:
            del args, kwargs
            raise ConnectionError

    return Down(responses=[])


@pytest.mark.parametrize("way", WHOLE)
@pytest.mark.parametrize("wrapper", WRAPPERS.keys())
def test_it_may_stand_in_wrappers(wrapper: str, way: str) -> None:
    with Server(always()) as server, Server(always()) as other:
        model = WRAPPERS[wrapper](other_openai(other))
        message = ask(guarded(server, other_models=[model]), way)
        name = "Down" if wrapper == "with_fallbacks" else OTHER
        assert [*metadata_of(message)["other_models"]] == [name]
        assert metadata_of(message)["n_used"] == 5
        assert len(other.requests) == 1


def test_models_of_every_class_are_taken_by_their_names() -> None:
    told = GenericFakeChatModel(messages=iter([AIMessage("Paris")]))
    guard = SNNEGuard(MODEL, n=5, other_models=[told, chat_openai_down()])
    found = guard.assess("Where?")
    assert [*found.other_models] == ["GenericFakeChatModel", "Down"]
    assert found.n_used == 4
    assert "other_model_failed" in found.reasons
    assert guard.model_copy(update={"n": 4}).assess("Where?").n_requested == 4


def test_what_one_rejects_is_not_learnt_for_the_other() -> None:
    with (
        Server(always()) as server,
        Server(rejecting("temperature", always())) as other,
    ):
        hot = other_openai(other, temperature=0.2)
        guard = guarded(server, other_models=[hot])
        for _ in range(2):
            record = metadata_of(guard.invoke("Where?"))
            assert record["reasons"] == ["other_model_failed", "no_threshold"]
            assert record["n_used"] == 4
        assert all(asked.body["temperature"] == 1.0 for asked in server.samples)
        assert len(server.samples) >= 2


def test_an_answer_that_exists_is_compared_with_them_too() -> None:
    with Server(always()) as server, Server(always(model=OTHER)) as other:
        guard = guarded(server, other_models=[other_openai(other)])
        found = guard.assess("Where?", answer="Rome")
        assert in_loop(guard.aassess("Where?", answer="Rome")).n_used == 5
        assert guard.model_copy(update={"n": 4}).assess("Where?").n_used == 4
    assert [sample.other_model for sample in found.samples] == [None] * 3 + [OTHER]
    assert found.samples[-1].model == OTHER
    assert (found.uncertainty or 0) > 0.5


@pytest.mark.parametrize("named", [True, False])
def test_one_that_takes_no_stop_texts_is_asked_without(named: bool) -> None:
    with (
        Server(always()) as server,
        Server(rejecting("stop", always(), named=named)) as other,
    ):
        guard = guarded(server, other_models=[other_openai(other)])
        bound = guard.bind(stop=["."])
        for _ in range(2):
            used = metadata_of(bound.invoke("Where?"))["n_used"]
            assert used == (5 if named else 4)
        # Once it is known, it is not sent again to that model, but to the guarded one.
        sent = ["stop" in asked.body for asked in other.requests]
        assert sent == ([True, False, False] if named else [True, True])
        assert all("stop" in asked.body for asked in server.requests)


def test_a_guard_that_is_switched_off_asks_no_other_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with Server(always()) as server, Server(always()) as other:
        guard = guarded(server, other_models=[other_openai(other)])
        monkeypatch.setenv("SNNE_GUARD_DISABLED", "1")
        assert metadata_of(guard.invoke("Where?"))["reasons"] == ["disabled"]
        assert (len(server.requests), other.requests) == (1, [])


# -- Faults ----------------------------------------------------------------------------

FAULTS: dict[str, Answer] = {
    "fails": Answer(status=500),
    "refuses": Answer(message={"refusal": "I cannot.", "content": ""}),
    "calls a tool": calling({"amount": 1}),
    "is late": Answer(hang=True),
}


@pytest.mark.parametrize("way", WHOLE)
@pytest.mark.parametrize("fault", FAULTS.keys())
def test_an_other_model_that_fails_is_one_reply_less(fault: str, way: str) -> None:
    with Server(always()) as server, Server(lambda _: FAULTS[fault]) as other:
        others = [other_openai(other)]
        guard = guarded(server, threshold=0.4, other_models=others, sample_timeout=1.5)
        message = ask(guard, way)
        assert len(server.samples) <= 3
    record = metadata_of(message)
    assert (message.text, record["decision"]) == ("Paris", "accept")
    assert (record["n_requested"], record["n_used"]) == (5, 4)
    assert record["reasons"] == ["other_model_failed"]


@pytest.mark.parametrize("status", [200, 404])
def test_a_calibrated_guard_needs_every_reply(status: int) -> None:
    made = calibration(model="test-model", other_models=[OTHER])
    script = always(model=OTHER, status=status)
    with Server(always()) as server, Server(script) as other:
        guard = SNNEGuard.from_calibration(
            chat_openai(server), made, other_models=[other_openai(other)]
        )
        record = metadata_of(guard.invoke("Where?"))
    covered = status == 200
    assert ("uncalibrated" in record["reasons"]) is not covered
    assert (record["decision"] == "accept") is covered


# -- What is refused -------------------------------------------------------------------


def test_what_cannot_be_another_model_is_refused() -> None:
    with Server(always()) as server:
        model = chat_openai(server)
        searching = other_openai(server).bind_tools([{"type": "web_search"}])
        cases: list[tuple[Any, str]] = [
            ([model], "other models than the guarded one, got 'test-model'"),
            ([chat_openai(server, temperature=0)], "got 'test-model'"),
            ([model.bind(stop=["."]).with_retry()], "got 'test-model'"),
            ([other_openai(server), other_openai(server)], "different names"),
            ([searching], f"{OTHER!r} has tools that run at its provider"),
            (["gpt-4.1"], "needs a chat model"),
            ([RunnableLambda(str)], "needs a chat model"),
            (other_openai(server), "other_models to be a list, got ChatOpenAI"),
        ]
        for others, words in cases:
            with pytest.raises(ConfigurationError, match=words):
                SNNEGuard(model, other_models=others)
        with pytest.raises(ConfigurationError, match="at least 4, got 3"):
            SNNEGuard(model, n=3, other_models=[other_openai(server)], self_check=True)
        with pytest.raises(ConfigurationError, match="'wsnne' needs log-prob"):
            SNNEGuard(model, method="wsnne", other_models=[other_openai(server)])
    with pytest.raises(ConfigurationError, match="got 'FakeListChatModel'"):
        SNNEGuard(MODEL, other_models=[MODEL.with_retry()])


def test_where_a_part_of_the_conversation_is_elsewhere_none_is_asked() -> None:
    with Server(always()) as server, Server(always()) as other:
        guard = guarded(server, other_models=[other_openai(other)])
        body = {"previous_response_id": "resp_1"}
        record = metadata_of(guard.bind(extra_body=body).invoke("And there?"))
        assert other.requests == []
    assert record["reasons"][0] == "other_model_failed"


# -- What is seen ----------------------------------------------------------------------


@pytest.mark.parametrize("way", CALLS)
def test_nobody_hears_of_another_model(
    way: str, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    with (
        Server(always()) as server,
        Server(always(SECRET, model=OTHER)) as other,
        listening(way) as ears,
    ):
        own = Handler()
        model = other_openai(
            other, callbacks=[own], verbose=True, cache=InMemoryCache()
        )
        message = ask(guarded(server, other_models=[model]), way, ears.config)
        assert len(other.requests) == 1
        assert places(ears.heard) == []
    assert own.seen == []
    assert places([message, caplog.text, *capsys.readouterr()]) == []


def test_no_cache_answers_for_another_model() -> None:
    set_llm_cache(InMemoryCache())
    try:
        with Server(always()) as server, Server(always()) as other:
            guard = guarded(server, other_models=[other_openai(other)])
            for _ in range(2):
                guard.invoke("Where?")
            assert len(other.requests) == 2
    finally:
        set_llm_cache(None)


@pytest.mark.parametrize("way", CALLS)
def test_usage_is_the_guarded_model_s_and_cost_the_total(way: str) -> None:
    prices = {
        "test-model": Prices(prompt=1, completion=2),
        OTHER: Prices(prompt=0.1, completion=0.2),
    }
    with (
        Server(always()) as server,
        Server(always("Paris", model=f"{OTHER}-1")) as other,
        get_usage_metadata_callback() as counter,
    ):
        model = chat_openai(server, stream_usage=True)
        others = [other_openai(other)]
        guard = SNNEGuard(model, n=3, other_models=others, prices=prices)
        message = ask(guard, way)
    usage, record = message.usage_metadata, metadata_of(message)
    assert usage is not None
    assert (usage["input_tokens"], usage["output_tokens"]) == (10, 2)
    assert [*counter.usage_metadata] == ["test-model"]
    assert record["cost"]["prompt_tokens"] == 15
    assert record["cost"]["completion_tokens"] == 3
    assert record["cost"]["money"] == pytest.approx((10 + 4 + 0.5 + 0.2) / 1e6)
    assert record["other_models"] == {
        OTHER: {
            "prompt_tokens": 5,
            "cached_tokens": 3,
            "completion_tokens": 1,
            "reasoning_tokens": 0,
            "money": pytest.approx(0.7e-6),
            "models": [f"{OTHER}-1"],
        }
    }
    assert json.loads(json.dumps(record)) == record
