"""Scores on observations, from Langfuse's client to a stub of its server."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest
from langfuse import Langfuse
from langfuse.langchain import CallbackHandler
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from snne_guard_integrations.langfuse import LangfuseObserver
from tests.integrations.support import (
    ASSESSMENT,
    PLACES,
    SECRETS,
    SUMMARY,
    UNSCORED,
    WHOLE,
    StubServer,
    ask,
    chained,
    guarded,
)

_numbers = itertools.count()


class Project:
    """A client with a key of its own, and what it has sent to a stub."""

    def __init__(self, server: StubServer) -> None:
        self.server = server
        self.key = f"pk-lf-{next(_numbers)}"  # Langfuse keeps one client a key
        self.spans = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self.spans))
        self.client = Langfuse(
            public_key=self.key,
            secret_key="sk-lf-test",  # noqa: S106 - a made-up key
            base_url=server.url,
            tracer_provider=provider,
        )

    @property
    def handler(self) -> CallbackHandler:
        return CallbackHandler(public_key=self.key)

    @property
    def scores(self) -> list[dict[str, Any]]:
        self.client.flush()
        return [
            score
            for body in self.server.bodies("/api/public/scores")
            for score in json.loads(body)
        ]

    def places(self) -> list[tuple[str, str]]:
        """Return name and observation's name of each score."""
        names = {
            trace.format_span_id(context.span_id): span.name
            for span in self.spans.get_finished_spans()
            if (context := span.get_span_context())
        }
        return [(each["name"], names[each["observationId"]]) for each in self.scores]


@pytest.fixture
def project() -> Iterator[Project]:
    with StubServer() as server:
        project = Project(server)
        yield project
        project.client.shutdown()


def both(name: str) -> list[tuple[str, str]]:
    return [("snne_guard.uncertainty", name), ("snne_guard.decision", name)]


@pytest.mark.parametrize(("way", "where"), PLACES)
def test_in_a_chain_scores_are_on_the_model_s_observation(
    way: str, where: str, project: Project
) -> None:
    chain = chained(LangfuseObserver(client=project.client))
    ask(chain, way, {"callbacks": [project.handler]})
    assert project.places() == both(where)


@pytest.mark.parametrize("way", WHOLE)
def test_without_a_handler_they_are_on_the_current_observation(
    way: str, project: Project
) -> None:
    model = guarded(LangfuseObserver(client=project.client))
    with project.client.start_as_current_observation(name="request"):
        ask(model, way)
    assert project.places() == both("request")


def test_scores_say_what_was_decided_and_why(project: Project) -> None:
    with project.client.start_as_current_observation(name="request"):
        LangfuseObserver(client=project.client).on_assessment(ASSESSMENT)
    number, decided = project.scores
    assert (number["value"], number["dataType"]) == (0.75, "NUMERIC")
    assert (decided["value"], decided["dataType"]) == ("flag", "CATEGORICAL")
    assert number["comment"] == SUMMARY
    assert number["id"] == f"{ASSESSMENT.id}-uncertainty"
    assert number["metadata"]["method"] == "snne"


def test_outside_any_observation_nothing_is_sent(project: Project) -> None:
    ask(guarded(LangfuseObserver(client=project.client)), "invoke")
    assert project.scores == []


def test_an_unscored_answer_has_a_decision_alone(project: Project) -> None:
    with project.client.start_as_current_observation(name="request"):
        LangfuseObserver(client=project.client).on_assessment(UNSCORED)
    (score,) = project.scores
    assert (score["name"], score["value"]) == ("snne_guard.decision", "unscored")


@pytest.mark.parametrize("content", [False, True])
def test_texts_are_sent_only_if_asked_for(content: bool, project: Project) -> None:
    observer = LangfuseObserver(client=project.client, content=content)
    with project.client.start_as_current_observation(name="request"):
        observer.on_assessment(ASSESSMENT)
    sent = json.dumps(project.scores)
    assert [secret in sent for secret in SECRETS] == [content] * 3
