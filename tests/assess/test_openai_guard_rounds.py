"""Rounds of a guard for the ``openai`` package."""

from __future__ import annotations

import pytest

from snne_guard.decision import CalibratedStop
from tests.support.chat_server import ChatServer, always
from tests.support.openai_clients import assessing

WAYS = pytest.mark.parametrize("way", ["threads", "tasks"])
RULE = CalibratedStop(
    rounds=(3, 5, 10),
    threshold=0.4,
    accept_at_most=(None, 0.3),
    reject_at_least=(None, None),
    anchor=0.7,
)


@WAYS
def test_it_stops_where_the_decision_is_settled(way: str) -> None:
    with (
        ChatServer(always("Paris")) as server,
        assessing(server, way, n=10, rounds=(5, 8, 10), threshold=0.5) as assess,
    ):
        found = assess("Capital of France?")
        asked = [request.n for request in server.requests]
    assert (found.n_requested, found.decision) == (8, "accept")
    assert sorted(asked) == [1, 3, 4]
    assert found.cost.samples_saved == 2


@WAYS
def test_it_follows_a_learnt_rule(way: str) -> None:
    with (
        ChatServer(always("Paris")) as server,
        assessing(
            server, way, n=10, method="snne", threshold=0.4, stopping=RULE
        ) as assess,
    ):
        found = assess("Capital of France?")
    assert (found.n_requested, found.reasons) == (5, ("stopped_early",))
    assert (found.cost.rounds, found.cost.samples_saved) == (2, 5)
