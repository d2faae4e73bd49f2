"""What a request for samples may carry: nothing that garbles, repeats or stores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from pydantic import BaseModel

from snne_guard.sampling.collect import Draw
from snne_guard.sampling.langchain_copies import NESTED, nested_fields
from snne_guard.sampling.langchain_models import Candidate
from snne_guard.sampling.langchain_provider import Provider
from snne_guard.sampling.options import ANY_LIMIT, SET_ANEW, draw_seed
from snne_guard.sampling.options import cleaned as options_of_samples
from snne_guard.sampling.plan import SamplingPlan

__all__ = ["cleaned", "request_options", "seed_of"]

_SET_ANEW = SET_ANEW | {
    "candidate_count",
    "random_seed",
    "response_logprobs",
    "stream_usage",
}
"""The same under every provider's names."""


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
    if kwargs:
        candidate = replace(candidate, kwargs=given)
    row = candidate.provider
    options = cleaned(given, max_tokens=plan.sample_max_tokens)
    if temperature and "temperature" in given:
        options["temperature"] = row.within(plan.temperature)
    seed = seed_of(candidate, draw)
    if seed is not None and row.seed is not None and not row.seed_is_field:
        options |= _placed(row.seed, seed, options)
    if (place := row.full_of(options)) is not None:
        options[place] = _in_full(
            row, options[place], plan, seed=seed, temperature=temperature
        )
    if draw.n > 1 and row.n is not None:
        options |= _placed(row.n, draw.n, options)
    if logprobs:
        options |= row.logprobs
    options |= row.request
    if candidate.is_openai and candidate.uses_responses:
        options["store"] = False  # it stores what is not forbidden
    return _unparsed(candidate, options)


def cleaned(
    options: Mapping[str, Any], *, max_tokens: int | None = None
) -> dict[str, Any]:
    """Return options without those that the guard sets, the nested ones too.

    Args:
        options: As the user has given them; left as they are.
        max_tokens: Token limit of a sample, None for the user's own.
    """
    return options_of_samples(
        options,
        nested=NESTED,
        limits=ANY_LIMIT,
        max_tokens=max_tokens,
        anew=_SET_ANEW,
    )


def seed_of(candidate: Candidate, draw: Draw) -> int | None:
    """Return the seed of a draw, None where the user has set none."""
    name = candidate.provider.seed_name
    places: list[object] = [
        candidate.kwargs,
        *(candidate.kwargs.get(place) for place in NESTED),
        {name: getattr(candidate.model, name, None)},
        *nested_fields(candidate.model).values(),
    ]
    for place in places:
        if isinstance(place, Mapping):
            seed = cast("Mapping[str, object]", place).get(name)
            if isinstance(seed, int):
                return draw_seed(seed, draw)
    return None


def _placed(path: str, value: object, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the option that sets a value, in the one that holds it where there is."""
    outer, _, inner = path.partition(".")
    if not inner:
        return {outer: value}
    return {outer: {**(options.get(outer) or {}), inner: value}}


def _in_full(
    row: Provider,
    given: Mapping[str, Any] | None,
    plan: SamplingPlan,
    *,
    seed: int | None,
    temperature: bool,
) -> dict[str, Any]:
    """Return an option that takes the place of all fields, with what is set in them."""
    settings: dict[str, Any] = dict(given or {})
    if temperature:
        settings["temperature"] = row.within(plan.temperature)
    if seed is not None:
        settings["seed"] = seed
    if plan.sample_max_tokens is not None:
        settings[row.limit_in_full] = plan.sample_max_tokens
    return settings


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
