from __future__ import annotations

import json
import logging
import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import openai
import pytest

from tests.server.support import Running, echo, key, process, serving
from tests.support.openai_server import (
    APART,
    CHAT,
    RESPONSES,
    Answer,
    Server,
    always,
    split,
)

ONCE = {"x-should-retry": "false"}
HTML = "<html>Bad gateway: secret</html>"
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("chat/completions", CHAT),
    ("chat/completions", {**CHAT, "stream": True}),
    ("responses", RESPONSES),
    ("responses", {**RESPONSES, "stream": True}),
]


def call(running: Running, path: str, body: dict[str, Any]) -> httpx.Response:
    return running.post(f"/v1/{path}", json=body)


FAILURES = [
    (Answer(status=429, headers={**ONCE, "retry-after": "7"}), 429, "no"),
    (Answer(status=500, body=HTML, headers=ONCE), 500, "no JSON"),
    (Answer(status=400, body={"detail": "mine"}), 400, "mine"),
    (Answer(body=HTML), 502, "upstream"),
    (Answer(body={"error": {"message": "secret", "code": 5}}), 502, "upstream"),
]


@pytest.mark.parametrize(("path", "body"), CALLS)
def test_an_upstream_that_fails_is_an_error_of_the_api(
    path: str, body: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    with Server(always()) as upstream, serving(upstream.url) as running:
        for answer, status, told in FAILURES:
            upstream.script = lambda _, answer=answer: answer  # type: ignore[misc]
            got = call(running, path, body)
            assert got.status_code == status
            assert told in got.text
            assert "secret" not in got.text + caplog.text
            assert got.headers.get("retry-after") == answer.headers.get("retry-after")
        counted = httpx.get(f"{running.url}/metrics").text
    assert "Traceback" not in caplog.text
    for status in (429, 500, 400, 502):
        assert f'snne_guard_upstream_errors_total{{status="{status}"}}' in counted


def test_the_client_sees_a_stream_that_broke_off() -> None:
    with Server(always("one two three four", cut=True)) as upstream:
        with serving(upstream.url) as running:
            with pytest.raises(openai.APIError, match="broke off"):
                list(running.client().chat.completions.create(**CHAT, stream=True))
            with pytest.raises(openai.APIError, match="broke off"):
                list(running.client().responses.create(**RESPONSES, stream=True))


SAID = {"message": "up-secret is out", "type": "out_of_money", "code": "x", "param": 1}
HIDDEN = {**SAID, "message": "*** is out"}
CHUNK = {"id": "1", "model": "m", "choices": [{"index": 0, "delta": {"content": "A"}}]}
BEGUN = {"type": "response.created", "response": {"id": "r", "output": []}}
FLAT = {**SAID, "type": "error", "sequence_number": 2}


def sse(*events: Any, before: str = "") -> bytes:
    return "".join(f"{before}data: {json.dumps(each)}\n\n" for each in events).encode()


@pytest.mark.parametrize(
    ("path", "part", "end", "told"),
    [
        ("chat/completions", CHUNK, sse({"error": SAID}), HIDDEN),
        ("chat/completions", CHUNK, sse({**CHUNK, "error": SAID}), HIDDEN),
        ("chat/completions", CHUNK, sse(SAID, before="event: error\n"), HIDDEN),
        ("chat/completions", CHUNK, sse({"error": "up-secret"}), {"message": "***"}),
        ("responses", BEGUN, sse({"type": "error", "error": SAID}), HIDDEN),
        ("responses", BEGUN, sse(FLAT), {**HIDDEN, "type": "error"}),
    ],
)
def test_what_the_upstream_says_of_an_error_inside_a_stream_arrives(
    *,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    part: dict[str, Any],
    end: bytes,
    told: dict[str, Any],
) -> None:
    monkeypatch.setenv("UP", "up-secret")
    keys = {"a": key("a", upstream_key="UP")}
    body: dict[str, Any] = {"model": "m", "messages": [], "input": "Hi", "stream": True}
    given = "input" if path == "responses" else "messages"
    with echo() as upstream, serving(upstream.url, keys=keys) as running:
        upstream.headers = {"content-type": "text/event-stream"}
        api: Any = running.client("a")
        api = api.responses if path == "responses" else api.chat.completions
        for parts in (0, 1, 3):
            upstream.body = sse(*[part] * parts) + end
            sent = {"authorization": "Bearer a"}
            got = running.post(f"/v1/{path}", json=body, headers=sent)
            with pytest.raises(openai.APIError) as caught:
                list(api.create(model="m", stream=True, **{given: body[given]}))
            # Each part is held back until the next one has come.
            assert got.status_code == (200 if parts > 1 else 502)
            last = got.text.strip().rpartition("data: ")[2]
            assert told.items() <= json.loads(last)["error"].items()
            assert told["message"] in str(caught.value)
            assert "secret" not in got.text


def test_a_response_that_failed_says_why_without_the_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("UP", "up-secret")
    keys = {"a": key("a", upstream_key="UP")}
    failed = {"id": "r", "output": [], "status": "failed", "error": SAID}
    sent = {"authorization": "Bearer a"}
    with echo() as upstream, serving(upstream.url, keys=keys) as running:
        upstream.headers = {"content-type": "application/json"}
        upstream.body = json.dumps(failed).encode()
        whole = running.post("/v1/responses", json=RESPONSES, headers=sent).text
        upstream.headers = {"content-type": "text/event-stream"}
        upstream.body = sse(BEGUN, {"type": "response.failed", "response": failed})
        body = {**RESPONSES, "stream": True}
        stream = running.post("/v1/responses", json=body, headers=sent).text
    for told in (whole, stream):
        assert "*** is out" in told
        assert "secret" not in told


NONSENSE = (b"[" * 100_000, b"9" * 5000, b"{", b'"\xff"')


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("status", "told", "values"),
    [(200, 502, (*NONSENSE, b"[" * 700 + b"]" * 700)), (400, 400, NONSENSE)],
)
def test_a_reply_that_makes_no_sense_is_the_upstreams_failure(
    *,
    caplog: pytest.LogCaptureFixture,
    values: tuple[bytes, ...],
    stream: bool,
    status: int,
    told: int,
) -> None:
    choice = b'{"delta": {"content": "A"}, "message": {"content": "A"}}'
    by_events = stream and status == 200
    kind = "text/event-stream" if by_events else "application/json"
    with echo() as upstream, serving(upstream.url) as running:
        upstream.status, upstream.headers = status, {"content-type": kind}
        for value in values:
            body = b'{"choices": [' + choice + b'], "x": ' + value + b"}"
            upstream.body = b"data: " + body + b"\n\n" if by_events else body
            got = call(running, "chat/completions", {**CHAT, "stream": stream})
            assert got.status_code == told
            assert got.json()["error"]["code"] == "upstream_failed"
        counted = httpx.get(f"{running.url}/metrics").text
    assert f'upstream_errors_total{{status="{told}"}} {len(values)}' in counted
    logged = {record.getMessage() for record in caplog.records}
    assert logged <= {"the upstream failed", "request failed"}


@pytest.mark.parametrize("prices", [None, {"prompt": 1.0, "completion": 2.0}])
def test_counts_that_no_upstream_can_mean_break_nothing(
    caplog: pytest.LogCaptureFixture, prices: dict[str, float] | None
) -> None:
    message = {"usage": {"prompt_tokens": 10**400, "completion_tokens": -1}}
    with Server(always(message=message)) as upstream:
        with serving(upstream.url, policy={"prices": prices}) as running:
            got = call(running, "responses", RESPONSES)
    assert got.status_code in {200, 502}
    assert "a request failed" not in caplog.text


def test_an_upstream_that_is_not_there_is_an_error_and_named_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with serving("http://127.0.0.1:1/v1") as running:
        got = call(running, *CALLS[1])
    assert got.status_code == 502
    assert got.json()["error"]["code"] == "upstream_failed"
    failed = [each for each in caplog.records if each.message == "the upstream failed"]
    fields: Any = vars(failed[0])["fields"]
    assert (fields["upstream"], fields["error"]) == ("127.0.0.1:1", "ConnectError")


@pytest.mark.parametrize(("path", "body"), CALLS[:2])
def test_an_upstream_that_is_slow_is_a_timeout(path: str, body: dict[str, Any]) -> None:
    policy = {"timeout": 0.3, "threshold": 0.4, "on_uncertain": "refuse"}
    with Server(always(hang=True)) as upstream:
        with serving(upstream.url, policy=policy) as running:
            got = call(running, path, body)
    assert got.status_code == 504
    assert got.json()["error"]["code"] == "guard_timeout"


@pytest.mark.parametrize("stream", [False, True])
def test_the_server_retries_and_tells_clients_not_to(*, stream: bool) -> None:
    soon = {"retry-after-ms": "1"}
    with Server(always(status=429, headers=soon)) as upstream:
        with serving(upstream.url, policy={"n": 2}) as running:
            create = running.client(max_retries=2).chat.completions.create
            with pytest.raises(openai.APIStatusError):
                create(**CHAT, stream=stream)
        answers = [asked for asked in upstream.requests if not asked.is_sample]
    assert len(answers) == 3


def test_what_breaks_here_is_no_traceback(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        msg = "secret"
        raise ZeroDivisionError(msg)

    monkeypatch.setattr("snne_guard.server.endpoints.draw_headers", broken)
    with Server(always()) as upstream, serving(upstream.url) as running:
        got = call(running, "chat/completions", CHAT)
    assert got.status_code == 500
    assert got.json()["error"]["code"] == "server_failed"
    assert "ZeroDivisionError" in caplog.text
    assert "secret" not in got.text + caplog.text


@contextmanager
def sent(running: Running, path: str, body: dict[str, Any]) -> Iterator[socket.socket]:
    """Send a request by hand and give its connection."""
    content = json.dumps(body)
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    with socket.create_connection(("127.0.0.1", running.port)) as client:
        length = f"Content-Length: {len(content)}\r\n\r\n"
        client.sendall((head + length + content).encode())
        yield client


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("on_uncertain", ["flag", "refuse"])
def test_a_client_that_goes_away_ends_its_draws(
    on_uncertain: str, *, stream: bool
) -> None:
    policy = {"threshold": 0.4, "on_uncertain": on_uncertain, "n": 3}
    with Server(always(hang=True)) as upstream:
        with serving(upstream.url, policy=policy) as running:
            body = {**RESPONSES, "stream": stream}
            with sent(running, "/v1/responses", body):
                upstream.wait_for_requests(3)
                assert upstream.abandoned == 0
            upstream.wait_for_abandoned(3)


def test_nothing_that_was_asked_or_answered_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    question = [{"role": "user", "content": "prompt-text?"}]
    body = {"model": "m", "messages": question}
    keys = {"a": key("key-text")}
    with Server(split("answer-text", *APART)) as upstream:
        with serving(upstream.url, keys=keys, policy={"threshold": 0.1}) as running:
            head = {"authorization": "Bearer key-text"}
            running.post(json=body, headers=head)
            running.post(json={**body, "stream": True}, headers=head)
            running.post(content=b"{prompt-text", headers=head)
            upstream.script = always(status=500, body="answer-text")
            running.post(json=body, headers=head)
    logged = " ".join(record.getMessage() for record in caplog.records)
    assert not any(f"{what}-text" in logged for what in ("key", "prompt", "answer"))


# -- The process -----------------------------------------------------------------------


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_sigterm_lets_calls_in_flight_end() -> None:
    with Server(always("Paris", delay=1)) as upstream:
        options = ("--n", "2", "--drain-seconds", "0")
        with process("--upstream", upstream.url, *options) as (server, running):
            page = httpx.stream("GET", f"{running.url}/snne/events")
            answers: list[httpx.Response] = []
            work = threading.Thread(
                target=lambda: answers.append(call(running, *CALLS[0]))
            )
            with page:
                work.start()
                upstream.wait_for_requests(1)
                server.send_signal(signal.SIGTERM)
                work.join(10)
                with pytest.raises(httpx.ConnectError):
                    httpx.get(f"{running.url}/health")
            assert server.wait(10) == 0
    assert answers[0].json()["choices"][0]["message"]["content"] == "Paris"


SCORES_FOREVER = """
import sys, threading
from snne_guard import scorers
from snne_guard.cli import main

def forever(answers, **options):
    print("scoring", file=sys.stderr, flush=True)
    threading.Event().wait()

scorers.score = forever
main()
"""


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_scoring_holds_up_neither_other_calls_nor_the_end() -> None:
    with (
        Server(always("Paris")) as upstream,
        process("--upstream", upstream.url, program=("-c", SCORES_FOREVER)) as both,
    ):
        server, running = both
        assert server.stderr is not None
        with sent(running, "/snne/score", {"answers": ["Paris", "Rome"]}):
            while server.stderr.readline() != "scoring\n":
                pass
            assert httpx.get(f"{running.url}/health", timeout=30).status_code == 200
        server.send_signal(signal.SIGTERM)
        assert server.wait(30) == 0
