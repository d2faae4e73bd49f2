from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest

from tests.server.support import Running, raw, serving
from tests.support.openai_server import CHAT, Server, always, split

HEAD = "Host: 127.0.0.1\nConnection: close\nContent-Type: application/json\n"
BODY = json.dumps(CHAT)


@pytest.fixture(scope="module")
def both() -> Iterator[tuple[Server, Running]]:
    """An upstream and a server before it, for all tests."""
    with pytest.MonkeyPatch.context() as patch, Server(always()) as server:
        patch.setattr("snne_guard.server.bodies.MAX_BODY", 2000)
        with serving(server.url) as found:
            yield server, found


@pytest.fixture
def upstream(both: tuple[Server, Running]) -> Server:
    both[0].script = always("Paris")
    both[0].requests.clear()
    return both[0]


@pytest.fixture
def running(both: tuple[Server, Running]) -> Running:
    return both[1]


def post(running: Running, target: str, *, head: str = HEAD, body: str = BODY) -> str:
    length = f"Content-Length: {len(body)}\n\n"
    return raw(running, f"POST {target} HTTP/1.1\n{head}{length}{body}")


@pytest.mark.parametrize(
    "target",
    [
        "/v1/completions",
        "/v1/chat/completions/",
        "/v1/chat//completions",
        "/v1/chat%2Fcompletions",
        "/v1/%63hat/completions",
        "/v1/files/..%2fchat%2fcompletions",
        "/v1/chat/completions;x=1",
        "http://127.0.0.1/v1/chat/completions",
        "/v1/responses/compact",
        "/",
        "/v1\\chat\\completions",
    ],
)
def test_no_other_address_leads_to_the_upstream(
    running: Running, upstream: Server, target: str
) -> None:
    got = post(running, target)
    head, _, body = got.partition("\r\n\r\n")
    assert head.startswith("HTTP/1.1 404 ")
    assert json.loads(body)["error"]["code"] == "unknown_url"
    assert not upstream.requests


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "OPTIONS"])
def test_no_other_method_leads_to_the_upstream(
    running: Running, upstream: Server, method: str
) -> None:
    got = httpx.request(method, f"{running.url}/v1/responses")
    assert got.status_code == 405
    assert got.json()["error"]["type"] == "invalid_request_error"
    assert not upstream.requests


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[]", 400),
        (b"\xff{}", 400),
        (b"[" * 1_900, 400),
        (b'{"model": "m", "messages": [], "temperature": NaN}', 400),
        (b'{"model": "m", "messages": [{"role": "user", "content": "\\ud800"}]}', 400),
        (b'{"model": "m", "messages": [], "n": 2}', 400),
        (b" " * 3_000, 413),
        ([b" " * 1_000] * 10, 413),  # in chunks, without a length
    ],
)
def test_bodies_that_make_no_sense_are_refused(
    running: Running, upstream: Server, body: bytes | list[bytes], status: int
) -> None:
    got = running.post(content=body)
    assert got.status_code == status
    assert got.json()["error"]["message"]
    assert not upstream.requests


@pytest.mark.parametrize(
    "fields",
    [
        {"messages": "x"},
        {"messages": [1, None, "a", {}]},
        {"model": {"a": 1}, "messages": [], "n": 0, "stream": "no"},
        {"messages": None, "tools": 5, "response_format": 5, "functions": "f"},
    ],
)
def test_odd_shapes_never_break_the_server(
    running: Running, fields: dict[str, Any]
) -> None:
    got = running.post(json={"model": "m", **fields})
    assert got.status_code in {200, 400}


@pytest.mark.parametrize(
    "header",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"host": "evil.example"},  # a name that leads here
        {"host": "127.0.0.1.evil.example"},
        {"host": ""},
    ],
)
def test_without_keys_pages_from_elsewhere_reach_nothing(
    running: Running, upstream: Server, header: dict[str, str]
) -> None:
    for path in ("/v1/embeddings", "/v1/responses", "/snne/score"):
        assert running.post(path, json=CHAT, headers=header).status_code == 403
    for path in ("/v1/models", "/snne/live", "/metrics"):
        assert httpx.get(running.url + path, headers=header).status_code == 403
    assert not upstream.requests


def test_an_address_that_is_too_long_is_the_client_s_fault(
    running: Running, upstream: Server
) -> None:
    got = raw(running, f"GET /v1/models?{'a' * 70_000} HTTP/1.1\n{HEAD}\n")
    assert got.startswith("HTTP/1.1 400 ")
    assert not upstream.requests


@pytest.mark.parametrize("path", ["chat/completions", "embeddings"])
def test_a_body_that_does_not_come_gives_its_slot_back(
    upstream: Server, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr("snne_guard.server.middleware.SECONDS_A_PART", 0.2)
    with serving(upstream.url, max_requests_at_once=1) as running:
        late = raw(running, f"POST /v1/{path} HTTP/1.1\n{HEAD}Content-Length: 99\n\n{{")
        assert " 408 " in late.partition("\n")[0]
        assert running.client().chat.completions.create(**CHAT).choices


@pytest.mark.parametrize("host", ["localhost:1", "127.0.0.1", "[::1]:80", "LOCALHOST"])
def test_names_of_this_machine_are_served(running: Running, host: str) -> None:
    assert httpx.get(f"{running.url}/health", headers={"host": host}).is_success
    assert httpx.get(f"{running.url}/ready", headers={"host": host}).is_success


def test_too_many_at_once_are_told_to_come_back(upstream: Server) -> None:
    upstream.script = always(delay=0.5)
    with serving(upstream.url, max_requests_at_once=1) as running:
        first = threading.Thread(
            target=lambda: running.client().chat.completions.create(**CHAT)
        )
        first.start()
        upstream.wait_for_requests(1)
        with pytest.raises(openai.RateLimitError) as caught:
            running.client().chat.completions.create(**CHAT)
        assert caught.value.response.headers["retry-after"] == "1"
        assert httpx.get(f"{running.url}/health").is_success
        first.join()
        running.client().chat.completions.create(**CHAT)


def test_one_call_after_another_stays_within_a_limit_of_one(upstream: Server) -> None:
    with serving(upstream.url, max_requests_at_once=1) as running:
        with httpx.Client() as client:  # keeps its connection: nothing is between
            url, body = f"{running.url}/snne/score", {"answers": ["Paris", "Rome"]}
            answers = [client.post(url, json=body) for _ in range(100)]
    assert {answer.status_code for answer in answers} == {200}


def test_a_request_id_is_kept_or_made(running: Running) -> None:
    kept = running.post(json=CHAT, headers={"x-request-id": "mine-1"})
    assert kept.headers["x-request-id"] == "mine-1"
    missing = httpx.get(f"{running.url}/none")
    assert missing.headers["x-request-id"].startswith("req_")


def test_pages_of_other_origins_may_call_only_where_it_was_said(
    upstream: Server,
) -> None:
    origins = ["https://app.example", "https://evil.example"]
    with serving(upstream.url, cors_origins=origins[:1]) as running:
        got, other = (
            running.post(json=CHAT, headers={"origin": origin}) for origin in origins
        )
    assert got.headers["access-control-allow-origin"] == "https://app.example"
    assert got.headers["access-control-expose-headers"] == "*"
    assert other.status_code == 403
    assert "access-control-allow-origin" not in other.headers


def test_clients_decide_nothing_by_headers_of_their_own(
    upstream: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_PROJECT_ID", "the server's")
    upstream.script = split("Paris", "Rome")
    smuggled = {
        "x-stainless-raw-response": "true",
        "cookie": "a=b",
        "x-forwarded-for": "1.2.3.4",
        "host": "localhost",
        "idempotency-key": "once",
        "openai-organization": "org",
    }
    with serving(upstream.url) as running:
        assert running.post(json=CHAT, headers=smuggled).is_success
    # The two are sent at once.
    by_key = {each.headers.get("idempotency-key"): each for each in upstream.requests}
    answer, sample = by_key["once"], by_key[None]
    for asked in (answer, sample):
        assert asked.headers["openai-organization"] == "org"
        gone = {"cookie", "x-forwarded-for", "authorization", "openai-project"}
        assert not {*gone, "x-stainless-raw-response"} & asked.headers.keys()
