"""What is delivered is seen once, after the decision; samples by observers alone."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.callbacks import get_usage_metadata_callback

from snne_guard import SNNEGuard
from tests.langchain.leaks import Handler, listening, places
from tests.langchain.support import CALLS, ask, chat_openai, metadata_of
from tests.support.observers import Watcher
from tests.support.openai_server import Server, split


class Ordered(Handler):  # type: ignore[misc]  # a class made at run time
    """A handler and observer in one, so that the order of all events is kept."""

    def on_assessment(self, assessment: Any) -> None:
        self.seen.append(("on_assessment", assessment.decision))


@pytest.mark.parametrize("way", CALLS)
def test_an_accepted_answer_is_seen_once_after_the_decision(way: str) -> None:
    handler = Ordered()
    with (
        Server(split("Paris", "Paris")) as server,
        get_usage_metadata_callback() as counter,
    ):
        guard = SNNEGuard(
            chat_openai(server),
            threshold=0.4,
            on_uncertain="refuse",
            observers=[handler],
        )
        message = ask(guard, way, {"callbacks": [handler]})
        requests = list(server.requests)
    streamed = way in {"stream", "astream"}
    assert handler.events == [
        "on_chat_model_start",
        "on_assessment",
        *(["on_llm_new_token"] if streamed else []),
        "on_llm_end",
    ]
    assert places(handler.seen[:2], "Paris") == []
    assert places(handler.seen[2:], "Paris")
    # Two requests of five tokens each, which brought five replies of one token.
    assert len(requests) == 2
    assert message.usage_metadata == {
        "input_tokens": 10,
        "output_tokens": 5,
        "total_tokens": 15,
        "input_token_details": {"cache_read": 6},
    }
    (counted,) = counter.usage_metadata.values()
    assert counted == message.usage_metadata
    cost = metadata_of(message)["cost"]
    assert (cost["prompt_tokens"], cost["completion_tokens"]) == (10, 5)
    assert (cost["calls"], cost["attempts"], cost["lower_bound"]) == (2, 2, False)


@pytest.mark.parametrize("policy", ["refuse", None])
@pytest.mark.parametrize("way", CALLS)
def test_samples_are_seen_by_observers_alone(way: str, policy: Any) -> None:
    watcher = Watcher()
    options = {} if policy is None else {"threshold": 0.4, "on_uncertain": policy}
    with (
        Server(split("Paris", "Lyon", "Nice", "Metz")) as server,
        listening(way) as listeners,
    ):
        guard = SNNEGuard(chat_openai(server), observers=[watcher], **options)
        message = ask(guard, way, listeners.config)
        heard = listeners.heard
    (assessment,) = watcher.assessments
    assert {"Lyon", "Nice"} < {sample.text for sample in assessment.samples}
    for text in ("Lyon", "Nice", "Metz"):
        assert places([heard, message], text) == []
    (run,) = listeners.runs.traced_runs
    assert run.name == "SNNEGuard"
    assert run.child_runs == []
    starts = listeners.outer[0].events.count("on_chat_model_start")
    assert (starts, listeners.outer[0].events.count("on_llm_end")) == (1, 1)
