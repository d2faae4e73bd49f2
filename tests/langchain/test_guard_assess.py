"""Assessments of answers that are there already, and the run that one belongs to."""

from __future__ import annotations

import time
from typing import Any
from uuid import UUID, uuid4

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda

from snne_guard import Assessment, Budget, GuardedChatModel, InputError, SNNEGuard
from tests.support.chat_server import ChatServer, always, chat_openai
from tests.support.guarding import WHOLE, Witness, ask, is_sample, run_in_loop, split

QUESTION = "What is the capital of France?"


class Runs(BaseCallbackHandler):
    """Keeps the id of the first run that it is told of."""

    run_inline = True

    def __init__(self) -> None:
        self.first: str | None = None

    def on_chain_start(self, *_args: Any, run_id: UUID, **_kwargs: Any) -> None:
        self.first = self.first or str(run_id)

    def on_chat_model_start(self, *_args: Any, run_id: UUID, **_kwargs: Any) -> None:
        self.first = self.first or str(run_id)


def assess(guard: SNNEGuard, way: str, answer: Any, **options: Any) -> Assessment:
    if way == "invoke":
        return guard.assess(QUESTION, answer=answer, **options)
    return run_in_loop(guard.aassess(QUESTION, answer=answer, **options))


@pytest.mark.parametrize("way", WHOLE)
@pytest.mark.parametrize("answer", ["Lyon", AIMessage("Lyon")])
def test_an_answer_that_is_there_is_not_drawn_again(way: str, answer: Any) -> None:
    with ChatServer(split("Marseille", ["Paris"])) as server:
        guard = SNNEGuard(chat_openai(server), n=3, method="snne", threshold=0.2)
        found = assess(guard, way, answer)
        assert all(is_sample(request) for request in server.requests)
    assert found.answer is not None
    assert found.answer.text == "Lyon"
    assert found.scored == ("Lyon", "Paris", "Paris")
    assert (found.decision, found.n_used) == ("flag", 3)
    # The answer was paid for elsewhere.
    assert (found.cost.calls, found.cost.attempts) == (1, 1)


@pytest.mark.parametrize("way", WHOLE)
def test_log_probabilities_on_the_answer_count(way: str) -> None:
    with ChatServer(always("Paris")) as server:
        answer = chat_openai(server).bind(logprobs=True).invoke(QUESTION)
        with_them, without = (
            assess(SNNEGuard(chat_openai(server), n=3), way, given)
            for given in (answer, "Paris")
        )
    assert (with_them.method, with_them.reasons) == ("wsnne", ("no_threshold",))
    assert without.method == "snne"
    assert "logprobs_missing" in without.reasons


@pytest.mark.parametrize("way", WHOLE)
@pytest.mark.parametrize("given", ["message", "text"])
@pytest.mark.parametrize(("tokens", "drawn"), [(1000, 2), (5, 0)])
def test_a_budget_knows_the_lengths_from_it_and_takes_nothing_for_it(
    way: str, given: str, tokens: int, drawn: int
) -> None:
    with ChatServer(split("Marseille", ["Paris"])) as server:
        message = chat_openai(server).invoke(QUESTION)
        guard = SNNEGuard(
            chat_openai(server), n=3, budget=Budget(tokens_per_call=tokens)
        )
        answer = message if given == "message" else message.text
        found = [assess(guard, way, answer) for _ in range(2)]
    assert [len(each.samples) for each in found] == [drawn] * 2
    assert ["over_budget" in each.reasons for each in found] == [not drawn] * 2


@pytest.mark.parametrize("way", WHOLE)
def test_an_answer_without_text_is_no_confidence(way: str) -> None:
    with ChatServer(always("Paris")) as server:
        guard = SNNEGuard(chat_openai(server), n=3, threshold=0.9)
        found = assess(guard, way, " ")
    assert (found.decision, found.uncertainty) == ("flag", None)
    assert "answer_empty" in found.reasons


@pytest.mark.parametrize("way", WHOLE)
def test_an_answer_that_is_none_is_refused_before_anything_is_scored(way: str) -> None:
    with ChatServer(always("Paris")) as server:
        guard = SNNEGuard(chat_openai(server), n=3)
        with pytest.raises(InputError, match="AIMessage or a text, got int"):
            assess(guard, way, 42)


@pytest.mark.parametrize("way", WHOLE)
@pytest.mark.parametrize("as_model", [False, True])
def test_an_assessment_names_the_run_that_it_belongs_to(
    way: str, *, as_model: bool
) -> None:
    witness, seen = Witness(), Runs()
    with ChatServer(always("Paris")) as server:
        guard = SNNEGuard(chat_openai(server), n=3, observers=[witness])
        guarded = GuardedChatModel(guard) if as_model else guard
        ask(guarded, QUESTION, way, {"callbacks": [seen]})
    assert witness.last.run_id == seen.first


@pytest.mark.parametrize("way", WHOLE)
def test_events_name_the_model_and_the_provider_and_say_when(way: str) -> None:
    witness = Witness()
    with ChatServer(always("Paris")) as server:
        model = chat_openai(server).bind(model="bound")
        guard = SNNEGuard(model, n=3, observers=[witness])
        before = time.time_ns()
        ask(guard, QUESTION, way)
        after = time.time_ns()
        ask(guard, QUESTION, way, model="chosen")
    events = [*witness.started[:2], *witness.ended[:2]]
    assert {(each.model, each.provider) for each in events} == {("bound", "openai")}
    assert all(before <= each.time_ns <= after for each in events)
    starts = {each.role: each.time_ns for each in events[:2]}
    assert all(starts[each.role] <= each.time_ns for each in events[2:])
    assert {each.model for each in witness.started[2:]} == {"chosen"}
    assert witness.last.answer is not None
    assert witness.last.answer.response_id is not None
    assert witness.last.answer.response_id.startswith("chatcmpl-")


@pytest.mark.parametrize("way", WHOLE)
def test_a_run_that_is_over_is_named_and_no_handler_is_told_of_a_sample(
    way: str,
) -> None:
    run_id, seen, told = uuid4(), Runs(), Runs()
    with ChatServer(always("Paris")) as server:
        model = chat_openai(server).model_copy(update={"callbacks": [seen]})
        guard = SNNEGuard(model, n=3)
        found = assess(guard, way, "Paris", run_id=run_id, config={"callbacks": [told]})
        assert len(server.requests) == 1
    assert (found.run_id, found.n_used) == (str(run_id), 3)
    assert (seen.first, told.first) == (None, None)


@pytest.mark.parametrize("way", WHOLE)
def test_a_run_that_is_over_has_given_an_answer(way: str) -> None:
    with ChatServer(always("Paris")) as server:
        guard = SNNEGuard(chat_openai(server), n=3)
        with pytest.raises(InputError, match=r"run_id .* pass the answer as well"):
            assess(guard, way, None, run_id="a run")


def test_inside_a_chain_it_is_the_run_that_asked() -> None:
    seen = Runs()
    with ChatServer(always("Paris")) as server:
        guard = SNNEGuard(chat_openai(server), n=3)

        def step(value: str, config: RunnableConfig) -> str | None:
            return guard.assess(value, config).run_id

        run_id = RunnableLambda(step).invoke(QUESTION, {"callbacks": [seen]})
        alone = guard.assess(QUESTION)
    assert run_id == seen.first
    assert alone.run_id is None
