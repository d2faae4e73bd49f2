"""How draws are made: wrappers carried out, settings changed, nothing else lost."""

from __future__ import annotations

from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

import openai
import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.rate_limiters import BaseRateLimiter
from pydantic import Field

from snne_guard import SamplingError, SNNEGuard
from tests.langchain.support import WHOLE, ask, chat_openai, guarded, metadata_of
from tests.support.openai_server import (
    Answer,
    Asked,
    Scripted,
    Server,
    always,
    rejecting,
)

STREAMS = ("stream", "astream")


def failing(times: int) -> Scripted:
    """Fail the first requests for the answer, and the first for samples."""
    left = {False: times, True: times}

    def script(asked: Asked) -> Answer:
        left[asked.is_sample] -= 1
        return Answer(status=500 if left[asked.is_sample] >= 0 else 200)

    return script


# -- Wrappers --------------------------------------------------------------------------


@pytest.mark.parametrize("way", [*WHOLE, *STREAMS])
def test_with_retry_is_carried_out_as_its_user_set_it(way: str) -> None:
    options: Any = {"wait_exponential_jitter": False}
    with Server(failing(2)) as server:
        model = chat_openai(server).with_retry(stop_after_attempt=3, **options)
        assert metadata_of(ask(SNNEGuard(model, n=2), way))["n_used"] == 2
        server.script = failing(2)
        model = chat_openai(server).with_retry(stop_after_attempt=2, **options)
        with pytest.raises(openai.InternalServerError):
            ask(SNNEGuard(model, n=2), way)


@pytest.mark.parametrize("way", [*WHOLE, *STREAMS])
def test_with_fallbacks_asks_the_next_after_an_error(way: str) -> None:
    with Server(always(status=403)) as server, Server(always("Rome")) as spare:
        first, second = chat_openai(server), chat_openai(spare)
        both = first.with_fallbacks([first, second.bind(presence_penalty=0.5)])
        message = ask(SNNEGuard(both, n=2), way)
        assert {asked.body["presence_penalty"] for asked in spare.requests} == {0.5}
        narrow = first.with_fallbacks([second], exceptions_to_handle=(TimeoutError,))
        with pytest.raises(openai.PermissionDeniedError):
            ask(SNNEGuard(narrow), way)
    assert (message.text, metadata_of(message)["n_used"]) == ("Rome", 2)


@pytest.mark.parametrize("way", WHOLE)
def test_a_rejected_parameter_is_no_reason_to_fall_back(way: str) -> None:
    with Server(rejecting("temperature", always())) as server, Server(always()) as two:
        model = chat_openai(server).with_fallbacks([chat_openai(two)])
        record = metadata_of(ask(SNNEGuard(model), way))
        assert two.requests == []
    assert "temperature_unset" in record["reasons"]


# -- Settings --------------------------------------------------------------------------


@pytest.mark.parametrize("way", WHOLE)
def test_samples_are_hot_unseeded_and_unstored_wherever_that_was_set(way: str) -> None:
    extra = {"temperature": 0.3, "seed": 7, "top_k": 5, "store": True}
    with Server(always()) as server:
        model = chat_openai(server, seed=7, streaming=True, extra_body=extra)
        ask(SNNEGuard(model.bind(temperature=0.1, seed=7)), way)
        (answer,), (sample,) = server.answers, server.samples
    assert {name: answer.body[name] for name in extra} == extra
    assert sample.body["temperature"] == 1.0
    assert "top_k" not in sample.body
    assert sample.body["store"] is False
    assert "seed" not in sample.body
    assert not sample.body.get("stream")


@pytest.mark.parametrize("way", [*WHOLE, *STREAMS])
def test_draws_wait_for_the_rate_limiter(way: str) -> None:
    waited: list[str] = []

    class Limiter(BaseRateLimiter):
        def acquire(self, *, blocking: bool = True) -> bool:
            waited.append("thread")
            return blocking

        async def aacquire(self, *, blocking: bool = True) -> bool:
            waited.append("task")
            return blocking

    with Server(always()) as server:
        ask(SNNEGuard(chat_openai(server, rate_limiter=Limiter())), way)
    assert waited == ["task" if way.startswith("a") else "thread"] * 2


user: ContextVar[str] = ContextVar("user", default="nobody")


class Located(FakeListChatModel):
    """Notes in which context it is asked; copies share the list."""

    users: list[str] = Field(default_factory=list)

    def _generate(self, *args: Any, **kwargs: Any) -> Any:
        self.users.append(user.get())
        return super()._generate(*args, **kwargs)


@pytest.mark.parametrize("way", WHOLE)
def test_a_draw_sees_the_context_variables_of_the_application(way: str) -> None:
    model = Located(responses=["Paris"])
    token = user.set("Ada")
    ask(SNNEGuard(model, n=3), way)
    user.reset(token)
    assert model.users == ["Ada"] * 3


# -- Streams ---------------------------------------------------------------------------


@pytest.mark.parametrize("way", STREAMS)
def test_a_stream_that_does_not_say_how_it_ended_is_cut_off(way: str) -> None:
    with Server(always(finish=None)) as server:
        record = metadata_of(ask(guarded(server), way))
    assert "answer_truncated" in record["reasons"]


@pytest.mark.parametrize("way", [*WHOLE, *STREAMS])
def test_a_model_that_says_nothing_gives_no_answer(way: str) -> None:
    class Silent(FakeListChatModel):
        def _generate(self, *_: Any, **__: Any) -> ChatResult:
            return ChatResult(generations=[])

        def _stream(self, *_: Any, **__: Any) -> Iterator[ChatGenerationChunk]:
            return iter(())

        async def _astream(self, *_: Any, **__: Any) -> Any:
            for chunk in self._stream():
                yield chunk

    with pytest.raises(SamplingError, match="no reply"):
        ask(SNNEGuard(Silent(responses=["Paris"])), way)


def test_a_stream_may_be_any_iterator() -> None:
    class Iterating(FakeListChatModel):
        def _astream(self, *args: Any, **options: Any) -> Any:
            return Chunks(super()._astream(*args, **options))

    class Chunks:
        def __init__(self, chunks: Any) -> None:
            self.chunks = chunks

        async def __anext__(self) -> Any:
            return await self.chunks.__anext__()

    answer = ask(SNNEGuard(Iterating(responses=["Paris"])), "astream")
    assert answer.text == "Paris"
