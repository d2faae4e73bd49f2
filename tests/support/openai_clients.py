"""Real clients of the ``openai`` package, pointed at the local server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import openai

from snne_guard.sampling.openai import AsyncOpenAISampler, OpenAISampler
from snne_guard.types import ResponseSet
from tests.support.chat_server import ChatServer

__all__ = ["BOTH", "async_client", "client", "sampling"]

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
        "timeout": 20,
        **options,
    }


@contextmanager
def sampling(
    server: ChatServer, way: str, *, client_options: Any = None, **options: Any
) -> Iterator[Callable[..., ResponseSet]]:
    """Give the ``sample`` of one of the twins, called like the one for threads."""
    settings = {"model": "test-model", **options}
    if way == "threads":
        with client(server, **(client_options or {})) as threads:
            yield OpenAISampler(threads, **settings).sample
        return
    with asyncio.Runner() as runner:
        tasks = async_client(server, **(client_options or {}))
        sampler = AsyncOpenAISampler(tasks, **settings)
        yield lambda *args, **kwargs: runner.run(sampler.sample(*args, **kwargs))
        runner.run(tasks.close())
