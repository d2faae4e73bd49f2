"""Views and the self-check as a server sees them, asked by a real ChatOpenAI."""

from __future__ import annotations

import math
from typing import Any

import pytest
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.tools import tool
from pydantic import BaseModel

from snne_guard import SNNEGuard
from snne_guard.self_check import SelfCheck
from snne_guard.views import View
from tests.langchain.support import CALLS, WHOLE, ask, chat_openai, guarded, metadata_of
from tests.support.openai_server import Answer, Asked, Scripted, Server

ALL = ["plain", "examples", "reasoning"]
TALK = [SystemMessage("Be brief."), HumanMessage("Where?")]


def view_of(asked: Asked) -> str:
    turns = [str(message["content"]) for message in asked.body["messages"]]
    if "Answer:" in turns[-1]:
        return "reasoning"
    return "examples" if len(turns) > 2 else "plain"


def script(asked: Asked) -> Answer:
    reasons = view_of(asked) == "reasoning"
    return Answer(texts=["I think. Answer: Paris" if reasons else "Paris"] * asked.n)


@pytest.mark.parametrize("way", WHOLE)
def test_the_server_gets_each_view_once(way: str) -> None:
    with Server(script) as server:
        guard = guarded(server, n=4, threshold=0.1, views=ALL)
        record = metadata_of(ask(guard, way, messages=TALK))
        (answer,) = [asked for asked in server.requests if not asked.is_sample]
        drawn = {view_of(asked): asked.body["messages"] for asked in server.samples}
    plain = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Where?"},
    ]
    assert answer.body["messages"] == drawn["plain"] == plain
    assert [drawn["examples"][0], drawn["examples"][-1]] == plain
    assert [turn["role"] for turn in drawn["examples"][1:-1]] == [
        *("user", "assistant") * 3
    ]
    assert drawn["reasoning"][0] == plain[0]
    assert drawn["reasoning"][1]["content"].startswith("Where?\n\nFirst think")
    assert [turn.content for turn in TALK] == ["Be brief.", "Where?"]
    assert (record["n_used"], record["uncertainty"]) == (4, 0.0)
    assert (record["method"], record["decision"]) == ("snne", "accept")


def test_a_view_of_the_users_own() -> None:
    def politely(messages: list[Any]) -> list[Any]:
        return [*messages[:-1], {"role": "user", "content": "Please: where?"}]

    with Server(lambda asked: Answer(texts=["Paris it is"] * asked.n)) as server:
        mine = View("polite", politely, lambda reply: reply.partition(" ")[0])
        made = guarded(server, n=3, views=[mine]).assess(TALK)
        sent = [asked.body["messages"][-1]["content"] for asked in server.samples]
    assert set(sent) == {"Please: where?"}
    assert {sample.text for sample in made.samples} == {"Paris"}


@pytest.mark.parametrize("way", WHOLE)
@pytest.mark.parametrize(
    "rewrite",
    [lambda _: 1 / 0, lambda _: [], lambda messages: messages[:1]],
    ids=["raises", "returns nothing", "drops the turn"],
)
def test_a_broken_view_loses_its_samples_alone(way: str, rewrite: Any) -> None:
    with Server(script) as server:
        broken = View("broken", rewrite)
        guard = guarded(server, n=5, threshold=0.4, views=["plain", broken])
        message = ask(guard, way, messages=TALK)
    record = metadata_of(message)
    assert message.text == "Paris"
    assert (record["n_used"], record["reasons"]) == (3, ["samples_failed"])
    assert record["decision"] == "accept"


def test_samples_with_tools_or_a_schema_are_plain() -> None:
    class Place(BaseModel):
        city: str

    @tool
    def look_up(city: str) -> str:
        """Look a city up."""
        return city

    def answering(asked: Asked) -> Answer:
        return Answer(texts=['{"city": "Paris"}'] * asked.n)

    with Server(answering) as server:
        guard = guarded(server, n=4, views=ALL)
        guard.bind_tools([look_up]).invoke(TALK)
        structured = guard.with_structured_output(Place)
        assert structured.invoke(TALK) == Place(city="Paris")
        guard.bind(response_format={"type": "json_object"}).invoke(TALK)
        aside: dict[str, Any] = {"response_format": {"type": "json_object"}}
        SNNEGuard(chat_openai(server, model_kwargs=aside), n=4, views=ALL).invoke(TALK)
        assert {view_of(asked) for asked in server.requests} == {"plain"}
        assert len(server.samples) >= 4


# -- The self-check --------------------------------------------------------------------

PROMPT = SelfCheck().prompt


def checking(word: str, *, prompt: str = PROMPT, **fields: Any) -> Scripted:
    """Return a script that says a word to a self-check, and Paris to the rest."""

    def script(asked: Asked) -> Answer:
        is_check = asked.body["messages"][-1]["content"] == prompt
        return Answer(texts=[word], **fields) if is_check else Answer()

    return script


@pytest.mark.parametrize("way", CALLS)
def test_the_model_is_asked_about_its_own_answer(way: str) -> None:
    with Server(checking("No")) as server:
        guard = guarded(server, n=4, threshold=0.4, self_check=True)
        found = metadata_of(ask(guard, way, messages=TALK))
        check = server.requests[-1].body
    said = [message["content"] for message in check["messages"]]
    assert said == ["Be brief.", "Where?", "Paris", PROMPT]
    assert (check["logprobs"], check["top_logprobs"]) == (True, 5)
    assert "temperature" not in check
    assert not check.get("stream")
    # The server gives No a log-probability of -0.1, and Yes the rest.
    assert found["self_check"] == pytest.approx(1 - math.exp(-0.1))
    assert (found["n_used"], found["disagreement"]) == (3, 0.0)
    assert (found["decision"], found["cost"]["calls"]) == ("accept", 3)


@pytest.mark.parametrize("way", WHOLE)
@pytest.mark.parametrize(
    ("said", "fields", "p"),
    [
        ("90 out of 100", {}, 0.9),
        ("Yes", {}, None),
        ("90", {"finish": "content_filter"}, None),
        ("", {"status": 401}, None),
    ],
)
def test_a_number_is_read_as_the_probability(
    said: str, fields: Any, p: float | None, way: str
) -> None:
    check = SelfCheck(form="number")
    with Server(checking(said, prompt=check.prompt, **fields)) as server:
        found = metadata_of(ask(guarded(server, n=4, self_check=check), way))
    assert found["self_check"] == pytest.approx(0.5 if p is None else p)
    assert ("self_check_unknown" in found["reasons"]) is (p is None)
