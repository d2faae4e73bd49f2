"""The Responses API: what a request asks for, what an answer says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from snne_guard.sampling.logprobs import read_logprobs
from snne_guard.sampling.openai.api import (
    ApiObject,
    Body,
    cost_of,
    fields_of,
    items_of,
    mapping_of,
    provider_error,
    string_of,
    text_of,
)
from snne_guard.sampling.reading import (
    canonical_calls,
    is_complete,
    is_refused,
    without_reasoning,
)
from snne_guard.sampling.replies import Reply
from snne_guard.similarity.tokens import is_visible
from snne_guard.types import Sample

__all__ = ["ResponsesApi"]

_LOGPROBS = "message.output_text.logprobs"
"""How log-probabilities are asked for, in the option ``include``."""
_CALLS = frozenset({"custom_tool_call", "function_call"})
_KNOWN_ITEMS = _CALLS | {"compaction", "message", "reasoning"}
_KNOWN_PARTS = frozenset({"output_text", "refusal", "text"})


class ResponsesApi:
    """Requests and answers of ``responses.create``."""

    name = "responses"
    takes_n = False

    def messages(self, body: Body, /) -> list[Any]:
        """Return the conversation of a request."""
        given = body.get("input")
        return (
            [{"role": "user", "content": given}]
            if isinstance(given, str)
            else items_of(given)
        )

    def asks_logprobs(self, body: Body, /) -> bool:
        """Return whether a request asks for log-probabilities."""
        return _LOGPROBS in items_of(body.get("include"))

    def with_logprobs(self, body: Body, /) -> dict[str, Any]:
        """Return a request that asks for log-probabilities too."""
        included = dict.fromkeys((*items_of(body.get("include")), _LOGPROBS))
        return {**body, "include": list(included)}

    def remove_logprobs(self, part: ApiObject, /) -> None:
        """Remove log-probabilities from a response or an event."""
        response = getattr(part, "response", None) or part
        items = [*items_of(getattr(response, "output", None))]
        items.append(getattr(part, "item", None))
        places = [part, getattr(part, "part", None)]
        for item in items:
            places += items_of(getattr(item, "content", None))
        for place in places:
            if getattr(place, "logprobs", None):
                place.logprobs = []

    def read(self, answer: object, /) -> Reply:
        """Read the output of a response.

        Raises:
            SamplingError: The response says that it failed.
        """
        fields = fields_of(answer)
        if fields.get("status") == "failed":
            raise provider_error(fields.get("error"))
        known = isinstance(fields.get("output"), list)
        samples = (_read_output(fields),) if known else ()
        usage = mapping_of(fields.get("usage"))
        cost = cost_of(usage, samples, read="input_tokens", written="output_tokens")
        return Reply(samples=samples, cost=cost, raw=answer)

    def join(self, parts: Sequence[Any], /) -> dict[str, Any]:
        """Return the fields of the response that the last events carry."""
        responses = (fields_of(part).get("response") for part in reversed(parts))
        return next((mapping_of(each) for each in responses if each is not None), {})


def _read_output(fields: Mapping[str, Any]) -> Sample:
    output = [mapping_of(item) for item in fields["output"]]
    parts = list(_parts(output))
    text = without_reasoning(text_of(parts))
    entries = [entry for part in parts for entry in items_of(part.get("logprobs"))]
    values, tokens = read_logprobs(entries, text=text)
    why = mapping_of(fields.get("incomplete_details")).get("reason")
    finish = string_of(why) or string_of(fields.get("status"))
    kinds = {part.get("type") for part in parts}
    refused = is_refused(finish) or "refusal" in kinds
    calls = canonical_calls(
        [
            (item.get("name"), item.get("arguments", item.get("input")))
            for item in output
            if item.get("type") in _CALLS
        ]
    )
    said = calls is not None or refused or is_visible(text)
    known = _KNOWN_ITEMS.issuperset(item.get("type") for item in output)
    return Sample(
        text=text,
        token_logprobs=values,
        tokens=tokens,
        finish_reason=finish,
        truncated=not refused and not is_complete(finish),
        model=string_of(fields.get("model")),
        tool_calls=calls,
        refused=refused,
        unreadable=not said or not known or not _KNOWN_PARTS.issuperset(kinds),
        response_id=string_of(fields.get("id")),
    )


def _parts(output: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    for item in output:
        if item.get("type") == "message":
            yield from map(mapping_of, items_of(item.get("content")))
