"""Where a model stands a guard does: wrappers, chains, fallbacks, other guards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import ConfigurableField

from snne_guard import ConfigurationError, SNNEGuard
from tests.langchain.support import (
    MODEL,
    REFUSING,
    WHOLE,
    ask,
    chat_openai,
    guarded,
    in_loop,
    metadata_of,
)
from tests.support.openai_server import APART, Server, always, split

WRAPPERS: dict[str, Callable[[Any], Any]] = {
    "bind": lambda model: model.bind(stop=["!"]),
    "bind_tools": lambda model: model.bind_tools([]),
    "with_config": lambda model: model.with_config(tags=["t"]),
    "with_retry": lambda model: model.with_retry(stop_after_attempt=2),
    "with_fallbacks": lambda model: model.with_fallbacks([MODEL]),
    "all of them": lambda model: (
        model.bind(stop=["!"])
        .with_config(tags=["t"])
        .with_retry(stop_after_attempt=2)
        .with_fallbacks([model.bind(stop=["?"])])
    ),
}


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("way", ["invoke", "astream"])
def test_a_guard_stands_around_a_wrapped_model(way: str, wrapper: str) -> None:
    with Server(split("Paris", *APART)) as server:
        model = WRAPPERS[wrapper](chat_openai(server))
        guard = SNNEGuard(model, **REFUSING)
        message = ask(guard, way)
        stops = {str(asked.body.get("stop")) for asked in server.requests}
    assert metadata_of(message)["decision"] == "refuse"
    assert stops == {"['!']" if wrapper in {"bind", "all of them"} else "None"}


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("way", ["invoke", "astream"])
def test_a_wrapper_stands_around_a_guard(way: str, wrapper: str) -> None:
    with Server(split("Paris", *APART)) as server:
        guard = guarded(server, **REFUSING)
        message = ask(WRAPPERS[wrapper](guard), way)
    assert metadata_of(message)["decision"] == "refuse"


@pytest.mark.parametrize(
    "wrapper", ["bind", "with_config", "with_retry", "all of them"]
)
def test_tools_reach_every_model_inside(wrapper: str) -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": {}}}
    with Server(always()) as server:
        model = WRAPPERS[wrapper](chat_openai(server))
        before = repr(model)
        SNNEGuard(model).bind_tools([tool]).invoke("Where?")
        assert [asked.body["tools"] for asked in server.requests] == [[tool]] * 2
    assert repr(model) == before


@pytest.mark.parametrize("way", WHOLE)
def test_with_fallbacks_takes_over_after_raise(way: str) -> None:
    with Server(split("Paris", *APART)) as server:
        guard = guarded(server, threshold=0.4, on_uncertain="raise")
        careful = guard.with_fallbacks([FakeListChatModel(responses=["Ask."])])
        assert ask(careful, way).text == "Ask."


def test_a_chain_with_prompt_and_parser_works_unchanged() -> None:
    prompt = ChatPromptTemplate.from_messages([("user", "Capital of {country}?")])
    with Server(always()) as server:
        guard = guarded(server, **REFUSING)
        chain = prompt | guard | StrOutputParser()
        assert chain.invoke({"country": "France"}) == "Paris"
        assert in_loop(chain.ainvoke({"country": "France"})) == "Paris"
        assert chain.batch([{"country": "France"}] * 3) == ["Paris"] * 3
        assert "".join(chain.stream({"country": "France"})) == "Paris"


def test_configurable_fields_and_alternatives_are_chosen_on_the_guard() -> None:
    with Server(split("Paris", *APART)) as server:
        guard = guarded(server, threshold=0.4)
        chosen = guard.configurable_fields(
            n=ConfigurableField(id="n"), threshold=ConfigurableField(id="limit")
        ).configurable_alternatives(
            ConfigurableField(id="which"), other=SNNEGuard(MODEL)
        )
        config: Any = {"configurable": {"n": 3, "limit": 1.0}}
        record = metadata_of(chosen.invoke("Where?", config))
        assert (record["n_requested"], record["decision"]) == (3, "accept")
        assert metadata_of(chosen.invoke("Where?"))["decision"] == "flag"
        other: Any = {"configurable": {"which": "other"}}
        assert metadata_of(chosen.invoke("Where?", other))["method"] == "snne"
        bad: Any = {"configurable": {"n": 1}}
        with pytest.raises(ConfigurationError, match="got 1"):
            chosen.invoke("Where?", bad)


def test_what_a_call_sets_overrides_what_is_bound() -> None:
    with Server(always()) as server:
        guard = SNNEGuard(chat_openai(server).bind(stop=["!"], user="a"))
        guard.bind(user="b").invoke("Where?", stop=["?"])
        for asked in server.requests:
            assert (asked.body["stop"], asked.body["user"]) == (["?"], "b")


def test_a_guard_in_a_guard_is_asked_like_a_model() -> None:
    with Server(always()) as server:
        guard = SNNEGuard(guarded(server, n=2), n=3, threshold=0.4)
        record = metadata_of(guard.invoke("Where?"))
        assert len(server.requests) == 6
    assert (record["decision"], record["reasons"]) == ("accept", ["temperature_unset"])
    assert "fallback" not in record
