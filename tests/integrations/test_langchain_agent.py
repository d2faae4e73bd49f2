"""An agent's model calls: scored, recorded, and acted on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from snne_guard import ConfigurationError, GuardedChatModel, SNNEGuard
from snne_guard import UncertainAnswerError as Uncertain
from snne_guard.langchain import is_refusal
from snne_guard_integrations.langchain_agent import UncertaintyMiddleware
from tests.support.agents import (
    OWN,
    SPREAD,
    agent_on,
    calling,
    guarding,
    last,
    paper_of,
    run,
    saying,
    turns,
)
from tests.support.calibrated import calibration, certified
from tests.support.chat_server import ChatServer, Reply, ToolCall, chat_openai, error
from tests.support.guarding import WHOLE, Witness, is_sample

UNCERTAIN = turns(answer=saying(OWN), samples=saying(*SPREAD))
CERTAIN = turns(answer=saying(OWN), samples=saying(OWN, "It opens at nine"))
CALLS = ("museum", "theatre", "church", "pool")
WILD_CALL = turns(call=calling("library"), call_samples=calling(*CALLS))
SURE_CALL = turns(call=calling("library"), call_samples=calling("library"))


@pytest.mark.parametrize("way", WHOLE)
@pytest.mark.parametrize(
    ("script", "decision"), [(CERTAIN, "accept"), (UNCERTAIN, "flag")]
)
def test_an_answer_is_measured_and_delivered(
    way: str, script: Any, decision: str
) -> None:
    with ChatServer(script) as server:
        state = run(agent_on(server, guarding(threshold=0.4)), way)
    message, (record,) = last(state), state["uncertainty"]
    assert message.content == OWN
    assert record["decision"] == decision
    assert (record["kind"], record["message_id"]) == ("answer", message.id)
    assert message.response_metadata["snne_guard"]["id"] == record["id"]
    # The usage is the answer's own, which other middleware counts the context by.
    assert message.usage_metadata is not None
    assert message.usage_metadata["output_tokens"] == 4
    assert "uncertainty_pending" not in state
    json.dumps(state["uncertainty"])


@pytest.mark.parametrize("way", WHOLE)
def test_without_a_threshold_it_only_measures(way: str) -> None:
    with ChatServer(UNCERTAIN) as server:
        state = run(agent_on(server, guarding()), way)
    (record,) = state["uncertainty"]
    assert record["decision"] is None
    assert record["uncertainty"] > 0.9


@pytest.mark.parametrize("way", WHOLE)
def test_it_keeps_to_a_calibration(way: str, tmp_path: Path) -> None:
    path = tmp_path / "guard.json"
    made = calibration(n=3, refuse=certified(0.95))
    made.save(path)
    settings = {**made.guard_settings(), "calibration": str(path)}
    for script, decision in ((CERTAIN, "accept"), (UNCERTAIN, "refuse")):
        with ChatServer(script) as server:
            middleware = UncertaintyMiddleware(**settings, on_uncertain="refuse")
            state = run(agent_on(server, middleware), way)
        (record,) = state["uncertainty"]
        assert (record["decision"], record["certified"]) == (decision, True)
    with (
        ChatServer(CERTAIN) as server,
        pytest.raises(ConfigurationError, match="model was 'test-model', here"),
    ):
        run(agent_on(server, middleware, model={"model": "other"}), way)


@pytest.mark.parametrize("way", WHOLE)
def test_a_refusal_stands_in_the_place_of_the_answer(way: str) -> None:
    with ChatServer(UNCERTAIN) as server:
        middleware = guarding(
            threshold=0.4, on_uncertain="refuse", refusal="Ask the desk."
        )
        state = run(agent_on(server, middleware, name="guide"), way)
    assert (last(state).content, last(state).name) == ("Ask the desk.", "guide")
    assert is_refusal(last(state))
    assert OWN not in repr(state)


@pytest.mark.parametrize("way", WHOLE)
def test_the_fallback_model_answers_with_the_same_tools(way: str) -> None:
    ran: list[str] = []
    script = turns(call=calling("library"), answer=saying(OWN), samples=saying(*SPREAD))
    with ChatServer(script) as server, ChatServer([saying("At ten.")]) as other:
        middleware = guarding(
            threshold=0.4, on_uncertain="fallback", fallback=chat_openai(other)
        )
        state = run(agent_on(server, middleware, tools=[paper_of(ran)]), way)
        (request,) = other.requests
    assert ran == ["library"]
    assert [tool["function"]["name"] for tool in request.body["tools"]] == [
        "opening_hours"
    ]
    found = last(state).response_metadata["snne_guard"]
    assert (last(state).content, found["decision"]) == ("At ten.", "fallback")
    assert OWN not in repr(state)


@pytest.mark.parametrize("way", WHOLE)
def test_the_fallback_model_answers_where_the_model_fails(way: str) -> None:
    with ChatServer([saying("At ten.")]) as other, ChatServer([error(500)]) as server:
        middleware = guarding(fallback=chat_openai(other))
        state = run(agent_on(server, middleware), way)
    assert last(state).content == "At ten."
    assert "answer_failed" in state["uncertainty"][-1]["reasons"]


def test_a_fallback_may_be_named_and_may_be_guarded_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with ChatServer(UNCERTAIN) as server, ChatServer([saying("At ten.")]) as other:
        monkeypatch.setenv("OPENAI_API_KEY", "test")
        monkeypatch.setenv("OPENAI_BASE_URL", other.url)
        named = guarding(
            threshold=0.4, on_uncertain="fallback", fallback="openai:gpt-test"
        )
        assert last(run(agent_on(server, named), "invoke")).content == "At ten."
        inner = GuardedChatModel(SNNEGuard(chat_openai(other), n=2, method="snne"))
        twice = guarding(threshold=0.4, on_uncertain="fallback", fallback=inner)
        message = last(run(agent_on(server, twice), "invoke"))
    found = message.response_metadata["snne_guard"]
    assert (found["decision"], found["fallback"]["n_used"]) == ("fallback", 2)


@pytest.mark.parametrize("way", WHOLE)
def test_it_raises_where_told(way: str) -> None:
    with ChatServer(UNCERTAIN) as server:
        agent = agent_on(server, guarding(threshold=0.4, on_uncertain="raise"))
        with pytest.raises(Uncertain, match="the answer was withheld"):
            run(agent, way)


@pytest.mark.parametrize(
    ("way", "asynchronous"), [("invoke", False), ("ainvoke", False), ("ainvoke", True)]
)
def test_a_function_decides(way: str, *, asynchronous: bool) -> None:
    asked_of: list[Any] = []

    def decide(assessment: Any) -> str:
        asked_of.append(assessment)
        return "refuse"

    async def later(assessment: Any) -> str:
        return decide(assessment)

    with ChatServer(UNCERTAIN) as server:
        function = later if asynchronous else decide
        middleware = guarding(threshold=0.4, on_uncertain=function)
        state = run(agent_on(server, middleware), way)
    assert asked_of[0].raw.content == OWN
    assert is_refusal(last(state))


@pytest.mark.parametrize("way", WHOLE)
def test_turns_that_call_tools_pass_and_cost_no_samples(way: str) -> None:
    ran: list[str] = []
    with ChatServer(WILD_CALL) as server:
        middleware = guarding(threshold=0.4, on_uncertain="refuse")
        state = run(agent_on(server, middleware, tools=[paper_of(ran)]), way)
        drawn = [is_sample(request) for request in server.requests]
    call, answer = state["uncertainty"]
    assert (call["kind"], call["decision"]) == ("tool_calls", "unscored")
    assert call["reasons"] == ["tool_calls"]
    assert (answer["kind"], answer["decision"]) == ("answer", "accept")
    assert (drawn, ran) == ([False, False, True], ["library"])


@pytest.mark.parametrize("way", WHOLE)
@pytest.mark.parametrize(("script", "decision"), [(WILD_CALL, "flag"), (SURE_CALL, "")])
def test_they_are_measured_by_a_threshold_of_their_own(
    way: str, script: Any, decision: str
) -> None:
    ran: list[str] = []
    with ChatServer(script) as server:
        middleware = guarding(threshold=1.0, tool_threshold=0.1)
        state = run(agent_on(server, middleware, tools=[paper_of(ran)]), way)
    call, answer = state["uncertainty"]
    assert (call["decision"], call["threshold"]) == (decision or "accept", 0.1)
    assert (answer["decision"], answer["threshold"]) == ("accept", 1.0)
    assert ran == ["library"]


@pytest.mark.parametrize("way", WHOLE)
@pytest.mark.parametrize("action", ["refuse", "fallback", "raise"])
def test_an_uncertain_turn_does_not_run_its_tools(way: str, action: Any) -> None:
    ran: list[str] = []
    with ChatServer(WILD_CALL) as server, ChatServer([saying("Ask them.")]) as other:
        middleware = guarding(
            tool_threshold=0.1, on_uncertain_tools=action, fallback=chat_openai(other)
        )
        agent = agent_on(server, middleware, tools=[paper_of(ran)])
        if action == "raise":
            with pytest.raises(Uncertain):
                run(agent, way)
        else:
            state = run(agent, way)
            assert not last(state).tool_calls
            assert [message.type for message in state["messages"]] == ["human", "ai"]
            assert state["uncertainty"][0]["kind"] == "tool_calls"
    assert ran == []


@pytest.mark.parametrize("way", WHOLE)
def test_turns_can_be_measured_without_a_threshold(way: str) -> None:
    with ChatServer(WILD_CALL) as server:
        middleware = guarding(tool_calls="score", threshold=0.4)
        state = run(agent_on(server, middleware, tools=[paper_of([])]), way)
    assert state["uncertainty"][0]["decision"] is None
    assert state["uncertainty"][0]["uncertainty"] > 0.4


def test_parallel_calls_are_one_turn() -> None:
    ran: list[str] = []
    pair = [
        ToolCall(name="opening_hours", arguments={"place": place})
        for place in ("library", "museum")
    ]
    one = Reply(texts=[None], tool_calls=[pair])
    with ChatServer(turns(call=one, call_samples=one)) as server:
        middleware = guarding(tool_threshold=0.1, on_uncertain_tools="refuse")
        state = run(agent_on(server, middleware, tools=[paper_of(ran)]), "invoke")
    assert sorted(ran) == ["library", "museum"]
    assert [record["kind"] for record in state["uncertainty"]] == [
        "tool_calls",
        "answer",
    ]


def test_records_of_a_conversation_add_up_and_limits_hold_for_all() -> None:
    from langgraph.checkpoint.memory import InMemorySaver

    witness = Witness()
    with ChatServer(CERTAIN) as server:
        middleware = guarding(threshold=0.4, observers=[witness], n=3)
        agent = agent_on(server, middleware, checkpointer=InMemorySaver())
        config = {"configurable": {"thread_id": "1"}}
        run(agent, "invoke", config=config)
        state = run(agent, "invoke", config=config)
    ids = [record["id"] for record in state["uncertainty"]]
    assert ids == [assessment.id for assessment in witness.assessments]
    assert len(ids) == 2
    assert state["uncertainty"][0]["n_used"] == 3


def test_the_guards_of_many_models_are_bounded_and_share_what_limits_them() -> None:
    with ChatServer(CERTAIN) as server:
        guards = guarding(max_concurrency=2)._guards
        models = [chat_openai(server) for _ in range(40)]
        made = [guards.of(model) for model in models]
    assert guards.of(models[-1]) is made[-1]
    assert guards.of(models[0]) is not made[0]
    assert len(guards._made) == 32
    assert len({id(each.guard.shared) for each in made}) == 1


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"on_uncertain": "refuse"}, "on_uncertain='refuse' needs a threshold"),
        ({"on_uncertain_tools": "interrupt"}, "needs a tool_threshold"),
        ({"on_uncertain": "maybe"}, "on_uncertain must be one of 'flag', 'refuse'"),
        ({"threshold": 0.4, "on_uncertain": "fallback"}, "needs a fallback"),
        ({"tool_calls": "maybe"}, "tool_calls must be"),
        ({"tool_calls": "skip", "tool_threshold": 0.1}, "leaves turns unscored"),
        ({"n": 1}, "n must be"),
        ({"samples": 3}, "has no option 'samples'"),
        ({"threshold": 2.0}, "threshold"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: Any, expected: str) -> None:
    with pytest.raises(ConfigurationError, match=expected):
        UncertaintyMiddleware(**options)


def test_a_model_that_is_guarded_already_is_refused() -> None:
    with ChatServer(CERTAIN) as server:
        from langchain.agents import create_agent

        model = GuardedChatModel(SNNEGuard(chat_openai(server)))
        agent = create_agent(model, middleware=[guarding()])
        with pytest.raises(ConfigurationError, match="GuardedChatModel already"):
            run(agent, "invoke")
