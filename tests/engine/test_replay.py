"""Recorded replies through the engine, and what a replay leaves out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from snne_guard.engine import (
    GuardState,
    Request,
    Response,
    replay_call,
    run,
)
from snne_guard.engine.protocol import Draws
from snne_guard.settings import GuardSettings
from snne_guard.types import FloatArray, Reply
from tests.support.observers import Watcher
from tests.support.senders import ScriptedSender


def asking(**options: Any) -> Request:
    settings = GuardSettings(**options)
    return Request(
        settings=settings,
        state=GuardState(),
        parameters=frozenset({"n"}),
    )


def response(*texts: str) -> Response:
    replies = tuple(Reply(text=text, finish_reason="stop") for text in texts)
    return Response(replies=replies, raw=texts[0])


def recorded(draws: Draws) -> list[Response]:
    samples = ["Paris", "Lyon", "Paris", "Nice"]
    return [
        response("Paris") if draw.role == "answer" else response(*samples[: draw.n])
        for draw in draws
    ]


def test_a_replay_ends_as_the_call_does_that_is_sent() -> None:
    texts = iter(["Lyon", "Paris", "Nice", "Paris"])

    def script(draw: Any, place: int) -> str:
        return "Paris" if draw.role == "answer" else next(texts)

    request = asking(threshold=0.1, on_uncertain="refuse")
    alone = replace(request, parameters=frozenset())
    sent = run(alone, ScriptedSender(script))
    again = replay_call(request, recorded)
    assert again.delivery == sent.delivery == "refusal"
    ours, theirs = again.assessment, sent.assessment
    assert ours.uncertainty == pytest.approx(theirs.uncertainty)
    assert (ours.decision, ours.n_used) == (theirs.decision, theirs.n_used)


@pytest.mark.parametrize("switch", ["environment", "sample_rate"])
def test_nothing_leaves_a_replay_unscored(
    switch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if switch == "environment":
        monkeypatch.setenv("SNNE_GUARD_DISABLED", "1")
    request = asking(sample_rate=1.0 if switch == "environment" else 0.0)
    found = replay_call(replace(request, replayed=True), recorded).assessment
    assert (found.n_used, found.reasons) == (5, ("no_threshold",))
    assert found.uncertainty is not None
    # A call that is still to be paid for, as in a batch, is no such replay.
    assert replay_call(request, recorded).assessment.uncertainty is None


def test_no_observer_is_told_of_a_replay() -> None:
    watcher = Watcher()
    replay_call(asking(observers=[watcher]), recorded)
    assert watcher.assessments == []


def broken(texts: Sequence[str], /, *, question: str | None = None) -> FloatArray:
    del texts, question
    raise ZeroDivisionError


def test_what_scoring_raises_is_an_outcome_or_ends_the_replay() -> None:
    request = asking(similarity=broken)
    assert "scoring_failed" in replay_call(request, recorded).assessment.reasons
    with pytest.raises(ZeroDivisionError):
        replay_call(request, recorded, errors_end_it=True)


def test_what_a_recording_lacks_ends_the_replay() -> None:
    def nothing(draws: Draws) -> list[Response]:
        raise LookupError(len(draws))

    with pytest.raises(LookupError, match="2"):
        replay_call(asking(), nothing)
