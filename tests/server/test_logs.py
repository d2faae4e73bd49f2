"""What a server that is operated logs and traces: no key and no text."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.server.operated import body, knowing
from tests.server.support import key, process, serving
from tests.support.openai_server import CHAT, Asked, Server

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals")


@pytest.fixture
def upstream() -> Iterator[Server]:
    with Server(knowing) as server:
        yield server


# -- Logs ------------------------------------------------------------------------------

HEAD = {"authorization": "Bearer key-text", "x-request-id": "mine/1"}


def logged(upstream: Server, *options: str) -> str:
    """Send calls that end in every way; return what was logged."""
    given = ("--upstream", upstream.url, "--n", "2", *options)
    with process(*given, "--drain-seconds", "0") as (server, running):
        asked = [body("prompt-text"), body("prompt-text", stream=True)]
        asked += [body("prompt-text fail"), body("prompt-text fail", stream=True)]
        asked += [{"model": "prompt-text", "n": 2}]
        for each in asked:
            running.post(json=each, headers=HEAD)
        running.post("/v1/prompt-text", json={}, headers=HEAD)
        running.post(content=b"{prompt-text", headers=HEAD)
        httpx.get(f"{running.url}/v1/models/prompt-text?x=prompt-text", headers=HEAD)
        bad = {**HEAD, "x-request-id": "prompt-text with spaces and key-text"}
        assert running.post(json=body("x"), headers=bad).status_code == 200
        server.send_signal(signal.SIGTERM)
        assert server.wait(20) == 0
        assert server.stderr is not None
        return server.stderr.read()


def test_json_logs_have_a_line_a_call_and_say_what_failed(upstream: Server) -> None:
    text = logged(upstream, "--log-format", "json", "--log-level", "debug")
    assert not any(f"{what}-text" in text for what in ("key", "prompt"))
    assert "Paris" not in text
    found = [json.loads(line) for line in text.splitlines()]
    assert all(row["time"] and row["level"] and row["message"] for row in found)
    access = [row for row in found if row["message"] == "request"]
    statuses = Counter((row["route"], row["status"]) for row in access)
    assert statuses == {
        ("/v1/chat/completions", 200): 3,
        ("/v1/chat/completions", 503): 2,
        ("/v1/chat/completions", 400): 2,
        ("/v1/models/{model:path}", 501): 1,
        ("other", 404): 1,
    }
    ids = [row["request_id"] for row in access]
    assert ids[:8] == ["mine/1"] * 8
    assert ids[8].startswith("req_")
    errors = [row for row in found if row["message"] == "request failed"]
    assert {row["error"] for row in errors} >= {"InternalServerError"}
    assert all(row["request_id"] == "mine/1" for row in errors)
    host = upstream.url.split("/")[2]
    failed = [row for row in found if row["message"] == "the upstream failed"]
    assert {(row["upstream"], row["status"]) for row in failed} == {
        (host, 503),
        (host, 501),
    }
    assert all(row["seconds"] >= 0 and row["request_id"] for row in failed)


def test_text_logs_are_lines_for_people(upstream: Server) -> None:
    text = logged(upstream)
    assert not any(f"{what}-text" in text for what in ("key", "prompt"))
    (line, *_) = [each for each in text.splitlines() if "status=503" in each]
    assert "request_id=mine/1" in line
    assert " error request failed " in text


def test_a_refused_policy_is_logged_with_its_key(
    upstream: Server, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "snne_guard.server")
    head = {"authorization": "Bearer a", "x-snne-guard-policy": "none"}
    with serving(upstream.url, keys={"a": key("a")}) as running:
        assert running.post(json=CHAT, headers=head).status_code == 403
    (line,) = [each for each in caplog.records if each.message == "request"]
    fields: Any = vars(line)["fields"]
    assert (fields["key"], fields["status"]) == ("a", 403)


# -- Tracing ---------------------------------------------------------------------------

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
TRACED = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
provider = TracerProvider()
one_line = lambda span: span.to_json(indent=None) + "\\n"
exporter = ConsoleSpanExporter(formatter=one_line)
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)
from snne_guard.cli import main
main()
"""


def test_the_trace_goes_on_to_the_upstream(upstream: Server) -> None:
    head = {"traceparent": PARENT, "tracestate": "a=b", "baggage": "secret=1"}
    with serving(upstream.url, policy={"n": 2}) as running:
        for path in ("/v1/chat/completions", "/v1/embeddings"):
            running.post(path, json=body("x"), headers=head)
    for asked in upstream.requests:
        assert asked.headers["traceparent"] == PARENT
        assert asked.headers["tracestate"] == "a=b"
    guarded = [each for each in upstream.requests if "chat" in each.path]
    assert not any("baggage" in asked.headers for asked in guarded)


def test_each_request_is_a_span_of_the_client_s_trace(upstream: Server) -> None:
    pytest.importorskip("opentelemetry.sdk")
    options = ("--upstream", upstream.url, "--threshold", "0.4", "--n", "2")
    with process(*options, program=("-c", TRACED)) as (server, running):
        head = {"traceparent": PARENT, **HEAD}
        for stream in (False, True):
            running.post(json=body("prompt-text", stream=stream), headers=head)
        running.post(json=body("fail"), headers=HEAD)
        assert server.stdout is not None
        *both, failed = (json.loads(server.stdout.readline()) for _ in range(3))
    tokens = [span["attributes"]["gen_ai.usage.input_tokens"] for span in both]
    assert tokens == [10, 5]
    for place, first in enumerate(both):
        assert_is_of_the_trace(first, upstream.requests[2 * place : 2 * place + 2])
    assert failed["status"]["status_code"] == "ERROR"
    assert failed["attributes"]["http.response.status_code"] == 503
    assert "text" not in json.dumps([*both, failed]).replace("context", "")


def assert_is_of_the_trace(first: dict[str, Any], requests: list[Asked]) -> None:
    assert first["name"] == "chat m"
    assert first["kind"] == "SpanKind.SERVER"
    assert first["context"]["trace_id"] == "0x0af7651916cd43dd8448eb211c80319c"
    assert first["parent_id"] == "0xb7ad6b7169203331"
    attributes = first["attributes"]
    assert attributes["gen_ai.operation.name"] == "chat"
    assert attributes["gen_ai.response.model"] == "test-model"
    assert attributes["snne_guard.decision"] == "accept"
    assert attributes["snne_guard.request_id"] == "mine/1"
    span = first["context"]["span_id"].removeprefix("0x")
    sent = {asked.headers["traceparent"] for asked in requests}
    assert sent == {f"00-0af7651916cd43dd8448eb211c80319c-{span}-01"}
