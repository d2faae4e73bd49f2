from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import re
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.applications import Starlette

from snne_guard.server.live import live_routes
from snne_guard.server.metrics import Metrics
from snne_guard.types import Assessment, Cost, Sample, Span

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


def labels(given: dict[str, str]) -> tuple[str, ...]:
    first = sorted(given, key=lambda name: name != "policy")
    return tuple(given[name] for name in first)


def samples(metrics: Metrics) -> dict[tuple[str, tuple[str, ...]], float]:
    """Read the text as Prometheus does: name and labels, policy first, to a value."""
    return {
        (sample.name, labels(sample.labels)): sample.value
        for family in text_string_to_metric_families(metrics.text())
        for sample in family.samples
    }


def test_calls_are_counted_by_decision_and_policy() -> None:
    metrics = Metrics()
    default, strict = metrics.observer("default"), metrics.observer("strict")
    default.on_assessment(assessment())
    default.on_assessment(assessment(decision=None, threshold=None))
    strict.on_assessment(assessment(decision="refuse"))
    strict.on_assessment(assessment(decision="refuse"))
    read = samples(metrics)
    calls = {key[1]: n for key, n in read.items() if key[0] == "snne_guard_calls_total"}
    assert {key for key, n in calls.items() if n} == {
        ("default", "accept"),
        ("default", "none"),
        ("strict", "refuse"),
    }
    assert calls["strict", "refuse"] == 2
    assert len(calls) == 12


def test_a_policy_is_shown_with_zeros_before_its_first_call() -> None:
    metrics = Metrics()
    metrics.observer("default")
    read = samples(metrics)
    assert read["snne_guard_calls_total", ("default", "refuse")] == 0
    assert read["snne_guard_uncertainty_count", ("default",)] == 0
    assert not any(name == "snne_guard_money_total" for name, _ in read)


def test_an_observer_that_is_asked_for_twice_counts_on() -> None:
    metrics = Metrics()
    for _ in range(2):
        metrics.observer("default").on_assessment(assessment())
    assert samples(metrics)["snne_guard_calls_total", ("default", "accept")] == 2


@pytest.mark.parametrize(
    ("u", "bound"),
    [(0.0, "0.1"), (0.1, "0.1"), (0.1000001, "0.2"), (0.3, "0.3"), (1.0, "1.0")],
)
def test_u_is_counted_up_to_each_tenth(u: float, bound: str) -> None:
    metrics = Metrics()
    metrics.observer("p").on_assessment(assessment(uncertainty=u))
    read = samples(metrics)
    reached = [
        of[1]
        for (name, of), n in read.items()
        if name == "snne_guard_uncertainty_bucket" and n
    ]
    assert reached[0] == bound
    assert reached[-1] == "+Inf"
    assert len(reached) == 12 - round(10 * float(bound))
    assert read["snne_guard_uncertainty_sum", ("p",)] == u
    assert read["snne_guard_uncertainty_count", ("p",)] == 1


def test_what_was_not_scored_is_in_no_bucket_of_u() -> None:
    metrics = Metrics()
    metrics.observer("p").on_assessment(
        assessment(uncertainty=None, decision="unscored", reasons=("too_few_samples",))
    )
    read = samples(metrics)
    assert read["snne_guard_uncertainty_bucket", ("p", "+Inf")] == 0
    assert read["snne_guard_call_seconds_count", ("p",)] == 1
    assert read["snne_guard_reasons_total", ("p", "too_few_samples")] == 1


def test_seconds_tokens_money_and_upstream_errors_are_summed() -> None:
    metrics = Metrics()
    observer = metrics.observer("p")
    cost = Cost(
        prompt_tokens=100,
        cached_tokens=60,
        completion_tokens=20,
        reasoning_tokens=7,
        seconds=3.5,
        money=0.25,
    )
    observer.on_assessment(assessment(cost=cost))
    observer.on_assessment(assessment(cost=cost))
    observer.on_assessment(assessment(cost=Cost(seconds=500.0)))
    metrics.upstream_error(502)
    metrics.upstream_error(502)
    metrics.upstream_error("timeout")
    read = samples(metrics)
    tokens = [
        read["snne_guard_tokens_total", ("p", kind)]
        for kind in ("prompt", "cached", "completion", "reasoning")
    ]
    assert tokens == [200, 120, 40, 14]
    assert read["snne_guard_money_total", ("p",)] == 0.5
    assert read["snne_guard_call_seconds_sum", ("p",)] == 507
    assert read["snne_guard_call_seconds_bucket", ("p", "2.5")] == 0
    assert read["snne_guard_call_seconds_bucket", ("p", "5.0")] == 2
    assert read["snne_guard_call_seconds_bucket", ("p", "160.0")] == 2
    assert read["snne_guard_call_seconds_bucket", ("p", "+Inf")] == 3
    assert read["snne_guard_upstream_errors_total", ("502",)] == 2
    assert read["snne_guard_upstream_errors_total", ("timeout",)] == 1


def test_every_family_has_its_type_and_meaning_once() -> None:
    metrics = Metrics()
    for policy in ("a", "b"):
        metrics.observer(policy).on_assessment(assessment(cost=Cost(money=1.0)))
    families = [
        family
        for family in text_string_to_metric_families(metrics.text())
        if not family.name.endswith("_created")  # the library's own
    ]
    assert {family.name: family.type for family in families} == {
        "snne_guard_calls": "counter",
        "snne_guard_uncertainty": "histogram",
        "snne_guard_call_seconds": "histogram",
        "snne_guard_tokens": "counter",
        "snne_guard_money": "counter",
        "snne_guard_reasons": "counter",
        "snne_guard_upstream_errors": "counter",
    }
    assert all(family.documentation for family in families)
    assert len(families) == 7


@pytest.mark.parametrize("policy", ['a"b', "a\\b", "a\nb", 'x"} 1\nfaked 2', "ünï{}"])
def test_labels_are_escaped(policy: str) -> None:
    metrics = Metrics()
    metrics.observer(policy).on_assessment(assessment())
    read = samples(metrics)
    assert read["snne_guard_calls_total", (policy, "accept")] == 1
    assert not any(name == "faked" for name, _ in read)


def test_threads_lose_no_call() -> None:
    metrics = Metrics()
    observer = metrics.observer("p")

    def work() -> None:
        for number in range(500):
            observer.on_assessment(assessment(number))
            metrics.upstream_error(500)
            metrics.since(0)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    read = samples(metrics)
    assert read["snne_guard_calls_total", ("p", "accept")] == 2000
    assert read["snne_guard_upstream_errors_total", ("500",)] == 2000
    assert metrics.since(0)["number"] == 2000


def test_the_last_hundred_calls_are_kept_as_numbers() -> None:
    metrics = Metrics()
    observer = metrics.observer("p")
    for number in range(130):
        observer.on_assessment(assessment(number, reasons=("mixed_models",)))
    state = metrics.since(0)
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
    metrics = Metrics()
    observer = metrics.observer("p")
    observer.on_assessment(assessment(0))
    metrics.show_texts = True
    long = Sample(text="y" * 1_000_000)
    observer.on_assessment(assessment(1, answer=long, decision="refuse"))
    observer.on_assessment(assessment(2, answer=None, question=None))
    before, withheld, broken_off = metrics.since(0)["calls"]
    assert "question" not in before
    assert "answer" not in before
    assert withheld["question"] == HIDDEN
    assert withheld["answer"] == "y" * 10_000 + "… (1,000,000 characters)"
    assert broken_off["question"] is broken_off["answer"] is None


def test_uncertain_sentences_are_numbers_and_marks_where_texts_are_shown() -> None:
    metrics = Metrics()
    observer = metrics.observer("p")
    places = [(0, 9, 0.4), (10, 19, 0.6), (9_990, 10_100, 0.9), (10_200, 10_300, 0.9)]
    spans = tuple(
        Span(start=start, end=end, uncertainty=u, supported=0)
        for start, end, u in places
    )
    observer.on_assessment(assessment(0, spans=spans))
    metrics.show_texts = True
    observer.on_assessment(assessment(1, spans=spans, span_threshold=0.3))
    observer.on_assessment(assessment(2))
    numbers, texts, without = metrics.since(0)["calls"]
    assert (numbers["sentences"], numbers["uncertain_sentences"]) == (4, 3)
    assert "marks" not in numbers
    assert texts["uncertain_sentences"] == 4
    assert texts["marks"] == [(0, 9), (10, 19), (9_990, 10_000)]  # as far as is kept
    assert "sentences" not in without
    assert without["marks"] == []


def test_a_reader_gets_what_is_new_and_everything_where_it_lost_some() -> None:
    metrics = Metrics()
    observer = metrics.observer("p")
    assert metrics.since(0)["whole"]
    for number in range(3):
        observer.on_assessment(assessment(number))
    later = metrics.since(2)
    assert not later["whole"]
    assert [call["id"] for call in later["calls"]] == ["id-2"]
    assert metrics.since(3)["calls"] == []
    for number in range(3, 103):
        observer.on_assessment(assessment(number))
    assert not metrics.since(3)["whole"]
    assert len(metrics.since(3)["calls"]) == 100
    assert metrics.since(2)["whole"]


def test_figures_are_those_of_the_last_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_800_000_000.0
    monkeypatch.setattr(time, "time", lambda: now)
    metrics = Metrics()
    observer = metrics.observer("p")
    observer.on_assessment(assessment(decision="refuse"))
    now += 30 * 60
    for decision in ("refuse", "fallback", "accept", "flag"):
        observer.on_assessment(assessment(decision=decision, uncertainty=0.95))
    figures = metrics.since(0)["figures"]
    assert (figures["hour"], figures["held_back"]) == (5, 3)
    assert figures["minutes"][0] == [1_800_000_000, {"refuse": 1}]
    now += 31 * 60
    figures = metrics.since(0)["figures"]
    assert (figures["hour"], figures["held_back"]) == (4, 2)
    assert figures["uncertainty"] == [0, 0, 1, 0, 0, 0, 0, 0, 0, 4]
    assert figures["thresholds"] == {"p": 0.4}
    assert figures["now"] - figures["started"] == 61 * 60


def test_median_and_p95_are_of_the_calls_that_are_kept() -> None:
    metrics = Metrics()
    figures = metrics.since(0)["figures"]
    assert figures["median_seconds"] is figures["p95_seconds"] is None
    observer = metrics.observer("p")
    for number in [1000, *range(100, 0, -1)]:
        observer.on_assessment(assessment(cost=Cost(seconds=float(number))))
    figures = metrics.since(0)["figures"]
    assert (figures["median_seconds"], figures["p95_seconds"]) == (50.0, 95.0)


class Reader:
    """Reads the events of the application as a server would pass them on."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.parts: asyncio.Queue[str] = asyncio.Queue()
        self.may_send = asyncio.Event()
        self.may_send.set()
        self.gone = asyncio.Event()

    async def receive(self) -> dict[str, Any]:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        await self.may_send.wait()
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {k.decode(): v.decode() for k, v in message["headers"]}
        elif message["body"]:
            self.parts.put_nowait(message["body"].decode())

    async def state(self) -> Any:
        part = await asyncio.wait_for(self.parts.get(), 20)
        assert re.fullmatch(r"data: [^\n]+\n\n", part)
        return json.loads(part.removeprefix("data: "))


@asynccontextmanager
async def reading(metrics: Metrics) -> AsyncIterator[tuple[Reader, asyncio.Task[None]]]:
    reader = Reader()
    scope = {"type": "http", "method": "GET", "path": "/snne/events", "headers": []}
    app = Starlette(routes=live_routes(metrics))
    task = asyncio.create_task(app(scope, reader.receive, reader.send))
    try:
        assert await asyncio.wait_for(reader.parts.get(), 20) == "retry: 1000\n\n"
        yield reader, task
    finally:
        metrics.close()
        await asyncio.wait_for(task, 20)


async def test_events_are_everything_first_and_then_what_is_new() -> None:
    metrics = Metrics()
    observer = metrics.observer("p")
    observer.on_assessment(assessment(1))
    async with reading(metrics) as (reader, _):
        assert reader.headers["content-type"].startswith("text/event-stream")
        assert reader.headers["cache-control"] == "no-store"
        first = await reader.state()
        assert first["whole"]
        assert [call["id"] for call in first["calls"]] == ["id-1"]
        await asyncio.to_thread(observer.on_assessment, assessment(2))
        second = await reader.state()
        assert not second["whole"]
        assert [call["id"] for call in second["calls"]] == ["id-2"]
        assert second["figures"]["hour"] == 2


async def test_a_slow_reader_holds_nothing_up_and_is_sent_everything_again() -> None:
    metrics = Metrics()
    observer = metrics.observer("p")
    async with reading(metrics) as (reader, _), reading(metrics) as (quick, _):
        await reader.state()
        await quick.state()
        reader.may_send.clear()
        observer.on_assessment(assessment(0))
        await quick.state()
        for number in range(1, 500):
            observer.on_assessment(assessment(number))
        await quick.state()
        assert reader.parts.empty()
        reader.may_send.set()
        assert [call["id"] for call in (await reader.state())["calls"]] == ["id-0"]
        again = await reader.state()
        assert again["whole"]
        assert [call["id"] for call in again["calls"]] == [
            f"id-{number}" for number in range(400, 500)
        ]


async def test_a_quiet_stream_says_something_now_and_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("snne_guard.server.live.QUIET_SECONDS", 0.3)
    metrics = Metrics()
    async with reading(metrics) as (reader, _):
        for _ in range(3):
            assert (await reader.state())["calls"] == []


async def test_streams_end_when_the_reader_goes_or_the_server_does() -> None:
    metrics = Metrics()
    async with reading(metrics) as (reader, task):
        await reader.state()
        reader.gone.set()
        await asyncio.wait_for(task, 20)
    async with reading(metrics := Metrics()) as (reader, task):
        await reader.state()
        assert not task.done()
        metrics.close()
        await asyncio.wait_for(task, 20)


async def test_the_page_may_run_its_own_script_and_nothing_else() -> None:
    app = Starlette(routes=live_routes(Metrics()))
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as http:
        page = await http.get("/snne/live")
        text = await http.get("/metrics")
        refused = await http.post("/snne/live")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    policy = page.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; ")
    for tag in ("script", "style"):
        [source] = re.findall(f"<{tag}>(.*?)</{tag}>", page.text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'; " in policy
    assert not re.search(r"\son\w+=|style=|https?://(?!www.w3.org/2000/svg)", page.text)
    assert text.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert text.text.startswith("# HELP snne_guard_calls_total ")
    assert refused.status_code == 405
