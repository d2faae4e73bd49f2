"""The callback handler watches every way of running a model, and changes none."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from langchain_core.callbacks import BaseCallbackHandler, get_usage_metadata_callback
from langchain_core.messages import AIMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableConfig
from langchain_core.tracers.context import collect_runs
from langsmith.run_helpers import tracing_context
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from snne_guard import Assessment, GuardedChatModel, SNNEGuard
from snne_guard_integrations.callback import (
    ShadowCounts,
    SNNECallbackHandler,
    WatchedRun,
)
from snne_guard_integrations.langsmith import LangSmithObserver
from tests.support.chat_server import ChatServer, chat_openai
from tests.support.examples import printed
from tests.support.guarding import Witness, is_sample, run_in_loop, split
from tests.support.langsmith_server import PROJECT, LangSmithServer

QUESTION = "What is the capital of France?"
WAYS = (
    "invoke",
    "ainvoke",
    "batch",
    "abatch",
    "stream",
    "astream",
    "stream_events",
    "astream_events",
)


class Ids(BaseCallbackHandler):
    """Keeps the ids of the runs of models."""

    run_inline = True

    def __init__(self) -> None:
        self.seen: list[str] = []

    def on_chat_model_start(self, *_args: Any, run_id: UUID, **_kwargs: Any) -> None:
        self.seen.append(str(run_id))


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer(split("Lyon", ["Paris"])) as server:
        yield server


def guard_on(model: Any, witness: Witness | None = None, **options: Any) -> SNNEGuard:
    settings = {"n": 3, "method": "snne", "threshold": 0.2, **options}
    return SNNEGuard(model, observers=[witness] if witness else [], **settings)


def run(model: Any, way: str, config: Any) -> str:
    """Run a model in one of the ways and return the text that it gave."""
    if way == "batch":
        return str(model.batch([QUESTION], config)[0].text)
    if way == "stream":
        return "".join(chunk.text for chunk in model.stream(QUESTION, config))
    if way == "stream_events":
        events = list(model.stream_events(QUESTION, config, version="v3"))
        deltas = [event["delta"] for event in events if "delta" in event]
        return "".join(delta.get("text", "") for delta in deltas)
    if way == "invoke":
        return str(model.invoke(QUESTION, config).text)
    return run_in_loop(arun(model, way, config))


async def arun(model: Any, way: str, config: Any) -> str:
    if way == "ainvoke":
        return str((await model.ainvoke(QUESTION, config)).text)
    if way == "abatch":
        return str((await model.abatch([QUESTION], config))[0].text)
    if way == "astream":
        return "".join([c.text async for c in model.astream(QUESTION, config)])
    events = [e async for e in model.astream_events(QUESTION, config, version="v2")]
    streamed = [e for e in events if e["event"] == "on_chat_model_stream"]
    return "".join(event["data"]["chunk"].text for event in streamed)


@pytest.mark.parametrize("way", WAYS)
def test_the_answer_that_was_delivered_is_assessed_under_its_run(
    way: str, server: ChatServer
) -> None:
    model, witness, ids = chat_openai(server), Witness(), Ids()
    with SNNECallbackHandler(guard_on(model, witness)) as handler:
        assert run(model, way, {"callbacks": [handler, ids]}) == "Lyon"
    (found,) = witness.assessments
    assert found.scored == ("Lyon", "Paris", "Paris")
    assert (found.decision, found.question) == ("flag", QUESTION)
    assert [found.run_id] == ids.seen
    # The answer was paid for by the application.
    assert (found.cost.calls, [is_sample(r) for r in server.requests]) == (
        1,
        [False, True],
    )
    assert handler.counts == ShadowCounts(seen=1, taken=1, assessed=1)


def test_the_run_is_what_it_is_without_a_handler(server: ChatServer) -> None:
    model = chat_openai(server)
    chain = ChatPromptTemplate.from_messages([("user", "{q}")]) | model
    with SNNECallbackHandler(guard_on(model)) as handler:
        plain, watched = (
            chain.invoke({"q": QUESTION}, config)
            for config in (None, RunnableConfig(callbacks=[handler]))
        )
    assert isinstance(watched, AIMessage)
    assert watched.content == plain.content
    assert watched.response_metadata.keys() == plain.response_metadata.keys()
    assert watched.usage_metadata == plain.usage_metadata
    first, second, _ = server.requests
    assert first.body == second.body


def test_nobody_else_sees_the_samples(server: ChatServer) -> None:
    model, ids = chat_openai(server), Ids()
    with (
        SNNECallbackHandler(guard_on(model)) as handler,
        get_usage_metadata_callback() as usage,
        collect_runs() as told,
    ):
        run(model, "invoke", {"callbacks": [handler, ids]})
        assert handler.flush()
    assert server.billed.requests == 2
    assert len(ids.seen) == len(told.traced_runs) == 1
    assert [each["output_tokens"] for each in usage.usage_metadata.values()] == [1]


@pytest.mark.parametrize("place", ["model", "binding"])
def test_a_handler_on_the_guards_own_model_does_not_watch_the_samples(
    place: str, server: ChatServer
) -> None:
    model: Any = chat_openai(server)
    handler = SNNECallbackHandler(guard_on(model))
    if place == "model":
        model = model.model_copy(update={"callbacks": [handler]})
    else:
        model = model.with_config(callbacks=[handler])
    again = SNNECallbackHandler(guard_on(model))
    with handler, again:
        model.invoke(QUESTION, {"callbacks": [again]})
    assert (handler.counts.seen, again.counts.seen) == (1, 1)
    assert server.billed.requests == 3


@pytest.mark.parametrize("policy", ["flag", "refuse"])
@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream"])
def test_a_guard_that_is_in_the_chain_is_not_assessed_twice(
    way: str, policy: Any, server: ChatServer
) -> None:
    model = chat_openai(server)
    inner = guard_on(model, on_uncertain=policy)
    with SNNECallbackHandler(guard_on(model)) as handler:
        run(inner, way, {"callbacks": [handler]})
        run(GuardedChatModel(inner), way, {"callbacks": [handler]})
    counts = handler.counts
    assert (counts.taken, counts.seen) == (0, counts.reasons["guarded"])
    assert server.billed.requests == 4


def test_observers_see_the_span_of_the_run(server: ChatServer) -> None:
    spans: list[int] = []

    class Spans:
        def on_assessment(self, _assessment: Assessment) -> None:
            spans.append(trace.get_current_span().get_span_context().span_id)

    model = chat_openai(server)
    handler = SNNECallbackHandler(guard_on(model).on(model, observers=(Spans(),)))
    tracer = TracerProvider().get_tracer("test")
    with handler, tracer.start_as_current_span("request") as span:
        model.invoke(QUESTION, {"callbacks": [handler]})
    assert spans == [span.get_span_context().span_id]


@pytest.mark.parametrize("in_chain", [False, True])
def test_feedback_is_on_the_run_that_was_watched(
    in_chain: bool, server: ChatServer
) -> None:
    model = chat_openai(server)
    prompt = ChatPromptTemplate.from_messages([("user", "{q}")])
    handler = SNNECallbackHandler(
        guard_on(model).on(model, observers=(LangSmithObserver(),))
    )
    config = RunnableConfig(callbacks=[handler])
    with LangSmithServer() as smith:
        client = smith.client()
        with tracing_context(enabled=True, client=client, project_name=PROJECT):
            if in_chain:
                (prompt | model).invoke({"q": QUESTION}, config)
            else:
                model.invoke(QUESTION, config)
        assert handler.close()
        client.close(timeout=None)
        (found,) = smith.feedback
        run = smith.runs[found["run_id"]]
        # Of the samples there is no run.
        assert [each["run_type"] for each in smith.runs.values()].count("llm") == 1
    assert handler.guard.observer_failures == 0
    assert (run["name"], found["value"]) == ("ChatOpenAI", "flag")
    assert (run.get("parent_run_id") is not None) is in_chain


@pytest.mark.parametrize(("rate", "taken"), [(0.0, 0), (1.0, 20)])
def test_a_share_of_the_runs_is_taken(
    rate: float, taken: int, server: ChatServer
) -> None:
    model = chat_openai(server)
    with SNNECallbackHandler(guard_on(model), sample_rate=rate) as handler:
        model.batch([QUESTION] * 20, {"callbacks": [handler]})
    counts = handler.counts
    assert (counts.seen, counts.taken, counts.assessed) == (20, taken, taken)
    assert counts.reasons.get("not_sampled", 0) == counts.skipped == 20 - taken


def test_the_guards_own_rate_holds_once(
    server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    draws = iter([0.05, 0.15])
    monkeypatch.setattr("random.random", lambda: next(draws))
    witness, model = Witness(), chat_openai(server)
    guard = guard_on(model, witness, sample_rate=0.1)
    with SNNECallbackHandler(guard) as handler:
        model.batch([QUESTION] * 2, {"callbacks": [handler], "max_concurrency": 1})
    assert (handler.sample_rate, handler.counts.taken) == (0.1, 1)
    assert witness.last.uncertainty is not None


def test_a_question_that_the_run_names_is_the_question(server: ChatServer) -> None:
    model, witness = chat_openai(server), Witness()
    with SNNECallbackHandler(guard_on(model, witness)) as handler:
        metadata = {"snne_guard_question": "Which city?"}
        model.invoke(QUESTION, {"callbacks": [handler], "metadata": metadata})
    assert witness.last.question == "Which city?"


def test_a_rule_takes_runs_by_what_they_are(server: ChatServer) -> None:
    watched: list[WatchedRun] = []

    def final(run: WatchedRun) -> bool:
        watched.append(run)
        return run.metadata["step"] == "final" and "mine" in run.tags

    model = chat_openai(server)
    with SNNECallbackHandler(guard_on(model), take_when=final) as handler:
        for step in ("draft", "final"):
            config = {"callbacks": [handler], "metadata": {"step": step}}
            model.invoke(QUESTION, {**config, "tags": ["mine"]})  # type: ignore[arg-type]
    assert (handler.counts.assessed, handler.counts.reasons) == (1, {"not_taken": 1})
    assert [message.text for message in watched[0].messages] == [QUESTION]
    assert watched[0].parameters["model"] == "test-model"
    assert QUESTION not in repr(watched[0])


@pytest.mark.usefixtures("embedded")
def test_the_example_answers_at_once_and_scores_later() -> None:
    lines = printed("integrations/with_callback")
    assert [line.partition(":")[0] for line in lines].count("at once") == 2
    assert "Au" in lines[0]
    scores = [line for line in lines if re.fullmatch(r"later: u=0\.\d+, \w+", line)]
    assert len(scores) == 2
    assert lines[-1] == "assessed 2 of 2 runs"
