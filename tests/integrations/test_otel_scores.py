"""Scores as events, metrics, and texts, through OpenTelemetry's real SDK."""

from __future__ import annotations

import json
import re

import pytest
from opentelemetry import trace

from snne_guard import Prices, UncertainAnswerError
from snne_guard.decision import CalibratedStop
from tests.support.chat_server import ChatServer, Reply, ToolCall
from tests.support.examples import printed
from tests.support.guarding import WHOLE, ask, split
from tests.support.telemetry import Telemetry, attributes, context, guarded, total

QUESTION = "What is the capital of Atlantis?"
APART = ["Rome", "Lyon", "Bonn", "Oslo"]


# --- the event ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("samples", "u", "label"), [(["Atlantis"], 0.0, "accept"), (APART, 1.0, "flag")]
)
def test_the_score_is_an_event_of_the_logs_api_under_the_answer_s_span(
    samples: list[str], u: float, label: str
) -> None:
    telemetry = Telemetry()
    with ChatServer(split("Atlantis", samples)) as server:
        message = guarded(server, telemetry).invoke(QUESTION)
    (event,), (answer,) = telemetry.events, telemetry.role("answer")
    found = attributes(event.log_record)
    assert event.log_record.event_name == "gen_ai.evaluation.result"
    assert event.log_record.span_id == context(answer).span_id
    assert event.log_record.trace_id == context(answer).trace_id
    assert found["gen_ai.evaluation.name"] == "snne_guard.uncertainty"
    assert found["gen_ai.evaluation.score.value"] == pytest.approx(u)
    assert found["gen_ai.evaluation.score.label"] == label
    record = message.response_metadata["snne_guard"]
    assert found["snne_guard.assessment.id"] == record["id"]
    assert found["gen_ai.evaluation.explanation"].startswith(
        "reasons: none; 3 of 3 answers compared by snne; cost: 2 requests, "
    )
    assert not any(span.events for span in telemetry.spans)


def test_a_guard_that_only_measures_gives_a_value_and_no_label() -> None:
    telemetry = Telemetry()
    with ChatServer(split("Atlantis", APART)) as server:
        guarded(server, telemetry, threshold=None).invoke(QUESTION)
    (event,) = telemetry.events
    found = attributes(event.log_record)
    assert found["gen_ai.evaluation.score.value"] == 1.0
    assert "gen_ai.evaluation.score.label" not in found
    assert found["gen_ai.evaluation.explanation"].startswith("reasons: no_threshold;")
    points = telemetry.metrics()["snne_guard.assessments"]
    assert total(points, snne_guard__decision="none") == 1


def test_a_call_without_a_score_has_a_label_and_its_reasons() -> None:
    telemetry = Telemetry()
    call = ToolCall(name="find", arguments={"what": "Atlantis"})
    with ChatServer([Reply(texts=[""], tool_calls=[[call]])]) as server:
        guarded(server, telemetry).invoke(QUESTION)
    (event,) = telemetry.events
    found = attributes(event.log_record)
    assert found["gen_ai.evaluation.score.label"] == "unscored"
    assert "gen_ai.evaluation.score.value" not in found
    assert "tool_calls" in found["gen_ai.evaluation.explanation"]
    assert "snne_guard.uncertainty" not in telemetry.metrics()


def test_without_the_logs_api_it_is_an_event_of_the_caller_s_span() -> None:
    telemetry = Telemetry(logs=False)
    with ChatServer(split("Atlantis", APART)) as server:
        guard = guarded(server, telemetry)
        with telemetry.tracer.start_as_current_span("request"):
            guard.invoke(QUESTION)
    (caller,) = (span for span in telemetry.spans if span.name == "request")
    (event,) = caller.events
    assert event.name == "gen_ai.evaluation.result"
    assert attributes(event)["gen_ai.evaluation.score.value"] == 1.0
    assert telemetry.events == []


def test_where_the_caller_s_span_has_ended_the_answer_s_holds_the_event() -> None:
    telemetry = Telemetry(logs=False)
    with ChatServer(split("Atlantis", APART)) as server:
        guard = guarded(server, telemetry)
        caller = telemetry.tracer.start_span("request")
        caller.end()
        with trace.use_span(caller):
            guard.invoke(QUESTION)
    (answer,) = telemetry.role("answer")
    assert [event.name for event in answer.events] == ["gen_ai.evaluation.result"]


def test_where_all_of_them_have_ended_one_of_its_own_holds_the_event() -> None:
    telemetry = Telemetry(logs=False)
    with ChatServer(split("Atlantis", APART)) as server:
        guard = guarded(server, telemetry)
        caller = telemetry.tracer.start_span("request")
        caller.end()
        with trace.use_span(caller):
            guard.assess(QUESTION, answer="Atlantis")
    (own,) = (span for span in telemetry.spans if span.name == "snne_guard")
    assert own.parent == caller.get_span_context()
    assert [event.name for event in own.events] == ["gen_ai.evaluation.result"]


# --- metrics --------------------------------------------------------------------------


def test_metrics_count_what_was_decided_and_what_it_took() -> None:
    telemetry = Telemetry()
    prices = Prices(prompt=1.0, completion=2.0)
    with ChatServer(split("Atlantis", ["Atlantis"])) as server:
        guard = guarded(server, telemetry, prices=prices)
        costs = [
            guard.invoke(QUESTION).response_metadata["snne_guard"]["cost"]
            for _ in range(2)
        ]
        server.script = split("Atlantis", APART)
        costs.append(guard.invoke(QUESTION).response_metadata["snne_guard"]["cost"])
    found = telemetry.metrics()
    decided = found["snne_guard.assessments"]
    assert total(decided, snne_guard__decision="accept") == 2
    assert total(decided, snne_guard__decision="flag") == 1
    assert total(decided, gen_ai__request__model="test-model") == 3
    spread = found["snne_guard.uncertainty"]
    assert sum(point.count for point in spread) == 3
    assert total(spread) == pytest.approx(1.0)
    assert spread[0].explicit_bounds[:2] == (0.0, 0.05)
    assert total(found["snne_guard.samples.drawn"]) == 6
    assert total(found["snne_guard.samples.saved"]) == 0
    for kind, name in (("input", "prompt_tokens"), ("output", "completion_tokens")):
        counted = total(found["snne_guard.tokens"], gen_ai__token__type=kind)
        assert counted == sum(cost[name] for cost in costs) > 0
    money = sum(cost["money"] for cost in costs)
    assert total(found["snne_guard.cost"]) == pytest.approx(money)
    assert total(found["snne_guard.duration"]) > 0
    assert "snne_guard.failures" not in found


def test_samples_that_an_early_stop_spares_are_counted() -> None:
    telemetry = Telemetry()
    with ChatServer(split("Atlantis", ["Atlantis"])) as server:
        rule = CalibratedStop(
            rounds=(3, 10),
            threshold=0.4,
            accept_at_most=(0.2,),
            reject_at_least=(0.9,),
            anchor=0.7,
        )
        guarded(server, telemetry, n=10, stopping=rule).invoke(QUESTION)
    assert total(telemetry.metrics()["snne_guard.samples.saved"]) == 7


# --- texts ----------------------------------------------------------------------------


@pytest.mark.parametrize("way", WHOLE)
def test_no_text_leaves_unless_it_is_asked_for(way: str) -> None:
    telemetry = Telemetry()
    with ChatServer(split("Poseidonia", APART)) as server:
        ask(guarded(server, telemetry), QUESTION, way)
    everything = telemetry.everything()
    assert [
        text for text in ("Poseidonia", *APART, QUESTION) if text in everything
    ] == []


@pytest.mark.parametrize("logs", [True, False])
def test_texts_are_attributes_in_the_form_of_the_conventions(*, logs: bool) -> None:
    telemetry = Telemetry(logs=logs)
    with ChatServer(split("Poseidonia", APART)) as server:
        guard = guarded(server, telemetry, content=True, on_uncertain="raise")
        with pytest.raises(UncertainAnswerError):
            guard.invoke(QUESTION)
    (answer,), (sample,) = telemetry.role("answer"), telemetry.role("sample")
    asked = json.loads(attributes(answer)["gen_ai.input.messages"])
    parts = [{"type": "text", "content": QUESTION}]
    assert asked == [{"role": "user", "parts": parts}]
    replied = json.loads(attributes(sample)["gen_ai.output.messages"])
    assert [message["parts"][0]["content"] for message in replied] == APART[:2]
    assert {message["finish_reason"] for message in replied} == {"stop"}
    assert "Poseidonia" in attributes(answer)["gen_ai.output.messages"]


def test_calls_of_tools_are_parts_of_their_own() -> None:
    telemetry = Telemetry()
    call = ToolCall(name="find", arguments={"what": "Atlantis"})
    with ChatServer([Reply(texts=[""], tool_calls=[[call]])]) as server:
        guarded(server, telemetry, content=True).invoke(QUESTION)
    (answer,) = telemetry.role("answer")
    ((part,),) = (
        message["parts"]
        for message in json.loads(attributes(answer)["gen_ai.output.messages"])
    )
    assert part == {
        "type": "tool_call",
        "name": "find",
        "arguments": {"what": "Atlantis"},
    }


@pytest.mark.usefixtures("embedded")
def test_the_example_prints_spans_and_score() -> None:
    event, answer, sample, caller, said = printed("integrations/with_otel")
    assert re.fullmatch(
        r"event  gen_ai\.evaluation\.result: [01]\.\d\d, (accept|flag)", event
    )
    under = answer.rpartition(" ")[2]
    assert re.fullmatch(r"span   answer: chat \S+, \d+ ms, under \w{16}", answer)
    assert sample.startswith("span   sample: chat ")
    assert sample.endswith(under)
    assert caller.startswith("span   caller: my request, ")
    assert caller.endswith("under none")
    assert said.startswith("answer ")
