"""Tools, agents and structured output with a guard in the model's place."""

from __future__ import annotations

import json
import pickle
import traceback
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import PydanticOutputParser
from langchain_core.runnables import Runnable
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from pydantic import BaseModel

from snne_guard import ConfigurationError, SNNEGuard, UncertainAnswerError
from tests.langchain.support import (
    CALLS,
    ask,
    chat_openai,
    guarded,
    in_loop,
    metadata_of,
)
from tests.support.observers import Watcher
from tests.support.openai_server import Answer, Asked, Scripted, Server, split

SECRET = "Xanadu-by-the-lake"  # noqa: S105 - no password
TRANSFER = {
    "amount": 100,
    "currency": "EUR",
    "day": "2026-11-22",
    "iban": "DE02120300000000202051",
    "name": "A. Example",
    "note": "rent",
    "urgent": False,
}


@tool
def transfer(amount: int, to: str = "A. Example") -> str:
    """Send money."""
    return f"sent {amount} to {to}"


def calling(*arguments: Any, name: str = "transfer") -> Answer:
    """Return replies that call a tool, one choice with each of the arguments."""
    calls = [
        {
            "id": f"call_{place}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(given)},
        }
        for place, given in enumerate(arguments)
    ]
    message = {"role": "assistant", "content": None}
    choices = [
        {
            "index": place,
            "message": {**message, "tool_calls": [call]},
            "finish_reason": "tool_calls",
        }
        for place, call in enumerate(calls)
    ]
    body = {"id": "c", "object": "chat.completion", "created": 1, "model": "test-model"}
    usage = {"prompt_tokens": 5, "completion_tokens": 9, "total_tokens": 14}
    return Answer(body={**body, "choices": choices, "usage": usage})


def calls(answer: Any, *samples: Any, name: str = "transfer") -> Scripted:
    """Answer with a call; give the samples as the choices of one reply."""
    return lambda asked: (
        calling(*samples, name=name) if asked.is_sample else calling(answer, name=name)
    )


def agent_script(*samples: int) -> Scripted:
    """Call the tool, then say what it returned."""
    first = calls({"amount": 5}, *({"amount": each} for each in samples))

    def script(asked: Asked) -> Answer:
        last = asked.body["messages"][-1]
        return first(asked) if last["role"] == "user" else Answer(texts=["Done."])

    return script


# -- Tools -----------------------------------------------------------------------------


@pytest.mark.parametrize("way", CALLS)
def test_a_call_of_a_bound_tool_passes_unscored_and_no_sample_is_paid_for(
    way: str,
) -> None:
    def script(asked: Asked) -> Answer:
        call = {"name": "transfer", "arguments": '{"amount": 5}'}
        one = {"id": "c", "type": "function", "function": call}
        message = {"content": None, "tool_calls": [one]}
        return Answer(message=message, texts=[None], finish="tool_calls")

    with Server(script) as server:
        guard = guarded(server, threshold=0.4, on_uncertain="refuse")
        message = ask(guard.bind_tools([transfer]), way)
        assert len(server.requests) == 1
        assert server.requests[0].body["tools"][0]["function"]["name"] == "transfer"
    (call,) = message.tool_calls
    assert (call["name"], call["args"]) == ("transfer", {"amount": 5})
    found = metadata_of(message)
    assert (found["decision"], found["reasons"]) == ("unscored", ["tool_calls"])


@pytest.mark.parametrize("way", CALLS)
@pytest.mark.parametrize(
    ("samples", "decision"),
    [((5, 5, 5, 5), "accept"), ((6, 7, 8, 9), "refuse")],
)
def test_calls_are_compared_where_that_is_asked_for(
    way: str, samples: tuple[int, ...], decision: str
) -> None:
    with Server(agent_script(*samples)) as server:
        guard = guarded(
            server, threshold=0.4, on_uncertain="refuse", tool_calls="score"
        )
        message = ask(guard.bind_tools([transfer]), way)
    assert metadata_of(message)["decision"] == decision
    assert bool(message.tool_calls) is (decision == "accept")


@pytest.mark.parametrize("field", TRANSFER)
def test_one_field_of_seven_that_differs_is_a_difference(field: str) -> None:
    others = [
        {**TRANSFER, field: value}
        for value in ("one", "two", 3, True)  # five different values with the answer's
    ]
    with Server(calls(TRANSFER, *others)) as server:
        guard = guarded(
            server, threshold=0.4, on_uncertain="refuse", tool_calls="score"
        )
        message = guard.bind_tools([transfer]).invoke("Pay.")
    found = metadata_of(message)
    assert found["decision"] == "refuse"
    assert found["uncertainty"] > 0.5


def test_equal_calls_in_another_order_of_fields_are_alike() -> None:
    turned = dict(reversed(TRANSFER.items()))
    with Server(calls(TRANSFER, *[turned] * 4)) as server:
        guard = guarded(server, threshold=0.0, tool_calls="score")
        found = metadata_of(guard.bind_tools([transfer]).invoke("Pay."))
    assert (found["decision"], found["uncertainty"]) == ("accept", 0.0)


def test_text_among_calls_is_a_difference_and_calls_among_text_leave_the_set() -> None:
    def script(asked: Asked) -> Answer:
        return calling(*[{"amount": 5}] * 4) if asked.is_sample else Answer()

    with Server(script) as server:
        bound = guarded(server, threshold=0.4).bind_tools([transfer])
        found = metadata_of(bound.invoke("Pay."))
    assert found["reasons"] == ["tool_call_samples", "too_few_samples"]
    assert found["decision"] == "flag"


def test_tools_are_bound_to_a_fallback_too() -> None:
    with (
        Server(calls({"amount": 5}, *[{"amount": n} for n in (1, 2, 3, 4)])) as server,
        Server(calls({"amount": 7})) as second,
    ):
        guard = guarded(
            server,
            threshold=0.4,
            on_uncertain="fallback",
            tool_calls="score",
            fallback=chat_openai(second),
        )
        message = guard.bind_tools([transfer], tool_choice="any").invoke("Pay.")
        assert second.requests[0].body["tool_choice"] == "required"
    assert message.tool_calls[0]["args"] == {"amount": 7}


# -- Agents ----------------------------------------------------------------------------


def messages_of(app: Any, way: str) -> list[Any]:
    given = {"messages": [("user", "Pay 5.")]}
    found = app.invoke(given) if way == "invoke" else in_loop(app.ainvoke(given))
    messages: list[Any] = found["messages"]
    return messages


def graph_of(guard: Runnable[Any, Any]) -> Any:
    model = guard.bind_tools([transfer])  # type: ignore[attr-defined]  # of a chat model

    def node(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("model", node)
    graph.add_node("tools", ToolNode([transfer]))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    return graph.compile()


@pytest.mark.parametrize("make", [graph_of, lambda g: create_agent(g, [transfer])])
@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
@pytest.mark.parametrize("tool_calls", ["skip", "score"])
def test_an_agent_calls_its_tool_and_is_guarded(
    tool_calls: Any, way: str, make: Any
) -> None:
    with Server(agent_script(5, 5, 5, 5)) as server:
        guard = guarded(
            server, threshold=0.4, on_uncertain="refuse", tool_calls=tool_calls
        )
        _, called, returned, last = messages_of(make(guard), way)
    assert called.tool_calls[0]["name"] == "transfer"
    assert returned.content == "sent 5 to A. Example"
    assert last.text == "Done."
    decision = "unscored" if tool_calls == "skip" else "accept"
    assert metadata_of(called)["decision"] == decision
    assert metadata_of(last)["decision"] == "accept"


@pytest.mark.parametrize("make", [graph_of, lambda g: create_agent(g, [transfer])])
@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_an_agent_whose_call_is_refused_calls_no_tool(way: str, make: Any) -> None:
    with Server(agent_script(6, 7, 8, 9)) as server:
        guard = guarded(
            server, threshold=0.4, on_uncertain="refuse", tool_calls="score"
        )
        _, last = messages_of(make(guard), way)
    assert not last.tool_calls
    assert metadata_of(last)["decision"] == "refuse"


def test_an_agent_may_answer_in_a_schema() -> None:
    def script(asked: Asked) -> Answer:
        name = asked.body["tools"][0]["function"]["name"]
        return calling(*[{"name": "Paris", "people": 2}] * asked.n, name=name)

    from langchain.agents.structured_output import ToolStrategy

    with Server(script) as server:
        guard = guarded(server, threshold=0.4, on_uncertain="refuse")
        agent: Any = create_agent(guard, response_format=ToolStrategy(City))
        found = agent.invoke({"messages": [("user", "Where?")]})
    assert found["structured_response"] == City(name="Paris", people=2)


# -- Structured output -----------------------------------------------------------------


class City(BaseModel):
    """A town."""

    name: str
    people: int


AS_DICT = {**City.model_json_schema(), "title": "City", "description": "A town."}
METHODS = ["function_calling", "json_mode", "json_schema"]
PARIS = {"name": "Paris", "people": 2}


def filled(answer: Any, *samples: Any) -> Scripted:
    """Give values in the form that is asked for: as a call or as JSON."""
    texts = [each if isinstance(each, str) else json.dumps(each) for each in samples]
    said = answer if isinstance(answer, str) else json.dumps(answer)

    def script(asked: Asked) -> Answer:
        listed = (texts or [said]) if asked.is_sample else [said]
        if not asked.body.get("tools"):
            return Answer(texts=listed, logprobs=False)
        repeated = [listed[place % len(listed)] for place in range(asked.n)]
        found = calling(*[{}] * asked.n, name="City")
        for choice, text in zip(found.body["choices"], repeated, strict=True):
            choice["message"]["tool_calls"][0]["function"]["arguments"] = text
        return found

    return script


def parsed(chain: Any, way: str) -> Any:
    if way == "ainvoke":
        return in_loop(chain.ainvoke("Where?"))
    return (
        list(chain.stream("Where?"))[-1] if way == "stream" else chain.invoke("Where?")
    )


@pytest.mark.parametrize("schema", [City, AS_DICT], ids=["class", "dict"])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream"])
def test_structured_output_is_the_models_own(
    way: str, method: Any, schema: Any
) -> None:
    watcher = Watcher()
    with Server(filled(PARIS)) as server:
        options: dict[str, Any] = {"threshold": 0.4, "observers": [watcher]}
        whole = method != "function_calling" or way != "stream"
        for policy in ("flag" if whole else "refuse", "raise"):
            guard = guarded(server, on_uncertain=policy, **options)
            chain = guard.with_structured_output(schema, method=method)
            expected = City.model_validate(PARIS) if schema is City else PARIS
            assert parsed(chain, way) == expected
            if method == "json_schema":
                wanted = server.answers[-1].body["response_format"]
                assert wanted["json_schema"]["name"] == "City"
    assert [seen.decision for seen in watcher.assessments] == ["accept", "accept"]
    assert {seen.n_used for seen in watcher.assessments} == {5}


@pytest.mark.parametrize("schema", [City, AS_DICT], ids=["class", "dict"])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_one_different_value_withholds_structured_output(
    way: str, method: Any, schema: Any
) -> None:
    others = [{**PARIS, "people": people} for people in (3, 4, 5, 6)]
    for policy in ("refuse", "raise"):
        with Server(filled(PARIS, *others)) as server:
            guard = guarded(server, threshold=0.4, on_uncertain=policy)
            chain = guard.with_structured_output(schema, method=method)
            with pytest.raises(UncertainAnswerError) as caught:
                parsed(chain, way)
        assert caught.value.uncertainty is not None
        assert caught.value.uncertainty > 0.5


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_include_raw_gives_the_message_with_its_assessment(
    way: str, method: Any
) -> None:
    with Server(filled(PARIS)) as server:
        guard = guarded(server, threshold=0.4)
        chain = guard.with_structured_output(City, method=method, include_raw=True)
        found = parsed(chain, way)
    assert set(found) == {"raw", "parsed", "parsing_error"}
    assert found["parsed"] == City.model_validate(PARIS)
    assert isinstance(found["raw"], AIMessage)
    assert metadata_of(found["raw"])["decision"] == "accept"


UNFIT: dict[str, Any] = {
    "a field is missing": json.dumps({"name": SECRET}),
    "a value is of another kind": json.dumps({"name": SECRET, "people": "many"}),
    "it is no JSON": f'{{"name": "{SECRET}", "peo',
    "it is prose": f"It is {SECRET}.",
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
    (assessment,) = watcher.assessments
    assert assessment.decision == "refuse"
    assert assessment.answer is not None
    assert SECRET in (assessment.answer.tool_calls or assessment.answer.text)
    error = caught.value
    assert SECRET not in "".join(traceback.format_exception(error))
    assert SECRET.encode() not in pickle.dumps(error)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_a_fallback_is_asked_for_the_same_schema(way: str, method: Any) -> None:
    lyon = {"name": "Lyon", "people": 1}
    others = [{**PARIS, "people": people} for people in (3, 4, 5, 6)]
    with Server(filled(PARIS, *others)) as server, Server(filled(lyon)) as second:
        guard = guarded(
            server,
            threshold=0.4,
            on_uncertain="fallback",
            fallback=chat_openai(second),
        )
        chain = guard.with_structured_output(City, method=method)
        assert parsed(chain, way) == City.model_validate(lyon)


def test_a_fallback_without_structured_output_is_refused() -> None:
    from langchain_core.runnables import RunnableLambda

    with Server(filled(PARIS)) as server:
        options = {"threshold": 0.4, "on_uncertain": "fallback"}
        guard = guarded(server, fallback=RunnableLambda(lambda _: "x"), **options)
        with pytest.raises(ConfigurationError, match="RunnableLambda has not"):
            guard.with_structured_output(City)


@pytest.mark.parametrize("method", ["function_calling"])
def test_a_wrapped_model_has_structured_output_too(method: Any) -> None:
    with Server(filled(PARIS)) as server:
        model = chat_openai(server).with_retry(stop_after_attempt=2)
        guard = SNNEGuard(model, threshold=0.4, on_uncertain="refuse")
        chain = guard.with_structured_output(City, method=method)
        assert parsed(chain, "invoke") == City.model_validate(PARIS)
        assert parsed(chain, "ainvoke") == City.model_validate(PARIS)


def test_a_parser_behind_the_guard_reads_what_it_delivers() -> None:
    model = FakeListChatModel(responses=[json.dumps(PARIS)])
    chain = SNNEGuard(model, n=3) | PydanticOutputParser(pydantic_object=City)
    assert chain.invoke("Where?") == City.model_validate(PARIS)


def test_prose_stays_prose_after_a_schema_was_made_of_the_guard() -> None:
    with Server(split("Paris", "Lyon", "Nice", "Metz", "Brest")) as server:
        guard = guarded(server, threshold=0.4, on_uncertain="refuse")
        guard.with_structured_output(City)
        guard.bind_tools([transfer])
        message = guard.invoke("Where?")
        assert not any(asked.body.get("tools") for asked in server.requests)
    assert metadata_of(message)["decision"] == "refuse"
