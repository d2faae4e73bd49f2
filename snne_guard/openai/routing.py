"""Which requests of a client are guarded, which pass through and which are refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn
from urllib.parse import urlsplit

from openai import BaseModel

from snne_guard.errors import ConfigurationError
from snne_guard.sampling.openai.apis import Api, ChatApi, ResponsesApi
from snne_guard.sampling.openai.sender import ApiRequest

__all__ = ["guarded_request"]

_APIS: dict[str, Api] = {
    "/chat/completions": ChatApi(),
    "/responses": ResponsesApi(),
}
_RAW_HEADER = "x-stainless-raw-response"


def guarded_request(path: str, given: Mapping[str, Any]) -> ApiRequest | None:
    """Return a request that is to be guarded, None for one that passes through.

    Args:
        path: Where it goes.
        given: The other arguments of the client's ``post``.

    Raises:
        ConfigurationError: It asks a guarded API in a way that cannot be guarded.
    """
    api = _api_at(path)
    if api is None:
        return None
    options = {**(given.get("options") or {})}
    body, cast_to = given.get("body"), given.get("cast_to")
    known = isinstance(cast_to, type) and issubclass(cast_to, BaseModel)
    if not (isinstance(body, Mapping) and known):
        _refuse("a class of your own for the reply, or a body that is no dict,")
    headers = {name.lower(): name for name in options.get("headers") or {}}
    if _RAW_HEADER in headers:
        options["headers"] = {**options["headers"]}
        how = options["headers"].pop(headers[_RAW_HEADER])
        if how != "stream" or not given.get("stream"):
            _refuse("with_raw_response, or with_streaming_response without a stream,")
    body = {**body, **(options.pop("extra_json", None) or {})}
    if (body.get("n") or 1) != 1:
        _refuse("n above 1, which asks for several answers of which one is assessed,")
    if body.get("background"):
        _refuse("background=True, whose answer is fetched later,")
    return ApiRequest(
        api=api,
        path=path,
        body=body,
        options=options,
        cast_to=cast_to,
        stream_cls=given.get("stream_cls") if given.get("stream") else None,
    )


def _api_at(path: str) -> Api | None:
    place = f"/{urlsplit(path).path.strip('/')}"  # also of a whole address
    return next((api for end, api in _APIS.items() if place.endswith(end)), None)


def _refuse(what: str) -> NoReturn:
    msg = (
        f"a guard does not take {what} since it could neither hold the answer back "
        "nor assess it"
    )
    raise ConfigurationError(msg)
