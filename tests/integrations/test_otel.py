"""Spans of guarded calls, through OpenTelemetry's real SDK."""

from __future__ import annotations

import pickle
import time
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from opentelemetry.trace import SpanKind, StatusCode

from snne_guard import Monitor, SNNEGuard
from snne_guard.types import Assessment, Cost, Sample, SampleEvent
from snne_guard_integrations import otel
from snne_guard_integrations.otel import OpenTelemetryObserver
from tests.support.chat_server import (
    ChatServer,
    always,
    cycle,
    error,
)
from tests.support.guarding import WAYS, WHOLE, ask, run_in_loop, split
from tests.support.openai_clients import BOTH, assessing
from tests.support.patience import in_time
from tests.support.telemetry import Telemetry, attributes, context, guarded, total

QUESTION = "What is the capital of Atlantis?"
APART = ["Rome", "Lyon", "Bonn", "Oslo"]


# --- spans ----------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
def test_answer_and_samples_are_spans_under_the_caller_s(way: str) -> None:
    telemetry = Telemetry()
    with ChatServer(split("Atlantis", APART)) as server:
        guard = guarded(server, telemetry)
        with telemetry.tracer.start_as_current_span("request") as caller:
            before = time.time_ns()
            ask(guard, QUESTION, way)
            after = time.time_ns()
    (answer,), samples = telemetry.role("answer"), telemetry.role("sample")
    assert {span.name for span in (answer, *samples)} == {"chat test-model"}
    for span in (answer, *samples):
        assert span.kind is SpanKind.CLIENT
        assert span.parent == caller.get_span_context()
        assert span.start_time is not None
        assert span.end_time is not None
        assert before <= span.start_time < span.end_time <= after
        assert span.status.status_code is StatusCode.UNSET
    found = attributes(answer)
    assert found["gen_ai.operation.name"] == "chat"
    assert found["gen_ai.provider.name"] == "openai"
    assert found["gen_ai.request.model"] == "test-model"
    assert found["gen_ai.response.finish_reasons"] == ("stop",)
    assert "gen_ai.request.choice.count" not in found
    assert found["snne_guard.uncertainty"] == 1.0
    assert found["snne_guard.decision"] == "flag"
    drawn = attributes(samples[0])
    assert drawn["gen_ai.request.choice.count"] == 2
    assert drawn["gen_ai.response.finish_reasons"] == ("stop", "stop")
    assert drawn["snne_guard.sample.index"] == 0


@pytest.mark.parametrize("way", BOTH)
def test_the_openai_guard_s_spans_carry_model_ids_and_tokens(way: str) -> None:
    telemetry = Telemetry()
    observer = OpenTelemetryObserver(**telemetry.providers)
    with (
        ChatServer(always("Atlantis")) as server,
        telemetry.tracer.start_as_current_span("request") as caller,
        assessing(server, way, n=3, observers=[observer]) as assess,
    ):
        assess(QUESTION)
        billed = server.billed
    spans = [*telemetry.role("answer"), *telemetry.role("sample")]
    assert all(span.parent == caller.get_span_context() for span in spans)
    for name, sum_of in (
        ("input", billed.prompt_tokens),
        ("output", billed.completion_tokens),
    ):
        counted = [attributes(span)[f"gen_ai.usage.{name}_tokens"] for span in spans]
        assert sum(counted) == sum_of
    for span in spans:
        assert attributes(span)["gen_ai.response.id"].startswith("chatcmpl-")
        assert attributes(span)["gen_ai.response.model"] == "test-model"
    (event,) = telemetry.events
    answer_id = attributes(spans[0])["gen_ai.response.id"]
    assert attributes(event.log_record)["gen_ai.response.id"] == answer_id


def test_the_times_are_those_of_the_requests_not_of_the_report() -> None:
    telemetry = Telemetry()
    slow = cycle(APART, delay=0.3)
    with ChatServer(split("Atlantis", slow)) as server:
        guard = guarded(server, telemetry, schedule="answer_first")
        with telemetry.tracer.start_as_current_span("request"):
            guard.invoke(QUESTION)
    (answer,), (sample,) = telemetry.role("answer"), telemetry.role("sample")
    assert answer.end_time is not None
    assert sample.end_time is not None
    assert sample.start_time is not None
    assert answer.end_time <= sample.start_time
    assert sample.end_time - sample.start_time >= 0.3e9


def test_without_a_caller_s_span_one_of_its_own_holds_them_together() -> None:
    telemetry = Telemetry()
    with ChatServer(split("Atlantis", APART)) as server:
        guarded(server, telemetry).invoke(QUESTION)
    *inner, root = telemetry.spans
    assert (root.name, root.kind, root.parent) == (
        "snne_guard",
        SpanKind.INTERNAL,
        None,
    )
    assert attributes(root)["snne_guard.decision"] == "flag"
    assert len(inner) == 2
    assert all(span.parent == root.get_span_context() for span in inner)
    starts = [span.start_time for span in inner]
    assert root.start_time == min(start for start in starts if start is not None)


def test_an_answer_that_is_picked_for_an_audit_can_be_found() -> None:
    telemetry = Telemetry()
    with ChatServer(always("Paris")) as server:
        guard = guarded(server, telemetry)
        guard.invoke(QUESTION)
        watched = guard.on(guard.model, threshold=0.5, monitor=Monitor(audit_rate=1.0))
        message = watched.invoke(QUESTION)
    first, second = (
        attributes(span) for span in telemetry.spans if span.parent is None
    )
    assert "snne_guard.audit" not in first
    assert second["snne_guard.audit"] is True
    found = message.response_metadata["snne_guard"]
    assert second["snne_guard.assessment.id"] == found["id"]


@pytest.mark.parametrize("way", WHOLE)
def test_a_failed_request_names_the_kind_of_error_and_no_word_of_it(way: str) -> None:
    telemetry, refused = Telemetry(), error(400, "you asked for a SECRET")
    with ChatServer(split("Atlantis", lambda _: refused)) as server:
        message = ask(guarded(server, telemetry), QUESTION, way)
    assert message.text == "Atlantis"
    failed = telemetry.role("sample")
    assert failed
    for span in failed:
        assert span.status.status_code is StatusCode.ERROR
        assert attributes(span)["error.type"] == "OpenAIInvalidRequestError"
    points = telemetry.metrics()["snne_guard.failures"]
    assert total(points, error__type="OpenAIInvalidRequestError") == len(failed)
    assert {point.attributes["snne_guard.role"] for point in points} == {"sample"}
    assert "SECRET" not in telemetry.everything()


@pytest.mark.parametrize("way", WHOLE)
def test_a_failed_answer_is_reported_too(way: str) -> None:
    telemetry = Telemetry()
    with ChatServer([error(400, "no")]) as server, pytest.raises(Exception, match="no"):
        ask(guarded(server, telemetry), QUESTION, way)
    (answer,) = telemetry.role("answer")
    assert attributes(answer)["error.type"] == "OpenAIInvalidRequestError"
    (event,) = telemetry.events
    found = attributes(event.log_record)
    assert found["gen_ai.evaluation.score.label"] == "unscored"
    assert "answer_failed" in found["gen_ai.evaluation.explanation"]
    assert "gen_ai.evaluation.score.value" not in found


def test_a_request_that_was_given_up_is_cancelled() -> None:
    def check(limit: float) -> None:
        telemetry = Telemetry()
        with ChatServer(split("Atlantis", always("", stall=True))) as server:
            guarded(server, telemetry, sample_timeout=limit).invoke(QUESTION)
        samples = telemetry.role("sample")
        assert len(samples) == 1
        assert attributes(samples[0])["error.type"] == "cancelled"
        assert samples[0].status.status_code is StatusCode.ERROR
        points = telemetry.metrics()["snne_guard.failures"]
        assert total(points, error__type="cancelled") == 1

    in_time(check, seconds=0.2)


def test_an_answer_that_is_there_already_is_evaluated_where_it_was_asked() -> None:
    telemetry = Telemetry()
    with ChatServer(cycle(APART)) as server:
        guard = guarded(server, telemetry)
        with telemetry.tracer.start_as_current_span("request") as caller:
            guard.assess(QUESTION, answer=AIMessage("Atlantis"))
    assert telemetry.role("answer") == []
    (event,) = telemetry.events
    assert event.log_record.span_id == caller.get_span_context().span_id


# --- odd orders -----------------------------------------------------------------------


def event(index: int = 0, **fields: Any) -> SampleEvent:
    return SampleEvent(assessment_id="a", role="sample", index=index, n=1, **fields)


def test_a_request_that_was_sent_again_in_parts_is_told_apart() -> None:
    telemetry = Telemetry()
    observer = OpenTelemetryObserver(**telemetry.providers)
    observer.on_sample_end(event())  # of a call that nobody knows
    observer.on_sample_start(event())
    observer.on_sample_end(event(error=ValueError("n")))
    observer.on_sample_start(event())
    observer.on_sample_end(event(samples=(Sample(text="x"),), cost=Cost(calls=1)))
    observer.on_sample_end(event(7))  # whose beginning was dropped
    observer.on_assessment(Assessment(id="a", answer=None))
    kinds = [attributes(span).get("error.type") for span in telemetry.role("sample")]
    assert sorted(map(str, kinds)) == ["None", "ValueError"]


def test_a_call_of_which_nothing_was_told_is_reported_all_the_same() -> None:
    telemetry = Telemetry()
    observer = OpenTelemetryObserver(**telemetry.providers)
    observer.on_assessment(Assessment(id="a", answer=None))
    (root,), (found,) = telemetry.spans, telemetry.events
    assert root.name == "snne_guard"
    assert found.log_record.span_id == context(root).span_id


def test_calls_that_never_end_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otel, "_CAPACITY", 2)
    telemetry = Telemetry()
    observer = OpenTelemetryObserver(**telemetry.providers)
    for name in ("a", "b", "c"):
        observer.on_sample_start(
            SampleEvent(assessment_id=name, role="answer", index=0, n=1)
        )
    for name in ("a", "b", "c"):
        observer.on_assessment(Assessment(id=name, answer=None))
    found = [
        attributes(s)["snne_guard.assessment.id"] for s in telemetry.role("answer")
    ]
    assert found == ["b", "c"]
    assert telemetry.role("answer")[0].name == "chat"


def test_providers_go_by_the_names_of_the_conventions() -> None:
    telemetry = Telemetry()
    observer = OpenTelemetryObserver(**telemetry.providers)
    for name, provider in (("a", "azure"), ("b", "anthropic")):
        start = SampleEvent(
            assessment_id=name, role="answer", index=0, n=1, provider=provider
        )
        observer.on_sample_start(start)
        observer.on_assessment(Assessment(id=name, answer=None))
    names = [
        attributes(span)["gen_ai.provider.name"] for span in telemetry.role("answer")
    ]
    assert names == ["azure.ai.openai", "anthropic"]


def test_an_observer_travels_to_another_process_without_what_it_holds() -> None:
    observer = OpenTelemetryObserver(content=True)
    observer.on_sample_start(event())
    again = pickle.loads(pickle.dumps(observer))  # noqa: S301 - made in this line
    assert again._content
    assert not again._calls


def test_it_works_on_an_event_loop_and_across_tasks() -> None:
    telemetry = Telemetry()

    async def asking(guard: SNNEGuard) -> None:
        with telemetry.tracer.start_as_current_span("request"):
            await guard.ainvoke(QUESTION)

    with ChatServer(split("Atlantis", APART)) as server:
        run_in_loop(asking(guarded(server, telemetry)))
    (caller,) = (span for span in telemetry.spans if span.name == "request")
    for span in (*telemetry.role("answer"), *telemetry.role("sample")):
        assert span.parent == caller.get_span_context()
