"""Other models of a guarded client: by the same client or another, never delivered."""

from __future__ import annotations

from typing import Any

import openai
import pytest

from snne_guard import ConfigurationError, Prices
from snne_guard.openai import OtherModel, guard_client
from tests.openai.guarded import PATHS, guarded, text_of
from tests.support.calibrations import calibration
from tests.support.openai_clients import WAYS
from tests.support.openai_server import (
    CHAT,
    Answer,
    Asked,
    Rush,
    Scripted,
    Server,
    always,
    calling,
    split,
)

SYNC = openai.OpenAI(api_key="x")


def speaking(own: Scripted, **others: Answer) -> Scripted:
    """Let each other model give its answer, and the guarded one its own."""
    return lambda asked: (
        replies[asked.body["model"]]
        if asked.body["model"] in (replies := {**others})
        else own(asked)
    )


def others_of(server: Server, *names: str) -> list[Asked]:
    return [asked for asked in server.requests if asked.body["model"] in names]


def client_for(way: str, url: str, **options: Any) -> Any:
    kind = openai.OpenAI if way == "threads" else openai.AsyncOpenAI
    return kind(base_url=url, api_key="other", max_retries=0, **options)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("path", PATHS)
def test_another_model_draws_one_of_the_replies(path: str, way: str) -> None:
    script = speaking(always("Paris"), small=Answer(texts=["Lyon"], model="small-1"))
    with guarded(script, way, n=4, threshold=0.1, other_models=["small"]) as run:
        server, call = run
        answer = call(path, extra_headers={"x-mine": "1"})
    record = answer.snne_guard
    assert text_of(answer) == "Paris"
    assert (record["n_used"], record["decision"], record["method"]) == (
        4,
        "flag",
        "snne",
    )
    assert record["other_models"]["small"]["models"] == ["small-1"]
    (asked,) = others_of(server, "small")
    assert asked.headers["x-mine"] == "1"  # of the same client
    assert asked.n == 1
    assert not asked.logprobs


@pytest.mark.parametrize("way", WAYS)
def test_it_gets_the_conversation_its_form_and_its_limits_alone(way: str) -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": {}}}
    given: dict[str, Any] = {
        "tools": [tool],
        "tool_choice": "none",
        "max_completion_tokens": 9,
        "stop": ["."],
        "temperature": 0,
        "top_p": 0.1,
        "user": "me",
        "reasoning_effort": "low",
        "metadata": {"a": "b"},
        "extra_body": {"top_k": 1},
    }
    script = speaking(always("Paris"), small=Answer())
    with guarded(script, way, n=3, other_models=["small"]) as (server, call):
        call(**given)
    (asked,) = others_of(server, "small")
    kept = ("tools", "tool_choice", "max_completion_tokens", "stop")
    assert asked.body == {
        "model": "small",
        "messages": CHAT["messages"],
        **{name: given[name] for name in kept},
    }


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("path", PATHS)
def test_another_client_gets_nothing_of_the_first_one_s(path: str, way: str) -> None:
    with Server(always("Lyon", model="x")) as there:
        others = [OtherModel(client_for(way, there.url), "x")]
        with guarded(always("Paris"), way, n=3, other_models=others) as (server, call):
            headers = {"x-mine": "1", "Authorization": "Bearer mine"}
            call(path, extra_headers=headers)
            call(path, on=call.client.with_options(timeout=9))
    assert len(server.requests) > 0
    assert len(there.requests) == 2
    for asked in there.requests:
        assert asked.headers["authorization"] == "Bearer other"
        assert "x-mine" not in asked.headers
        assert asked.body["model"] == "x"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "fault",
    [
        Answer(status=500),
        Answer(body={"choices": []}),
        Answer(texts=["no"], finish="content_filter"),
        Answer(hang=True),
    ],
)
def test_one_that_fails_is_one_reply_less(fault: Answer, way: str) -> None:
    limited = {"sample_timeout": 0.5} if fault.hang else {}
    script = speaking(always("Paris"), small=fault)
    options: dict[str, Any] = {"n": 4, "threshold": 0.4, **limited}
    with guarded(script, way, other_models=["small"], **options) as (server, call):
        record = call().snne_guard
    assert (record["n_used"], record["uncertainty"]) == (3, 0.0)
    assert "other_model_failed" in record["reasons"]
    assert len(others_of(server, "small")) == (3 if fault.status == 500 else 1)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("others", [["small"], ["small", "tiny"]])
def test_one_that_hangs_holds_up_no_call(
    others: list[str], way: str, *, stream: bool
) -> None:
    script = speaking(always("Paris"), **dict.fromkeys(others, Answer(hang=True)))
    options: dict[str, Any] = {"n": 4, "sample_timeout": 0.2, "timeout": 5}
    with guarded(script, way, other_models=others, max_concurrency=1, **options) as run:
        for _ in range(3):
            ask = run[1].stream if stream else run[1]
            ask()
    mine = [each for each in run[0].requests if each.body["model"] == "test-model"]
    assert len(mine) >= 3


@pytest.mark.parametrize("way", WAYS)
def test_each_other_model_keeps_to_the_limit(way: str) -> None:
    rush, own = Rush(), Rush()
    script = {"small": rush}
    with guarded(
        lambda asked: script.get(asked.body["model"], own)(asked),
        way,
        n=4,
        max_concurrency=1,
        other_models=["small"],
    ) as (_, call):
        call()
        assert (own.most, rush.most) == (1, 1)


@pytest.mark.parametrize("way", WAYS)
def test_a_limit_that_it_does_not_take_is_left_out(way: str) -> None:
    def small(asked: Asked) -> Answer:
        if asked.body["model"] != "small":
            return Answer()
        if "max_tokens" in asked.body:
            error = {"message": "max_tokens is not supported", "param": "max_tokens"}
            return Answer(status=400, body={"error": error})
        return Answer(model="small")

    with guarded(small, way, n=3, other_models=["small"]) as (server, call):
        for _ in range(2):
            assert call(max_tokens=9).snne_guard["n_used"] == 3
    limits = ["max_tokens" in asked.body for asked in others_of(server, "small")]
    assert limits == [True, False, False]
    own = [each for each in server.requests if each.body["model"] != "small"]
    assert all("max_tokens" in asked.body for asked in own)


@pytest.mark.parametrize("way", WAYS)
def test_calls_of_tools_are_compared_by_value(way: str) -> None:
    script = speaking(
        lambda _: calling({"to": "Ann", "n": 1}),
        small=calling({"n": 1.0, "to": "Ann"}),
    )
    tool = {"type": "function", "function": {"name": "transfer", "parameters": {}}}
    options: dict[str, Any] = {"n": 3, "tool_calls": "score", "threshold": 0.2}
    with guarded(script, way, other_models=["small"], **options) as (_, call):
        record = call(tools=[tool]).snne_guard
    assert (record["decision"], record["uncertainty"]) == ("accept", 0.0)


@pytest.mark.parametrize("way", WAYS)
def test_each_is_priced_by_its_own_name(way: str) -> None:
    prices = {"test-model": Prices(prompt=1, completion=1)}
    small = {"small": Prices(prompt=0.1, completion=0.1)}
    script = speaking(always("Paris"), small=Answer())
    for known in (prices, {**prices, **small}):
        options: dict[str, Any] = {"n": 3, "prices": known, "other_models": ["small"]}
        with guarded(script, way, **options) as (_, call):
            record = call().snne_guard
        assert (record["cost"]["money"] is None) is (known is prices)
        assert (record["other_models"]["small"]["money"] is None) is (known is prices)


def test_the_guarded_model_itself_is_refused() -> None:
    with (
        guarded(always("Paris"), "threads", other_models=["test-model"]) as run,
        pytest.raises(ConfigurationError, match="'test-model' is the guarded model"),
    ):
        run[1]()
    assert run[0].requests == []


@pytest.mark.parametrize(
    ("others", "message"),
    [
        ("abc", "other_models to be a list, got str"),
        ([3], "name of another model to be str, got int"),
        (["a", "a"], "different names, got a, a"),
        (["a", OtherModel(SYNC, "a")], "different names, got a, a"),
        ([OtherModel(openai.AsyncOpenAI(api_key="x"), "a")], "got AsyncOpenAI"),
        ([OtherModel(guard_client(SYNC), "a")], "and bare, got GuardedOpenAI"),
        ([OtherModel("client", "a")], "to be OpenAI .*got str"),
        (["openai/gpt-4.1:online"], "'openai/gpt-4.1:online' has tools that run"),
        (["gpt-4o-search-preview"], "its sample could act on the world"),
        ([OtherModel(SYNC, "o3-deep-research")], "has tools that run"),
        (["a", "b", "c", "d"], "n, with 4 other models, .*at least 6, got 5"),
    ],
)
def test_others_that_make_no_sense_are_refused(others: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        guard_client(SYNC, other_models=others)


@pytest.mark.parametrize("way", WAYS)
def test_a_calibration_holds_for_the_same_other_models(way: str) -> None:
    made = calibration(n=4, method="snne", other_models=["small"], model="test-model")
    with pytest.raises(ConfigurationError, match=r"other_models=\['small'\]"):
        guard_client(SYNC, calibration=made)
    for small, decision in (
        (Answer(model="small"), "accept"),
        (Answer(status=404), "flag"),
    ):
        script = speaking(always("Paris"), small=small)
        options: dict[str, Any] = {"calibration": made, "other_models": ["small"]}
        with guarded(script, way, **options) as (_, call):
            record = call().snne_guard
        assert record["decision"] == decision
        assert ("uncalibrated" in record["reasons"]) is (decision == "flag")


@pytest.mark.parametrize("way", WAYS)
def test_no_other_is_asked_of_half_a_conversation(way: str) -> None:
    script = speaking(always("Paris"), small=Answer())
    with guarded(script, way, n=3, other_models=["small"]) as (server, call):
        record = call("responses.create", previous_response_id="r").snne_guard
    assert others_of(server, "small") == []
    assert (record["n_used"], record["reasons"]) == (
        2,
        ["other_model_failed", "no_threshold"],
    )


@pytest.mark.parametrize("way", WAYS)
def test_a_stream_is_of_the_guarded_model_alone(way: str) -> None:
    script = speaking(split("Paris", "Paris"), small=Answer(texts=["Lyon"]))
    with guarded(script, way, n=3, other_models=["small"]) as (_, call):
        parts, _stream = call.stream()
    said = "".join(
        choice.delta.content or "" for part in parts for choice in part.choices
    )
    assert said == "Paris"
    assert "small" in parts[-1].snne_guard["other_models"]
