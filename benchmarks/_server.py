"""A chat-completions server on 127.0.0.1 that takes a fixed time for each request.

A stream takes that time for each of its words.

It runs in a process of its own, so its work is not counted as the client's, and on one
event loop, so that hundreds of requests can wait at once.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
WORDS = 20
_texts, _ids = count(), count()


@contextmanager
def served(*, seconds: float) -> Iterator[str]:
    """Run the server and yield its address; each request takes some seconds."""
    command = [sys.executable, "-m", "benchmarks._server", str(seconds)]
    with subprocess.Popen(  # noqa: S603 - this interpreter, a program of this project
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        if process.stdout is None:
            raise RuntimeError
        yield process.stdout.readline().strip()
        process.communicate()  # closes its input, which ends it


async def serve(seconds: float) -> None:
    """Serve until standard input is closed."""

    async def connected(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        while request := await _read(reader):
            if request.get("stream"):
                await _stream(writer, request, seconds)
            else:
                await asyncio.sleep(seconds)
                writer.write(_response(request))
        writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", backlog=4096)
    port = server.sockets[0].getsockname()[1]
    print(f"http://127.0.0.1:{port}/v1", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    os._exit(0)  # without a word on the connections that clients still hold


async def _read(reader: asyncio.StreamReader) -> dict[str, Any] | None:
    """Return the body of the next request, None at the end of the connection."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.partition("content-length:")[2].split("\r\n")[0])
        body: dict[str, Any] = json.loads(await reader.readexactly(length))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    return body


async def _stream(
    writer: asyncio.StreamWriter, request: dict[str, Any], seconds: float
) -> None:
    """Write a reply word by word; each word takes ``seconds``."""
    head = "Content-Type: text/event-stream\r\nConnection: close"
    writer.write(f"HTTP/1.1 200 OK\r\n{head}\r\n\r\n".encode())
    part = {
        "id": str(next(_ids)),
        "object": "chat.completion.chunk",
        "created": 1,
        "model": request["model"],
    }
    for place in range(WORDS):
        await asyncio.sleep(seconds)
        delta = {"index": 0, "delta": {"content": f" {place}"}, "finish_reason": None}
        writer.write(f"data: {json.dumps({**part, 'choices': [delta]})}\n\n".encode())
    end = {"index": 0, "delta": {}, "finish_reason": "stop"}
    writer.write(f"data: {json.dumps({**part, 'choices': [end]})}\n\n".encode())
    writer.write(b"data: [DONE]\n\n")
    await writer.drain()
    writer.close()


def _response(request: dict[str, Any]) -> bytes:
    n = request.get("n") or 1
    usage = {"prompt_tokens": 20, "completion_tokens": WORDS * n}
    body = {
        "id": str(next(_ids)),
        "object": "chat.completion",
        "created": 1,
        "model": request["model"],
        "choices": [_choice(index) for index in range(n)],
        "usage": {**usage, "total_tokens": 20 + WORDS * n},
    }
    content = json.dumps(body).encode()
    head = f"Content-Type: application/json\r\nContent-Length: {len(content)}"
    return f"HTTP/1.1 200 OK\r\n{head}\r\n\r\n".encode() + content


def _choice(index: int) -> dict[str, Any]:
    """Return a reply that shares about two words in three with the others."""
    which = next(_texts) % 97
    words = [f" {place if place % 3 else place * which}" for place in range(WORDS)]
    logprobs = [{"token": one, "logprob": -0.1, "bytes": None} for one in words]
    return {
        "index": index,
        "message": {"role": "assistant", "content": "".join(words)},
        "logprobs": {"content": logprobs},
        "finish_reason": "stop",
    }


if __name__ == "__main__":
    asyncio.run(serve(float(sys.argv[1])))
