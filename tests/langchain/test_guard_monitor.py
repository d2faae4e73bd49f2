"""Guards with a monitor, end to end: audits, reports, and an alarm's consequences."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import openai
import pytest

from snne_guard import (
    Monitor,
    OpenAIGuard,
    SNNEGuard,
    SqliteStore,
    UncertainAnswerError,
)
from snne_guard.langchain import is_refusal
from tests.support.calibrated import calibration
from tests.support.chat_server import ChatServer, always, chat_openai
from tests.support.guarding import DIFFER, WAYS, WHOLE, ask, record, split

PARIS = always("Paris")


def alarmed(**options: Any) -> Monitor:
    """Return a monitor that has given an alarm."""
    monitor = Monitor(alpha=0.1, audit_rate=1.0, **options)
    for number in range(6):
        monitor.note(str(number), uncertainty=None, accepted=True)
    for number in range(6):
        monitor.report(str(number), correct=False)
    return monitor


@pytest.mark.parametrize("way", WAYS)
def test_an_accepted_answer_is_picked_and_reported_by_its_id(
    way: str, tmp_path: Path
) -> None:
    monitor = Monitor(
        alpha=0.5, audit_rate=1.0, store=SqliteStore(tmp_path / "monitor.db")
    )
    with ChatServer(PARIS) as server:
        guard = SNNEGuard(chat_openai(server), threshold=0.5, monitor=monitor)
        found = record(ask(guard, "x", way))
    assert (found["decision"], found["audit"], found["reasons"]) == ("accept", True, [])
    assert monitor.pending() == (found["id"],)
    status = monitor.report(found["id"], correct=True)
    assert (status.n_scores, status.n_reported, status.state) == (1, 1, "ok")


@pytest.mark.parametrize("way", WHOLE)
def test_an_uncertain_answer_counts_and_is_not_audited(way: str) -> None:
    monitor = Monitor(audit_rate=1.0)
    with ChatServer(split("Paris", DIFFER)) as server:
        guard = SNNEGuard(chat_openai(server), threshold=0.1, monitor=monitor)
        found = record(ask(guard, "x", way))
    assert (found["decision"], found["audit"]) == ("flag", False)
    assert (monitor.status().n_scores, monitor.status().n_accepted) == (1, 0)


@pytest.mark.parametrize("way", WAYS)
def test_a_stale_guard_refuses_what_it_would_accept(way: str) -> None:
    with ChatServer(PARIS) as server:
        guard = SNNEGuard(
            chat_openai(server), threshold=0.5, monitor=alarmed(on_stale="refuse")
        )
        message = ask(guard, "x", way)
    assert is_refusal(message)
    found = record(message)
    assert found["reasons"] == ["calibration_stale"]
    assert (found["certified"], found["uncertainty"]) == (False, 0.0)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("on_stale", ["uncertain", "raise"])
def test_a_stale_guard_may_raise(way: str, on_stale: Any) -> None:
    with ChatServer(PARIS) as server:
        guard = SNNEGuard(
            chat_openai(server),
            threshold=0.5,
            on_uncertain="raise" if on_stale == "uncertain" else "flag",
            monitor=alarmed(on_stale=on_stale),
        )
        with pytest.raises(UncertainAnswerError) as caught:
            ask(guard, "x", way)
    assert caught.value.reasons == ("calibration_stale",)


def test_a_stale_guard_may_hand_over_or_go_on() -> None:
    with ChatServer(PARIS) as server:
        model = chat_openai(server)
        handing = SNNEGuard(
            model,
            threshold=0.5,
            fallback=lambda _: "somebody else",
            monitor=alarmed(on_stale="fallback"),
        )
        assert handing.invoke("x").content == "somebody else"
        going_on = SNNEGuard(model, threshold=0.5, monitor=alarmed(on_stale="accept"))
        found = record(going_on.invoke("x"))
    assert (found["decision"], found["reasons"]) == ("accept", ["calibration_stale"])


def test_guards_made_from_one_share_its_monitor() -> None:
    monitor = Monitor(audit_rate=1.0)
    with ChatServer(PARIS) as server:
        guard = SNNEGuard(chat_openai(server), threshold=0.5, monitor=monitor)
        guard.invoke("x")
        guard.on(chat_openai(server)).invoke("y")
        again = pickle.loads(pickle.dumps(monitor))  # noqa: S301 - our own bytes
    assert monitor.status().n_accepted == 2
    assert again.status().n_accepted == 0


def test_the_openai_guard_has_one_too() -> None:
    monitor = Monitor(alpha=0.5, audit_rate=1.0)
    with ChatServer(PARIS) as server:
        client = openai.OpenAI(base_url=server.url, api_key="x")
        guard = OpenAIGuard(client, model="m", threshold=0.5, monitor=monitor)
        found = guard.assess([{"role": "user", "content": "x"}])
        assert (found.decision, found.audit) == ("accept", True)
        assert monitor.report(found.id, correct=False).n_wrong == 1
        stale = OpenAIGuard(client, model="m", threshold=0.5, monitor=alarmed())
        found = stale.assess([{"role": "user", "content": "x"}])
    assert (found.decision, found.reasons) == ("flag", ("calibration_stale",))


def test_a_calibrated_guard_is_certified_until_its_calibration_is_stale() -> None:
    monitor = Monitor(audit_rate=1.0)
    made = calibration(reference=tuple(step / 500 for step in range(500)))
    with ChatServer(PARIS) as server:
        guard = SNNEGuard.from_calibration(chat_openai(server), made, monitor=monitor)
        found = record(guard.invoke("x"))
        assert (found["certified"], found["audit"]) == (True, True)
        assert monitor.alpha == made.threshold.level
        assert monitor.status().n_reference == 500
        ids = [found["id"]]
        while monitor.status().state != "stale":
            monitor.report(ids[-1], correct=False)
            found = record(guard.invoke("x"))
            ids.append(found["id"])
    assert (found["certified"], found["decision"]) == (False, "flag")
    assert found["reasons"] == ["calibration_stale"]
    assert len(ids) < 10
