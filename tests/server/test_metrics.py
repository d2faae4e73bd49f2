from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from snne_guard.cost import Cost
from snne_guard.server.metrics import Metrics
from snne_guard.types import Assessment, Field, Reply
from tests.server.support import Running, serving
from tests.support.openai_server import CHAT, Server, always

HIDDEN = "a text that nobody may see"


def assessment(number: int = 0, **fields: Any) -> Assessment:
    usual: dict[str, Any] = {
        "id": f"id-{number}",
        "answer": Reply(text=HIDDEN),
        "samples": (Reply(text=HIDDEN),),
        "question": HIDDEN,
        "uncertainty": 0.25,
        "threshold": 0.4,
        "decision": "accept",
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
        ("calls_total", "accept", "", "other", "p"): 1,
        ("calls_total", "none", "", "other", "p"): 1,
        ("calls_total", "refuse", "", "other", "strict"): 2,
    }


@pytest.mark.parametrize("reason", ["answer_failed", "cancelled"])
@pytest.mark.parametrize("threshold", [None, 0.4])
def test_a_call_that_failed_is_a_failure_and_not_measured(
    reason: str, threshold: float | None
) -> None:
    failed = assessment(threshold=threshold, decision=None, reasons=(reason,))
    metrics = counted(failed, assessment(1, decision=None, answer=None))
    assert samples(metrics)["calls_total", "failed", "", "other", "p"] == 2
    assert [call["outcome"] for call in metrics.state()["calls"]] == ["failed"] * 2


def test_a_fallback_for_an_answer_that_failed_is_a_fallback() -> None:
    metrics = counted(assessment(decision="fallback", reasons=("answer_failed",)))
    assert samples(metrics)["calls_total", "fallback", "", "other", "p"] == 1


def test_models_are_named_as_they_answer_and_bounded() -> None:
    names = [f"model-{n}" for n in range(200)]
    odd = ["", "two words", "x" * 500, 'a"} 1\nfake{b="', "gpt\n"]
    replies = [Reply(text="a", model=name) for name in (*names, *odd, None)]
    metrics = counted(*(assessment(answer=reply) for reply in (*replies, *replies)))
    calls = {k[3]: n for k, n in samples(metrics).items() if k[0] == "calls_total"}
    assert calls == {**dict.fromkeys(names[:50], 2), "other": 2 * 156}


def test_u_seconds_tokens_money_and_upstream_errors_are_summed() -> None:
    cost = Cost(
        prompt_tokens=100,
        cached_tokens=60,
        completion_tokens=20,
        reasoning_tokens=7,
        seconds=3.5,
        money=0.25,
    )
    unscored = assessment(cost=cost, uncertainty=None, decision="unscored")
    metrics = counted(assessment(cost=cost), unscored)
    metrics.upstream_errors.labels(502).inc()
    read = samples(metrics)
    kinds = ("prompt", "cached", "completion", "reasoning")
    tokens = [read["tokens_total", "", kind, "other", "p"] for kind in kinds]
    assert tokens == [200, 120, 40, 14]
    assert read["money_total", "", "other", "p"] == 0.5
    assert read["call_seconds_sum", "other", "p"] == 7
    u = [read[f"uncertainty_{what}", "other", "p"] for what in ("count", "sum")]
    assert u == [1, 0.25]
    assert read["upstream_errors_total", "502"] == 1


def test_the_last_hundred_calls_are_kept_as_numbers() -> None:
    calls = [assessment(number) for number in range(130)]
    metrics = counted(*calls)
    state = metrics.state()
    assert [call["id"] for call in state["calls"]] == [
        f"id-{n}" for n in range(30, 130)
    ]
    call = state["calls"][0]
    assert call.pop("at") == pytest.approx(time.time(), abs=60)
    fields = {"policy": "p", "outcome": "accept"}
    assert call == {**fields, **calls[30].to_metadata()}
    assert HIDDEN not in json.dumps(state)
    assert HIDDEN not in metrics.text()


def test_texts_are_kept_where_they_are_shown_and_cut() -> None:
    long = Reply(text="y" * 1_000_000)
    samples = (Reply(text="z" * 50_000),) * 100
    withheld = assessment(1, answer=long, samples=samples, decision="refuse")
    metrics = counted(withheld, assessment(answer=None, question=None), show_texts=True)
    first, broken_off = metrics.state()["calls"]
    assert (first["question"], first["answer"]) == (HIDDEN, "y" * 10_000)
    assert broken_off["question"] == broken_off["answer"] == ""
    assert first["samples"] == ["z" * 1_000] * 20


def test_an_hour_is_counted_minute_by_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_800_000_000.0
    monkeypatch.setattr(time, "time", lambda: now)
    metrics = counted(assessment(decision="refuse", uncertainty=1.0))
    now += 30 * 60
    for u in (0.0, 0.2):
        metrics.count("p", assessment(uncertainty=u, cost=Cost(money=0.5)))
    later = [1_800_001_800, {"accept": 2, "u0": 1, "u2": 1, "money": 1.0}]
    first = [1_800_000_000, {"refuse": 1, "u9": 1}]
    assert metrics.state()["minutes"] == [first, later]
    now += 31 * 60
    assert metrics.state()["minutes"] == [later]


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
    assert before["calls"] == []
    assert [call["decision"] for call in after["calls"]] == [None]


def test_the_page_may_run_its_own_script_and_nothing_else(running: Running) -> None:
    page = httpx.get(f"{running.url}/snne/live")
    policy = page.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; ")
    nonces = [
        *re.findall(r'<(?:script|style) nonce="([^"]+)">', page.text),
        *re.findall(r"(?:script|style)-src 'nonce-([^']+)'; ", policy),
    ]
    assert len(nonces) == 4
    assert len({*nonces}) == 1
    assert nonces[0] not in httpx.get(f"{running.url}/snne/live").text
    assert not re.search(r"\son\w+=|style=|https?://(?!www.w3.org/2000/svg)", page.text)
    text = httpx.get(f"{running.url}/metrics")
    assert text.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert text.text.startswith("# HELP snne_guard_calls_total ")


def test_uncertain_fields_are_kept_by_path_and_no_more_than_twenty() -> None:
    def found(*us: float) -> tuple[Field, ...]:
        return tuple(
            Field(path=f"/{place}", uncertainty=u, supported=0)
            for place, u in enumerate(us)
        )

    few = assessment(1, fields=found(0.1, 0.45, 0.9), field_threshold=0.4)
    many = assessment(2, fields=found(*[0.9] * 500))
    withheld = assessment(3, fields=found(0.9), decision="refuse")
    one, two, three = counted(few, many, withheld).state()["calls"]
    assert one["uncertain_fields"] == ["/1", "/2"]
    assert (one["n_fields"], one["n_uncertain_fields"]) == (3, 2)
    assert len(two["uncertain_fields"]) == 20
    assert (two["n_fields"], two["n_uncertain_fields"]) == (500, 500)
    assert not {"fields", "n_fields", "uncertain_fields"} & three.keys()
