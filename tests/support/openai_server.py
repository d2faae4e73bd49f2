"""A scripted server of the OpenAI API on 127.0.0.1."""

from __future__ import annotations

import itertools
import json
import math
import re
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

JSON = dict[str, Any]
APART = ("Rome", "Lyon", "Bonn", "Oslo")
CHAT: JSON = {
    "model": "test-model",
    "messages": [{"role": "user", "content": "Capital of France?"}],
}
RESPONSES: JSON = {"model": "test-model", "input": "Capital of France?"}
_NUMBERS = itertools.count(1)  # an id that comes again is that of a cache


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A request that reached the server."""

    path: str
    headers: dict[str, str]
    body: JSON

    @property
    def is_sample(self) -> bool:
        """Tests give no temperature of their own, so it was the guard."""
        return self.body.get("temperature") == 1.0 or self.body.get("n", 1) > 1

    @property
    def n(self) -> int:
        return int(self.body.get("n") or 1)

    @property
    def logprobs(self) -> bool:
        included = self.body.get("include") or []
        return bool(self.body.get("logprobs")) or any("logprobs" in i for i in included)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What the server answers; texts and the like hold for the choices in turn."""

    texts: Sequence[str | None] = ("Paris",)
    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    choices: int | None = None
    logprobs: bool = True
    logprob: float = -0.1
    tokens: Sequence[str] | None = None
    message: JSON | Sequence[JSON] = field(default_factory=dict)
    finish: str | None = "stop"
    model: str = "test-model"
    usage: bool = True
    delay: float = 0.0
    hang: bool = False
    chunk_delay: float = 0.0
    cut: bool = False


Scripted = Callable[[Asked], Answer]


def always(*texts: str, **fields: Any) -> Scripted:
    return lambda _: Answer(texts=texts or ("Paris",), **fields)


def split(answer: str | Answer, *samples: str, **fields: Any) -> Scripted:
    """Answer with one text; give each sample the next of the others."""
    lock, position = threading.Lock(), 0
    first = answer if isinstance(answer, Answer) else Answer(texts=[answer], **fields)

    def script(asked: Asked) -> Answer:
        nonlocal position
        if not asked.is_sample:
            return first
        with lock:
            start, position = position, position + asked.n
        texts = [samples[(start + i) % len(samples)] for i in range(asked.n)]
        return Answer(texts=texts, **fields)

    return script


def calling(*arguments: Any, name: str = "transfer") -> Answer:
    """Return replies that call a tool; a text goes into its call as it is."""
    messages = []
    for place, given in enumerate(arguments):
        text = given if isinstance(given, str) else json.dumps(given)
        function = {"name": name, "arguments": text}
        call = {"id": f"call_{place}", "type": "function", "function": function}
        messages.append({"tool_calls": [call]})
    return Answer(texts=[None], message=messages, finish="tool_calls")


def rejecting(name: str, then: Scripted, *, named: bool = True) -> Scripted:
    """Refuse a parameter with status 400."""

    def script(asked: Asked) -> Answer:
        present = asked.logprobs if name == "logprobs" else name in asked.body
        if not present:
            return then(asked)
        error: JSON = {
            "message": f"{name} is not supported" if named else "bad request"
        }
        if named:
            error["param"] = name
        return Answer(status=400, body={"error": error})

    return script


class Rush:
    """A script that counts the most requests that are open at the same time."""

    def __init__(self) -> None:
        self.most = self._open = 0
        self._lock = threading.Lock()

    def __call__(self, _: Asked) -> Answer:
        with self._lock:
            self._open += 1
            self.most = max(self.most, self._open)
        time.sleep(0.02)
        with self._lock:
            self._open -= 1
        return Answer()


class Server:
    """Serves a script; ``requests`` has what came, in order."""

    def __init__(
        self, script: Scripted, *, handler: type[BaseHTTPRequestHandler] | None = None
    ) -> None:
        self.script = script
        self.requests: list[Asked] = []
        self.abandoned = 0
        self.closing = threading.Event()
        self._http = _HTTP(("127.0.0.1", 0), handler or Handler)
        self._http.owner = self
        self.url = f"http://127.0.0.1:{self._http.server_port}/v1"

    @property
    def samples(self) -> list[Asked]:
        return [asked for asked in self.requests if asked.is_sample]

    @property
    def answers(self) -> list[Asked]:
        return [asked for asked in self.requests if not asked.is_sample]

    def wait_for_requests(self, count: int) -> None:
        _wait_until(lambda: len(self.requests) >= count)

    def wait_for_abandoned(self, count: int) -> None:
        _wait_until(lambda: self.abandoned >= count)

    def __enter__(self) -> Self:
        work = threading.Thread(target=self._http.serve_forever, args=(0.01,))
        work.daemon = True
        work.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.closing.set()
        self._http.shutdown()
        self._http.socket.close()


def _wait_until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < until, "it never came to that"
        time.sleep(0.01)


class _HTTP(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512  # hundreds may connect at once
    owner: Server

    def handle_error(self, *_: Any) -> None:
        """Say nothing of clients that leave."""


class Handler(BaseHTTPRequestHandler):
    server: _HTTP
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length", "0"))
        body = json.loads(self.rfile.read(length) or b"{}")
        headers = {name.lower(): value for name, value in self.headers.items()}
        asked = Asked(path=self.path, headers=headers, body=body)
        self.server.owner.requests.append(asked)
        answer = self.server.owner.script(asked)
        try:
            self._send(asked, answer)
        except OSError:  # the client has left, or the test has ended
            self.server.owner.abandoned += 1
            self.close_connection = True

    def _send(self, asked: Asked, answer: Answer) -> None:
        if answer.hang or answer.delay:
            self._wait(None if answer.hang else answer.delay)
        if answer.status >= 400 or answer.body is not None:
            self._json(answer, answer.body or {"error": {"message": "no"}})
        elif asked.body.get("stream"):
            self._stream(asked, answer)
        else:
            self._json(answer, whole(asked, answer))

    def _json(self, answer: Answer, body: Any) -> None:
        data = (body if isinstance(body, str) else json.dumps(body)).encode()
        self.send_response(answer.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, asked: Asked, answer: Answer) -> None:
        events = list(_events(asked, answer))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for position, event in enumerate(events):
            if answer.cut and position == len(events) // 2:
                self.close_connection = True
                return
            if position:
                self._wait(answer.chunk_delay)
            name = f"event: {event['type']}\n" if "type" in event else ""
            self._chunk(f"{name}data: {json.dumps(event)}\n\n")
        self._chunk("data: [DONE]\n\n")
        self.wfile.write(b"0\r\n\r\n")

    def _chunk(self, text: str) -> None:
        data = text.encode()
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def _wait(self, seconds: float | None) -> None:
        """Wait, or raise where the client leaves meanwhile."""
        until = None if seconds is None else time.monotonic() + seconds
        poll = select.poll()  # select() fails where over 1,024 files are open
        poll.register(self.connection, select.POLLIN)
        while not self.server.owner.closing.is_set():
            if until is not None and time.monotonic() >= until:
                return
            if poll.poll(10) and not self.connection.recv(1, socket.MSG_PEEK):
                break
        raise ConnectionAbortedError

    def log_message(self, *_: object) -> None:
        pass


def whole(asked: Asked, answer: Answer) -> JSON:
    if asked.path.endswith("/responses"):
        return _response(asked, answer)
    count = asked.n if answer.choices is None else answer.choices
    found: JSON = {
        "id": f"chatcmpl-{next(_NUMBERS)}",
        "object": "chat.completion",
        "created": 1,
        "model": answer.model,
        "choices": [_choice(asked, answer, index) for index in range(count)],
    }
    if answer.usage:
        tokens = sum(len(_words(_text(answer, index))) for index in range(count))
        found["usage"] = {
            "prompt_tokens": 5,
            "completion_tokens": tokens,
            "total_tokens": 5 + tokens,
            "prompt_tokens_details": {"cached_tokens": 3},
        }
    return found


def _text(answer: Answer, index: int) -> str:
    return answer.texts[index % len(answer.texts)] or ""


def _choice(asked: Asked, answer: Answer, index: int) -> JSON:
    text = _text(answer, index)
    given = asked.logprobs and answer.logprobs
    content = _entries(asked, answer, text) if given else None
    message = answer.message
    if not isinstance(message, dict):
        message = message[index % len(message)]
    return {
        "index": index,
        "message": {"role": "assistant", "content": text, **message},
        "logprobs": None if content is None else {"content": content},
        "finish_reason": answer.finish,
    }


def _words(text: str) -> list[str]:
    return re.findall(r"\s*\S+|\s+$", text)


def _entries(asked: Asked, answer: Answer, text: str) -> list[JSON]:
    """Give every token the log-probability; what is left is the other word's."""
    entries: list[JSON] = []
    left = math.log1p(-math.exp(answer.logprob))
    for word in _words(text) if answer.tokens is None else answer.tokens:
        entry: JSON = {"token": word, "logprob": answer.logprob, "bytes": None}
        other = "No" if word == "Yes" else "Yes"
        rest = {"token": other, "logprob": left, "bytes": None}
        top = [dict(entry), rest] if asked.body.get("top_logprobs") else []
        entries.append({**entry, "top_logprobs": top})
    return entries


def _response(asked: Asked, answer: Answer) -> JSON:
    text = _text(answer, 0)
    given = asked.logprobs and answer.logprobs
    logprobs = _entries(asked, answer, text) if given else []
    part = {"type": "output_text", "text": text, "annotations": []}
    said = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [{**part, "logprobs": logprobs}],
    }
    found: JSON = {
        "id": f"resp_{next(_NUMBERS)}",
        "object": "response",
        "created_at": 1,
        "model": answer.model,
        "status": "completed" if answer.finish == "stop" else "incomplete",
        "output": [said],
        "output_messages": [text],  # some servers say everything twice
        "tools": [],
        "tool_choice": "auto",
        "parallel_tool_calls": True,
        "error": None,
        "incomplete_details": None,
    }
    if answer.usage:
        found["usage"] = {
            "input_tokens": 5,
            "input_tokens_details": {"cached_tokens": 3},
            "output_tokens": len(_words(text)),
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 5 + len(_words(text)),
        }
    message = answer.message
    return {**found, **message} if isinstance(message, dict) else found


def _events(asked: Asked, answer: Answer) -> Iterator[JSON]:
    if asked.path.endswith("/responses"):
        for number, event in enumerate(_response_events(asked, answer)):
            yield {**event, "sequence_number": number}
        return
    found = whole(asked, answer)
    usage, (choice, *_) = found.pop("usage", None), found.pop("choices")
    head = {**found, "object": "chat.completion.chunk"}
    message = choice["message"]
    entries = (choice["logprobs"] or {}).get("content") or []
    deltas: list[JSON] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": word} for word in _words(message["content"] or "")]
    for position, call in enumerate(message.get("tool_calls") or []):
        function = call["function"]
        start = {**function, "arguments": ""}
        deltas.append({"tool_calls": [{**call, "index": position, "function": start}]})
        for half in re.findall(r".{1,5}", function["arguments"]):
            piece = {"index": position, "function": {"arguments": half}}
            deltas.append({"tool_calls": [piece]})
    for position, delta in enumerate(deltas):
        listed = entries[position - 1 : position] if position else []
        logprobs = {"content": listed} if listed else None
        part = {"index": 0, "delta": delta, "logprobs": logprobs}
        yield {**head, "choices": [{**part, "finish_reason": None}]}
    for index in range(1, answer.choices or 1):  # which nobody has asked for
        delta = {"content": _text(answer, index)}
        yield {**head, "choices": [{"index": index, "delta": delta}]}
    end = {"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}
    yield {**head, "choices": [end]}
    if usage and (asked.body.get("stream_options") or {}).get("include_usage"):
        yield {**head, "choices": [], "usage": usage}


def _response_events(asked: Asked, answer: Answer) -> Iterator[JSON]:
    whole = _response(asked, answer)
    item = whole["output"][0]
    part = item["content"][0]
    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    at = {"output_index": 0}
    where = {**at, "content_index": 0, "item_id": item["id"]}
    started = {**item, "status": "in_progress", "content": []}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.output_item.added", "item": started, **at}
    empty = {**part, "text": "", "logprobs": []}
    yield {"type": "response.content_part.added", "part": empty, **where}
    logprobs = part["logprobs"]
    for position, word in enumerate(_words(part["text"])):
        listed = logprobs[position : position + 1]
        delta = {"delta": word, "logprobs": listed}
        yield {"type": "response.output_text.delta", **delta, **where}
    done = {"text": part["text"], "logprobs": logprobs}
    yield {"type": "response.output_text.done", **done, **where}
    yield {"type": "response.content_part.done", "part": part, **where}
    yield {"type": "response.output_item.done", "item": item, **at}
    yield {"type": f"response.{whole['status']}", "response": whole}
