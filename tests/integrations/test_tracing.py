"""What every tracing tool is told of an answer, and on which of its spans."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.prompts import ChatPromptTemplate
from langsmith import Client
from langsmith.run_helpers import tracing_context
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

from snne_guard import SNNEGuard
from snne_guard_integrations.callback import SNNECallbackHandler
from tests.integrations.support import (
    ASSESSMENT,
    SECRETS,
    SUMMARY,
    UNSCORED,
    ScriptedModel,
    ask,
    chained,
    guarded,
)
from tests.integrations.tools import TOOLS, Tool


@pytest.fixture(params=TOOLS)
def tool(request: pytest.FixtureRequest) -> Iterator[Tool]:
    with TOOLS[request.param]() as tool:
        yield tool


def only(*names: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("tool", names, indirect=True)


@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream"])
def test_in_a_chain_the_report_is_on_the_run_of_the_guard(way: str, tool: Tool) -> None:
    with tool.langchain() as config:
        ask(chained(tool.observer()), way, config)
    (report,) = tool.reports()
    found = (report.where, report.uncertainty, report.decision)
    assert found == ("SNNEGuard", 1.0, "flag")


@only("langfuse", "mlflow", "phoenix")
@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_where_langchain_is_not_traced_it_is_on_the_current_span(
    way: str, tool: Tool
) -> None:
    with tool.span():
        ask(guarded(tool.observer()), way)
    (report,) = tool.reports()
    assert report.where == "request"


def test_a_report_says_what_was_decided_and_why(tool: Tool) -> None:
    with tool.span():
        tool.observer().on_assessment(ASSESSMENT)
    (report,) = tool.reports()
    found = (report.where, report.uncertainty, report.decision, report.why)
    assert found == ("request", 0.75, "flag", SUMMARY)
    assert report.metadata["method"] == "snne"
    assert '"calls": 2' in str(report.metadata["cost"]).replace("'", '"')


def test_an_unscored_answer_has_a_decision_alone(tool: Tool) -> None:
    with tool.span():
        tool.observer().on_assessment(UNSCORED)
    (report,) = tool.reports()
    assert (report.uncertainty, report.decision) == (None, "unscored")
    assert report.why.startswith("reasons: tool_calls; 1 of 2 answers compared;")


@pytest.mark.parametrize("content", [False, True])
def test_texts_are_sent_only_if_asked_for(content: bool, tool: Tool) -> None:
    with tool.span():
        tool.observer(content=content).on_assessment(ASSESSMENT)
    (report,) = tool.reports()
    sent = f"{report} {tool.server.everything()}"
    assert [secret in sent for secret in SECRETS] == [content] * 3


@only("langfuse", "langsmith", "phoenix")
def test_outside_any_span_nothing_is_sent(tool: Tool) -> None:
    ask(guarded(tool.observer()), "invoke")
    tool.observer().on_assessment(ASSESSMENT)
    assert tool.reports() == []


@only("mlflow")
def test_outside_any_span_mlflow_gets_one_of_its_own(tool: Tool) -> None:
    tool.observer().on_assessment(ASSESSMENT)
    (report,) = tool.reports()
    assert report.where == "snne_guard"


@only("phoenix")
def test_a_span_that_is_not_sampled_has_no_annotation(tool: Tool) -> None:
    tracer = TracerProvider(sampler=ALWAYS_OFF).get_tracer("application")
    with tracer.start_as_current_span("request"):
        tool.observer().on_assessment(ASSESSMENT)
    assert tool.server.requests == []


@only("langsmith")
def test_a_run_that_is_only_recorded_has_no_feedback(tool: Tool) -> None:
    client = Client(api_url=tool.server.url, api_key="lsv2_test")
    with tracing_context(enabled="local"):
        ask(guarded(tool.observer(client=client)), "invoke")
    client.close()
    assert {each.path for each in tool.server.requests} <= {"/info"}


@only("langsmith")
def test_a_stream_outside_a_chain_has_feedback_on_its_run(tool: Tool) -> None:
    with tool.langchain():
        ask(guarded(tool.observer()), "stream")
    (report,) = tool.reports()
    assert report.where == "SNNEGuard"


@only("langsmith")
def test_in_shadow_mode_it_is_on_the_run_that_was_watched(tool: Tool) -> None:
    model: Any = ScriptedModel(answer="zanzibar", samples=("ytterbium",))
    guard = SNNEGuard(model, n=2, method="snne", observers=[tool.observer()])
    prompt = ChatPromptTemplate.from_messages([("user", "{question}")])
    with tool.langchain(), SNNECallbackHandler(guard) as handler:
        ask(prompt | model, "invoke", {"callbacks": [handler]})
    (report,) = tool.reports()
    assert report.where == "ScriptedModel"
    begun = re.findall(r'name="post\.[^."]+"', tool.server.everything())
    assert len(begun) == 3  # chain, prompt and model, and no sample
