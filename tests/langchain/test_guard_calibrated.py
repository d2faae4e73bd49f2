"""A guard with a calibration holds to it in each call."""

from __future__ import annotations

import asyncio
import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import ConfigurableField
from pydantic import BaseModel

from snne_guard import (
    ConfigurationError,
    GuardedChatModel,
    SNNEGuard,
    UncertainAnswerError,
)
from snne_guard.decision import Calibration, Threshold
from snne_guard.langchain import is_refusal
from tests.support.calibrated import READS, calibration, certified
from tests.support.calibrated_guards import QUESTION, calibrated, missing_one, said
from tests.support.chat_server import (
    ChatServer,
    Reply,
    Request,
    ToolCall,
    chat_openai,
)
from tests.support.guarding import (
    AGREE,
    DIFFER,
    WAYS,
    ask,
    is_sample,
    record,
    split,
)

# --- the promise is kept -------------------------------------------------------------


@pytest.mark.parametrize("chat_model", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_what_is_as_it_was_calibrated_is_certified(
    way: str, tmp_path: Path, *, chat_model: bool
) -> None:
    path = tmp_path / "guard.json"
    calibration().save(path)
    with ChatServer(split("Paris", AGREE)) as server:
        guard = SNNEGuard.from_calibration(chat_openai(server), str(path))
        runnable = GuardedChatModel(guard) if chat_model else guard
        found = record(ask(runnable, QUESTION, way))
    assert (found["decision"], found["certified"]) == ("accept", True)
    assert (found["threshold"], found["n_used"], found["reasons"]) == (0.4, 5, [])
    p, low, high = READS(0.0)
    assert (found["p_wrong"], found["p_wrong_interval"]) == (p, [low, high])
    assert json.loads(json.dumps(found)) == found


@pytest.mark.parametrize("way", WAYS)
def test_an_uncertain_answer_was_decided_by_the_certified_threshold_too(
    way: str,
) -> None:
    with ChatServer(split("Paris", DIFFER)) as server:
        guard = calibrated(server, on_uncertain="refuse")
        message = ask(guard, QUESTION, way)
    assert is_refusal(message)
    found = record(message)
    assert (found["decision"], found["certified"]) == ("refuse", True)
    assert found["p_wrong"] == READS(found["uncertainty"])[0] > 0.5


def test_above_the_second_threshold_it_refuses() -> None:
    made = calibration(refuse=certified(0.8, kind="false_refusal", delta=None))
    assert said(split("Paris", DIFFER), made)["decision"] == "refuse"
    half = said(split("Paris", ["Paris", "Lyon", "Paris", "Nice"]), made)
    assert (half["decision"], half["reasons"]) == ("flag", [])


def test_a_threshold_that_accepts_nothing_is_taken_at_its_word() -> None:
    infeasible = certified(-1.0, status="infeasible")
    found = said(split("Paris", AGREE), calibration(threshold=infeasible))
    assert (found["decision"], found["certified"]) == ("flag", False)


def test_a_fixed_threshold_in_a_calibration_promises_nothing() -> None:
    made = calibration(threshold=Threshold.fixed(0.4))
    found = said(split("Paris", AGREE), made)
    assert (found["decision"], found["certified"], found["reasons"]) == (
        "accept",
        False,
        [],
    )
    assert found["p_wrong"] is not None


def test_a_stage_without_labels_enough_has_no_probability() -> None:
    found = said(split("Paris", AGREE), calibration(probability={}))
    assert (found["certified"], found["p_wrong"], found["p_wrong_interval"]) == (
        True,
        None,
        None,
    )


# --- it holds at every call ----------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
def test_a_set_with_a_member_missing_counts_as_uncertain(way: str) -> None:
    with ChatServer(missing_one) as server:
        message = ask(calibrated(server, on_uncertain="refuse"), QUESTION, way)
    found = record(message)
    assert (found["decision"], found["uncertainty"]) == ("refuse", 0.0)
    assert (found["certified"], found["p_wrong"]) == (False, None)
    assert found["reasons"] == ["empty_samples", "uncalibrated_set"]
    assert (found["n_requested"], found["n_used"]) == (5, 4)


def test_another_method_than_was_calibrated_counts_as_uncertain() -> None:
    made = calibration(method="wsnne")

    def without_logprobs(request: Request) -> Reply:
        return replace(split("Paris", AGREE)(request), logprobs=None)

    with ChatServer(split("Paris", AGREE)) as server:
        guard = calibrated(server, made, max_concurrency=1)
        whole = record(guard.invoke(QUESTION))
        server.script = without_logprobs
        lacking = record(guard.invoke(QUESTION))
    assert (whole["decision"], whole["certified"]) == ("accept", True)
    assert (lacking["method"], lacking["decision"]) == ("snne", "flag")
    assert lacking["reasons"] == ["logprobs_missing", "uncalibrated_method"]
    assert (lacking["certified"], lacking["p_wrong"]) == (False, None)


@pytest.mark.parametrize("who", ["answer", "samples"])
def test_a_reply_of_another_model_counts_as_uncertain(who: str) -> None:
    def changed(request: Request) -> Reply:
        reply = split("Paris", AGREE)(request)
        other = is_sample(request) == (who == "samples")
        return replace(reply, model="test-model-mini") if other else reply

    found = said(changed)
    assert (found["decision"], found["certified"]) == ("flag", False)
    assert found["reasons"] == ["mixed_models", "uncalibrated_model"]


def test_the_models_that_replies_were_from_are_what_counts() -> None:
    def dated(day: str) -> Any:
        script = split("Paris", AGREE)
        return lambda request: replace(script(request), model=f"test-model-{day}")

    made = calibration(reply_models=["test-model-2025-04-14"])
    assert said(dated("2025-04-14"), made)["certified"]
    later = said(dated("2026-01-31"), made)
    assert (later["decision"], later["reasons"]) == ("flag", ["uncalibrated_model"])
    # Nobody has seen which version it was: its day makes it no other model.
    assert said(dated("2026-01-31"))["certified"]


def test_no_round_is_stopped_early_under_a_promise_for_whole_sets() -> None:
    found = said(split("Paris", AGREE), max_concurrency=1, schedule="answer_first")
    assert (found["n_used"], found["cost"]["samples_saved"]) == (5, 0)
    assert found["certified"]


def test_a_model_chosen_by_the_call_is_looked_at_in_its_replies() -> None:
    with ChatServer(split("Paris", AGREE)) as server:
        model = chat_openai(server).configurable_fields(
            model_name=ConfigurableField(id="which")
        )
        guard = SNNEGuard.from_calibration(model, calibration())
        for runnable in (guard, GuardedChatModel(guard)):
            same = record(runnable.invoke(QUESTION))
            other: Any = {"configurable": {"which": "another"}}
            changed = record(runnable.invoke(QUESTION, other))
            assert (same["decision"], same["certified"]) == ("accept", True)
            assert (changed["decision"], changed["certified"]) == ("flag", False)
            assert changed["reasons"] == ["uncalibrated_model"]


def test_a_model_without_a_name_fits_only_a_calibration_without_one() -> None:
    nameless = FakeListChatModel(responses=["Paris"])
    made = calibration(model=None, temperature_unset=True)
    guard = SNNEGuard.from_calibration(nameless, made)
    assert record(guard.invoke(QUESTION))["certified"]
    other = calibration(temperature_unset=True)
    named = SNNEGuard.from_calibration(nameless, other)
    found = record(named.invoke(QUESTION))
    assert (found["decision"], found["certified"]) == ("flag", False)
    assert found["reasons"] == ["temperature_unset", "uncalibrated_model"]


def test_an_answer_that_could_not_be_scored_is_not_certified() -> None:
    found = said(split("", AGREE))
    assert (found["decision"], found["certified"]) == ("flag", False)
    assert found["reasons"] == ["answer_empty"]


def test_a_fallback_is_outside_of_the_promise_unless_it_is_guarded_itself() -> None:
    def other(_messages: Any) -> AIMessage:
        return AIMessage("Perhaps Paris")

    with ChatServer(split("Paris", DIFFER)) as server:
        bare = calibrated(server, on_uncertain="fallback", fallback=other)
        outer = record(bare.invoke(QUESTION))
        assert (outer["decision"], outer.get("fallback")) == ("fallback", None)
        second = SNNEGuard.from_calibration(
            FakeListChatModel(responses=["Paris"]),
            calibration(model=None, temperature_unset=True),
        )
        guarded = calibrated(server, on_uncertain="fallback", fallback=second)
        inner = record(guarded.invoke(QUESTION))["fallback"]
    assert (inner["decision"], inner["certified"]) == ("accept", True)


# --- tools and structured output -----------------------------------------------------


class City(BaseModel):
    """A city."""

    name: str


CALL = ToolCall(name="add", arguments='{"a": 1}')


def test_calls_of_tools_pass_unscored_and_uncertified() -> None:
    found = said(lambda _request: Reply(texts=[""], tool_calls=[[CALL]]))
    assert (found["decision"], found["certified"]) == ("unscored", False)


def test_calls_compared_as_json_are_not_what_was_calibrated() -> None:
    with ChatServer(split("Paris", AGREE)) as server:
        with pytest.raises(ConfigurationError, match="here it is 'structured'"):
            calibrated(server, tool_calls="score", similarity=None)
        guard = calibrated(server, similarity=None)
        with pytest.raises(ConfigurationError, match="here it is 'structured'"):
            guard.with_structured_output(City)
        with pytest.raises(ConfigurationError, match="here it is 'structured'"):
            GuardedChatModel(guard).with_structured_output(City)


def test_where_a_function_chooses_calls_are_named_in_each_call() -> None:
    found = said(
        lambda _request: Reply(texts=[""], tool_calls=[[CALL]]),
        tool_calls=lambda _answer: "score",
        similarity=None,
    )
    assert (found["decision"], found["certified"]) == ("flag", False)
    assert found["reasons"] == ["uncalibrated_method"]


def test_a_guard_with_tools_keeps_to_its_calibration() -> None:
    def add(a: int) -> int:
        """Add."""
        return a

    with ChatServer(split("Paris", AGREE)) as server:
        guard = calibrated(server).bind_tools([add])
        bound = GuardedChatModel(calibrated(server)).bind_tools([add])
        assert record(guard.invoke(QUESTION))["certified"]
        assert record(bound.invoke(QUESTION))["certified"]


# --- a combination of methods --------------------------------------------------------


def combined() -> Calibration:
    learnt = {
        "parts": ["snne", "anchored_snne"],
        "coefficients": [3.0, 1.0],
        "intercept": -2.0,
        "ranges": [[0.0, 1.0], [0.0, 1.0]],
        "n_labels": 100,
    }
    return calibration(combination=learnt, method="calibrated(snne,anchored_snne)")


def test_a_combination_of_methods_comes_with_the_calibration(tmp_path: Path) -> None:
    path = tmp_path / "guard.json"
    combined().save(path)
    with ChatServer(split("Paris", AGREE)) as server:
        guard = SNNEGuard.from_calibration(chat_openai(server), path)
        found = record(guard.invoke(QUESTION))
        again = record(guard.on(guard.model, on_uncertain="refuse").invoke(QUESTION))
    assert found["method"] == "calibrated(snne,anchored_snne)"
    assert (found["decision"], found["certified"]) == ("accept", True)
    assert 0 < found["uncertainty"] < 0.2
    assert again["certified"]


# --- copies --------------------------------------------------------------------------


def test_threads_and_tasks_share_one_guard() -> None:
    with ChatServer(split("Paris", AGREE)) as server:
        guard = calibrated(server)

        async def ask_many() -> list[AIMessage]:
            return list(
                await asyncio.gather(*(guard.ainvoke(QUESTION) for _ in range(8)))
            )

        many = [*guard.batch([QUESTION] * 8), *asyncio.run(ask_many())]
    assert [record(message)["certified"] for message in many] == [True] * 16


def test_a_raised_error_names_the_certified_threshold() -> None:
    with ChatServer(split("Paris", DIFFER)) as server:
        guard = calibrated(server, on_uncertain="raise")
        with pytest.raises(UncertainAnswerError) as caught:
            guard.invoke(QUESTION)
    assert caught.value.threshold == 0.4


def test_a_guards_repr_shows_that_a_mismatch_is_allowed() -> None:
    model = FakeListChatModel(responses=["Paris"])
    guard = SNNEGuard.from_calibration(model, calibration(), allow_mismatch=True)
    assert "allow_mismatch=True" in repr(guard)
    assert pickle.loads(pickle.dumps(guard.calibration)) == calibration()  # noqa: S301 - our own
