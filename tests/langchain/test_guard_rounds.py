"""A guard in rounds, against a real server."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel

from snne_guard import GuardedChatModel, SNNEGuard
from snne_guard.decision import CalibratedStop
from snne_guard.errors import ConfigurationError
from snne_guard.scorers import METHODS
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
    assert (found["n_requested"], found["cost"]["samples_saved"]) == (7, 3)
    # 5 at first, min_samples, then one by one. By hand: whatever the missing ones are,
    # seven of ten alike have u = 0.412 at most, and six 0.528.
    assert found["cost"]["rounds"] == 3
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
            "a CalibratedStop, a callable or None; got 'soon'",
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


# --- a rule that was learnt -----------------------------------------------------------

LEARNT = CalibratedStop(
    rounds=(3, 5, 10),
    threshold=0.4,
    accept_at_most=(0.2, 0.3),
    reject_at_least=(0.9, 0.8),
    anchor=0.7,
)
WITH_RULE: dict[str, Any] = {
    "n": 10,
    "method": "snne",
    "threshold": 0.4,
    "stopping": LEARNT,
}


def test_a_rule_from_before_anchors_is_refused_only_where_there_is_one(
    tmp_path: Path,
) -> None:
    path = tmp_path / "stop.json"
    for similarity in ("content_f1", "rouge_l"):
        replace(LEARNT, similarity=similarity).save(path)
        fields = json.loads(path.read_text())
        del fields["anchor"]
        path.write_text(json.dumps(fields))
        older = {**WITH_RULE, "stopping": CalibratedStop.load(path)}
        with ChatServer() as server:
            model = chat_openai(server)
            if similarity == "rouge_l":
                SNNEGuard(model, similarity=similarity, **older)
            else:
                told = r"learnt with anchor=0\.0, and here it is 0\.7"
                with pytest.raises(ConfigurationError, match=told):
                    SNNEGuard(model, **older)


@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream"])
def test_a_learnt_rule_brings_its_rounds_and_decides_by_its_own_u(way: str) -> None:
    with ChatServer(split("Paris", ["Paris"])) as server:
        guard = SNNEGuard(chat_openai(server), **WITH_RULE)
        found = record(ask(guard, "x", way))
    assert (found["decision"], found["n_requested"], found["n_used"]) == (
        "accept",
        3,
        3,
    )
    assert found["uncertainty"] <= found["threshold"]
    assert (found["cost"]["rounds"], found["cost"]["samples_saved"]) == (1, 7)
    with ChatServer(split("Paris", ["Rome", "Lyon"])) as server:
        guard = SNNEGuard(chat_openai(server), rounds=[3, 5, 10], **WITH_RULE)
        found = record(ask(guard, "x", way))
    assert (found["decision"], found["n_requested"]) == ("flag", 3)


def test_a_learnt_rule_passes_over_a_round_in_which_a_sample_was_lost() -> None:
    with ChatServer(split("Paris", ["Paris", "", "Paris", "Paris"])) as server:
        guard = SNNEGuard(chat_openai(server), **WITH_RULE)
        found = record(ask(guard, "x", "invoke"))
    # No set has the recorded size any more; the certificate needs no such thing.
    assert (found["n_requested"], found["n_used"]) == (10, 8)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"n": 5}, "learnt with n=10, and here it is 5"),
        ({"rounds": (3, 10)}, r"rounds=\(3, 5, 10\), and here it is \(3, 10\)"),
        ({"method": "auto"}, "method='snne', and here it is 'auto'"),
        ({"method": METHODS["wsnne"]}, "method='snne', and here it is 'wsnne'"),
        ({"similarity": "rouge_l_paper"}, "here it is 'rouge_l_paper'"),
        ({"similarity": "rouge_l"}, "anchor=0.7, and here it is 0.0"),
        ({"stopping": replace(LEARNT, anchor=0.3)}, "anchor=0.3, and here it is 0.7"),
        ({"tool_calls": "score"}, "here it is 'structured'"),
        ({"tau": 0.5}, "tau=1.0, and here it is 0.5"),
        ({"threshold": 0.5}, "threshold=0.4, and here it is 0.5"),
        ({"threshold": None}, "rounds need a threshold"),
        ({"threshold": (0.4, 0.8)}, "knows one threshold, not an"),
        ({"temperature": 0.7}, "temperature=1.0, and here it is 0.7"),
        ({"include_answer": False}, "include_answer=True, and here it is False"),
    ],
)
def test_a_learnt_rule_refuses_a_guard_with_other_settings(
    changed: dict[str, Any], said: str
) -> None:
    model = FakeListChatModel(responses=["Paris"])
    SNNEGuard(model, **WITH_RULE)
    with pytest.raises(ConfigurationError, match=said):
        SNNEGuard(model, **{**WITH_RULE, **changed})
