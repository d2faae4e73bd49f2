"""Which requests are guarded, and what each asks for."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn, Self
from urllib.parse import urlsplit

import openai

from snne_guard.engine import answer_settings
from snne_guard.engine.options import narrows, option_key
from snne_guard.engine.reading import strings_in
from snne_guard.engine.vocabulary import STREAMS
from snne_guard.errors import ConfigurationError
from snne_guard.openai.apis import Api, Body, ChatApi, ResponsesApi, fields_of, text_of

_APIS: tuple[Api, ...] = (ChatApi(), ResponsesApi())
CONTEXT_FIELD = "snne_guard_context"
"""The field of a request's body with its documents; it is not sent on."""

_RAW_HEADER = "x-stainless-raw-response"
_OF_ONE_REQUEST = frozenset({"idempotency_key", "post_parser"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiRequest:
    """A request as the ``post`` method of a client takes it.

    Attributes:
        api: Which API it is for.
        path: Where it goes.
        body: Its JSON body, ``extra_body`` included.
        options: Headers, query, time limit and the like.
        cast_to: Class of the answer.
        stream_cls: Class of the stream; None: the answer comes in one piece.
        optional: Parameters that the guard added, or that another model may not take;
            it can be sent without them.
        rejected: Those that it would have added, but for the server.
        context: The documents that came with it, in ``snne_guard_context``.
    """

    api: Api
    path: str
    body: Body = field(repr=False)
    options: Mapping[str, Any] = field(repr=False)
    cast_to: Any
    stream_cls: Any = None
    optional: frozenset[str] = frozenset()
    rejected: frozenset[str] = frozenset()
    context: Any = field(default=None, repr=False)

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
    def key(self) -> Hashable:
        """What rejections of such a request are remembered under."""
        return self.api.name, self.model[:256], option_key([self.body])

    @property
    def texts(self) -> list[str]:
        """What is said in it."""
        messages = map(fields_of, self.api.messages(self.body))
        said = [text_of(message.get("content")) for message in messages]
        # A client may choose other texts too, such as the name of its user.
        return [*said, *strings_in({**self.body, "include": None, "model": None})]

    @property
    def answer_settings(self) -> dict[str, Any]:
        """What the answer is drawn with, by a calibration's names."""
        unset = dict.fromkeys(("temperature", "top_p", "max_tokens", "stop"))
        return {"model": self.model, **answer_settings({**unset, **self.body})}

    def unstreamed(self) -> Self:
        """Return the same request for an answer in one piece."""
        body = {k: v for k, v in self.body.items() if k not in STREAMS}
        return replace(self, body=body, stream_cls=None)

    def another(self) -> Self:
        """Return a request for a further answer, without what is this one's alone."""
        options = {k: v for k, v in self.options.items() if k not in _OF_ONE_REQUEST}
        headers = {
            name: value
            for name, value in (options.get("headers") or {}).items()
            if not narrows(name)
        }
        return replace(self.unstreamed(), options={**options, "headers": headers})

    def post(self, client: Any) -> Any:  # noqa: ANN401 - of either kind
        """Send it by a client; what comes of an ``AsyncOpenAI`` is awaited."""
        return client.post(
            self.path,
            body=self.body,
            options=self.options,
            cast_to=self.cast_to,
            stream=self.stream_cls is not None,
            stream_cls=self.stream_cls,
        )


def guarded_request(path: str, given: Mapping[str, Any]) -> ApiRequest | None:
    """Return a request that is to be guarded, None for one that passes through."""
    place = f"/{urlsplit(path).path.strip('/')}"  # also of a whole address
    api = next((api for api in _APIS if place.endswith(api.path)), None)
    if api is None:
        return None
    options = {**(given.get("options") or {})}
    body, cast_to = given.get("body"), given.get("cast_to")
    known = isinstance(cast_to, type) and issubclass(cast_to, openai.BaseModel)
    if not (isinstance(body, Mapping) and known):
        _refuse("a reply class of your own, or a body that is not a dict,")
    headers = {name.lower(): name for name in options.get("headers") or {}}
    if _RAW_HEADER in headers:
        options["headers"] = {**options["headers"]}
        how = options["headers"].pop(headers[_RAW_HEADER])
        if how != "stream" or not given.get("stream"):
            _refuse("with_raw_response, or with_streaming_response without a stream,")
    body = {**body, **(options.pop("extra_json", None) or {})}
    context = body.pop(CONTEXT_FIELD, None)  # ours alone
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
        context=context,
    )


def _refuse(what: str) -> NoReturn:
    msg = (
        f"a guard does not support {what} since it could neither hold back the "
        "answer nor assess it"
    )
    raise ConfigurationError(msg)
