from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from snne_guard.server.metrics import Metrics
from snne_guard.types import Assessment, Cost, Sample, Span
from tests.server.support import Running, serving
from tests.support.openai_server import CHAT, Server, always

HIDDEN = "a text that nobody may see"


def assessment(number: int = 0, **fields: Any) -> Assessment:
    usual: dict[str, Any] = {
        "id": f"id-{number}",
        "answer": Sample(text=HIDDEN),
        "samples": (Sample(text=HIDDEN),),
        "question": HIDDEN,
        "uncertainty": 0.25,
        "threshold": 0.4,
        "decision": "accept",
        "cost": Cost(prompt_tokens=10, completion_tokens=5, seconds=0.3),
    }
    return Assessment(**{**usual, **fields})


def counted(*assessments: Assessment, show_texts: bool = False) -> Metrics:
    metrics = Metrics(show_texts=show_texts)
    for each in assessments:
        metrics.count("p", each)
    return metrics


def samples(metrics: Metrics) -> dict[tuple[str, ...], float]:
    """Read the text as Prometheus does: name and labels to a value."""
    return {
        (sample.name.removeprefix("snne_guard_"), *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(metrics.text())
        for sample in family.samples
    }


def test_calls_are_counted_by_decision_and_policy() -> None:
    metrics = counted(assessment(), assessment(decision=None, threshold=None))
    for _ in range(2):
        metrics.count("strict", assessment(decision="refuse"))
    calls = {key: n for key, n in samples(metrics).items() if key[0] == "calls_total"}
    assert calls == {
        ("calls_total", "accept", "p"): 1,
        ("calls_total", "none", "p"): 1,
        ("calls_total", "refuse", "strict"): 2,
    }


@pytest.mark.parametrize(("u", "tenth"), [(0.0, 0), (0.1, 0), (0.1000001, 1), (1.0, 9)])
def test_u_is_counted_up_to_each_tenth(u: float, tenth: int) -> None:
    metrics = counted(assessment(uncertainty=u))
    bins = metrics.state()["uncertainty"]
    assert (len(bins), sum(bins), bins[tenth]) == (10, 1, 1)
    assert samples(metrics)["uncertainty_sum", "p"] == u


def test_what_was_not_scored_is_in_no_bucket_of_u() -> None:
    metrics = counted(assessment(uncertainty=None, decision="unscored"))
    assert samples(metrics)["call_seconds_count", "p"] == 1
    assert sum(metrics.state()["uncertainty"]) == 0


def test_seconds_tokens_money_and_upstream_errors_are_summed() -> None:
    cost = Cost(
        prompt_tokens=100,
        cached_tokens=60,
        completion_tokens=20,
        reasoning_tokens=7,
        seconds=3.5,
        money=0.25,
    )
    metrics = counted(assessment(cost=cost), assessment(cost=cost))
    for status in (502, 502, "timeout"):
        metrics.upstream_error(status)
    read, state = samples(metrics), metrics.state()
    kinds = ("prompt", "cached", "completion", "reasoning")
    assert [read["tokens_total", kind, "p"] for kind in kinds] == [200, 120, 40, 14]
    assert read["money_total", "p"] == state["money"] == 0.5
    assert read["call_seconds_sum", "p"] == 7
    assert state["upstream_errors"] == {"502": 2, "timeout": 1}
    assert (state["total"], state["tokens"]) == (2, 240)
    assert counted(assessment()).state()["money"] is None


def test_threads_lose_no_call() -> None:
    metrics = Metrics()

    def work() -> None:
        for number in range(500):
            metrics.count("p", assessment(number))
            metrics.upstream_error(500)
        metrics.state()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    state = metrics.state()
    assert (state["total"], state["upstream_errors"]) == (2000, {"500": 2000})
    assert sum(counts["accept"] for _, counts in state["minutes"]) == 2000


def test_the_last_hundred_calls_are_kept_as_numbers() -> None:
    calls = [assessment(number, reasons=("mixed_models",)) for number in range(130)]
    metrics = counted(*calls)
    state = metrics.state()
    assert [call["id"] for call in state["calls"]] == [
        f"id-{n}" for n in range(30, 130)
    ]
    call = state["calls"][0]
    assert call.pop("at") == pytest.approx(time.time(), abs=60)
    assert call == {
        "id": "id-30",
        "policy": "p",
        "decision": "accept",
        "uncertainty": 0.25,
        "threshold": 0.4,
        "seconds": 0.3,
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "money": None,
        "reasons": ["mixed_models"],
    }
    assert HIDDEN not in json.dumps(state)
    assert HIDDEN not in metrics.text()


def test_texts_are_kept_where_they_are_shown_and_cut() -> None:
    long = Sample(text="y" * 1_000_000)
    withheld = assessment(1, answer=long, decision="refuse")
    metrics = counted(withheld, assessment(answer=None, question=None), show_texts=True)
    first, broken_off = metrics.state()["calls"]
    assert (first["question"], first["answer"]) == (HIDDEN, "y" * 10_000 + "…")
    assert broken_off["question"] == broken_off["answer"] == ""


def test_uncertain_sentences_are_marked_by_their_place() -> None:
    spans = tuple(
        Span(start=10 * number, end=10 * number + 9, uncertainty=u, supported=0)
        for number, u in enumerate((0.2, 0.4, 0.6))
    )
    by_default = assessment(spans=spans)
    calls = counted(by_default, assessment(spans=spans, span_threshold=0.3)).state()
    assert [call["sentences"] for call in calls["calls"]] == [3, 3]
    marks = [call["marks"] for call in calls["calls"]]
    assert marks == [[(20, 29)], [(10, 19), (20, 29)]]


def test_decisions_are_counted_minute_by_minute_for_an_hour(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 1_800_000_000.0
    monkeypatch.setattr(time, "time", lambda: now)
    metrics = counted(assessment(decision="refuse"))
    now += 30 * 60
    for _ in range(2):
        metrics.count("p", assessment())
    assert metrics.state()["minutes"] == [
        [1_800_000_000, {"refuse": 1}],
        [1_800_001_800, {"accept": 2}],
    ]
    now += 31 * 60
    state = metrics.state()
    assert state["minutes"] == [[1_800_001_800, {"accept": 2}]]
    assert state["now"] - state["started"] == 61 * 60


# -- The routes ------------------------------------------------------------------------


@pytest.fixture
def running() -> Iterator[Running]:
    with Server(always("Paris")) as upstream, serving(upstream.url) as found:
        yield found


def test_events_are_the_state_and_what_becomes_of_it(running: Running) -> None:
    with httpx.stream("GET", f"{running.url}/snne/events", timeout=20) as events:
        assert events.headers["content-type"].startswith("text/event-stream")
        assert events.headers["cache-control"] == "no-store"
        lines = (line for line in events.iter_lines() if line)
        before = json.loads(next(lines).removeprefix("data: "))
        running.client().chat.completions.create(**CHAT)
        after = json.loads(next(lines).removeprefix("data: "))
    assert (before["calls"], before["total"]) == ([], 0)
    assert [call["decision"] for call in after["calls"]] == ["none"]


def test_the_page_may_run_its_own_script_and_nothing_else(running: Running) -> None:
    page = httpx.get(f"{running.url}/snne/live")
    policy = page.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; ")
    for tag in ("script", "style"):
        [source] = re.findall(f"<{tag}>(.*?)</{tag}>", page.text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'; " in policy
    assert not re.search(r"\son\w+=|style=|https?://(?!www.w3.org/2000/svg)", page.text)
    text = httpx.get(f"{running.url}/metrics")
    assert text.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert text.text.startswith("# HELP snne_guard_calls_total ")
