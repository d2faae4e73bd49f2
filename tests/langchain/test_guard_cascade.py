"""A guard whose calibration has a plan of rounds: it stops and decides by it."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from snne_guard import ConfigurationError, GuardedChatModel, SNNEGuard
from tests.support.calibrated import READS, calibration, certified, plan
from tests.support.chat_server import ChatServer, Reply, Request, Script, chat_openai
from tests.support.guarding import WAYS, ask, is_sample, record

QUESTION = "What is the capital of France?"
SAME, APART = ("Paris",) * 4, ("Lyon", "Nice", "Lille", "Metz")


def in_order(*samples: str, **fields: Any) -> Script:
    """Answer "Paris", and each sample once, whatever the requests are."""
    left = count()

    def script(request: Request) -> Reply:
        if not is_sample(request):
            return Reply(texts=["Paris"], **fields)
        drawn = [samples[next(left) % 4] for _ in range(request.n)]
        return Reply(texts=drawn, **fields)

    return script


def planned(**fields: Any) -> Any:
    maps = {3: READS, 5: READS}
    given = {"rounds": (3, 5), "cascade": plan(), "probability": maps, **fields}
    return calibration(**given)


def said(script: Script, made: Any = None, **options: Any) -> dict[str, Any]:
    with ChatServer(script) as server:
        found = planned() if made is None else made
        guard = SNNEGuard.from_calibration(chat_openai(server), found, **options)
        return record(guard.invoke(QUESTION))


@pytest.mark.parametrize("chat_model", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_an_answer_that_an_early_round_accepts_takes_no_more_samples(
    way: str, *, chat_model: bool
) -> None:
    with ChatServer(in_order(*SAME)) as server:
        guard = SNNEGuard.from_calibration(chat_openai(server), planned())
        found = record(ask(GuardedChatModel(guard) if chat_model else guard, "?", way))
    assert (found["decision"], found["certified"]) == ("accept", True)
    assert (found["n_requested"], found["n_used"], found["threshold"]) == (3, 3, 0.1)
    assert (found["cost"]["samples_saved"], found["reasons"]) == (2, ["stopped_early"])
    assert found["p_wrong"] == READS(0.0)[0]


def test_an_answer_that_is_given_up_early_is_uncertain() -> None:
    found = said(in_order(*APART))
    assert (found["decision"], found["certified"]) == ("flag", True)
    assert (found["n_used"], found["threshold"]) == (3, 0.1)


def test_what_an_early_round_leaves_open_the_last_one_decides() -> None:
    found = said(in_order("Lyon", "Paris", "Paris", "Paris"))
    assert (found["n_used"], found["threshold"]) == (5, 0.4)
    assert 0.1 < found["uncertainty"] <= 0.4
    assert (found["decision"], found["certified"]) == ("accept", True)
    assert found["reasons"] == []


def test_the_limit_is_that_of_the_round_it_ended_in() -> None:
    # Within the last round's limit, and not within that of the first.
    strict = plan(accept_at_most=(0.1, 0.4), reject_at_least=(0.2,))
    found = said(in_order("Paris", "Lyon", "Paris", "Paris"), planned(cascade=strict))
    assert found["n_used"] == 3
    assert found["uncertainty"] > 0.1
    assert (found["decision"], found["threshold"]) == ("flag", 0.1)
    only_first = planned(
        cascade=plan(-1.0, accept_at_most=(0.1, None)), threshold=certified(-1.0)
    )
    early, late = in_order(*SAME), in_order("Lyon", "Paris", "Paris", "Paris")
    assert said(early, only_first)["decision"] == "accept"
    assert said(late, only_first)["decision"] == "flag"


def test_rounds_one_by_one_are_those_of_the_plan() -> None:
    found = said(in_order(*SAME), max_concurrency=1, schedule="answer_first")
    assert (found["n_used"], found["certified"]) == (3, True)


def test_an_incomplete_round_is_no_stage_of_the_plan() -> None:
    found = said(in_order("Paris", "", "Paris", "Paris"))
    assert (found["n_requested"], found["n_used"]) == (5, 4)
    assert (found["decision"], found["certified"]) == ("flag", False)
    assert "uncalibrated_set" in found["reasons"]
    # Three are left of five: as many as a stage has, and not that stage.
    three = said(in_order("Paris", "", "", "Paris"))
    assert (three["n_used"], three["decision"]) == (3, "flag")
    assert three["reasons"] == ["empty_samples", "uncalibrated_set"]


def test_another_model_is_found_out_after_an_early_stop_too() -> None:
    found = said(in_order(*SAME, model="other"))
    assert (found["n_used"], found["decision"]) == (3, "flag")
    assert found["reasons"] == ["stopped_early", "uncalibrated_model"]


def test_other_rounds_do_not_start() -> None:
    with ChatServer(in_order(*SAME)) as server:
        model = chat_openai(server)
        with pytest.raises(ConfigurationError, match=r"rounds was \[3, 5\]"):
            SNNEGuard.from_calibration(model, planned(), rounds=(2, 5))
        with pytest.raises(ConfigurationError, match="here it is None"):
            SNNEGuard(model, calibration=planned())
        with pytest.raises(ConfigurationError, match="stopping= beside"):
            SNNEGuard.from_calibration(
                model, planned(), stopping=lambda _score, _missing: True
            )


def test_an_allowed_mismatch_keeps_to_the_limits_of_the_stages() -> None:
    allowed = {"allow_mismatch": True}
    whole = said(in_order(*SAME), rounds=None, **allowed)
    assert (whole["n_used"], whole["threshold"]) == (5, 0.4)
    assert (whole["decision"], whole["certified"]) == ("accept", False)
    no_stage = said(in_order(*SAME), n=4, rounds=None, **allowed)
    assert (no_stage["threshold"], no_stage["decision"]) == (-1.0, "flag")
    other = said(in_order(*SAME), method="anchored_snne", **allowed)
    assert (other["method"], other["decision"]) == ("anchored_snne", "accept")
    assert other["reasons"] == ["calibration_mismatch"]


def test_a_plan_that_accepts_nothing_ends_after_the_first_round() -> None:
    nothing = certified(-1.0, status="infeasible")
    made = planned(
        cascade=plan(
            accept_at_most=(None, None), reject_at_least=(0.0,), promise=nothing
        ),
        threshold=nothing,
    )
    found = said(in_order(*SAME), made)
    assert (found["n_used"], found["decision"], found["certified"]) == (
        3,
        "flag",
        False,
    )


def test_a_stop_by_a_threshold_of_ones_own_promises_nothing() -> None:
    threshold = certified(0.9)
    with ChatServer(in_order(*SAME)) as server:
        guard = SNNEGuard(
            chat_openai(server), n=5, rounds=(3, 5), method="snne", threshold=threshold
        )
        found = record(guard.invoke(QUESTION))
        whole = SNNEGuard(chat_openai(server), method="snne", threshold=threshold)
        all_drawn = record(whole.invoke(QUESTION))
    assert (found["n_used"], found["decision"], found["certified"]) == (
        3,
        "accept",
        False,
    )
    assert all_drawn["certified"]
