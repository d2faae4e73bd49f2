"""A request to OpenAI's API as a user sends it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from snne_guard.sampling.openai.apis import Api, Body, fields_of, text_of
from snne_guard.sampling.options import STREAMS, answer_settings

__all__ = ["ApiRequest", "reusable_options"]

_HEADERS_OF_ONE_REQUEST = ("x-stainless-", "idempotency-key")
_OPTIONS_OF_ONE_REQUEST = frozenset({"idempotency_key", "post_parser", "stream_mode"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiRequest:
    """A user's request as the ``post`` method of a client gets it.

    Attributes:
        api: Which API it is for.
        path: Where it goes.
        body: Its JSON body, ``extra_body`` included.
        options: Headers, query, time limit and the like.
        cast_to: Class of the answer.
        stream_cls: Class of the stream; None: the answer comes in one piece.
    """

    api: Api
    path: str
    body: Body = field(repr=False)
    options: Mapping[str, Any] = field(repr=False)
    cast_to: Any
    stream_cls: Any = None

    @property
    def model(self) -> str:
        """Name of the model, empty where the server decides."""
        return str(self.body.get("model") or "")

    @property
    def question(self) -> str | None:
        """Text of the user's last message, None where there is none."""
        for message in map(fields_of, reversed(self.api.messages(self.body))):
            if message.get("role") == "user":
                return text_of(message.get("content"))
        return None

    @property
    def answer_settings(self) -> dict[str, Any]:
        """What the answer is drawn with, by a calibration's names."""
        unset = dict.fromkeys(("temperature", "top_p", "max_tokens", "stop"))
        return {"model": self.model, **answer_settings({**unset, **self.body})}

    def unstreamed(self) -> Self:
        """Return the same request for an answer in one piece."""
        body = {k: v for k, v in self.body.items() if k not in STREAMS}
        return replace(self, body=body, stream_cls=None)


def reusable_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return request options without what is about one request alone.

    Example:
        >>> reusable_options({"headers": {"Idempotency-Key": "1", "X-Mine": "2"}})
        {'headers': {'X-Mine': '2'}}
    """
    kept = {k: v for k, v in options.items() if k not in _OPTIONS_OF_ONE_REQUEST}
    headers: Mapping[str, Any] = kept.get("headers") or {}
    kept["headers"] = {
        name: value
        for name, value in headers.items()
        if not name.lower().startswith(_HEADERS_OF_ONE_REQUEST)
    }
    return kept
