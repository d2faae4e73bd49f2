"""Real clients of the ``openai`` package, pointed at the local server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import openai

from snne_guard import AsyncOpenAIGuard, OpenAIGuard
from snne_guard.sampling.openai import AsyncOpenAISampler, OpenAISampler
from snne_guard.types import Assessment, ResponseSet
from tests.support.chat_server import ChatServer

__all__ = ["BOTH", "assessing", "async_client", "client", "sampling"]

BOTH = ("threads", "tasks")
"""The two twins."""


def client(server: ChatServer, **options: Any) -> openai.OpenAI:
    """Return the client for threads; use it as a context."""
    return openai.OpenAI(**_options(server, options))


def async_client(server: ChatServer, **options: Any) -> openai.AsyncOpenAI:
    """Return the client for tasks; use it as an async context."""
    return openai.AsyncOpenAI(**_options(server, options))


def _options(server: ChatServer, options: dict[str, Any]) -> dict[str, Any]:
    return {
        "base_url": server.url,
        "api_key": "test",
        "max_retries": 0,
        "timeout": 120,
        **options,
    }


@contextmanager
def sampling(
    server: ChatServer, way: str, *, client_options: Any = None, **options: Any
) -> Iterator[Callable[..., ResponseSet]]:
    """Give the ``sample`` of one of the twins, called like the one for threads."""
    settings = {"model": "test-model", **options}
    with _clients(server, way, client_options) as (whom, run):
        if way == "threads":
            yield OpenAISampler(whom, **settings).sample
        else:
            yield run(AsyncOpenAISampler(whom, **settings).sample)


@contextmanager
def assessing(
    server: ChatServer, way: str, *, client_options: Any = None, **options: Any
) -> Iterator[Callable[..., Assessment]]:
    """Give the ``assess`` of one of the twins, called like the one for threads."""
    settings = {"model": "test-model", **options}
    with _clients(server, way, client_options) as (whom, run):
        if way == "threads":
            yield OpenAIGuard(whom, **settings).assess
        else:
            yield run(AsyncOpenAIGuard(whom, **settings).assess)


@contextmanager
def _clients(
    server: ChatServer, way: str, options: dict[str, Any] | None
) -> Iterator[tuple[Any, Callable[..., Any]]]:
    """Give a client, and what makes a coroutine function one that can be called."""
    if way == "threads":
        with client(server, **(options or {})) as threads:
            yield threads, lambda function: function
        return
    with asyncio.Runner() as runner:
        tasks = async_client(server, **(options or {}))

        def run(function: Callable[..., Any]) -> Callable[..., Any]:
            return lambda *args, **kwargs: runner.run(function(*args, **kwargs))

        yield tasks, run
        runner.run(tasks.close())
