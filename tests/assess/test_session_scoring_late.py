"""Scoring that does not end in time: the answer is unscored, and nothing hangs."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from snne_guard.assess import Judge, books
from snne_guard.assess.stopping import Stopping
from snne_guard.decision import Policy, Threshold
from snne_guard.types import FloatArray
from tests.assess.sessions import WAYS, Setting, used_up

pytestmark = pytest.mark.usefixtures("brief_observers")


class Slow:
    """A similarity that waits for its gate."""

    def __init__(self) -> None:
        self.gate = threading.Event()

    def __call__(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> FloatArray:
        del question
        self.gate.wait(60)
        return np.ones((len(texts), len(texts)))


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[Slow]:
    monkeypatch.setattr(books, "_GRACE", 0.02)
    similarity = Slow()
    yield similarity
    similarity.gate.set()


def judge(similarity: Any, **options: Any) -> Judge:
    policy = Policy(threshold=Threshold.fixed(0.5), on_uncertain="refuse", **options)
    return Judge(policy=policy, similarity=similarity)


@WAYS
@pytest.mark.parametrize(
    ("on_error", "decision"), [("uncertain", "refuse"), ("accept", "unscored")]
)
def test_an_answer_whose_score_is_late_is_unscored(
    way: str, on_error: Any, decision: str, slow: Slow
) -> None:
    setting = Setting(way, judge=judge(slow, on_error=on_error), timeout=500)

    found, verdict = setting.call(before=used_up)

    assert found.reasons == ("scoring_late",)
    assert (found.decision, verdict.decision) == (decision, decision)
    assert (found.score, found.uncertainty, found.matrix) == (None, None, None)
    assert found.answer is not None
    assert len(found.samples) == 4


@WAYS
def test_scoring_has_a_moment_also_where_the_time_is_up(
    way: str, slow: Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(books, "_GRACE", 60)
    slow.gate.set()
    setting = Setting(way, judge=judge(slow), timeout=500)

    found, _ = setting.call(before=used_up)

    assert found.uncertainty == 0.0


@WAYS
def test_without_a_limit_scoring_takes_what_it_takes(way: str, slow: Slow) -> None:
    threading.Timer(0.1, slow.gate.set).start()

    found, _ = Setting(way, judge=judge(slow)).call()

    assert (found.uncertainty, found.reasons) == (0.0, ())


@WAYS
def test_our_own_scoring_is_never_late(way: str, slow: Slow) -> None:
    del slow  # for its short grace
    setting = Setting(way, timeout=500)

    found, _ = setting.call(before=used_up)

    assert "scoring_late" not in found.reasons
    assert found.uncertainty == 0.0


@WAYS
def test_a_round_that_cannot_be_judged_in_time_settles_nothing(
    way: str, slow: Slow
) -> None:
    late = judge(slow)
    setting = Setting(way, judge=late, timeout=500, n=5, rounds=(3, 5))
    rule = Stopping(judge=late, certificate=False, rule=lambda *_: True)
    setting.assessor = replace(setting.assessor, stopping=rule)

    found, _ = setting.call(before=used_up)

    assert "stopped_early" not in found.reasons
    assert found.reasons[-1] == "scoring_late"
