"""What a client is about to send: which API, for whom, with what in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self, cast
from urllib.parse import urlsplit

from snne_guard import ConfigurationError

__all__ = ["RAW", "Post", "api_of", "unguarded"]

RAW = "with_raw_response"

ApiName = Literal["chat", "responses"]
_APIS: Mapping[str, ApiName] = {"/chat/completions": "chat", "/responses": "responses"}
_TYPE = "a type of your own for the reply"
_STREAMED = "with_streaming_response"
_RAW_HEADER = "x-stainless-raw-response"
_NOT_FOR_SAMPLES = ("x-stainless-", "idempotency-key")
"""Beginnings of headers that are about one request: its form, or its being one."""


def api_of(path: str) -> ApiName | None:
    """Return the API that answers at a path, None where nothing is guarded.

    Example:
        >>> api_of("/chat/completions"), api_of("/embeddings")
        ('chat', None)
    """
    asked = urlsplit(path)
    place = f"/{asked.path.lstrip('/')}"
    if asked.netloc:  # a whole address, whatever it begins with
        ends = [end for end in _APIS if place.endswith(end)]
        return _APIS[ends[0]] if ends else None
    return _APIS.get(place)


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """One request for an answer, as it reaches the client's ``post``.

    Attributes:
        api: Which API it is for.
        path: Where it goes.
        body: What it says, as JSON.
        given: The other arguments of ``post``.
    """

    api: ApiName
    path: str
    body: Mapping[str, Any]
    given: Mapping[str, Any]

    @classmethod
    def of(cls, api: ApiName, path: str, given: Mapping[str, Any]) -> Self:
        """Return what ``post`` was called with, if it can be guarded.

        Args:
            api: Which API it is for.
            path: Where it goes.
            given: The other arguments of ``post``.

        Raises:
            ConfigurationError: If what is to come back is no object of the API.
        """
        others = {name: value for name, value in given.items() if name != "body"}
        body = given.get("body")
        if not isinstance(body, Mapping):
            msg = "a guarded client needs the body of a request as a dict"
            raise ConfigurationError(msg)
        post = cls(
            api=api, path=path, body=cast("Mapping[str, Any]", body), given=others
        )
        if not hasattr(given.get("cast_to"), "construct"):
            raise unguarded(_TYPE)
        if post.raw == "stream":
            raise unguarded(_STREAMED)
        if post.raw and post.stream:
            raise unguarded(RAW)
        return post

    @property
    def options(self) -> Mapping[str, Any]:
        """The request options: headers, time limit, and what the client adds."""
        found: Mapping[str, Any] = self.given.get("options") or {}
        return found

    @property
    def stream(self) -> bool:
        """Whether the answer is to come in parts."""
        return bool(self.given.get("stream"))

    @property
    def raw(self) -> str | None:
        """How the HTTP response is to be returned with the answer, None for not."""
        headers: Mapping[str, str] = self.options.get("headers") or {}
        found = [headers[name] for name in headers if name.lower() == _RAW_HEADER]
        return found[0] if found else None

    @property
    def structured(self) -> bool:
        """Whether the answer is to be JSON, which no refusal would be."""
        text: Mapping[str, Any] = self.body.get("text") or {}
        format_: Any = self.body.get("response_format") or text.get("format")
        wanted = cast("Mapping[str, Any]", format_ or {})
        return wanted.get("type") in {"json_object", "json_schema"}

    @property
    def counts(self) -> bool:
        """Whether a stream of chat chunks is to end with one that has the usage."""
        options: Mapping[str, Any] = self.body.get("stream_options") or {}
        return bool(options.get("include_usage"))

    @property
    def request(self) -> dict[str, Any]:
        """The same as arguments of ``create``."""
        options, request = self.options, dict(self.body)
        for name, ours in (("extra_query", "params"), ("extra_body", "extra_json")):
            if options.get(ours):
                request[name] = options[ours]
        if "timeout" in options:
            request["timeout"] = options["timeout"]
        headers: Mapping[str, str] = options.get("headers") or {}
        kept = {
            name: value
            for name, value in headers.items()
            if not name.lower().startswith(_NOT_FOR_SAMPLES)
        }
        return {**request, "extra_headers": kept} if kept else request

    def send(self, client: Any, **added: Any) -> Any:  # noqa: ANN401 - the client's own
        """Send it as the client would.

        Args:
            client: The user's own client.
            **added: What the body is to say besides, or instead.
        """
        send: Callable[..., Any] = client.post
        return send(self.path, body={**self.body, **added}, **self.given)

    def finished(self, built: Any) -> Any:  # noqa: ANN401 - the client's own
        """Return an object of the API as ``parse`` would, where the call is one."""
        parser = self.options.get("post_parser")
        return parser(built) if callable(parser) else built


def unguarded(what: str) -> ConfigurationError:
    """Return the error for what would show an answer before it is decided on.

    Args:
        what: What was asked for.
    """
    msg = (
        f"{what} shows the reply as it comes, which a guard cannot hold back or mark "
        "here; use the client that you gave to guard_client() for it"
    )
    return ConfigurationError(msg)
