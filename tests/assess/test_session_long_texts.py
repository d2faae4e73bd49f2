"""Long texts and large sets are scored beside the event loop, and within the time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from snne_guard.assess import Judge, books, judge
from snne_guard.decision import Policy, Threshold
from snne_guard.sampling import Draw, Reply
from snne_guard.similarity import content_f1
from snne_guard.types import Cost, FloatArray, Sample
from tests.assess.sessions import WAYS, Setting, used_up

pytestmark = pytest.mark.usefixtures("brief_observers")

SHORT, LONG = "Paris", "Paris lies on the Seine. " * 100


def watching(doing: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> Judge:
    """Judge by a similarity of the library's own that does something else as well."""

    def watched(texts: Sequence[str], /, *, question: str | None = None) -> FloatArray:
        doing()
        return content_f1(texts, question=question)

    monkeypatch.setattr(judge, "_QUICK", (watched,))
    policy = Policy(threshold=Threshold.fixed(0.5), on_uncertain="refuse")
    return Judge(policy=policy, similarity=watched)


def saying(text: str) -> Callable[[Draw], Reply]:
    def send(draw: Draw) -> Reply:
        return Reply(samples=(Sample(text=text),) * draw.n, cost=Cost(calls=1))

    return send


@pytest.mark.parametrize(
    ("text", "n", "on_the_loop"),
    [(SHORT, 5, True), (SHORT, 20, True), (SHORT, 21, False), (LONG, 5, False)],
)
def test_what_takes_long_leaves_the_loop(
    text: str, n: int, *, on_the_loop: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    scored: list[int] = []
    judging = watching(lambda: scored.append(threading.get_ident()), monkeypatch)
    assert judging.light
    found, _ = Setting("tasks", judge=judging, n=n).call(
        Sample(text=text), send=saying(text)
    )
    assert (found.uncertainty, found.n_used) == (0.0, n)
    assert [where == threading.get_ident() for where in scored] == [on_the_loop]


@WAYS
def test_long_texts_that_are_not_scored_in_time_are_late(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(books, "_GRACE", 0.02)
    gate = threading.Event()
    judging = watching(lambda: gate.wait(60), monkeypatch)
    setting = Setting(way, judge=judging, timeout=500)
    try:
        found, verdict = setting.call(
            Sample(text=LONG), send=saying(LONG), before=used_up
        )
    finally:
        gate.set()
    assert found.reasons == ("scoring_late",)
    assert (found.score, verdict.decision) == (None, "refuse")
