"""A guarded client is called as the plain one, and gives what that gives."""

from __future__ import annotations

import asyncio
import importlib
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from operator import attrgetter
from typing import Any

import openai
import pytest
from openai.types.chat import ChatCompletion
from openai.types.responses import Response

from snne_guard import (
    ConfigurationError,
    GuardTimeoutError,
    MissingExtraError,
    UncertainAnswerError,
)
from snne_guard.openai import AsyncGuardedOpenAI, GuardedOpenAI, guard_client
from tests.openai.guarded import Collector, guarded
from tests.openai.support import (
    APART,
    CHAT,
    RESPONSES,
    WAYS,
    Answer,
    Asked,
    Scripted,
    Server,
    always,
    clients,
    split,
)

PATHS = ("chat.completions.create", "responses.create")
REFUSAL = "I am not certain enough of the answer to give one."


def text_of(answer: Any) -> str:
    if isinstance(answer, Response):
        return answer.output_text
    text: str = answer.choices[0].message.content
    return text


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("path", PATHS)
def test_an_accepted_answer_is_what_the_client_gives(path: str, way: str) -> None:
    with guarded(always("Paris"), way, threshold=0.4) as (server, call):
        answer = call(path)
        bare = call(path, on=call.own)
    record = answer.snne_guard
    assert (record["decision"], record["uncertainty"]) == ("accept", 0.0)
    assert (record["n_used"], record["method"]) == (5, "wsnne")
    assert record["cost"]["calls"] == len(server.requests) - 1
    assert type(answer) is type(bare)
    found = answer.to_dict()
    assert found.pop("snne_guard") == record
    assert found == bare.to_dict()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("path", PATHS)
def test_an_uncertain_answer_is_flagged(path: str, way: str) -> None:
    with guarded(split("Paris", *APART), way, threshold=0.4) as (_, call):
        answer = call(path)
    assert text_of(answer) == "Paris"
    assert answer.snne_guard["decision"] == "flag"
    assert answer.snne_guard["uncertainty"] == 1.0


@pytest.mark.parametrize("way", WAYS)
def test_a_refused_completion_is_an_ordinary_one(way: str) -> None:
    script = split("Paris", *APART)
    with guarded(script, way, threshold=0.4, on_uncertain="refuse") as (_, call):
        answer = call()
    assert isinstance(answer, ChatCompletion)
    (choice,) = answer.choices
    assert (choice.message.content, choice.finish_reason) == (REFUSAL, "stop")
    assert choice.message.refusal is None
    assert (answer.id, answer.model) == ("chatcmpl-1", "test-model")
    assert answer.usage is not None
    assert answer.usage.prompt_tokens == 5
    assert answer.snne_guard["decision"] == "refuse"  # type: ignore[attr-defined]  # an extra field
    assert "Paris" not in answer.to_json()


@pytest.mark.parametrize("way", WAYS)
def test_a_refused_response_is_an_ordinary_one(way: str) -> None:
    script = split("Paris", *APART)
    options = {"threshold": 0.4, "on_uncertain": "refuse", "refusal": "No."}
    with guarded(script, way, **options) as (_, call):
        answer = call(PATHS[1])
    assert isinstance(answer, Response)
    assert (answer.output_text, answer.status, answer.id) == (
        "No.",
        "completed",
        "resp_1",
    )
    assert "Paris" not in answer.to_json()


@pytest.mark.parametrize("way", WAYS)
def test_a_withheld_answer_can_be_an_error(way: str) -> None:
    script = split("Paris", *APART)
    with guarded(script, way, threshold=0.4, on_uncertain="raise") as (_, call):
        with pytest.raises(UncertainAnswerError, match=r"uncertainty of 1\.000") as it:
            call()
        assert it.value.uncertainty == 1.0
        locals_ = []
        trace = it.value.__traceback__
        while trace is not None:
            if "/snne_guard/" in trace.tb_frame.f_code.co_filename:
                locals_.append(repr(trace.tb_frame.f_locals))
            trace = trace.tb_next
    assert locals_
    assert not any("Paris" in each for each in locals_)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("path", PATHS)
def test_another_model_can_answer_instead(path: str, way: str) -> None:
    uncertain = split("Paris", *APART)

    def script(asked: Asked) -> Answer:
        if asked.body["model"] == "better":
            return Answer(texts=["Bern"], model="better")
        return uncertain(asked)

    options: Any = {"on_uncertain": "fallback", "fallback": "better", "threshold": 0.4}
    with guarded(script, way, **options) as (server, call):
        headers = {"Idempotency-Key": "1"}
        answer = call(path, temperature=0.5, extra_headers=headers)
    assert (text_of(answer), answer.model) == ("Bern", "better")
    assert answer.snne_guard["decision"] == "fallback"
    assert server.requests[-1].body["temperature"] == 0.5
    keys = [asked.headers.get("idempotency-key") for asked in server.requests]
    assert keys.count("1") == 1  # the answer's


@pytest.mark.parametrize("way", WAYS)
def test_another_client_can_answer_instead(way: str) -> None:
    with (
        Server(always("Bern")) as better,
        clients(better, way, lambda client: client) as other,
    ):
        options = {"on_uncertain": "fallback", "fallback": other.client}
        script = split("Paris", *APART)
        with guarded(script, way, threshold=0.4, **options) as (_, call):
            answer = call()
            # Tasks of one client stay on its loop, so the connections are closed here.
            call.wait(other.client.close()) if way == "tasks" else None
    assert text_of(answer) == "Bern"
    assert len(better.requests) == 1


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("path", PATHS)
def test_a_function_can_answer_instead(path: str, way: str) -> None:
    seen: list[dict[str, Any]] = []

    def fallback(body: dict[str, Any]) -> str:
        seen.append(body)
        return "Bern"

    options: Any = {"on_uncertain": "fallback", "fallback": fallback}
    script = split("Paris", *APART)
    with guarded(script, way, threshold=0.4, **options) as (_, call):
        answer = call(path)
    assert text_of(answer) == "Bern"
    assert seen == [CHAT if path == PATHS[0] else RESPONSES]


async def test_a_fallback_may_be_async() -> None:
    async def fallback(_: dict[str, Any]) -> str:
        await asyncio.sleep(0)
        return "Bern"

    options: Any = {"on_uncertain": "fallback", "fallback": fallback, "threshold": 0.4}
    with Server(split("Paris", *APART)) as server:
        given: Any = {"base_url": server.url, "api_key": "x", "max_retries": 0}
        async with openai.AsyncOpenAI(**given) as client:
            answer = await guard_client(client, **options).chat.completions.create(
                **CHAT
            )
            assert text_of(answer) == "Bern"
        with openai.OpenAI(**given) as plain:
            call = guard_client(plain, **options).chat.completions.create
            with pytest.raises(ConfigurationError, match="needs an AsyncOpenAI"):
                call(**CHAT)


@pytest.mark.parametrize("way", WAYS)
def test_the_fallback_answers_where_the_answer_fails(way: str) -> None:
    body = {"error": {"message": "no", "param": "x"}}
    script = split(Answer(status=400, body=body), "Rome")
    with guarded(script, way, n=2, fallback=lambda _: "Bern") as (_, call):
        answer = call()
    assert text_of(answer) == "Bern"
    assert "answer_failed" in answer.snne_guard["reasons"]


@pytest.mark.parametrize("way", WAYS)
def test_a_function_decides_about_an_uncertain_answer(way: str) -> None:
    words: list[Any] = ["flag", "refuse", "Ask a librarian.", 3]

    def decide(assessment: Any) -> Any:
        assert assessment.answer.text == "Paris"
        return words.pop(0)

    script = split("Paris", *APART)
    with guarded(script, way, threshold=0.4, on_uncertain=decide) as (_, call):
        assert [text_of(call()) for _ in range(2)] == ["Paris", REFUSAL]
        with pytest.raises(ConfigurationError) as caught:
            call()
        assert "librarian" not in str(caught.value)
        with pytest.raises(ConfigurationError, match="got int"):
            call()
        words.append("fallback")
        with pytest.raises(ConfigurationError, match="guard has none"):
            call()


@pytest.mark.parametrize("way", WAYS)
def test_an_assessment_has_everything(way: str) -> None:
    collector = Collector()
    options: Any = {"on_uncertain": "raise", "observers": [collector]}
    with guarded(split("Paris", *APART), way, threshold=0.4, **options) as (
        server,
        call,
    ):
        found = call.wait(call.client.assess(**CHAT, stream=True))
        assert found is collector.only
        assert found.answer is not None
        assert found.matrix is not None
        assert found.answer.text == "Paris"
        assert [sample.text for sample in found.samples] == list(APART)
        assert found.matrix.shape == (5, 5)
        assert found.question == "Capital of France?"
        assert found.decision == "refuse"
        server.requests.clear()
        own = call.wait(call.client.assess(answer="Bonn", **RESPONSES))
        assert own.answer.text == "Bonn"
        assert len(server.requests) == 4


@pytest.mark.parametrize("way", WAYS)
def test_an_assessment_of_no_answer_is_the_client_s_error(way: str) -> None:
    def fail(_: Any) -> Any:
        msg = "mine"
        raise RuntimeError(msg)

    body = {"error": {"message": "no", "param": "x"}}
    with guarded(always(status=400, body=body), way) as (_, call):
        with pytest.raises(openai.BadRequestError):
            call.wait(call.client.assess(**CHAT))
    options: Any = {"threshold": 0.4, "on_uncertain": fail}
    with guarded(split("Paris", *APART), way, **options) as (_, call):
        with pytest.raises(RuntimeError, match="mine"):
            call.wait(call.client.assess(**CHAT))


@pytest.mark.parametrize("way", WAYS)
def test_the_user_s_question_is_told_to_the_engine(way: str) -> None:
    def question(messages: list[Any]) -> str:
        return f"{len(messages)}: {messages[0]['content']}"

    with guarded(always("Paris"), way, question=question) as (_, call):
        chat = call.wait(call.client.assess(**CHAT))
        response = call.wait(call.client.assess(**RESPONSES))
    assert chat.question == response.question == "1: Capital of France?"


@pytest.mark.parametrize("way", WAYS)
def test_a_long_message_is_warned_of_once(
    way: str, caplog: pytest.LogCaptureFixture
) -> None:
    message = {"role": "user", "content": "Capital of France? " * 100}
    with guarded(always("Paris"), way, n=2) as (_, call):
        for _ in range(3):
            call(messages=[message])
    (record,) = [one for one in caplog.records if one.name.startswith("snne_guard")]
    assert "question=" in record.getMessage()
    assert "France" not in record.getMessage()


# -- The client ------------------------------------------------------------------------


def test_a_guarded_client_is_of_the_same_class() -> None:
    class Mine(openai.AzureOpenAI):
        pass

    azure: dict[str, Any] = {
        "azure_endpoint": "http://127.0.0.1:1",
        "api_version": "1",
        "api_key": "x",
    }
    for own in (openai.OpenAI(api_key="x"), Mine(**azure)):
        before = {**own.__dict__}
        client = guard_client(own)
        assert isinstance(client, GuardedOpenAI)
        assert isinstance(client, type(own))
        assert client.api_key == "x"
        assert isinstance(client.with_options(timeout=3), type(client))
        assert client.with_options(timeout=3).timeout == 3
        assert own.__dict__ == before
        own.close()
    tasks = guard_client(openai.AsyncAzureOpenAI(**azure))
    assert isinstance(tasks, AsyncGuardedOpenAI)
    assert isinstance(tasks, openai.AsyncAzureOpenAI)


@pytest.mark.parametrize("way", WAYS)
def test_azure_asks_the_deployment(way: str) -> None:
    with Server(always("Paris")) as server:
        options: dict[str, Any] = {
            "azure_endpoint": server.url,
            "api_version": "1",
            "api_key": "x",
            "max_retries": 0,
        }
        if way == "threads":
            with openai.AzureOpenAI(**options) as own:
                answer: Any = guard_client(own).chat.completions.create(**CHAT)
        else:

            async def ask() -> Any:
                async with openai.AsyncAzureOpenAI(**options) as own:
                    return await guard_client(own).chat.completions.create(**CHAT)

            answer = asyncio.run(ask())
    assert answer.snne_guard["n_used"] == 5
    places = {asked.path.partition("?")[0] for asked in server.requests}
    assert places == {"/v1/openai/deployments/test-model/chat/completions"}


@pytest.mark.parametrize("way", WAYS)
def test_copies_keep_the_guard_and_its_limits(way: str) -> None:
    with guarded(always("Paris"), way, n=3) as (server, call):
        for copy in (call.client.copy(), call.client.with_options(timeout=9)):
            answer = call(on=copy, extra_headers={"x-mine": "1"})
            assert answer.snne_guard["n_used"] == 3
        assert not hasattr(call(on=call.own), "snne_guard")
    assert {asked.headers.get("x-mine") for asked in server.requests} == {"1", None}


@pytest.mark.parametrize("way", WAYS)
def test_everything_else_passes_through(way: str) -> None:
    def script(_: Asked) -> Answer:
        item = {"embedding": [0.5], "index": 0, "object": "embedding"}
        return Answer(body={"object": "list", "model": "m", "data": [item]})

    with guarded(script, way, threshold=0.4) as (server, call):
        create = call.client.embeddings.create
        found = call.wait(create(model="m", input="x", encoding_format="float"))
    assert found.data[0].embedding == [0.5]
    assert len(server.requests) == 1


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("path", "request_", "message"),
    [
        (PATHS[0], {"n": 2}, "n above 1"),
        (PATHS[0], {"extra_body": {"n": 2}}, "n above 1"),
        (PATHS[1], {"background": True}, "background=True"),
        ("chat.completions.with_raw_response.create", {}, "with_raw_response"),
        ("responses.with_raw_response.create", {}, "with_raw_response"),
    ],
)
def test_what_cannot_be_guarded_is_refused(
    path: str, request_: dict[str, Any], message: str, way: str
) -> None:
    with guarded(always("Paris"), way) as (server, call):
        with pytest.raises(ConfigurationError, match=message):
            call(path, **request_)
        assert server.requests == []


def test_a_reply_of_a_class_of_one_s_own_is_refused() -> None:
    with guarded(always("Paris"), "threads") as (_, call):
        for path in ("/chat/completions", f"{call.own.base_url}responses"):
            with pytest.raises(ConfigurationError, match="class of your own"):
                call.client.post(path, body=CHAT, cast_to=object)
        with pytest.raises(ConfigurationError, match="body that is no dict"):
            call.client.post("/responses", body=[1], cast_to=Response)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 1}, "n must be"),
        ({"treshold": 0.4}, "unknown option 'treshold'"),
        ({"fallback": 3}, "fallback must be"),
        ({"fallback": ""}, "fallback must be"),
        ({"fallback": openai.AsyncOpenAI(api_key="x")}, "another OpenAI client"),
        ({"on_uncertain": "fallback", "threshold": 0.4}, "needs a fallback"),
        ({"on_uncertain": "refuse"}, "needs a threshold"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    options: dict[str, Any], message: str
) -> None:
    with (
        openai.OpenAI(api_key="x") as own,
        pytest.raises(ConfigurationError, match=message),
    ):
        guard_client(own, **options)


def test_without_the_openai_package_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    monkeypatch.delitem(sys.modules, "snne_guard.openai")
    with pytest.raises(MissingExtraError, match=r"snne-guard\[openai\]"):
        importlib.import_module("snne_guard.openai")


def test_the_package_loads_neither_langchain_nor_torch() -> None:
    program = """
import sys
from snne_guard import guard_client
print({"langchain_core", "torch"} & sys.modules.keys())
"""
    found = subprocess.run(  # noqa: S603 - the program above
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "set()"


def test_what_is_no_client_or_guarded_already_is_refused() -> None:
    stranger: Any = object()
    with pytest.raises(ConfigurationError, match="got object"):
        guard_client(stranger)
    with (
        openai.OpenAI(api_key="x") as own,
        pytest.raises(ConfigurationError, match="guarded already"),
    ):
        guard_client(guard_client(own))


def test_a_disabled_guard_is_the_bare_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SNNE_GUARD_DISABLED", "1")
    for way in WAYS:
        options: Any = {"threshold": 0.4, "on_uncertain": "refuse"}
        with guarded(split("Paris", *APART), way, **options) as (server, call):
            answer = call()
            assert text_of(answer) == "Paris"
            assert "disabled" in answer.snne_guard["reasons"]
            parts, _stream = call.stream()
            assert "disabled" in parts[-1].snne_guard["reasons"]
            assert len(server.requests) == 2


# -- Concurrency -----------------------------------------------------------------------


def test_fifty_threads_share_a_client() -> None:
    with guarded(always("Paris"), "threads", n=3, max_concurrency=4) as (server, call):
        with ThreadPoolExecutor(50) as pool:
            answers = list(pool.map(lambda _: call(), range(50)))
        assert len(server.requests) == 100
    assert {answer.snne_guard["n_used"] for answer in answers} == {3}


async def test_fifty_tasks_share_a_client() -> None:
    with Server(always("Paris")) as server:
        given: Any = {"base_url": server.url, "api_key": "x", "max_retries": 0}
        async with openai.AsyncOpenAI(**given) as own:
            client = guard_client(own, n=3, max_concurrency=4)
            create = client.chat.completions.create
            calls = [create(**CHAT) for _ in range(50)]
            answers: list[Any] = await asyncio.gather(*calls)
    assert {answer.snne_guard["n_used"] for answer in answers} == {3}


@pytest.mark.parametrize("method", ["responses.create", "assess"])
async def test_cancellation_ends_the_draws(method: str) -> None:
    collector = Collector()
    with Server(hanging_samples()) as server:
        given: Any = {"base_url": server.url, "api_key": "x", "max_retries": 0}
        async with openai.AsyncOpenAI(**given) as own:
            client = guard_client(own, n=3, observers=[collector])
            task = asyncio.create_task(attrgetter(method)(client)(**RESPONSES))
            await asyncio.to_thread(server.wait_for_requests, 3)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.to_thread(server.wait_for_abandoned, 2)
    assert "cancelled" in collector.only.reasons


@pytest.mark.parametrize("way", WAYS)
def test_an_answer_that_takes_too_long_is_an_error(way: str) -> None:
    with (
        guarded(always(hang=True), way, timeout=0.2) as (_, call),
        pytest.raises(GuardTimeoutError, match=r"0\.2 seconds"),
    ):
        call()


@pytest.mark.parametrize("way", WAYS)
def test_late_samples_are_left_behind(way: str) -> None:
    options: Any = {"sample_timeout": 0.3, "n": 3, "min_samples": 2, "threshold": 0.4}
    with guarded(hanging_samples(count=1), way, **options) as (_, call):
        record = call(PATHS[1]).snne_guard
    assert (record["n_used"], record["reasons"]) == (2, ["samples_late"])


def hanging_samples(count: int | None = None) -> Scripted:
    lock, left = threading.Lock(), count

    def script(asked: Asked) -> Answer:
        nonlocal left
        with lock:
            if not asked.is_sample or left == 0:
                return Answer(texts=["Paris"])
            left = None if left is None else left - 1
        return Answer(hang=True)

    return script
