from __future__ import annotations

import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import httpx
import openai
import pytest

from tests.server.support import Running, key, port_of, serving
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


@pytest.mark.parametrize(("path", "body"), CALLS)
@pytest.mark.parametrize(
    ("answer", "status", "told"),
    [
        (Answer(status=429, headers={**ONCE, "retry-after": "7"}), 429, "no"),
        (Answer(status=500, body=HTML, headers=ONCE), 500, "no JSON"),
        (Answer(status=400, body={"detail": "mine"}), 400, "mine"),
        (Answer(body=HTML), 502, "upstream"),
        (Answer(body={"error": {"message": "secret", "code": 5}}), 502, "upstream"),
    ],
)
def test_an_upstream_that_fails_is_an_error_of_the_api(
    *,
    path: str,
    body: dict[str, Any],
    answer: Answer,
    status: int,
    told: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with Server(lambda _: answer) as upstream:
        with serving(upstream.url) as running:
            got = call(running, path, body)
            counted = httpx.get(f"{running.url}/metrics").text
    assert got.status_code == status
    assert told in got.text
    assert "secret" not in got.text + caplog.text
    assert "Traceback" not in caplog.text
    assert got.headers.get("retry-after") == answer.headers.get("retry-after")
    assert "snne_guard_upstream_errors_total{" in counted


def test_the_client_sees_a_stream_that_broke_off() -> None:
    with Server(always("one two three four", cut=True)) as upstream:
        with serving(upstream.url) as running:
            with pytest.raises(openai.APIError, match="broke off"):
                list(running.client().chat.completions.create(**CHAT, stream=True))
            with pytest.raises(openai.APIError, match="broke off"):
                list(running.client().responses.create(**RESPONSES, stream=True))


def test_an_upstream_that_is_not_there_is_an_error() -> None:
    with serving("http://127.0.0.1:1/v1") as running:
        got = call(running, *CALLS[1])
    assert got.status_code == 502
    assert got.json()["error"]["code"] == "upstream_failed"


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


@contextmanager
def process(
    *options: str, program: Sequence[str] = ("-m", "snne_guard")
) -> Iterator[tuple[subprocess.Popen[str], Running]]:
    """Run the command until it says where it listens."""
    command = [sys.executable, *program, "serve", "--port", "0", *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as running:  # noqa: S603 - our own
        try:
            yield running, Running(port=port_of(running))
        finally:
            running.kill()


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_sigterm_lets_calls_in_flight_end() -> None:
    with Server(always("Paris", delay=1)) as upstream:
        with process("--upstream", upstream.url, "--n", "2") as (server, running):
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


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_the_live_page_has_a_port_of_its_own_where_there_are_keys(
    tmp_path: Any,
) -> None:
    with Server(always("Paris")) as upstream:
        config = tmp_path / "serve.toml"
        config.write_text(
            f'upstream = "{upstream.url}"\nadmin_port = 0\n[keys.a]\n'
            f'sha256 = "{key("a")["sha256"]}"\npolicies = ["default"]'
        )
        with process("--config", str(config)) as (server, first):
            both = [first, Running(port=port_of(server))]
            pages = [httpx.get(f"{each.url}/metrics").status_code for each in both]
            asked = [call(each, *CALLS[0]).status_code for each in both]
            server.send_signal(signal.SIGINT)
            assert server.wait(10) == 0
    assert sorted(pages) == [200, 404]
    assert sorted(asked) == [401, 404]
