"""What the Chat Completions and the Responses API have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from snne_guard.errors import SamplingError
from snne_guard.sampling.replies import Reply
from snne_guard.types import Cost, Sample

__all__ = [
    "Api",
    "ApiObject",
    "ApiRequest",
    "Body",
    "cost_of",
    "fields_of",
    "has_side_effects",
    "items_of",
    "mapping_of",
    "provider_error",
    "sample_body",
    "string_of",
    "text_of",
]

ApiObject = Any
"""Something of the ``openai`` package: a client, an answer, a part of a stream."""

Body = Mapping[str, Any]
"""The JSON body of a request."""

_SET_FOR_SAMPLES = frozenset(
    {
        "logprobs",
        "metadata",
        "n",
        "prediction",  # only for one answer
        "seed",  # one seed for all would draw the same sample again and again
        "stream",
        "stream_options",
        "temperature",
        "top_logprobs",
    }
)
_PROPOSED_TOOLS = frozenset({"custom", "function"})
"""Tools that the API only proposes to call; all others run at the provider."""
_ACTING = ("background", "conversation", "prompt", "web_search_options")
"""Options that store something or run tools; a stored prompt may bring some."""
_TEXT_PARTS = frozenset({"input_text", "output_text", "text"})


class Api(Protocol):
    """One of the two ways in which OpenAI's API answers."""

    @property
    def name(self) -> str:
        """Its name: ``"chat"`` or ``"responses"``."""
        ...

    @property
    def takes_n(self) -> bool:
        """Whether one request may ask for several replies."""
        ...

    def messages(self, body: Body, /) -> list[Any]:
        """Return the conversation of a request."""
        ...

    def asks_logprobs(self, body: Body, /) -> bool:
        """Return whether a request asks for log-probabilities."""
        ...

    def with_logprobs(self, body: Body, /) -> dict[str, Any]:
        """Return a request that asks for log-probabilities too."""
        ...

    def remove_logprobs(self, part: ApiObject, /) -> None:
        """Remove log-probabilities from an answer, or from a part of its stream."""
        ...

    def read(self, answer: object, /) -> Reply:
        """Read an answer of the ``openai`` package, or its fields."""
        ...

    def join(self, parts: Sequence[Any], /) -> dict[str, Any]:
        """Return the fields of the answer that the parts of a stream make up."""
        ...


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


def sample_body(body: Body, *, temperature: float | None, store: bool) -> Body:
    """Return the body of a request for samples.

    Args:
        body: That of the user's request.
        temperature: Sampling temperature; None leaves it to the model.
        store: Whether the server knows the option ``store``; samples are not stored.

    Example:
        >>> user = {"model": "m", "seed": 7, "top_p": 0.9, "temperature": 0}
        >>> sample_body(user, temperature=1.0, store=True)
        {'model': 'm', 'top_p': 0.9, 'temperature': 1.0, 'store': False}
    """
    kept = {name: body[name] for name in body if name not in _SET_FOR_SAMPLES}
    if temperature is not None:
        kept["temperature"] = temperature
    if store or "store" in kept:
        kept["store"] = False
    return kept


def has_side_effects(body: Body) -> bool:
    """Return whether a further draw could act on the world.

    Tools that run at the provider may write, pay or send; a stored conversation would
    grow by every sample.

    Example:
        >>> has_side_effects({"tools": [{"type": "function", "name": "f"}]})
        False
        >>> has_side_effects({"tools": [{"type": "web_search"}]})
        True
    """
    if any(body.get(name) not in (None, False) for name in _ACTING):
        return True
    kinds = [mapping_of(tool).get("type") for tool in items_of(body.get("tools"))]
    return not _PROPOSED_TOOLS.issuperset(kinds)


def cost_of(
    usage: Mapping[str, Any], samples: Sequence[Sample], *, read: str, written: str
) -> Cost:
    """Return the tokens of a request.

    Some servers count one choice only, or nothing; log-probabilities give that away.

    Args:
        usage: As the provider gives it.
        samples: The replies in the answer.
        read: Name of the count of tokens read.
        written: Name of the count of tokens written.
    """
    drawn = sum(len(sample.token_logprobs or ()) for sample in samples)
    counted = usage.get(written)
    if not isinstance(counted, int):
        return Cost(completion_tokens=drawn, lower_bound=True)
    cached = mapping_of(usage.get(f"{read}_details")).get("cached_tokens")
    return Cost(
        prompt_tokens=_whole(usage.get(read)),
        cached_tokens=_whole(cached),
        completion_tokens=counted,
        lower_bound=counted < drawn,
    )


def provider_error(error: object) -> SamplingError:
    """Return the error for an answer that holds an error in place of a reply."""
    code = mapping_of(error).get("code")
    return SamplingError(
        f"the provider answered with an error in place of text: {code}"
    )


def fields_of(value: ApiObject) -> dict[str, Any]:
    """Return the fields of an object of the ``openai`` package, or a mapping."""
    dump = getattr(value, "model_dump", None)
    return mapping_of(dump(warnings=False) if callable(dump) else value)


def mapping_of(value: object) -> dict[str, Any]:
    """Return a mapping as a dict, an empty one for anything else."""
    return dict(value) if isinstance(value, Mapping) else {}


def items_of(value: object) -> list[Any]:
    """Return a sequence as a list, an empty one for anything else."""
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return list(value)
    return []


def text_of(content: object) -> str:
    """Return the text of a message's content, its parts joined."""
    if isinstance(content, str):
        return content
    parts = [fields_of(part) for part in items_of(content)]
    texts = [part.get("text") for part in parts if part.get("type") in _TEXT_PARTS]
    return "".join(text for text in texts if isinstance(text, str))


def string_of(value: object) -> str | None:
    """Return a string that is not empty, None for anything else."""
    return value if isinstance(value, str) and value else None


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0
