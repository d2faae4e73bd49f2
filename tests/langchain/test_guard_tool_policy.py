"""Answers that call tools, decided on by a policy of their own."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage

from snne_guard import (
    Assessment,
    ConfigurationError,
    OpenAIGuard,
    SNNEGuard,
    UncertainAnswerError,
)
from snne_guard.decision import CalibratedStop, Policy, Threshold
from snne_guard.types import Sample
from tests.support.chat_server import ChatServer, Reply, Script, ToolCall, chat_openai
from tests.support.guarding import WHOLE, Witness, ask, record, split
from tests.support.openai_clients import client

QUESTION = "Weather in Metz?"
CITIES = ("Metz", "Nice", "Lyon", "Brest", "Lille")
STRICT = Policy(threshold=Threshold.fixed(0.1), on_uncertain="refuse")
LENIENT = Policy(threshold=Threshold.fixed(1.0), on_uncertain="refuse")


def calling(*cities: str) -> Script:
    """Answer with calls of a tool; samples differ in its argument."""
    calls = [[ToolCall(name="weather", arguments={"city": city})] for city in cities]
    return lambda _request: Reply(texts=[None], tool_calls=calls)


def texts(*said: str) -> Script:
    return lambda _request: Reply(texts=said)


DIFFERENT = split(calling("Metz"), calling("Nice", "Lyon", "Brest", "Lille"))
SAME = split(calling("Metz"), calling("Metz"))


def guarded(server: ChatServer, **options: Any) -> SNNEGuard:
    settings: dict[str, Any] = {"method": "snne", "threshold": 0.9, **options}
    return SNNEGuard(chat_openai(server), **settings)


@pytest.mark.parametrize("way", WHOLE)
@pytest.mark.parametrize(
    ("script", "decision"), [(DIFFERENT, "refuse"), (SAME, "accept")]
)
def test_calls_are_decided_on_by_their_own_policy(
    way: str, script: Script, decision: str
) -> None:
    with ChatServer(script) as server:
        message = ask(guarded(server, tool_calls=STRICT), QUESTION, way)
    assert (record(message)["decision"], record(message)["threshold"]) == (
        decision,
        0.1,
    )
    assert bool(message.tool_calls) is (decision == "accept")


@pytest.mark.parametrize("way", WHOLE)
def test_other_answers_are_decided_on_as_ever(way: str) -> None:
    script = split(texts("It rains."), texts("It rains.", "It snows heavily there."))
    with ChatServer(script) as server:
        message = ask(guarded(server, tool_calls=STRICT), QUESTION, way)
    assert (record(message)["decision"], record(message)["threshold"]) == (
        "accept",
        0.9,
    )


def test_calls_among_the_samples_of_a_text_leave_the_set() -> None:
    with ChatServer(split(texts("Rain."), calling("Nice"))) as server:
        message = ask(guarded(server, tool_calls=LENIENT), QUESTION, "invoke")
    assert "tool_call_samples" in record(message)["reasons"]


@pytest.mark.parametrize("way", WHOLE)
@pytest.mark.parametrize(
    ("rule", "reason"), [("skip", "tool_calls"), ("score", None), (STRICT, None)]
)
def test_a_function_says_what_holds_for_an_answer(
    way: str, rule: Any, reason: str | None
) -> None:
    seen: list[Sample] = []

    def choose(answer: Sample) -> Any:
        seen.append(answer)
        return rule

    with ChatServer(SAME) as server:
        message = ask(guarded(server, tool_calls=choose), QUESTION, way)
    assert '"weather"' in str(seen[0].tool_calls)
    assert record(message)["reasons"] == ([reason] if reason else [])
    assert record(message)["decision"] == ("unscored" if reason else "accept")


@pytest.mark.parametrize("way", WHOLE)
def test_a_function_that_says_anything_else_is_told_so(way: str) -> None:
    with ChatServer(SAME) as server:
        guard = guarded(server, tool_calls=lambda _answer: "maybe")
        with pytest.raises(ConfigurationError, match="tool_calls' result must be"):
            ask(guard, QUESTION, way)


def test_only_the_calls_may_have_a_threshold() -> None:
    with ChatServer(DIFFERENT) as server:
        found = guarded(server, threshold=None, tool_calls=STRICT).assess(QUESTION)
    assert (found.decision, found.threshold) == ("refuse", 0.1)


def test_a_function_that_withholds_nothing_lets_the_answer_stream() -> None:
    class Measuring:
        may_withhold = False

        def __call__(self, _answer: Sample) -> Policy:
            return Policy(threshold=Threshold.fixed(0.1))

    with ChatServer(split(texts("It rains here."), texts("It rains here."))) as server:
        shown = [
            len(list(guarded(server, tool_calls=rule).stream(QUESTION)))
            for rule in (Measuring(), lambda _answer: STRICT)
        ]
    assert shown[0] > 1
    assert shown[1] == 1


def test_a_policy_without_a_threshold_measures_the_calls_and_draws_them_all() -> None:
    with ChatServer(DIFFERENT) as server:
        guard = guarded(server, tool_calls=Policy(), rounds=(3, 5))
        found = guard.assess(QUESTION)
    assert (found.decision, found.n_used, found.cost.samples_saved) == (None, 5, 0)


@pytest.mark.parametrize("stopping", ["certificate", lambda _score, _missing: True])
def test_rounds_stop_by_the_policy_of_the_calls(stopping: Any) -> None:
    with ChatServer(DIFFERENT) as server:
        options = {"rounds": (5, 9), "n": 9, "stopping": stopping}
        found = guarded(server, tool_calls=LENIENT, **options).assess(QUESTION)
    assert (found.decision, found.cost.samples_saved) == ("accept", 4)


def test_a_stop_that_was_learnt_for_another_threshold_is_not_asked() -> None:
    stop = CalibratedStop(
        rounds=(3, 5),
        threshold=0.9,
        accept_at_most=(0.89,),
        reject_at_least=(None,),
        anchor=0.7,
        eta=0.5,
    )
    with ChatServer(DIFFERENT) as server:
        guard = guarded(server, tool_calls=STRICT, rounds=(3, 5), stopping=stop)
        found = guard.assess(QUESTION)
    assert found.decision == "refuse"


@pytest.mark.parametrize("way", WHOLE)
def test_a_policy_that_raises_names_its_own_threshold(way: str) -> None:
    policy = Policy(threshold=Threshold.fixed(0.1), on_uncertain="raise")
    with ChatServer(DIFFERENT) as server:
        guard = guarded(server, tool_calls=policy)
        with pytest.raises(UncertainAnswerError, match=r"at most 0\.1"):
            ask(guard, QUESTION, way)


@pytest.mark.parametrize("way", WHOLE)
def test_who_is_asked_sees_the_message_and_observers_do_not(way: str) -> None:
    asked: list[Assessment] = []
    witness = Witness()

    def decide(assessment: Assessment) -> str:
        asked.append(assessment)
        return "flag"

    policy = Policy(threshold=Threshold.fixed(0.1), on_uncertain=decide)
    with ChatServer(DIFFERENT) as server:
        guard = guarded(server, tool_calls=policy, observers=[witness])
        ask(guard, QUESTION, way)
    assert isinstance(asked[0].raw, AIMessage)
    assert asked[0].raw.tool_calls[0]["args"] == {"city": "Metz"}
    assert witness.last.raw is None


def test_a_policy_that_hands_over_needs_a_fallback() -> None:
    policy = Policy(threshold=Threshold.fixed(0.1), on_uncertain="fallback")
    with ChatServer(DIFFERENT) as server:
        with pytest.raises(ConfigurationError, match="needs a fallback"):
            guarded(server, tool_calls=policy)
        late = guarded(server, tool_calls=lambda _answer: policy)
        with pytest.raises(ConfigurationError, match="there is no fallback"):
            late.invoke(QUESTION)


def test_a_threshold_for_calls_needs_a_method_with_bounds_too() -> None:
    class Unbounded:
        name, needs, white_box, source = "mine", frozenset[str](), False, "me"

        def compute(self, _inputs: object) -> float:
            raise AssertionError

        def bounds(self, _n: int, *, tau: float = 1.0) -> None:
            del tau

        def uncertainty(self, _value: float, _n: int, *, tau: float = 1.0) -> None:
            del tau

    with (
        ChatServer(SAME) as server,
        pytest.raises(ConfigurationError, match="has no bounds"),
    ):
        guarded(server, method=Unbounded(), threshold=None, tool_calls=STRICT)


def test_the_openai_package_alone_has_it_too() -> None:
    with ChatServer(DIFFERENT) as server, client(server) as asking:
        guard = OpenAIGuard(
            asking, model="m", method="snne", threshold=0.9, tool_calls=STRICT
        )
        found = guard.assess(QUESTION)
    assert (found.decision, found.threshold) == ("refuse", 0.1)
