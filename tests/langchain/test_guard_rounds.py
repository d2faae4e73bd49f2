"""A guard in rounds, against a real server."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel

from snne_guard import GuardedChatModel, SNNEGuard
from snne_guard.errors import ConfigurationError
from snne_guard.types import Score
from tests.support.chat_server import ChatServer, chat_openai, ignoring_n
from tests.support.guarding import WAYS, ask, is_sample, record, split


def after_five(score: Score, missing: int) -> bool:
    del missing
    return score.n >= 5


IN_ROUNDS: dict[str, Any] = {
    "n": 10,
    "rounds": (3, 5, 10),
    "stopping": after_five,
    "threshold": 0.4,
}


@pytest.mark.parametrize("way", WAYS)
def test_a_round_is_one_request_and_the_rest_is_never_sent(way: str) -> None:
    with ChatServer(split("Paris", ["Paris"])) as server:
        guard = SNNEGuard(chat_openai(server), **IN_ROUNDS)
        found = record(ask(guard, "Capital of France?", way))
        asked = [request.n for request in server.requests if is_sample(request)]
    assert asked == [2, 2]
    assert (found["decision"], found["n_requested"], found["n_used"]) == (
        "accept",
        5,
        5,
    )
    assert found["reasons"] == ["stopped_early"]
    cost = found["cost"]
    assert (cost["rounds"], cost["samples_saved"], cost["calls"]) == (2, 5, 3)


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_a_server_that_ignores_n_is_learnt_from_once(way: str) -> None:
    script = split("Paris", ignoring_n(["Paris"]))
    with ChatServer(script) as server:
        guard = SNNEGuard(chat_openai(server), **IN_ROUNDS)
        ask(guard, "x", way)
        ask(guard, "y", way)
        asked = [request.n for request in server.requests if is_sample(request)]
    assert sorted(asked) == [1, 1, 1, 1, 1, 1, 1, 2]


def test_rounds_go_with_a_guarded_chat_model_and_with_copies() -> None:
    with ChatServer(split("Paris", ["Paris"])) as server:
        guard = SNNEGuard(chat_openai(server), **IN_ROUNDS)
        assert "rounds=(3, 5, 10)" in repr(guard)
        for model in (GuardedChatModel(guard), guard.on(guard.model)):
            assert record(ask(model, "x", "invoke"))["n_used"] == 5


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_by_default_rounds_stop_only_where_nothing_can_change(way: str) -> None:
    in_rounds: dict[str, Any] = {"n": 10, "rounds": (5, 8, 10), "threshold": 0.5}
    with ChatServer(split("Paris", ["Paris"])) as server:
        guard = SNNEGuard(chat_openai(server), **in_rounds)
        found = record(ask(guard, "x", way))
        assert (found["n_requested"], found["reasons"]) == (8, ["stopped_early"])
        whole = guard.on(guard.model, stopping=None)
        found = record(ask(whole, "x", way))
        assert (found["n_requested"], found["reasons"]) == (10, [])


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_where_one_request_is_in_flight_at_a_time_any_may_be_the_last(
    way: str,
) -> None:
    model = FakeListChatModel(responses=["Paris"])
    one_by_one: dict[str, Any] = {"n": 10, "threshold": 0.5, "max_concurrency": 1}
    found = record(ask(SNNEGuard(model, **one_by_one), "x", way))
    assert found["reasons"] == ["temperature_unset", "stopped_early"]
    assert (found["n_requested"], found["cost"]["samples_saved"]) == (8, 2)
    assert found["cost"]["rounds"] == 4  # 5 at first, min_samples, then one by one
    for option in ({"threshold": None}, {"stopping": None}, {"max_concurrency": 2}):
        found = record(ask(SNNEGuard(model, **{**one_by_one, **option}), "x", way))
        assert (found["n_requested"], found["cost"]["rounds"]) == (10, 1)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"n": 5}, r"rounds must be members after each round, rising .* n = 5"),
        ({"threshold": None}, "rounds need a threshold"),
        ({"threshold": None, "stopping": None}, "rounds need a threshold"),
        ({"rounds": None}, "stopping needs rounds"),
        (
            {"stopping": "soon"},
            "stopping must be 'certificate', a callable or None; got 'soon'",
        ),
    ],
)
def test_options_that_make_no_sense_together(
    changed: dict[str, Any], said: str
) -> None:
    with ChatServer(split("Paris", ["Paris"])) as server:
        model = chat_openai(server)
        with pytest.raises(ConfigurationError, match=said):
            SNNEGuard(model, **{**IN_ROUNDS, **changed})
