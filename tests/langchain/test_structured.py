"""Structured output of a guard: assessed before it is parsed, whole or withheld.

That it is parsed as the model's own is what LangChain's conformance suite tests.
"""

from __future__ import annotations

import json
import pickle
import traceback
from collections.abc import Callable
from typing import Any

import pytest
from langchain_anthropic import ChatAnthropic
from pydantic import BaseModel, SecretStr

from snne_guard import SNNEGuard, UncertainAnswerError
from tests.langchain.leaks import SECRET
from tests.langchain.support import (
    REFUSING,
    WHOLE,
    chat_openai,
    guarded,
    in_loop,
    metadata_of,
)
from tests.support.observers import Watcher
from tests.support.openai_server import Answer, Asked, Scripted, Server, calling


class City(BaseModel):
    """A town."""

    name: str
    people: int


METHODS = ["function_calling", "json_mode", "json_schema"]
PARIS = {"name": "Paris", "people": 2}
LYON = {"name": "Lyon", "people": 1}
APART = [{**PARIS, "people": people} for people in (3, 4, 5, 6)]


def filled(answer: Any, *samples: Any) -> Scripted:
    """Give values, or texts as they are, in the form that is asked for."""

    def script(asked: Asked) -> Answer:
        values = (samples or [answer]) if asked.is_sample else [answer]
        if asked.body.get("tools"):
            return calling(*values, name="City")
        texts = [v if isinstance(v, str) else json.dumps(v) for v in values]
        return Answer(texts=texts, logprobs=False)

    return script


def parsed(chain: Any, way: str) -> Any:
    asked = "Where?"
    return chain.invoke(asked) if way == "invoke" else in_loop(chain.ainvoke(asked))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("way", WHOLE)
@pytest.mark.parametrize("policy", ["refuse", "raise"])
def test_one_different_value_withholds_structured_output(
    policy: str, way: str, method: Any
) -> None:
    with Server(filled(PARIS, *APART)) as server:
        guard = guarded(server, threshold=0.4, on_uncertain=policy)
        chain = guard.with_structured_output(City, method=method)
        with pytest.raises(UncertainAnswerError) as caught:
            parsed(chain, way)
    assert (caught.value.uncertainty or 0) > 0.5


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("way", WHOLE)
def test_include_raw_gives_the_message_with_its_assessment(
    way: str, method: Any
) -> None:
    with Server(filled(PARIS)) as server:
        guard = guarded(server, threshold=0.4)
        chain = guard.with_structured_output(City, method=method, include_raw=True)
        result = parsed(chain, way)
    assert set(result) == {"raw", "parsed", "parsing_error"}
    assert result["parsed"] == City.model_validate(PARIS)
    record = metadata_of(result["raw"])
    assert (record["decision"], record["n_used"]) == ("accept", 5)


UNFIT: dict[str, Any] = {
    "a field is missing": json.dumps({"name": SECRET}),
    "it is no JSON": f'{{"name": "{SECRET}", "peo',
}


@pytest.mark.parametrize("unfit", UNFIT)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("policy", "way"), [("refuse", "invoke"), ("raise", "ainvoke")]
)
def test_what_does_not_fit_is_assessed_and_its_text_is_withheld(
    policy: Any, way: str, method: Any, unfit: str
) -> None:
    watcher = Watcher()
    with Server(filled(UNFIT[unfit], *[PARIS] * 4)) as server:
        guard = guarded(server, threshold=0.0, on_uncertain=policy, observers=[watcher])
        chain = guard.with_structured_output(City, method=method)
        with pytest.raises(UncertainAnswerError) as caught:
            parsed(chain, way)
    assert watcher.only.decision == "refuse"
    assert watcher.only.answer is not None
    assert SECRET in (watcher.only.answer.tool_calls or watcher.only.answer.text)
    error = caught.value
    assert SECRET not in "".join(traceback.format_exception(error))
    assert SECRET.encode() not in pickle.dumps(error)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("way", WHOLE)
def test_a_fallback_is_asked_for_the_same_schema(way: str, method: Any) -> None:
    with Server(filled(PARIS, *APART)) as server, Server(filled(LYON)) as second:
        options: Any = {"on_uncertain": "fallback", "fallback": chat_openai(second)}
        guard = guarded(server, threshold=0.4, **options)
        chain = guard.with_structured_output(City, method=method)
        assert parsed(chain, way) == City.model_validate(LYON)
        (asked,) = second.requests
        assert "people" in json.dumps(asked.body)


WRAPPERS: dict[str, Callable[[Any], Any]] = {
    "bind": lambda model: model.bind(stop=["."]),
    "with_config": lambda model: model.with_config(tags=["capitals"]),
    "with_retry": lambda model: model.with_retry(stop_after_attempt=2),
    "with_fallbacks": lambda model: model.with_fallbacks([model.bind(stop=["."])]),
    "all": lambda model: model.with_retry().with_fallbacks([model]).with_config({}),
}
FORMS = {"json_mode": "json_object", "json_schema": "json_schema"}


@pytest.mark.parametrize("include_raw", [False, True])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_a_wrapped_model_keeps_its_method(
    wrapper: str, method: Any, include_raw: bool
) -> None:
    with Server(filled(PARIS)) as server:
        guard = SNNEGuard(WRAPPERS[wrapper](chat_openai(server)), n=3, **REFUSING)
        chain = guard.with_structured_output(
            City, method=method, include_raw=include_raw
        )
        for way in WHOLE:
            result: Any = parsed(chain, way)
            found = result["parsed"] if include_raw else result
            assert found == City.model_validate(PARIS)
        bodies = [asked.body for asked in server.requests]
    asked_for = {body.get("response_format", {}).get("type") for body in bodies}
    assert asked_for == {FORMS.get(method)}
    assert all(("tools" in body) == (method == "function_calling") for body in bodies)
    if wrapper == "bind":
        assert all(body["stop"] == ["."] for body in bodies)


def test_models_that_are_asked_in_different_ways_are_asked_by_tools() -> None:
    with Server(filled(PARIS)) as server:
        other = ChatAnthropic(
            model_name="claude-sonnet-5",
            api_key=SecretStr("none"),
            timeout=None,
            stop=None,
        )
        model = chat_openai(server).with_fallbacks([other])
        guard = SNNEGuard(model, n=3, **REFUSING)
        chain = guard.with_structured_output(City, method="json_schema")
        assert parsed(chain, "invoke") == City.model_validate(PARIS)
        assert all("tools" in asked.body for asked in server.requests)
