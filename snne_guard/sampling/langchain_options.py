"""What a request for samples may carry: nothing that garbles, repeats or stores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from langchain_core.utils.function_calling import convert_to_openai_function

from snne_guard.sampling.collect import Draw
from snne_guard.sampling.langchain_models import TOKEN_LIMITS, Candidate
from snne_guard.sampling.plan import SamplingPlan

__all__ = ["cleaned", "request_options", "without_ours"]

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
    seed = _seed(candidate, given)
    options = cleaned(given)
    if temperature and "temperature" in given:
        options["temperature"] = plan.temperature
    if "store" in options or candidate.uses_responses:
        options["store"] = False
    if not candidate.uses_responses:
        options.pop("previous_response_id", None)
    if plan.sample_max_tokens is not None:
        limit = plan.sample_max_tokens
        options |= {name: limit for name in TOKEN_LIMITS if name in options}
    if seed is not None:
        # The same seed for all would draw the same sample again and again.
        options["seed"] = seed + 1 + draw.index
    if draw.n > 1:
        options["n"] = draw.n
    if logprobs:
        options["logprobs"] = True
    return _unparsed(candidate, options)


def cleaned(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options without those that the guard sets, the nested ones too."""
    kept = {name: value for name, value in options.items() if name not in _OURS}
    for place in _NESTED:
        if isinstance(inner := kept.get(place), Mapping):
            kept[place] = without_ours(cast("Mapping[str, Any]", inner))
    return kept


def without_ours(inner: Mapping[str, Any]) -> dict[str, Any]:
    """Return the nested options of a request without those that the guard sets."""
    kept = {name: value for name, value in inner.items() if name not in _OURS}
    if kept.get("store"):
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
    if wanted is None or not candidate.speaks_openai:
        return options
    if not isinstance(wanted, Mapping):
        function = convert_to_openai_function(wanted, strict=True)
        schema = {"name": function["name"], "schema": function["parameters"]}
        wanted = {"type": "json_schema", "json_schema": {**schema, "strict": True}}
    body: dict[str, Any] = getattr(candidate.model, "extra_body", None) or {}
    extra: dict[str, Any] = {**without_ours(body), **(options.get("extra_body") or {})}
    rest = {name: value for name, value in options.items() if name != "response_format"}
    return {**rest, "extra_body": {**extra, "response_format": wanted}}
