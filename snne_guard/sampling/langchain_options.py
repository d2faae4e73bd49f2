"""What a request for samples may carry: nothing that garbles, repeats or stores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from pydantic import BaseModel

from snne_guard.sampling.collect import Draw
from snne_guard.sampling.langchain_models import TOKEN_LIMITS, Candidate
from snne_guard.sampling.plan import SamplingPlan

__all__ = ["cleaned", "request_options"]

_NESTED = ("extra_body", "model_kwargs")
_OURS = frozenset(
    {
        "logprobs",
        "n",
        "seed",
        "stream",
        "stream_options",
        "stream_usage",
        "temperature",
        "top_logprobs",
    }
)
"""Options that the guard sets for samples, wherever the user has put them."""


def request_options(
    candidate: Candidate,
    kwargs: Mapping[str, Any],
    draw: Draw,
    *,
    plan: SamplingPlan,
    logprobs: bool,
    temperature: bool,
) -> dict[str, Any]:
    """Return the options of one request.

    Args:
        candidate: The model that is asked, with what is bound to it.
        kwargs: Options of this call.
        draw: How many replies are asked for, and which.
        plan: Temperature and token limit.
        logprobs: Whether log-probabilities are asked for.
        temperature: Whether the provider takes a temperature.
    """
    given = {**candidate.kwargs, **kwargs}
    candidate = replace(candidate, kwargs=given)
    seed = _seed(candidate, given)
    options = cleaned(given, max_tokens=plan.sample_max_tokens)
    if temperature and "temperature" in given:
        options["temperature"] = plan.temperature
    if seed is not None:
        # The same seed for all would draw the same sample again and again.
        options["seed"] = seed + 1 + draw.index
    if candidate.uses_responses:  # it stores what is not forbidden, and draws singly
        options["store"] = False
        return _unparsed(candidate, options)
    if draw.n > 1:
        options["n"] = draw.n
    if logprobs:
        options["logprobs"] = True
    return _unparsed(candidate, options)


def cleaned(
    options: Mapping[str, Any], *, max_tokens: int | None = None
) -> dict[str, Any]:
    """Return options without those that the guard sets, the nested ones too.

    Args:
        options: As the user has given them; left as they are.
        max_tokens: Token limit of a sample, None for the user's own.
    """
    kept = {name: value for name, value in options.items() if name not in _OURS}
    for place in _NESTED:
        if isinstance(inner := kept.get(place), Mapping):
            nested = cast("Mapping[str, Any]", inner)
            kept[place] = cleaned(nested, max_tokens=max_tokens)
    if max_tokens is not None:
        kept |= {name: max_tokens for name in TOKEN_LIMITS if name in kept}
    if "store" in kept:
        kept["store"] = False
    return kept


def _seed(candidate: Candidate, given: Mapping[str, Any]) -> int | None:
    places: list[object] = [
        given,
        *(given.get(place) for place in _NESTED),
        {"seed": getattr(candidate.model, "seed", None)},
        *(getattr(candidate.model, place, None) for place in _NESTED),
    ]
    for place in places:
        if isinstance(place, Mapping):
            seed = cast("Mapping[str, object]", place).get("seed")
            if isinstance(seed, int):
                return seed
    return None


def _unparsed(candidate: Candidate, options: dict[str, Any]) -> dict[str, Any]:
    """Ask for structured replies in a form that the client does not parse.

    OpenAI's client raises where one of several choices does not fit the schema, and
    with it all of them would be lost, and what they cost.
    """
    wanted = options.get("response_format")
    if wanted is None or not candidate.is_openai:
        return options
    rest = {name: value for name, value in options.items() if name != "response_format"}
    if isinstance(wanted, type) and issubclass(wanted, BaseModel):
        wanted = _plain_form(wanted)
    if candidate.uses_responses:  # it parses types alone
        return {**rest, "response_format": wanted}
    own = getattr(candidate.model, "extra_body", None)
    extra = options.get("extra_body", cleaned(own or {}))
    return {**rest, "extra_body": {"response_format": wanted, **(extra or {})}}


def _plain_form(wanted: type[BaseModel]) -> dict[str, Any]:
    """Return the schema that OpenAI's client would send; the answer gets the same."""
    import openai

    function = openai.pydantic_function_tool(wanted)["function"]
    schema = {"name": function["name"], "schema": function.get("parameters")}
    return {"type": "json_schema", "json_schema": {**schema, "strict": True}}
