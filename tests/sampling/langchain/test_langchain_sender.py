"""Draws: what is asked of a model, what comes back, what is left out."""

from __future__ import annotations

import contextvars
import itertools
from typing import Any

import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.outputs import ChatResult
from langchain_core.rate_limiters import BaseRateLimiter

from snne_guard.errors import SamplingError
from snne_guard.sampling.langchain import (
    LangChainSender,
)
from snne_guard.sampling.replies import Draw
from tests.sampling.langchain.support import (
    ANSWER,
    SAMPLE,
    Call,
    RejectedError,
    Scripted,
    ScriptedAsync,
    ScriptedStream,
    sent,
    streamed,
)

QUESTION = [HumanMessage("The capital of France?")]
WAYS = pytest.mark.parametrize("way", ["send", "asend"])

pytestmark = pytest.mark.usefixtures("table")


def draws(model: Any, **options: Any) -> LangChainSender:
    return LangChainSender(model, QUESTION, **options)


@WAYS
async def test_samples_are_hot_unseeded_and_unstored(way: str) -> None:
    model = ScriptedAsync(
        n=3,
        seed=7,
        streaming=True,
        extra_body={"temperature": 0.3, "seed": 7, "top_k": 5, "store": True},
    )
    bound = model.bind(
        temperature=0.1, seed=7, n=4, stream=True, ls_structured_output_format={}
    )
    reply = await sent(
        draws(bound, kwargs={"stop": ["."]}, temperature=0.8), SAMPLE, way
    )
    (call,) = model.calls
    assert (call.stop, call.temperature) == (["."], 0.8)
    assert call.options == {"temperature": 0.8}
    copy = call.model
    assert (copy.n, copy.seed, copy.streaming, copy.cache) == (1, None, False, False)
    assert copy.extra_body == {"temperature": 0.8, "top_k": 5, "store": False}
    assert (model.n, model.seed, model.temperature) == (3, 7, 0.2)
    assert reply.temperature_set
    assert reply.raw is None


def rejecting(*names: str) -> Any:
    def script(call: Call) -> Any:
        values = {**call.options, "temperature": call.temperature}
        for name in names:
            if values.get(name) not in (None, 0.2):
                return RejectedError(f"Unsupported parameter: '{name}'.")
        return "Paris"

    return script


@WAYS
async def test_a_temperature_outside_the_range_or_without_a_field_is_reported(
    way: str,
) -> None:
    model = ScriptedAsync()
    reply = await sent(draws(model, temperature=3.0), SAMPLE, way)
    assert (model.calls[0].temperature, reply.temperature_set) == (2.0, False)
    plain = GenericFakeChatModel(messages=iter([AIMessage("Paris")] * 2))
    assert not (await sent(draws(plain), SAMPLE, way)).temperature_set
    profiled = ScriptedAsync(profile={"temperature": False})
    assert not (await sent(draws(profiled), SAMPLE, way)).temperature_set
    assert profiled.calls[0].temperature == 0.2


@WAYS
async def test_a_model_that_returns_nothing_has_no_answer(way: str) -> None:
    model = ScriptedAsync(script=lambda _call: ChatResult(generations=[]))
    assert (await sent(draws(model), SAMPLE, way)).samples == ()
    with pytest.raises(SamplingError, match="no reply"):
        await sent(draws(model), ANSWER, way)


async def test_a_model_without_async_is_asked_in_a_thread() -> None:
    model = Scripted()
    reply = await draws(model).asend(ANSWER)
    assert reply.first.text == "Paris"
    assert len(model.threads) == 1


@WAYS
async def test_draws_wait_for_the_rate_limiter(way: str) -> None:
    waited: list[str] = []

    class Limiter(BaseRateLimiter):
        def acquire(self, *, blocking: bool = True) -> bool:
            waited.append("send")
            return blocking

        async def aacquire(self, *, blocking: bool = True) -> bool:
            waited.append("asend")
            return blocking

    model = ScriptedStream(rate_limiter=Limiter())
    await sent(draws(model), ANSWER, way)
    await sent(draws(model), Draw(role="sample", n=4), way)
    await streamed(draws(model), way)
    assert waited == [way] * 3


@WAYS
@pytest.mark.parametrize("kind", [ScriptedStream, ScriptedAsync])
async def test_streams_join_to_the_whole_answer(way: str, kind: Any) -> None:
    model = kind()
    asking = draws(model, logprobs=True, kwargs={"stop": ["."]})
    chunks = await streamed(asking, way)
    assert [chunk.text for chunk in chunks if chunk.text] == (
        list("Paris") if kind is ScriptedStream else ["Paris"]
    )
    assert "logprobs" not in str(chunks)
    reply = asking.streamed()
    (sample,) = reply.samples
    assert (sample.text, sample.finish_reason) == ("Paris", "stop")
    assert (sample.token_logprobs, sample.truncated) == ((-0.5,), False)
    assert type(reply.raw) is AIMessage
    assert "logprobs" not in reply.raw.response_metadata
    assert model.calls[0].stop == ["."]


@WAYS
async def test_a_stream_that_breaks_off_without_a_word_is_cut_off(way: str) -> None:
    class Cut(ScriptedStream):
        def _chunks(self, call: Call) -> Any:
            yield from itertools.islice(super()._chunks(call), 3)

    asking = draws(Cut())
    await streamed(asking, way)
    assert asking.streamed().first.truncated


@WAYS
async def test_a_stream_asks_again_without_what_is_rejected(way: str) -> None:
    model = ScriptedStream(script=rejecting("logprobs"))
    chunks = await streamed(draws(model, logprobs=True), way)
    assert "".join(chunk.text for chunk in chunks) == "Paris"
    assert [call.options for call in model.calls] == [{"logprobs": True}, {}]


@WAYS
async def test_a_stream_that_is_left_is_closed(way: str) -> None:
    ended: list[str] = []

    class Left(ScriptedStream):
        def _chunks(self, call: Call) -> Any:
            try:
                yield from super()._chunks(call)
            finally:
                ended.append(call.hook)

    chunks: Any = draws(Left()).stream() if way == "send" else draws(Left()).astream()
    if way == "send":
        next(chunks)
        chunks.close()
    else:
        await anext(chunks)
        await chunks.aclose()
    assert ended


def test_a_stream_without_chunks_has_no_answer() -> None:
    class Silent(ScriptedStream):
        def _chunks(self, call: Call) -> Any:
            del call
            return iter(())

    with pytest.raises(SamplingError, match="no reply"):
        list(draws(Silent()).stream())


span: contextvars.ContextVar[str] = contextvars.ContextVar("span", default="none")


@WAYS
async def test_a_draw_sees_the_context_variables_of_the_application(way: str) -> None:
    spans: list[str] = []

    def script(_: Call) -> str:
        spans.append(span.get())
        return "Paris"

    span.set("of the caller")
    await sent(draws(ScriptedAsync(script=script)), SAMPLE, way)
    assert spans == ["of the caller"]
