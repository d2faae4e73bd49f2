"""Recorded replies of real providers, served to their real clients, bare and guarded.

The recordings are data of others and no part of the project: without them the tests are
skipped. ``SNNE_GUARD_SHARED`` names their folder; without it, it is the one beside the
project's. ``pytest tests -k replies -s`` prints how many were compared.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial, reduce
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from operator import add
from pathlib import Path
from threading import Thread
from typing import Any

import openai
import pytest
from langchain_core.messages import AIMessage

from snne_guard import SNNEGuard
from snne_guard.openai import guard_client

SHARED = os.environ.get("SNNE_GUARD_SHARED", Path(__file__).parents[2] / "shared")
RECORDED = Path(SHARED) / "data" / "provider_replies.jsonl"
JSON = dict[str, Any]

pytestmark = [
    pytest.mark.skipif(not RECORDED.exists(), reason="needs recorded replies"),
    # The clients' own, of bodies that are not quite what their classes say.
    pytest.mark.filterwarnings("ignore"),
]

PATHS = {
    "chat": "/chat/completions",
    "responses": "/responses",
    "anthropic": "/v1/messages",
    "gemini": "enerateContent",
    "bedrock": "/converse",
    "ollama": "/api/chat",
}
"""How the paths of each API's chat requests end."""

WORK_OF_THE_PROVIDER = re.compile(
    r'"type": ?"(server_tool_use|\w+_tool_result|(?!function|custom_tool)\w+_call'
    r'|tool_search_output)"|"(executableCode|codeExecutionResult|toolCall|toolResponse)"'
)
"""What a reply may hold besides text and calls: it is not compared then."""


def recorded(api: str) -> list[JSON]:
    """Return the replies to chat requests of an API."""
    # Signatures were cut in the recordings, so that they are no base64.
    text = re.sub(r'"[\w+/=-]+cut(\\?")', r'"AAAA\1', RECORDED.read_text("utf-8"))
    rows = [row for row in map(json.loads, text.splitlines()) if row["status"] == 200]
    return [row for row in rows if row["path"].partition("?")[0].endswith(PATHS[api])]


class Recorder(ThreadingHTTPServer):
    """Serves a recorded stream where one is asked for, else a whole reply."""

    streamed: str | None = None
    whole: Any = None
    count = 0  # of whole replies


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Recorder

    def do_POST(self) -> None:
        asked = self.rfile.read(int(self.headers["Content-Length"]))
        stream = b'"stream":true' in asked.replace(b" ", b"") or "stream" in self.path
        if stream and self.server.streamed is not None:
            kind, body = "text/event-stream", self.server.streamed
        else:
            kind, body = "application/json", json.dumps(self.server.whole)
            self.server.count += 1
        self.send_response_only(200)  # without the date
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body.encode())))
        self.end_headers()
        self.wfile.write(body.encode())


@pytest.fixture
def server() -> Iterator[Recorder]:
    with Recorder(("127.0.0.1", 0), Handler) as found:
        Thread(target=found.serve_forever, args=(0.01,), daemon=True).start()
        yield found
        found.shutdown()


def chat_model(url: str, name: str, **options: Any) -> Any:
    package, _, kind = name.partition(".")
    made = getattr(pytest.importorskip(package), kind)
    return made(**{"model": "m", "base_url": url, **options})


KEY: JSON = {"api_key": "test", "max_retries": 0}
GEMINI = "langchain_google_genai.ChatGoogleGenerativeAI"
OPENAI = partial(chat_model, name="langchain_openai.ChatOpenAI", **KEY)
MODELS: dict[str, Callable[[str], Any]] = {
    "chat": OPENAI,
    "responses": partial(OPENAI, use_responses_api=True),
    "anthropic": partial(chat_model, name="langchain_anthropic.ChatAnthropic", **KEY),
    "gemini": partial(chat_model, name=GEMINI, **KEY),
    "bedrock": partial(
        chat_model,
        name="langchain_aws.ChatBedrockConverse",
        model="anthropic.claude-3-5-sonnet-20241022-v2:0",
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",  # noqa: S106 - of nobody
    ),
    "ollama": partial(chat_model, name="langchain_ollama.ChatOllama"),
}


class Messages:
    """Asks a LangChain model.

    ``seen`` returns whether it says something, and all that is to be as it is bare.
    """

    def __init__(self, url: str, api: str) -> None:
        self.bare = MODELS[api](url)
        self.guard = SNNEGuard(self.bare, n=3)

    def ask(self, *, guarded: bool, stream: bool) -> list[Any]:
        model = self.guard if guarded else self.bare
        return list(model.stream("Hm?")) if stream else [model.invoke("Hm?")]

    def record(self, parts: list[Any]) -> Any:
        return parts[-1].response_metadata.pop("snne_guard")

    def seen(self, parts: list[Any]) -> Any:
        whole = reduce(add, parts)
        made_up = {"id"} if whole.id.startswith("lc_run") else set[str]()
        fields = {*AIMessage.model_fields} - {"usage_metadata", "type"} - made_up
        kinds = {type(part).__name__ for part in parts}
        says = bool(whole.text or whole.tool_calls)
        return says, (kinds, {name: getattr(whole, name) for name in fields})

    def usage(self, parts: list[Any]) -> Any:
        return reduce(add, parts).usage_metadata


class Objects:
    """Asks a client of the ``openai`` package, in the same way."""

    def __init__(self, url: str, api: str) -> None:
        self.bare = openai.OpenAI(base_url=url, **KEY)
        self.guard = guard_client(self.bare, n=3)
        self.api = api

    def ask(self, *, guarded: bool, stream: bool) -> list[Any]:
        client: Any = self.guard if guarded else self.bare
        chat = self.api == "chat"
        resource = client.chat.completions if chat else client.responses
        said = {"messages" if chat else "input": [{"role": "user", "content": "Hm?"}]}
        found = resource.create(**said, model="m", stream=stream)
        return list(found) if stream else [found]

    def record(self, parts: list[Any]) -> Any:
        record = parts[-1].snne_guard
        for each in filter(None, (parts[-1], getattr(parts[-1], "response", None))):
            del each.snne_guard
        return record

    def seen(self, parts: list[Any]) -> Any:
        found = [(type(part).__name__, part.to_dict(warnings=False)) for part in parts]
        said = r"'(text|content|delta|name|arguments)': ['\"](?!')"
        return re.search(said, str(found)) is not None, found

    def usage(self, parts: list[Any]) -> Any:
        ends = [getattr(part, "response", None) or part for part in parts]
        known = [end.usage for end in ends if getattr(end, "usage", None)]
        return known[-1].to_dict(warnings=False) if known else None


def tokens(usage: Any) -> Counter[str]:
    """Return what was read and written, by whatever names; nothing if unknown."""
    if not usage:
        return Counter()
    read = usage.get("input_tokens") or usage.get("prompt_tokens") or 0
    written = usage.get("output_tokens") or usage.get("completion_tokens") or 0
    return Counter({"prompt_tokens": read, "completion_tokens": written})


def comparable(seen: Any) -> str:
    """Return a value as text, without the ids that clients make up."""
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22,}", "UUID", str(seen))
    # Snowflake's, which does not come through in LangChain's chunks.
    return text.replace("'logprobs': {'content': None, 'refusal': None}, ", "")


def unlike_bare(server: Recorder, door: Any, row: JSON, plain: Any) -> str | None:
    """Return what is unlike the bare answer, None where the client cannot read it.

    Samples of a stream get the whole reply ``plain``, whose usage comes with it.
    """
    stream = bool(row["stream"])
    server.streamed = row["body"] if stream else None
    server.whole = plain[0] if stream else row["body"]
    try:
        bare = door.ask(guarded=False, stream=stream)
        (says, seen), usage = door.seen(bare), tokens(door.usage(bare))
    except Exception:  # noqa: BLE001 - whatever the client has against it
        return None
    server.count = 0
    guarded = door.ask(guarded=True, stream=stream)
    record, wrong = door.record(guarded), list[str]()
    _, found = door.seen(guarded)
    if comparable(found) != comparable(seen):
        wrong.append(f"{comparable(seen)}\n became\n{comparable(found)}")
    one, first = (plain[1], usage) if stream else (usage, Counter[str]())
    expected = {name: first[name] + server.count * one[name] for name in usage}
    counted = {name: record["cost"][name] for name in usage}
    if counted != expected:
        wrong.append(f"{expected} tokens were counted as {counted}")
    works = WORK_OF_THE_PROVIDER.search(json.dumps(row["body"]).replace('\\"', '"'))
    if says and not works and "unreadable" in str(record["reasons"]):
        wrong.append(f"{seen} is called unreadable")
    return "\n".join(wrong)


DOORS: list[tuple[Any, str]] = [(Messages, api) for api in MODELS]
DOORS += [(Objects, api) for api in ("chat", "responses")]


@pytest.mark.parametrize(("door", "api"), DOORS)
def test_recorded_replies_come_through(server: Recorder, door: Any, api: str) -> None:
    asking, rows = door(f"http://127.0.0.1:{server.server_port}", api), recorded(api)
    server.whole = whole = next(row["body"] for row in rows if not row["stream"])
    plain = whole, tokens(asking.usage(asking.ask(guarded=False, stream=False)))
    counts, failed = Counter[str](), list[str]()
    for row in rows:
        wrong = unlike_bare(server, asking, row, plain)
        counts["unread by the client" if wrong is None else row["provider"]] += 1
        failed += [f"{row['id']} of {row['provider']}: {wrong}"] if wrong else []
    line = f"{api}, {door.__name__}: {len(rows)} replies, {dict(counts)}"
    print(f"\n{line}")  # noqa: T201 - it is asked for
    assert not failed, "\n".join(failed)
