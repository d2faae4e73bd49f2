"""Time limits, errors and bad options of samplers for the ``openai`` package."""

from __future__ import annotations

import asyncio
from typing import Any

import openai
import pytest

from snne_guard.errors import (
    ConfigurationError,
    GuardTimeoutError,
    InputError,
    SamplingError,
)
from snne_guard.sampling.openai import AsyncOpenAISampler, OpenAISampler
from snne_guard.types import AsyncSampler, ResponseSet, Sampler
from tests.support.chat_server import (
    ChatServer,
    Gate,
    Reply,
    always,
    cycle,
    error,
    in_turn,
    rejecting_n,
)
from tests.support.guarding import split
from tests.support.openai_clients import BOTH, async_client, client, sampling
from tests.support.patience import in_time

DRAWN = ["Paris", "Lyon", "Rome", "Bonn"]
both = pytest.mark.parametrize("way", BOTH)


def texts(found: ResponseSet) -> list[str]:
    return [sample.text for sample in found.samples]


@both
def test_what_has_arrived_in_time_is_returned(way: str) -> None:
    replies = [Reply(texts=("Lyon",)), Reply(stall=True)]

    def check(limit: float) -> None:
        script = rejecting_n(in_turn(replies))
        with (
            ChatServer(split("Paris", script)) as server,
            sampling(server, way, n=3, sample_timeout=limit) as sample,
        ):
            found = sample("x")
        assert texts(found) == ["Lyon"]
        assert found.reasons == ("samples_late",)
        assert found.cost.lower_bound  # what stalled was perhaps billed

    in_time(check)


@both
def test_an_answer_that_stalls_ends_in_a_timeout(way: str) -> None:
    with (
        ChatServer(split(lambda _request: Reply(stall=True), DRAWN)) as server,
        sampling(server, way, timeout=0.5) as sample,
        pytest.raises(GuardTimeoutError, match=r"no answer within 0\.5 s") as caught,
    ):
        sample("x")
    assert caught.value.timeout == 0.5


@both
def test_no_place_in_time_ends_in_a_timeout_too(way: str) -> None:
    def check(limit: float) -> None:
        options: dict[str, Any] = {"timeout": limit, "max_concurrency": 1}
        with (
            ChatServer([Reply(stall=True)]) as server,
            sampling(server, way, n=3, **options) as sample,
        ):
            with pytest.raises(GuardTimeoutError):
                sample("x")
            assert server.peak == 1

    in_time(check, seconds=0.5)


@both
def test_the_answer_s_own_error_comes_through_unchanged(way: str) -> None:
    too_long = error(400, "too long", code="context_length_exceeded", param="messages")
    with (
        ChatServer([too_long]) as server,
        sampling(server, way) as sample,
        pytest.raises(openai.BadRequestError, match="too long") as caught,
    ):
        sample("x")
    assert caught.value.code == "context_length_exceeded"
    assert len(server.requests) <= 2  # the answer and the set


@both
def test_a_reply_without_a_choice_is_no_answer(way: str) -> None:
    with (
        ChatServer([Reply(choices=0)]) as server,
        sampling(server, way) as sample,
        pytest.raises(SamplingError, match="answered with no reply in it"),
    ):
        sample("x")


@both
def test_samples_that_fail_for_good_are_named(way: str) -> None:
    with (
        ChatServer(split("Paris", lambda _request: error(401, "no"))) as server,
        sampling(server, way) as sample,
    ):
        found = sample("x")
    assert (found.answer.text, found.samples) == ("Paris", ())
    assert found.reasons == ("samples_failed",)
    (cause,) = found.errors
    assert isinstance(cause, openai.AuthenticationError)
    assert found.cost.attempts == 2


@both
def test_messages_and_options_are_checked(way: str) -> None:
    with ChatServer(cycle(DRAWN)) as server, sampling(server, way) as sample:
        with pytest.raises(InputError, match="messages must be"):
            sample(3)
        with pytest.raises(ConfigurationError, match="'stream' is set for each"):
            sample("x", stream=True)
        assert server.requests == []


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"n": 1}, "n must be a whole number of at least 2; got 1"),
        ({"max_concurrency": 0}, "max_concurrency must be .* at least 1; got 0"),
        ({"api": "x"}, "api must be one of"),
        ({"options": {"n": 3}}, "'n' is set for each request"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    options: dict[str, Any], expected: str
) -> None:
    with (
        openai.OpenAI(api_key="x") as whom,
        pytest.raises(ConfigurationError, match=expected),
    ):
        OpenAISampler(whom, **{"model": "m", **options})


async def test_a_sampler_takes_the_client_of_its_kind() -> None:
    with ChatServer(always("Paris")) as server, client(server) as threads:
        async with async_client(server) as tasks:
            sampler: Sampler = OpenAISampler(threads, model="m")
            asynchronous: AsyncSampler = AsyncOpenAISampler(tasks, model="m")
            found = await asyncio.to_thread(sampler.sample, "x")
            assert texts(found) == texts(await asynchronous.sample("x"))
            wrong: Any = tasks
            with pytest.raises(ConfigurationError, match=r"OpenAI\(\) of the openai"):
                OpenAISampler(wrong, model="m")


async def test_a_cancelled_call_ends_its_requests() -> None:
    gate = Gate()
    with ChatServer(always("Paris", gate=gate)) as server:
        async with async_client(server) as tasks:
            call = asyncio.create_task(AsyncOpenAISampler(tasks, model="m").sample("x"))
            await asyncio.to_thread(server.wait_until, requests=2)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            await asyncio.to_thread(server.wait_until, abandoned=2)
        gate.open()


def test_azure_is_asked_at_its_own_address() -> None:
    with ChatServer(split("Paris", DRAWN)) as server:
        host = server.url.removesuffix("/v1")
        azure = openai.AzureOpenAI(
            azure_endpoint=host, api_key="x", api_version="2024-10-21", max_retries=0
        )
        with azure:
            found = OpenAISampler(azure, model="my-deployment").sample("x")
        assert texts(found) == DRAWN
        for request in server.requests:
            assert "/openai/deployments/my-deployment/chat/" in request.path
            assert request.headers["api-key"] == "x"
