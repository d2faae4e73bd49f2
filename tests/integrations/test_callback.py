"""Shadow mode: what is assessed, and that the application never notices."""

from __future__ import annotations

import asyncio
import threading
import time
from contextvars import ContextVar
from typing import Any
from uuid import uuid4

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.prompts import ChatPromptTemplate

from snne_guard import Assessment, SNNEGuard
from snne_guard_integrations.callback import SNNECallbackHandler
from tests.integrations.support import ScriptedModel
from tests.support.observers import Watcher

_place: ContextVar[str] = ContextVar("_place", default="nowhere")


def handler_on(model: Any, *observers: Any, **options: Any) -> SNNECallbackHandler:
    settings = {"n": 3, "method": "snne", "threshold": 0.4, **options}
    return SNNECallbackHandler(SNNEGuard(model, observers=observers, **settings))


class Blocking:
    """An observer that holds the worker until it is let go."""

    def __init__(self) -> None:
        self.reached, self.go = threading.Event(), threading.Event()

    def on_assessment(self, assessment: Assessment) -> None:
        del assessment
        self.reached.set()
        assert self.go.wait(60)


@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream"])
def test_the_answer_of_an_ordinary_run_is_assessed(way: str) -> None:
    model = ScriptedModel(answer="Paris", samples=("Lyon", "Bonn"))
    watcher = Watcher()
    handler = handler_on(model, watcher)
    config: Any = {"callbacks": [handler]}
    if way == "invoke":
        assert model.invoke("Where?", config).text == "Paris"
    elif way == "stream":
        assert (
            "".join(chunk.text for chunk in model.stream("Where?", config)) == "Paris"
        )
    else:
        assert asyncio.run(model.ainvoke("Where?", config)).text == "Paris"
    assert handler.flush()
    assessment = watcher.only
    assert assessment.answer is not None
    assert assessment.answer.text == "Paris"
    assert sorted(sample.text for sample in assessment.samples) == ["Bonn", "Lyon"]
    assert assessment.decision == "flag"
    assert assessment.run_id
    assert model.drawn == 3  # the application's own call, and two samples
    assert handler.counts == {"assessed": 1}


def test_what_is_reported_belongs_to_the_run_and_its_context() -> None:
    places: list[tuple[str, str | None]] = []

    class Located:
        async def on_assessment(self, assessment: Assessment) -> None:
            places.append((_place.get(), assessment.run_id))

    model = ScriptedModel(answer="Paris", samples=("Paris",))
    run_ids: list[str] = []
    with handler_on(model, Located()) as handler:
        for place in ("one", "two"):
            _place.set(place)
            chain = ChatPromptTemplate.from_template("{question}") | model
            run_ids += [
                event["run_id"]
                for event in asyncio.run(events(chain, handler))
                if event["event"] == "on_chat_model_start"
            ]
    assert places == list(zip(("one", "two"), run_ids, strict=True))


async def events(chain: Any, handler: SNNECallbackHandler) -> list[Any]:
    config: Any = {"callbacks": [handler]}
    found = chain.astream_events({"question": "Where?"}, config, version="v2")
    return [event async for event in found]


def test_samples_get_the_tools_and_stop_texts_of_the_run() -> None:
    model = ScriptedModel(answer="Paris", samples=("Paris",))
    bound = model.bind_tools([look_up], tool_choice="auto").bind(stop=["."])
    with handler_on(model) as handler:
        bound.invoke("Where?", {"callbacks": [handler]})
    asked, *samples = [options for _, options in model.seen]
    assert len(samples) == 2
    for options in samples:
        assert options.pop("temperature") == 1.0
        assert options == asked
    assert asked["stop"] == ["."]


def test_a_run_brings_the_documents_of_its_metadata() -> None:
    model = ScriptedModel(answer="Paris", samples=("Paris",))
    watcher = Watcher()
    options = {"context": "In Rome.", "min_grounded": 0.5}
    with handler_on(model, watcher, **options) as handler:
        model.invoke("Where?", {"callbacks": [handler]})
        metadata = {"snne_guard_context": ["In Paris."]}
        model.invoke("Where?", {"callbacks": [handler], "metadata": metadata})
    assert [each.decision for each in watcher.assessments] == ["flag", "accept"]


def look_up(place: str) -> str:
    """Look a place up."""
    return place


def test_a_guarded_call_is_not_assessed_twice() -> None:
    model = ScriptedModel(answer="Paris", samples=("Paris",))
    with handler_on(model) as handler:
        SNNEGuard(model, n=3).invoke("Where?", {"callbacks": [handler]})
    assert handler.counts == {}
    assert model.drawn == 3


def test_a_run_that_fails_is_skipped() -> None:
    def fail(_: Any) -> str:
        raise RuntimeError

    model = ScriptedModel(answer=fail)
    with handler_on(model) as handler, pytest.raises(RuntimeError):
        model.invoke("Where?", {"callbacks": [handler]})
    assert handler.counts == {}


def test_a_full_queue_drops_and_counts_and_the_application_does_not_wait() -> None:
    model = ScriptedModel(answer="Paris", samples=("Paris",))
    blocking = Blocking()
    guard = SNNEGuard(model, n=3, method="snne", observers=[blocking])
    handler = SNNECallbackHandler(guard, max_queue=2)
    config: Any = {"callbacks": [handler]}
    model.invoke("Where?", config)
    assert blocking.reached.wait(60)  # the worker holds the first answer
    started = time.monotonic()
    for _ in range(5):
        model.invoke("Where?", config)
    assert time.monotonic() - started < 5
    assert not handler.flush(timeout=0.01)
    blocking.go.set()
    assert handler.flush()
    assert handler.counts == {"dropped": 3, "assessed": 3}


def test_a_failure_is_counted_and_the_next_answer_is_assessed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def question(messages: Any) -> str:
        if messages[-1].text == "zanzibar":
            raise ValueError(messages[-1].text)
        return "Where?"

    model = ScriptedModel(answer="Paris", samples=("Paris",))
    with handler_on(model, question=question) as handler:
        for asked in ("zanzibar", "Where?"):
            model.invoke(asked, {"callbacks": [handler]})
    assert handler.counts == {"failed": 1, "assessed": 1}
    assert "ValueError" in caplog.text
    assert "zanzibar" not in caplog.text


def test_runs_that_never_end_are_let_go() -> None:
    model = ScriptedModel(answer="Paris", samples=("Paris",))
    runs = [uuid4() for _ in range(1001)]
    end = LLMResult(generations=[[ChatGeneration(message=AIMessage("Paris"))]])
    with handler_on(model) as handler:
        for run in runs:
            handler.on_chat_model_start({}, [[HumanMessage("Where?")]], run_id=run)
        for run in (runs[0], runs[-1]):
            handler.on_llm_end(end, run_id=run)
    assert handler.counts == {"assessed": 1}
