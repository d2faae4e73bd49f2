from __future__ import annotations

import gzip
from collections.abc import Iterator

import httpx
import pytest

from tests.server.support import Echo, Running, echo, key, raw, serving

ADDRESSES = [
    ("GET", "/v1/models/meta-llama/Llama-3"),
    ("POST", "/v1/embeddings"),
    ("POST", "/v1/audio/speech"),
    ("POST", "/v1/images/edits"),
    ("DELETE", "/v1/files/file-1"),
    ("GET", "/v1/files/file-1/content"),
]


@pytest.fixture
def upstream() -> Iterator[Echo]:
    with echo() as found:
        yield found


@pytest.fixture
def running(upstream: Echo) -> Iterator[Running]:
    with serving(upstream.url) as found:
        yield found


@pytest.mark.parametrize(("method", "path"), ADDRESSES)
def test_requests_pass_and_say_so(
    running: Running, upstream: Echo, method: str, path: str
) -> None:
    body = b"\x00\xff" if method == "POST" else None
    head = {"authorization": "Bearer mine", "content-type": "x/y"}
    url = f"{running.url}{path}?a=1&b=%2F"
    got = httpx.request(method, url, content=body, headers=head)
    assert got.json() == {"ok": True}
    assert got.headers["x-snne-guard"] == "passthrough"
    (seen,) = upstream.seen
    assert (seen["method"], seen["path"]) == (method, f"{path}?a=1&b=%2F")
    assert seen["body"] == (body or b"")
    headers = dict(seen["headers"])
    assert headers["authorization"] == "Bearer mine"
    assert headers["content-type"] == "x/y"
    assert headers["host"] in upstream.url
    assert headers["user-agent"].startswith("python-httpx")


def test_bodies_are_not_limited(
    running: Running, upstream: Echo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("snne_guard.server.bodies.MAX_BODY", 100)

    def parts() -> Iterator[bytes]:
        for _ in range(100):
            yield b"x" * 10_000

    assert httpx.post(f"{running.url}/v1/files", content=parts()).is_success
    assert len(upstream.seen[0]["body"]) == 1_000_000


def test_answers_come_back_byte_for_byte(running: Running, upstream: Echo) -> None:
    upstream.body = gzip.compress(b"audio" * 1000)
    upstream.status = 206
    upstream.headers = {
        "content-encoding": "gzip",
        "content-type": "audio/mpeg",
        "x-request-id": "theirs",
        "x-snne-guard-decision": "accept",
    }
    with httpx.stream("GET", f"{running.url}/v1/files/f/content") as got:
        assert b"".join(got.iter_raw()) == upstream.body
    assert got.status_code == 206
    assert got.headers["content-type"] == "audio/mpeg"
    assert got.headers["x-request-id"] == "theirs"
    assert "x-snne-guard-decision" not in got.headers


def test_headers_of_one_connection_stay_there(running: Running, upstream: Echo) -> None:
    own = "Connection: close, X-Hop\nX-Hop: 1\nTE: trailers\nProxy-Authorization: p\n"
    policy = "X-Snne-Guard-Policy: default\nX-Kept: 2\nUpgrade: h2c\n"
    raw(running, f"GET /v1/models HTTP/1.1\nHost: 127.0.0.1\n{own}{policy}\n")
    (seen,) = upstream.seen
    names = {name for name, _ in seen["headers"]}
    assert names == {"host", "x-kept"}


def test_cookies_stay_with_their_client_and_redirects_are_not_followed(
    running: Running, upstream: Echo
) -> None:
    upstream.status = 302
    upstream.headers = {"location": f"{upstream.url}/chat", "set-cookie": "s=1"}
    first = httpx.get(f"{running.url}/v1/models")
    httpx.get(f"{running.url}/v1/models")
    assert first.status_code == 302
    assert [seen["path"] for seen in upstream.seen] == ["/v1/models"] * 2
    assert "cookie" not in dict(upstream.seen[1]["headers"])


def test_errors_pass_too(running: Running, upstream: Echo) -> None:
    upstream.status, upstream.body = 429, b"<html>"
    got = httpx.get(f"{running.url}/v1/models")
    assert (got.status_code, got.content) == (429, b"<html>")
    metrics = httpx.get(f"{running.url}/metrics").text
    assert 'snne_guard_upstream_errors_total{status="429"} 1' in metrics


def test_an_answer_that_breaks_off_breaks_off(running: Running, upstream: Echo) -> None:
    upstream.cut = True
    with pytest.raises(httpx.RemoteProtocolError):
        httpx.get(f"{running.url}/v1/models")
    assert httpx.get(f"{running.url}/health").is_success


def test_with_keys_nothing_chooses_another_account(
    upstream: Echo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UP", "up-secret")
    upstream.headers = {"openai-organization": "o", "set-cookie": "s=1"}
    upstream.headers["x-asked-with"] = "Bearer up-secret"
    accounts = ("openai-organization", "openai-project", "api-key", "x-goog-api-key")
    chosen = dict.fromkeys((*accounts, "cookie"), "c=1")
    keys = {"a": key("a", upstream_key="UP"), "b": key("b", files=True)}
    with serving(upstream.url, keys=keys) as running:
        sent = {"authorization": "Bearer a", **chosen}
        given = httpx.get(f"{running.url}/v1/models", headers=sent)
        shared = httpx.get(f"{running.url}/v1/files", headers=sent)
        allowed = {"authorization": "Bearer b"}
        assert httpx.get(f"{running.url}/v1/files", headers=allowed).is_success
        upstream.body = b"bad key up-secret"
        upstream.headers |= {"location": "http://inside/"}
        for upstream.status in (401, 302):
            refused = httpx.get(f"{running.url}/v1/models", headers=sent)
            assert refused.status_code == 502
            assert "secret" not in refused.text
            assert "location" not in refused.headers
        upstream.status, upstream.body = 429, b'{"error": "up-secret is out of money"}'
        limited = httpx.get(f"{running.url}/v1/models", headers=sent)
        assert limited.status_code == 429
        assert limited.json()["error"] == "*** is out of money"
        assert "x-should-retry" not in limited.headers  # nobody has sent it again
    assert given.headers["x-asked-with"] == "Bearer ***"
    assert shared.status_code == 403
    assert not {"openai-organization", "set-cookie"} & {*given.headers}
    first, second, *_ = (dict(seen["headers"]) for seen in upstream.seen)
    assert first["authorization"] == "Bearer up-secret"
    assert not chosen.keys() & first.keys()
    assert "authorization" not in second
