"""Fields of a guarded call: in every door, with what is decided by them."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from pydantic import BaseModel

from snne_guard import SNNEGuard, UncertainAnswerError
from snne_guard.engine import Draw, GuardState, Outcome, Request, Response
from snne_guard.errors import ConfigurationError
from snne_guard.settings import GuardSettings
from snne_guard.types import Assessment, Reply
from snne_guard_integrations.langchain_agent import UncertaintyMiddleware
from tests.langchain.support import CALLS, ask, chat_openai, in_loop, metadata_of
from tests.langchain.support import guarded as guarded_chat
from tests.openai.guarded import guarded
from tests.support.calibrations import calibration
from tests.support.observers import Watcher
from tests.support.openai_clients import WAYS
from tests.support.openai_server import Answer, Asked, Server, calling, split
from tests.support.senders import feed

PARIS: dict[str, Any] = {"name": "Paris", "people": 2}
OTHERS = [{**PARIS, "people": people} for people in (3, 4, 5, 2)]


class City(BaseModel):
    """A town."""

    name: str
    people: int


def filled(asked: Asked) -> Answer:
    """Give an object of which one field differs, in the form that is asked for."""
    values = OTHERS if asked.is_sample else [PARIS]
    tools = asked.body.get("tools")
    if tools:
        name = tools[0].get("name") or tools[0]["function"]["name"]
        return calling(*values, name=name)
    return Answer(texts=[json.dumps(v) for v in values], logprobs=False)


def paths(fields: Any) -> dict[str, int]:
    """Return how many samples support each field."""
    if fields and not isinstance(fields[0], dict):
        fields = [*map(asdict, fields)]
    assert all(0 <= field["uncertainty"] <= 1 for field in fields)
    return {field["path"]: field["supported"] for field in fields}


def run(
    answer: str | Reply, *samples: str | Reply, request: Any = (), **options: Any
) -> Outcome:
    """Return how a call ends whose replies are given."""

    def come_of(draw: Any, place: int) -> Any:
        return answer if draw.role == "answer" else samples[place % len(samples)]

    settings = GuardSettings(**{"n": 5, "method": "snne", **options})
    given = Request(settings=settings, state=GuardState(), **dict(request))
    return feed(given, come_of)


# -- The engine ------------------------------------------------------------------------


def test_a_text_that_is_json_has_fields_and_its_own_uncertainty() -> None:
    text, *others = map(json.dumps, (PARIS, *OTHERS))
    outcome = run(text, *others)
    assessment = outcome.assessment
    assert paths(assessment.fields) == {"/name": 4, "/people": 1}
    record = assessment.to_metadata()
    assert paths(record["fields"]) == {"/name": 4, "/people": 1}
    assert "Paris" not in json.dumps(record)
    assert "uncertain_fields" not in record
    assert 0 < (assessment.uncertainty or 0) < 1


@pytest.mark.parametrize("text", ["Paris", '"Paris"', "{not JSON}", '{"a": 1, "a": 2}'])
def test_another_text_has_none(text: str) -> None:
    assessment = run(text, text).assessment
    assert assessment.fields is None
    assert "fields" not in assessment.to_metadata()


def test_fields_above_their_threshold_are_named() -> None:
    text, *others = map(json.dumps, (PARIS, *OTHERS))
    assessment = run(text, *others, field_threshold=0.5).assessment
    assert assessment.uncertain_fields == ("/people",)
    assert assessment.to_metadata()["uncertain_fields"] == ["/people"]
    sure = run(text, text.replace("2}", "2 }"), field_threshold=0.0).assessment
    assert sure.to_metadata()["uncertain_fields"] == []


def test_the_worst_field_decides_where_it_is_told_to() -> None:
    rows = {"rows": [{"id": i, "of": f"item {i}"} for i in range(9)], "people": 2}
    text = json.dumps(rows)
    others = [json.dumps({**rows, "people": 3 + i}) for i in range(4)]
    options: Any = {"threshold": 0.7, "on_uncertain": "raise"}
    as_ever = run(text, *others, **options)
    assert (as_ever.assessment.decision, as_ever.delivery) == ("accept", "answer")
    worst = run(text, *others, **options, decide_on="worst_field")
    assert (worst.assessment.decision, worst.delivery) == ("refuse", "nothing")
    assert worst.assessment.uncertainty == as_ever.assessment.uncertainty
    assert isinstance(worst.error, UncertainAnswerError)
    assert "a field that is too uncertain" in str(worst.error)
    # A text has no fields: it is decided on as a whole.
    assert (
        run("Paris", "Paris", **options, decide_on="worst_field").delivery == "answer"
    )


@pytest.mark.parametrize(
    ("said", "people", "decision"),
    [
        (1.0, 2, "accept"),
        (0.0, 2, "refuse"),  # "No" counts, where all fields are alike
        (None, 2, "accept"),
        (1.0, 3, "refuse"),  # "Yes" makes no field more certain
        (0.0, 3, "refuse"),
    ],
)
def test_a_self_check_can_only_make_the_worst_field_worse(
    said: float | None, people: int, decision: str
) -> None:
    def come_of(draw: Draw, _: int) -> Any:
        if draw.role == "self_check":
            return Response(replies=(Reply(text="x"),), p_correct=said)
        return json.dumps({**PARIS, "people": 2 if draw.role == "answer" else people})

    options: Any = {"self_check": True, "decide_on": "worst_field", "threshold": 0.3}
    settings = GuardSettings(**options, on_uncertain="refuse")
    outcome = feed(Request(settings=settings, state=GuardState()), come_of)
    assert outcome.assessment.decision == decision


def test_of_a_withheld_answer_only_the_assessment_knows_the_fields() -> None:
    text, *others = map(json.dumps, (PARIS, *OTHERS))
    outcome = run(text, *others, threshold=0.1, on_uncertain="refuse")
    assert outcome.assessment.decision == "refuse"
    assert outcome.assessment.fields
    assert "fields" not in outcome.assessment.to_metadata()


def failing(_: Any) -> Any:
    raise KeyError


@pytest.mark.parametrize(
    "instead",
    [
        lambda _: 3,  # a message in place of the answer
        lambda _: "raise",
        lambda _: "fallback",  # and there is none
        lambda _: "perhaps",
        failing,
    ],
    ids=["message", "raise", "fallback", "no word", "error"],
)
def test_nor_are_they_told_beside_what_a_function_gives_instead(instead: Any) -> None:
    text, *others = map(json.dumps, (PARIS, *OTHERS))
    options: Any = {"threshold": 0.1, "field_threshold": 0.1, "on_uncertain": instead}
    outcome = run(text, *others, **options)
    assert outcome.delivery != "answer"
    assert outcome.assessment.withheld
    assert outcome.assessment.fields
    assert "people" not in json.dumps(outcome.assessment.to_metadata())


def test_fields_that_cannot_be_compared_are_no_agreement(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise MemoryError

    monkeypatch.setattr("snne_guard.engine.parts.score_fields", fails)
    text = json.dumps(PARIS)
    options: Any = {"threshold": 0.9, "on_uncertain": "refuse"}
    outcome = run(text, text, **options)
    assert outcome.delivery == "answer"
    assert "fields_failed" in outcome.assessment.reasons
    outcome = run(text, text, **options, decide_on="worst_field")
    assert outcome.delivery == "refusal"


def test_scored_calls_have_paths_under_the_call() -> None:
    def call(people: int) -> Reply:
        args = {"name": "Paris", "people": people}
        text = json.dumps([{"args": args, "name": "save"}])
        return Reply(text="", tool_calls=text, finish_reason="tool_calls")

    request = {"tools_bound": True}
    replies = [call(people) for people in (2, 3, 4, 2, 2)]
    assessment = run(*replies, request=request, tool_calls="score").assessment
    assert paths(assessment.fields) == {
        "/0/args/name": 4,
        "/0/args/people": 2,
        "/0/name": 4,
    }
    skipped = run(*replies, request=request).assessment
    assert skipped.fields is None


def test_samples_of_another_shape_support_nothing() -> None:
    assessment = run(
        json.dumps(PARIS), "I do not know.", "[1]", '{"error": "x"}'
    ).assessment
    assert paths(assessment.fields) == {"/name": 0, "/people": 0}


@pytest.mark.parametrize(
    "options",
    [
        {"field_threshold": 1.5},
        {"field_threshold": "0.5"},
        {"decide_on": "field"},
        {"decide_on": "worst_field", "calibration": calibration()},
        {"decide_on": "worst_field"},  # and no threshold
        {"decide_on": "worst_field", "min_grounded": 0.5},
    ],
)
def test_options_that_make_no_sense_are_refused(options: Any) -> None:
    with pytest.raises(ConfigurationError):
        GuardSettings(**options)


# -- The doors -------------------------------------------------------------------------


def seen_by(guard: SNNEGuard, method: Any, **options: Any) -> tuple[Any, Assessment]:
    with guard.assessments() as seen:
        chain = guard.with_structured_output(City, method=method, **options)
        given = chain.invoke("Where?")
    (assessment,) = seen
    return given, assessment


@pytest.mark.parametrize("method", ["function_calling", "json_mode", "json_schema"])
def test_structured_output_is_assessed_field_by_field(method: Any) -> None:
    watcher = Watcher()
    with Server(filled) as server:
        guard = guarded_chat(server, observers=[watcher], field_threshold=0.4)
        given, assessment = seen_by(guard, method)
        assert given == City(**PARIS)
        assert paths(assessment.fields) == {"/name": 4, "/people": 1}
        assert watcher.only is assessment
        raw, _ = seen_by(guard, method, include_raw=True)
    record = metadata_of(raw["raw"])
    assert paths(record["fields"]) == {"/name": 4, "/people": 1}
    assert record["uncertain_fields"] == ["/people"]


@pytest.mark.parametrize("way", ["assess", "aassess"])
def test_assess_takes_a_schema(way: str) -> None:
    with Server(filled) as server:
        guard = guarded_chat(server)
        if way == "assess":
            assessment = guard.assess("Where?", schema=City)
        else:
            assessment = in_loop(guard.aassess("Where?", schema=City))
    assert paths(assessment.fields) == {"/name": 4, "/people": 1}


def test_assess_takes_a_schema_with_a_fallback_and_bound_options() -> None:
    with Server(filled) as server:
        model = chat_openai(server)
        falling = SNNEGuard(
            model, threshold=0.1, on_uncertain="fallback", fallback=model
        )
        assert falling.assess("Where?", schema=City).fields
        assert SNNEGuard(model.bind(stop=["."])).assess("Where?", schema=City).fields


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("path", ["chat.completions.parse", "responses.parse"])
def test_clients_parse_with_fields(path: str, way: str) -> None:
    form = "response_format" if path.startswith("chat") else "text_format"
    script = split(*map(json.dumps, (PARIS, *OTHERS)))
    with guarded(script, way, field_threshold=0.4) as (_, call):
        answer = call(path, **{form: City})
    assert paths(answer.snne_guard["fields"]) == {"/name": 4, "/people": 1}
    assert answer.snne_guard["uncertain_fields"] == ["/people"]


def look_up(place: str) -> str:
    """Look a place up."""
    return place


@pytest.mark.parametrize("tools", [[], [look_up]])
@pytest.mark.parametrize("strategy", [ProviderStrategy, ToolStrategy])
def test_agents_structured_response_has_fields(strategy: Any, tools: Any) -> None:
    def script(asked: Asked) -> Answer:
        if not tools:
            return filled(asked)
        if len(asked.body["messages"]) == 1:
            return calling({"place": "Paris"}, name="look_up")
        if strategy is ToolStrategy:
            return calling(*(OTHERS if asked.is_sample else [PARIS]), name="City")
        return filled(
            Asked(path=asked.path, headers={}, body={**asked.body, "tools": []})
        )

    with Server(script) as server:
        guarding = UncertaintyMiddleware(n=5)
        agent: Any = create_agent(
            chat_openai(server),
            tools,
            middleware=[guarding],
            response_format=strategy(City),
        )
        result = agent.invoke({"messages": [("user", "Where?")]})
    assert result["structured_response"] == City(**PARIS)
    *turns, message = [m for m in result["messages"] if m.type == "ai"]
    assert [metadata_of(turn)["reasons"][0] for turn in turns] == ["tool_calls"] * len(
        tools
    )
    assert paths(metadata_of(message)["fields"]) == {"/name": 4, "/people": 1}


@pytest.mark.parametrize("way", CALLS)
def test_a_model_that_is_asked_for_json_gives_fields_in_every_way(way: str) -> None:
    script = split(*map(json.dumps, (PARIS, *OTHERS)))
    with Server(script) as server:
        message = ask(guarded_chat(server, field_threshold=0.4), way)
    record = metadata_of(message)
    assert json.loads(message.text) == PARIS
    assert record["uncertain_fields"] == ["/people"]
    assert json.loads(json.dumps(record)) == record


@pytest.mark.parametrize("way", WAYS)
def test_clients_assess_with_fields(way: str) -> None:
    script = split(*map(json.dumps, (PARIS, *OTHERS)))
    with guarded(script, way) as (_, call):
        assessment = call("assess", response_format={"type": "json_object"})
    assert paths(assessment.fields) == {"/name": 4, "/people": 1}


@pytest.mark.parametrize("method", ["function_calling", "json_schema"])
def test_replies_of_other_models_count(method: Any) -> None:
    def other(asked: Asked) -> Answer:
        value = {**PARIS, "name": "Lyon"}
        if asked.body.get("tools"):
            return calling(value, name="City")
        return Answer(texts=[json.dumps(value)], logprobs=False)

    with Server(filled) as server, Server(other) as second:
        model = chat_openai(second, model="other-model")
        guard = guarded_chat(server, other_models=[model])
        _, assessment = seen_by(guard, method)
    assert paths(assessment.fields) == {"/name": 3, "/people": 1}


def test_assessments_are_collected_for_a_guard_and_its_copies_alone() -> None:
    with Server(filled) as server:
        guard, other = guarded_chat(server), guarded_chat(server)
        with guard.assessments() as seen, guard.assessments() as again:
            guard.model_copy(update={"n": 3}).invoke("Where?")
            guard.model_copy(update={"max_concurrency": 2}).invoke("Where?")
            guard.with_structured_output(City).invoke("Where?")
            other.invoke("Where?")
        guard.invoke("Where?")
    assert len(seen) == 3
    assert again == seen


@pytest.mark.parametrize(
    ("value", "grounded"),
    [
        ("Ida Frick", 1.0),
        ("Ida Brandt", 0.33),
        ("Ona", 0.0),
        (1907, 1.0),
        (1908, 0.0),
        (1000, 1.0),
        (True, None),
        (None, None),
        ("", 0.0),
    ],
)
def test_documents_support_the_words_of_a_value(value: Any, grounded: Any) -> None:
    context = "The lamp of 1907 is by Ida Frick. It sold 1,000 times."
    said = json.dumps({"a/b": value})
    request = {"context": context, "schema": True}.items()
    found = run(said, said, request=request, spans=True).assessment
    (field,) = found.fields or ()
    assert field.grounded == (
        None if grounded is None else pytest.approx(grounded, abs=0.01)
    )
    (told,) = found.to_metadata()["fields"]
    assert told.get("grounded") == field.grounded
