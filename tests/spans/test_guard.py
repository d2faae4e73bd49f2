"""Spans of a guarded call: what is delivered has them, and they lose nothing."""

from __future__ import annotations

import json
import sys
import threading
from typing import Any

import numpy as np
import pytest
from langchain_core.language_models import FakeListChatModel

from snne_guard import SNNEGuard, Span, render_marks
from snne_guard.cost import Prices
from snne_guard.engine import Draw, GuardState, Outcome, Request, Response
from snne_guard.errors import ConfigurationError, MissingExtraError
from snne_guard.settings import GuardSettings
from snne_guard.spans.cutting import cutters
from snne_guard.types import Assessment, Reply
from tests.langchain.support import CALLS, ask, chat_openai, metadata_of
from tests.langchain.support import guarded as guarded_chat
from tests.openai.guarded import PATHS, guarded
from tests.support.openai_clients import WAYS
from tests.support.openai_server import Answer, Asked, Server
from tests.support.senders import feed

ANSWER = "It is oak. It was made in 1907."
SAMPLES = ("It is oak. It was made in 1910.", "It is oak.", ANSWER, "Oak, I think.")
WHERE = [(0, 10), (11, 31)]


def mixed(asked: Asked) -> Answer:
    """An answer whose second sentence only one sample bears out."""
    if "one letter for each text" in json.dumps(asked.body):
        return Answer(texts=["1: S S S S\n2: C N S N"])
    return Answer(texts=[*SAMPLES[: asked.n]] if asked.is_sample else [ANSWER])


def run(script: Any = None, *, request: Any = (), **options: Any) -> Outcome:
    """Return how a call ends, and what a judge of it would say."""

    def come_of(draw: Draw, place: int) -> Any:
        if script is not None and (found := script(draw)) is not None:
            return found
        return ANSWER if draw.role == "answer" else SAMPLES[place]

    settings = GuardSettings(**{"spans": True, **options})
    given = Request(settings=settings, state=GuardState(), **dict(request))
    return feed(given, come_of)


def where(spans: Any) -> list[tuple[int, int]]:
    return [(span.start, span.end) for span in spans]


# -- The engine ------------------------------------------------------------------------


def test_each_sentence_has_an_uncertainty_and_the_answer_keeps_its_own() -> None:
    made = run().assessment
    assert made.spans is not None
    assert where(made.spans) == WHERE
    first, second = made.spans
    assert first.uncertainty < 0.1 < second.uncertainty
    assert (first.supported, second.supported) == (4, 1)
    assert made.uncertainty == run(spans=False).assessment.uncertainty
    record = made.to_metadata()
    assert record["spans"][0] == {**first.to_dict()}
    assert record["span_threshold"] is None
    assert "oak" not in json.dumps(record)
    plain = run(spans=False).assessment
    assert plain.spans is None
    assert not {"spans", "span_threshold"} & plain.to_metadata().keys()


@pytest.mark.parametrize(
    "options",
    [
        {"threshold": 0.0, "on_uncertain": "refuse"},
        {"threshold": 0.0, "on_uncertain": lambda _: {"another": "answer"}},
    ],
)
def test_an_answer_that_is_not_delivered_has_none(options: Any) -> None:
    seen: list[Any] = []
    outcome = run(similarity="exact", spans=lambda *_, **__: seen.append(1), **options)
    assert (outcome.assessment.spans, seen) == (None, [])


def test_a_function_that_delivers_the_answer_keeps_its_spans() -> None:
    seen: list[Any] = []

    def deliver(assessment: Assessment) -> str:
        seen.append(assessment.spans)
        return "flag"

    outcome = run(threshold=0.0, on_uncertain=deliver)
    assert (outcome.assessment.decision, seen) == ("flag", [None])
    assert where(outcome.assessment.spans) == WHERE


@pytest.mark.parametrize(
    "change",
    [
        {"request": {"side_effects": True}},
        {"request": {"structured": True}},
        {
            "script": lambda _: Reply(text="", tool_calls="[]", finish_reason="stop"),
            "tool_calls": "score",
            "request": {"tools_bound": True},
        },
        {"script": lambda draw: None if draw.role == "answer" else ValueError("no")},
    ],
)
def test_what_is_no_scored_text_has_none(change: Any) -> None:
    outcome = run(**change)
    assert outcome.delivery == "answer"
    assert outcome.assessment.spans is None
    assert "spans_failed" not in outcome.assessment.reasons


def test_a_failure_loses_the_spans_alone(caplog: pytest.LogCaptureFixture) -> None:
    def broken(parts: Any, texts: Any, /, *, question: Any = None) -> Any:
        raise RuntimeError(parts[0])

    outcome = run(spans=broken, threshold=1.0)
    made = outcome.assessment
    assert (outcome.delivery, made.decision, made.spans) == ("answer", "accept", None)
    assert made.reasons == ("spans_failed",)
    assert caplog.messages == ["scoring spans failed: RuntimeError"]


def test_the_context_is_the_users() -> None:
    made = run(request={"context": "It was made in 1907."}).assessment
    assert [span.grounded for span in made.spans or ()] == pytest.approx([0.25, 1.0])


# -- The guarded model as judge --------------------------------------------------------


def judging(reply: Any, asked: list[Draw] | None = None) -> Any:
    def script(draw: Draw) -> Any:
        if draw.role != "judge":
            return None
        if asked is not None:
            asked.append(draw)
        return reply

    return script


def test_the_guarded_model_judges_in_one_call_that_is_counted() -> None:
    asked: list[Draw] = []
    prices = Prices(prompt=1.0, completion=1.0)
    options = {"spans": "judge", "prices": prices}
    made = run(judging("1: S S S S\n2: C N S N", asked), **options).assessment
    [draw] = asked
    assert draw.turns[0] == ANSWER
    assert 'Statement 2: "It was made in 1907."' in draw.turns[1]
    assert 'Text 4: "Oak, I think."' in draw.turns[1]
    assert [span.supported for span in made.spans or ()] == [4, 1]
    assert made.requests[-1].role == "judge"
    assert made.cost.prompt_tokens == 60
    assert made.n_requested == 5


@pytest.mark.parametrize(
    "reply", ["I cannot.", ConnectionError("oak"), TimeoutError(), Response(replies=())]
)
def test_a_judge_that_fails_loses_the_spans_alone(reply: Any) -> None:
    outcome = run(judging(reply), spans="judge", threshold=1.0)
    assert (outcome.delivery, outcome.assessment.spans) == ("answer", None)
    assert outcome.assessment.reasons == ("spans_failed",)


def test_a_judge_is_not_asked_too_late_or_about_nothing() -> None:
    asked: list[Draw] = []
    run(judging("1: S", asked), spans="judge", sample_timeout=1e-9)
    blank = run(lambda draw: "!!!", spans="judge").assessment
    assert (asked, blank.spans) == ([], ())
    assert [draw.role for draw in blank.requests].count("judge") == 0


# -- The doors -------------------------------------------------------------------------


@pytest.mark.parametrize("way", CALLS)
def test_a_langchain_message_carries_them(way: str) -> None:
    with Server(mixed) as server:
        guard = guarded_chat(
            server,
            spans=True,
            span_threshold=0.3,
            context=lambda messages: f"{messages[-1].text} It is oak.",
        )
        message = ask(guard, way)
    record = metadata_of(message)
    spans = [Span(**span) for span in record["spans"]]
    assert [message.text[span.start : span.end] for span in spans] == [
        "It is oak.",
        "It was made in 1907.",
    ]
    assert spans[0].grounded == 1.0
    marked = render_marks(message.text, spans, threshold=record["span_threshold"])
    assert marked == "It is oak. It was made in 1907. [?]"


def test_a_langchain_model_judges_its_own_answer() -> None:
    with Server(mixed) as server:
        guard = SNNEGuard(chat_openai(server, stop=["x"]), spans="judge")
        record = metadata_of(guard.invoke("x?"))
        judge = server.requests[-1].body
    assert [span["supported"] for span in record["spans"]] == [4, 1]
    roles = [message["role"] for message in judge["messages"]]
    assert roles[-2:] == ["assistant", "user"]
    assert not judge.keys() & {"stop", "temperature", "n"}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("path", PATHS)
def test_a_client_s_answer_is_judged_in_a_request_of_its_own(
    path: str, way: str, stream: bool
) -> None:
    with guarded(mixed, way, spans="judge") as (server, call):
        answer = call(path, stream=stream)
        record = (call.parts(answer)[-1] if stream else answer).snne_guard
        judge = server.requests[-1].body
    assert [span["supported"] for span in record["spans"]] == [4, 1]
    assert record["cost"]["calls"] == len(server.requests)
    assert not judge.get("stream")
    assert not judge.keys() & {"temperature", "n"}


async def test_the_event_loop_is_not_held() -> None:
    threads: list[Any] = []

    def compare(parts: Any, texts: Any, /, *, question: Any = None) -> Any:
        threads.append(threading.current_thread())
        return np.ones((len(parts), len(texts)))

    guard = SNNEGuard(FakeListChatModel(responses=[ANSWER]), n=2, spans=compare)
    assert "spans" in metadata_of(await guard.ainvoke("x?"))
    assert threads
    assert threading.current_thread() not in threads


# -- Options ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"spans": "words"},
        {"spans": True, "span_threshold": 1.5},
        {"spans": True, "context": 5},
        {"span_threshold": 0.5},
    ],
)
def test_options_that_make_no_sense_are_refused(options: Any) -> None:
    with pytest.raises(ConfigurationError):
        GuardSettings(**options)


def test_a_missing_extra_is_an_error_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentencex", None)
    cutters.cache_clear()
    with pytest.raises(MissingExtraError, match=r"snne-guard\[spans\]"):
        GuardSettings(spans=True)
    GuardSettings()
