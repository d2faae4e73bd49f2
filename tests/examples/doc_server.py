"""A provider that knows a few things, to stand in where a page asks a remote model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.support.chat_server import (
    Reply,
    Request,
    Script,
    ToolCall,
    cycle,
    response,
)
from tests.support.guarding import is_sample

__all__ = ["knowledgeable"]

KNOWN = {
    "France": "Paris",
    "library": "At 9.",
    "pool": "The text does not say.",
}
FIELDS = {"name": "Paris", "country": "France", "place": "library"}
WINNER = "Max Frei"
OTHERS = ("Karl Moser", "Anna Berger", "Otto Lang", "Ida Frick")


def knowledgeable() -> Script:
    """Return a script: one answer to what it knows, ever another one to the rest.

    It fills schemas, calls the first tool that it is given once, and the larger
    model is one that admits what it does not know.
    """
    guesses = cycle(OTHERS)

    def answer(request: Request) -> Reply:
        tools = request.body.get("tools")
        if tools and request.messages[-1]["role"] != "tool":
            function = tools[0]["function"]
            call = ToolCall(name=function["name"], arguments=_filled(function))
            return Reply(texts=(None,), tool_calls=((call,),))
        schema = request.body.get("response_format", {}).get("json_schema")
        if schema:
            return Reply(texts=(json.dumps(_filled(schema)),))
        for word, answer in KNOWN.items():
            if any(word in text for text in request.texts):
                return Reply(texts=(answer,))
        if request.body["model"] == "gpt-4.1":
            return Reply(texts=("Nobody recorded who won it.",))
        return guesses(request) if is_sample(request) else Reply(texts=(WINNER,))

    def script(request: Request) -> Reply:
        reply = answer(request)
        if request.path.endswith("/responses"):
            return response(str((reply.texts or ("",))[0]))
        return reply

    return script


def _filled(described: Mapping[str, Any]) -> dict[str, str]:
    schema = described.get("schema") or described["parameters"]
    return {name: FIELDS[name] for name in schema["properties"]}
