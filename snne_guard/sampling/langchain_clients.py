"""The clients inside LangChain models, as they are where somebody else retries."""

from __future__ import annotations

import copy
from typing import Any

__all__ = [
    "bedrock_clients",
    "google_clients",
    "lazy_clients",
    "resource_clients",
    "root_clients",
]


def root_clients(model: Any) -> dict[str, Any]:  # noqa: ANN401 - any provider's class
    """Return the clients of langchain-openai's classes, and of those built on them."""
    update: dict[str, Any] = {}
    for root, leaf in (
        ("root_client", "client"),
        ("root_async_client", "async_client"),
    ):
        client: Any = getattr(model, root, None)
        if client is not None and hasattr(client, "with_options"):
            client = client.with_options(max_retries=0)
            update |= {root: client, leaf: client.chat.completions}
    return update


def resource_clients(model: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return the clients of a class that keeps only their chat resource."""
    update: dict[str, Any] = {}
    for name in ("client", "async_client"):
        root: Any = getattr(getattr(model, name, None), "_client", None)
        if hasattr(root, "with_options"):
            update[name] = root.with_options(max_retries=0).chat.completions
    return update


def lazy_clients(model: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return the clients of a class that makes them when they are first used."""
    return {
        name: getattr(model, name).with_options(max_retries=0)
        for name in ("_client", "_async_client")
        if hasattr(getattr(model, name, None), "with_options")
    }


def google_clients(model: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return the clients of langchain-google-genai's class before version 4.

    Below its own retries their client repeats what is unavailable for ten minutes.
    """
    if not hasattr(model.client, "generate_content"):
        return {}
    return {
        "client": _GoogleThreads(model),
        "async_client_running": _GoogleTasks(model),
    }


class _GoogleThreads:
    """The client of a model, without its retries."""

    def __init__(self, model: Any) -> None:  # noqa: ANN401
        self._model = model

    def generate_content(self, **options: Any) -> Any:  # noqa: ANN401
        return self._model.client.generate_content(**options, retry=None)


class _GoogleTasks:
    """The async client, which the model makes when there is a running loop."""

    def __init__(self, model: Any) -> None:  # noqa: ANN401
        self._model = model

    async def generate_content(self, **options: Any) -> Any:  # noqa: ANN401
        return await self._model.async_client.generate_content(**options, retry=None)


def bedrock_clients(model: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return a botocore client that shares its connections and does not retry.

    Its retries are a handler of its events, which a copy of the events leaves out.
    """
    client: Any = model.client
    meta, endpoint = getattr(client, "meta", None), getattr(client, "_endpoint", None)
    if meta is None or endpoint is None:
        return {}
    service = meta.service_model.service_id.hyphenize()
    events = copy.copy(meta.events)
    events.unregister(f"needs-retry.{service}", unique_id=f"retry-config-{service}")
    alone = _empty(client)
    alone.__dict__.update(client.__dict__)
    alone.meta = copy.copy(meta)
    alone.meta.events = events
    alone._endpoint = copy.copy(endpoint)  # noqa: SLF001 - botocore has no other way in
    alone._endpoint._event_emitter = events  # noqa: SLF001
    return {"client": alone}


def _empty(client: object) -> Any:  # noqa: ANN401
    # copy.copy would ask the new object for its methods before it has any state.
    return object.__new__(type(client))
