"""Copies that draw samples or tell nobody; the user's own model is untouched."""

from __future__ import annotations

from typing import Any

import openai
import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import FakeListChatModel
from langchain_openai import ChatOpenAI

from snne_guard.sampling.langchain_copies import sampling_copy
from snne_guard.sampling.langchain_models import (
    pin,
    quiet_copy,
    resolve,
)
from tests.sampling.models import fake, gpt
from tests.support.chat_server import ChatServer, always, chat_openai, error
from tests.support.handlers import EverythingHandler

# --- quiet_copy --------------------------------------------------------------------


def test_a_quiet_copy_tells_no_handler_that_the_user_hung_on_the_model() -> None:
    on_model, on_binding, on_fallback = (EverythingHandler() for _ in range(3))
    heard: list[str] = []
    model = FakeListChatModel(responses=["secret"], callbacks=[on_model])
    second = FakeListChatModel(responses=["secret"], callbacks=[on_fallback])
    whole = (
        model.bind(stop=["x"])
        .with_config(callbacks=[on_binding], tags=["kept"])
        .with_listeners(on_start=lambda run: heard.append(run.name))
        .with_fallbacks([second])
        .with_retry()
    )
    quiet = quiet_copy(pin(whole))
    assert quiet.invoke("x").content == "secret"
    assert (on_model.names, on_binding.names, on_fallback.names, heard) == (
        [],
        [],
        [],
        [],
    )
    first, other = resolve(quiet)
    assert first.kwargs == {"stop": ["x"]}
    assert first.config["tags"] == ["kept"]
    assert (first.model.callbacks, other.model.callbacks) == (None, None)
    assert model.callbacks == [on_model]
    assert whole.invoke("x").content == "secret"
    assert on_model.names
    assert on_binding.names
    assert heard


# --- sampling_copy -----------------------------------------------------------------


def test_a_sampling_copy_draws_alone_and_leaves_the_users_model_as_it_was() -> None:
    cache, handler = InMemoryCache(), BaseCallbackHandler()
    model = gpt(
        temperature=0.2, seed=7, n=3, cache=cache, store=True,
        callbacks=[handler], verbose=True, max_retries=5, max_tokens=400,
    )  # fmt: skip
    before, clients = model.model_dump(), (model.root_client, model.client)
    copy = sampling_copy(model, temperature=1.0, max_tokens=50)
    assert isinstance(copy, ChatOpenAI)
    assert (copy.temperature, copy.seed, copy.n) == (1.0, None, None)
    assert (copy.cache, copy.store, copy.callbacks) == (False, False, None)
    assert (copy.verbose, copy.disable_streaming, copy.max_tokens) == (False, True, 50)
    assert copy.root_client.max_retries == copy.root_async_client.max_retries == 0
    assert copy.client._client is copy.root_client
    assert copy.async_client._client is copy.root_async_client
    assert copy.root_client._client is model.root_client._client
    assert model.model_dump() == before
    assert (model.root_client, model.client) == clients
    assert model.root_client.max_retries == 5
    assert (model.cache, model.callbacks, model.seed) == (cache, [handler], 7)


def test_a_sampling_copy_does_not_stream() -> None:
    copy = sampling_copy(gpt(streaming=True), temperature=1.0, max_tokens=None)
    assert isinstance(copy, ChatOpenAI)
    assert copy.streaming is False


def test_a_token_limit_of_none_keeps_the_models_own() -> None:
    copy = sampling_copy(gpt(max_tokens=400), temperature=0.5, max_tokens=None)
    assert isinstance(copy, ChatOpenAI)
    assert (copy.max_tokens, copy.temperature) == (400, 0.5)


def test_a_model_without_settings_is_copied_all_the_same() -> None:
    model = fake()
    copy = sampling_copy(model, temperature=1.0, max_tokens=9)
    assert copy is not model
    assert (copy.cache, copy.disable_streaming) == (False, True)
    assert not hasattr(copy, "temperature")


class Half(FakeListChatModel):
    """A model with a client of another make, and one that is not there."""

    root_client: Any = object()
    root_async_client: Any = None


def test_clients_of_another_make_are_left_alone() -> None:
    model = Half(responses=["x"])
    copy = sampling_copy(model, temperature=1.0, max_tokens=None)
    assert isinstance(copy, Half)
    assert copy.root_client is model.root_client
    assert copy.root_async_client is None


async def test_the_copy_does_not_retry_by_itself() -> None:
    with ChatServer([error(503)]) as server:
        model = chat_openai(server, max_retries=3)
        copy = sampling_copy(model, temperature=1.0, max_tokens=None)
        with pytest.raises(openai.InternalServerError):
            copy.invoke("x")
        with pytest.raises(openai.InternalServerError):
            await copy.ainvoke("x")
        assert len(server.requests) == 2


def test_the_copys_requests_carry_its_settings() -> None:
    with ChatServer(always("Paris")) as server:
        model = chat_openai(server, temperature=0, seed=3, n=2, streaming=False)
        copy = sampling_copy(model, temperature=1.0, max_tokens=12)
        assert copy.invoke("x").content == "Paris"
        (request,) = server.requests
    assert request.temperature == 1.0
    assert request.body["max_completion_tokens"] == 12
    assert not {"seed", "n", "store"} & set(request.body)
    assert request.stream is False
