"""Bodies that are large, deep, or compressed to next to nothing."""

from __future__ import annotations

import gzip
import threading
import time
from typing import Any

import httpx
import pytest

from tests.server.support import Running, echo, key, serving
from tests.support.openai_server import CHAT, RESPONSES, Server, always

HEAD = b'{"model": "m", "messages": [{"role": "user", "content": "Hi"}], '
MANY = 2_000_000


def slowest_health(running: Running, work: threading.Thread) -> float:
    """Return the longest time that a small request takes while a thread works."""
    slowest = 0.0
    with httpx.Client() as client:
        work.start()
        while work.is_alive():
            start = time.monotonic()
            assert client.get(f"{running.url}/health", timeout=60).is_success
            slowest = max(slowest, time.monotonic() - start)
    return slowest


@pytest.mark.parametrize(
    ("path", "part"),
    [
        ("/snne/score", b"[]"),
        ("/v1/chat/completions", b'"a"'),
        ("/v1/chat/completions", b'{"a":[1]}'),
    ],
)
def test_a_body_of_many_values_is_refused_and_holds_nobody_up(
    path: str, part: bytes
) -> None:
    body = HEAD + b'"x": [' + b",".join([part] * MANY) + b"]}"
    got: list[httpx.Response] = []
    with Server(always()) as upstream, serving(upstream.url) as running:
        work = threading.Thread(
            target=lambda: got.append(running.post(path, content=body))
        )
        assert slowest_health(running, work) < 1
    assert got[0].status_code == 400
    assert "100000 values" in got[0].json()["error"]["message"]
    assert not upstream.requests


def test_a_large_body_is_an_ordinary_request() -> None:
    text = 'It said: "[{, \\' * 500_000 + "é"
    messages = [{"role": "user", "content": text}]
    with Server(always()) as upstream, serving(upstream.url) as running:
        got = running.post(json={"model": "m", "messages": messages})
    assert got.json()["choices"][0]["message"]["content"] == "Paris"
    assert upstream.requests[0].body["messages"] == messages


def test_large_bodies_wait_for_those_of_their_own_key_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at_once, ended = threading.Semaphore(0), threading.Event()

    def read(content: bytes, **_: Any) -> dict[str, Any]:
        at_once.release()
        ended.wait(30)
        return {}

    monkeypatch.setattr("snne_guard.server.bodies.json_object", read)
    keys = {"a": key("a"), "b": key("b")}
    body = b" " * 100_000 + b"{}"
    with serving("http://127.0.0.1:1/v1", keys=keys) as running:
        sent = [
            threading.Thread(
                target=running.post,
                kwargs={"content": body, "headers": {"authorization": f"Bearer {who}"}},
            )
            for who in "aaaab"
        ]
        for each in sent:
            each.start()
        for _ in range(3):  # two of one key, one of the other
            assert at_once.acquire(timeout=30)
        assert not at_once.acquire(timeout=0.2)
        ended.set()
        for each in sent:
            each.join()
    assert at_once.acquire(timeout=30)


@pytest.mark.parametrize("padding", [b"", b" " * 70_000])  # read here, or in a thread
@pytest.mark.parametrize("name", [b"x", b"temperature", b"logit_bias"])
def test_values_that_no_api_takes_are_the_clients_fault(
    name: bytes, padding: bytes
) -> None:
    deep = (b"[" * 101 + b"]" * 101, b'{"a":' * 900 + b"1" + b"}" * 900)
    with Server(always()) as upstream, serving(upstream.url) as running:
        for value in (*deep, b"9" * 5000, b"9" * 400, b"1e999", b"-Infinity"):
            body = HEAD + b'"' + name + b'": ' + value + padding + b"}"
            assert running.post(content=body).status_code == 400
        counted = httpx.get(f"{running.url}/metrics").text
    assert not upstream.requests
    assert "snne_guard_upstream_errors_total{" not in counted


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("chat/completions", CHAT, 200),
        ("chat/completions", {**CHAT, "stream": True}, 200),
        ("responses", RESPONSES, 400),
        ("embeddings", {}, 400),  # it may quote the key, so it is read
    ],
)
def test_a_reply_that_grows_when_it_is_unpacked_is_the_upstreams_fault(
    monkeypatch: pytest.MonkeyPatch, path: str, body: dict[str, Any], status: int
) -> None:
    monkeypatch.setenv("UP", "up-secret")
    monkeypatch.setattr("snne_guard.server.upstream.MAX_REPLY", 1_000_000)
    keys = {"a": key("a", upstream_key="UP")}
    with echo() as upstream, serving(upstream.url, keys=keys) as running:
        upstream.status = status
        upstream.body = gzip.compress(b": " + b"x" * 20_000_000)
        kind = "text/event-stream" if body.get("stream") else "text/plain"
        upstream.headers = {"content-encoding": "gzip", "content-type": kind}
        sent = {"authorization": "Bearer a"}
        got = running.post(f"/v1/{path}", json=body, headers=sent)
    assert got.status_code == 502
    assert got.json()["error"]["code"] == "upstream_failed"
