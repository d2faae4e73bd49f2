"""What a request to OpenAI's API carries, for the answer and for its samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Self

from snne_guard.errors import ConfigurationError
from snne_guard.sampling.collect import Draw, Reply
from snne_guard.sampling.openai_messages import read_completion, read_response
from snne_guard.sampling.options import (
    ANSWER_OPTIONS,
    INCLUDED_LOGPROBS,
    AnswerSettings,
    AnswerValue,
    cleaned,
    draw_seed,
    unstored,
)
from snne_guard.sampling.plan import SamplingPlan
from snne_guard.sampling.reading import as_mapping
from snne_guard.sampling.settings import Settings

__all__ = ["APIS", "Api", "Endpoint", "acts", "find_api", "split_request"]

_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
_RESERVED = ("messages", "input", "model", "n", "stream", "stream_options")
_ACTING = ("conversation", "background", "prompt", "web_search_options")
"""Options with which the API does more than answer, or may: a stored prompt can
bring tools that run at the provider."""
_PROPOSED = frozenset({"function", "custom"})
"""Types of tools that the API only proposes to call."""


def _ask_chat(options: Mapping[str, Any]) -> dict[str, Any]:
    return {**options, "logprobs": True}


def _ask_responses(options: Mapping[str, Any]) -> dict[str, Any]:
    included: Sequence[str] = options.get("include") or ()
    return {**options, "include": [*dict.fromkeys((*included, INCLUDED_LOGPROBS))]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """One of the two ways in which OpenAI's API gives replies.

    Attributes:
        name: As in the option ``api``.
        create: From a client to the method that sends a request.
        messages: Name of the option that holds the conversation.
        limit: Name of the token limit, where the user has set none.
        other_limit: Its name where the first one is rejected.
        stores: Whether replies are stored everywhere unless that is forbidden.
        supports_n: Whether one request may bring several replies.
        ask_logprobs: From options to the same with log-probabilities asked for.
        read: From what came back to a reply.
    """

    name: str
    create: Callable[[Any], Any]
    messages: str
    limit: str
    other_limit: str
    stores: bool
    supports_n: bool
    ask_logprobs: Callable[[Mapping[str, Any]], dict[str, Any]]
    read: Callable[[object], Reply]


APIS: Mapping[str, Api] = MappingProxyType(
    {
        api.name: api
        for api in (
            Api(
                name="chat",
                create=attrgetter("chat.completions.create"),
                messages="messages",
                limit="max_tokens",
                other_limit="max_completion_tokens",
                stores=False,
                supports_n=True,
                ask_logprobs=_ask_chat,
                read=read_completion,
            ),
            Api(
                name="responses",
                create=attrgetter("responses.create"),
                messages="input",
                limit="max_output_tokens",
                other_limit="max_output_tokens",
                stores=True,
                supports_n=False,
                ask_logprobs=_ask_responses,
                read=read_response,
            ),
        )
    }
)
"""The two APIs by name."""


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """Whom to ask: a client, a model, an API, and the user's own options.

    Attributes:
        client: A client of the ``openai`` package, as the user made it.
        model: Name of the model, empty where each request names its own.
        api: Chat Completions or the Responses API.
        options: What the user's own requests carry.
    """

    client: Any
    model: str
    api: Api
    options: Mapping[str, Any]

    @classmethod
    def of(
        cls,
        client: object,
        *,
        model: str | None,
        api: str,
        options: Mapping[str, Any] | None,
        asynchronous: bool,
    ) -> Self:
        """Return the endpoint, everything checked.

        Args:
            client: A client of the ``openai`` package.
            model: Name of the model, None where each request names its own.
            api: Name in ``APIS``.
            options: What the user's own requests carry.
            asynchronous: Whether the client must be awaited.

        Raises:
            ConfigurationError: If one of them makes no sense.
        """
        found = find_api(api)
        if model is not None:
            _check_model(model)
        _check_client(client, found, asynchronous=asynchronous)
        _check(options or {})
        return cls(client=client, model=model or "", api=found, options=options or {})

    def at(self, *, model: str | None, api: str | None) -> Endpoint:
        """Return the same for another model, another API, or itself.

        Args:
            model: Name of the model, None for the one that is known.
            api: Name in ``APIS``, None for the one that is known.

        Raises:
            ConfigurationError: If there is no model, or no such API.
        """
        wanted = self.model if model is None else model
        _check_model(wanted or None)
        found = self.api if api is None else find_api(api)
        if (wanted, found) == (self.model, self.api):
            return self
        return replace(self, model=wanted, api=found)

    @cached_property
    def ask(self) -> Callable[..., Any]:
        """Sends the user's own request."""
        send: Callable[..., Any] = self.api.create(self.client)
        return send

    @cached_property
    def draw(self) -> Callable[..., Any]:
        """Sends a request for samples, which have a retry layer of their own."""
        send: Callable[..., Any] = self.api.create(
            self.client.with_options(max_retries=0)
        )
        return send

    @property
    def provider(self) -> str:
        """Who serves the model, as far as the class of the client tells."""
        return "azure" if "Azure" in type(self.client).__name__ else "openai"

    @property
    def stores(self) -> bool:
        """Whether replies are stored unless that is forbidden.

        OpenAI's own service stores chat completions too, for some accounts. Others do
        not, and may reject an option that they do not know.
        """
        host = str(getattr(getattr(self.client, "base_url", None), "host", ""))
        return self.api.stores or host.endswith(".openai.com")

    def own(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the user's options for one call.

        Args:
            given: Those of this call, which come before the others.

        Raises:
            ConfigurationError: If an option is not the user's to set.
        """
        _check(given)
        options = {**self.options, **given}
        return {name: value for name, value in options.items() if _is_given(value)}

    def answer(self, items: Sequence[Any], own: Mapping[str, Any]) -> dict[str, Any]:
        """Return the request for the answer: the user's own.

        Args:
            items: The conversation.
            own: The user's options for this call.
        """
        return {**own, "model": self.model, self.api.messages: items}

    def sample(
        self,
        items: Sequence[Any],
        own: Mapping[str, Any],
        draw: Draw,
        *,
        plan: SamplingPlan,
        settings: Settings,
    ) -> dict[str, Any]:
        """Return the request for a draw.

        Args:
            items: The conversation.
            own: The user's options for this call.
            draw: How many replies are asked for, and which.
            plan: Temperature and token limit.
            settings: What the provider takes.
        """
        options = cleaned(
            own,
            nested=("extra_body",),
            limits=_LIMITS,
            max_tokens=plan.sample_max_tokens,
        )
        if settings.temperature:
            options["temperature"] = plan.temperature
        seed = _seed(own)
        if seed is not None:
            options["seed"] = draw_seed(seed, draw)
        if self.sets_limit(own, plan):
            name = self.api.limit if settings.max_tokens else self.api.other_limit
            options[name] = plan.sample_max_tokens
        if draw.n > 1:
            options["n"] = draw.n
        if settings.logprobs:
            options = self.api.ask_logprobs(options)
        if self.stores:
            options = unstored(options)
        return {**options, "model": self.model, self.api.messages: items}

    @staticmethod
    def sets_limit(own: Mapping[str, Any], plan: SamplingPlan) -> bool:
        """Return whether samples get a token limit where the user has set none."""
        body: Mapping[str, Any] = own.get("extra_body") or {}
        known = own.keys() | body.keys()
        return plan.sample_max_tokens is not None and known.isdisjoint(_LIMITS)

    def added(self, own: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options with which log-probabilities are asked for besides.

        Args:
            own: The user's options for this call.
        """
        asked = self.api.ask_logprobs(own)
        return {name: asked[name] for name in asked if asked[name] != own.get(name)}

    @staticmethod
    def answer_settings(own: Mapping[str, Any]) -> AnswerSettings:
        """Return what the answer is drawn with.

        Args:
            own: The user's options for this call.
        """
        asked = {**own, **as_mapping(own.get("extra_body"))}
        unsaid = frozenset[AnswerValue]({None})
        return {
            name: found if (found := option.values_in(asked)) is not None else unsaid
            for name, option in ANSWER_OPTIONS.items()
        }

    def asks_logprobs(self, own: Mapping[str, Any]) -> bool:
        """Return whether the user's own request asks for log-probabilities."""
        return bool(own.get("logprobs")) or INCLUDED_LOGPROBS in (
            own.get("include") or ()
        )


def acts(options: Mapping[str, Any]) -> bool:
    """Return whether a further draw under these options could do more than answer.

    Tools that run at the provider may write, pay or send; a stored conversation would
    grow by every sample.

    Example:
        >>> acts({"tools": [{"type": "function", "function": {"name": "f"}}]})
        False
        >>> acts({"tools": [{"type": "web_search"}]})
        True
    """
    if any(options.get(name) not in (None, False) for name in _ACTING):
        return True
    tools: Sequence[object] = options.get("tools") or ()
    if any(as_mapping(tool).get("type") not in _PROPOSED for tool in tools):
        return True
    body = as_mapping(options.get("extra_body"))
    return bool(body) and acts(body)


def find_api(name: str) -> Api:
    """Return an API by its name.

    Raises:
        ConfigurationError: If there is none of that name.
    """
    if name not in APIS:
        msg = f"api must be one of {', '.join(map(repr, APIS))}; got {name!r}"
        raise ConfigurationError(msg)
    return APIS[name]


def split_request(
    request: Mapping[str, Any], api: Api
) -> tuple[object, dict[str, Any], int]:
    """Return the messages of a request, the options for it, and its replies.

    Args:
        request: What ``create`` is called with.
        api: Which ``create``.
    """
    options = {
        name: value
        for name, value in request.items()
        if name not in _RESERVED and _is_given(value)
    }
    messages = request.get(api.messages)
    if not _is_given(messages):
        messages = None
    if messages is None and acts(options):
        messages = ""  # a stored prompt or conversation has them
    body = as_mapping(options.get("extra_body"))
    counts = [each for each in (request.get("n"), body.get("n")) if _is_given(each)]
    return messages, options, max((n for n in counts if isinstance(n, int)), default=1)


def _check_model(model: str | None) -> None:
    if not model:
        msg = f"model must be the name of a model; got {model!r}"
        raise ConfigurationError(msg)


def _check_client(client: object, api: Api, *, asynchronous: bool) -> None:
    bases = {base.__name__ for base in type(client).__mro__}
    kind = "AsyncOpenAI" if asynchronous else "OpenAI"
    try:
        known = callable(api.create(client)) and hasattr(client, "with_options")
    except AttributeError:
        known = False
    if not known or asynchronous is not ("AsyncAPIClient" in bases):
        msg = (
            f"client must be {kind}() of the openai package, or one like it that has "
            f"the {api.name!r} API; got {type(client).__name__}"
        )
        raise ConfigurationError(msg)


def _check(options: Mapping[str, Any]) -> None:
    for name in _RESERVED:
        if name in options:
            msg = f"{name!r} is set for each request; leave it out of the options"
            raise ConfigurationError(msg)


def _is_given(value: object) -> bool:
    # What the openai package has in place of a value that nobody gives.
    return type(value).__name__ not in {"NotGiven", "Omit"}


def _seed(own: Mapping[str, Any]) -> int | None:
    for place in (own, as_mapping(own.get("extra_body"))):
        if isinstance(seed := place.get("seed"), int):
            return seed
    return None
