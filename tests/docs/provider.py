"""A scripted provider that knows a few things and guesses the rest."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import count
from typing import Any

from snne_guard.self_check import SelfCheck
from tests.support.openai_server import Answer, Asked, Scripted, calling

__all__ = ["knowledgeable"]

KNOWN = {
    "library": "At 9.",
    "France": "Paris",
    "return": "Within 30 days.",
    "ship": "To all of Europe.",
    "stool": "The stool is made of oak. Ida Frick designed it in 1907.",
}
LARGER = "The catalogue does not say who designed it."
GUESSES = ("Ida Frick", "Karl Moser", "Anna Berger", "Otto Lang")
FIRST_GUESS = "Max Frei"
FIELDS = {"days": 30, "free": True, "place": "library", "item": "lamp"}


def knowledgeable() -> Scripted:
    """Return a script: one answer to what it knows, ever another one to the rest.

    It calls the first tool that it is given once, fills schemas, says Yes to a
    self-check, thinks first where it is asked to, and "gpt-4.1" says what it does not
    know.
    """
    drawn = count()

    def script(asked: Asked) -> Answer:
        messages = asked.body.get("messages") or [{"content": asked.body.get("input")}]
        tools = asked.body.get("tools")
        if tools and messages[-1].get("role") != "tool":
            function = tools[0]["function"]
            arguments = _filled(function.get("parameters") or {}, "")
            return calling(arguments, name=function["name"])
        if messages[-1]["content"] == SelfCheck().prompt:
            return Answer(texts=["Yes"])
        known = _known(json.dumps(messages[-1]["content"]), json.dumps(messages))
        if known is not None:
            texts = [known]
        elif asked.body["model"] == "gpt-4.1":
            texts = [LARGER]
        elif not asked.is_sample:
            texts = [FIRST_GUESS]
        else:
            texts = [GUESSES[next(drawn) % 4] for _ in range(asked.n)]
        wanted = (asked.body.get("response_format") or {}).get("json_schema")
        if wanted:
            texts = [json.dumps(_filled(wanted["schema"], text)) for text in texts]
        if "Answer:" in json.dumps(messages[-1]["content"]):
            texts = [f"Let me think. Answer: {text}" for text in texts]
        return Answer(texts=texts)

    return script


def _known(*texts: str) -> str | None:
    for text in texts:
        for word, answer in KNOWN.items():
            if word in text:
                return answer
    return None


def _filled(schema: Mapping[str, Any], text: str) -> dict[str, Any]:
    return {name: FIELDS.get(name, text) for name in schema.get("properties") or {}}
