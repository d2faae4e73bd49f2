"""What ``snne-guard serve`` adds to the requests that pass through it.

A local server answers each request after 500 ms. The same requests take turns: to it
and through ``snne-guard serve``; guarded by a client in this process and guarded by the
server. Medians of the rounds are compared. The memory of the server is read before and
after thousands of guarded requests, and a thousand guarded streams are counted. The
server writes a decision log and logs as JSON meanwhile; each call must have its line.

    python -m benchmarks.server

The exit status is 1 where a target is missed.
"""

from __future__ import annotations

import asyncio
import json
import re
import resource
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import httpx2
import openai

from benchmarks._server import WORDS, served
from snne_guard.openai import guard_client

SECONDS = 0.5
AT_ONCE = 100
ROUNDS = 7
MOST = 1.1
REQUESTS = 5_000
MOST_MEMORY = 20.0
STREAMS = 1_000
STREAM_SECONDS = 20.0
BODY: dict[str, Any] = {
    "model": "test",
    "messages": [{"role": "user", "content": "Who built the bridge, and when?"}],
}
Send = Callable[[], Awaitable[object]]


@contextmanager
def guarding(upstream: str, *options: str) -> Iterator[tuple[str, int, Path]]:
    """Run ``snne-guard serve``; yield its address, its process's id and its log."""
    command = [sys.executable, "-m", "snne_guard", "serve", "--upstream", upstream]
    with TemporaryDirectory() as name:
        folder = Path(name)
        config, log, told = (folder / each for each in ("serve.toml", "log", "told"))
        config.write_text(
            f"port = 0\nmax_requests_at_once = {STREAMS}\ndrain_seconds = 0\n"
            f'log_format = "json"\ndecision_log = "{log}"\n',
            encoding="utf-8",
        )
        command += ["--config", str(config), *options]
        with told.open("w") as stderr, subprocess.Popen(command, stderr=stderr) as run:  # noqa: S603 - ours
            while not (found := re.search(r"http://[\d.:]+", told.read_text("utf-8"))):
                time.sleep(0.05)
            try:
                yield f"{found[0]}/v1", run.pid, log
            finally:
                run.terminate()


def client() -> httpx2.AsyncClient:
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=None)
    return httpx2.AsyncClient(limits=limits, timeout=120)


async def at_once(send: Send, count: int) -> float:
    """Return the seconds that requests at once take together."""
    began = time.perf_counter()
    await asyncio.gather(*(send() for _ in range(count)))
    return time.perf_counter() - began


async def compared(ours: Send, theirs: Send) -> tuple[float, float]:
    """Return the seconds of both, medians of rounds in which they take turns."""
    for send in (ours, theirs):  # opens the connections
        await at_once(send, AT_ONCE)
    times = [
        (await at_once(ours, AT_ONCE), await at_once(theirs, AT_ONCE))
        for _ in range(ROUNDS)
    ]
    first, second = zip(*times, strict=True)
    return median(first), median(second)


async def passed(upstream: str, server: str) -> float:
    """Return what passing through costs, as a ratio."""
    async with client() as sender:

        async def post(url: str) -> None:
            answer = await sender.post(f"{url}/embeddings", json=BODY)
            answer.raise_for_status()

        ours, theirs = await compared(lambda: post(server), lambda: post(upstream))
    return ours / theirs


async def guarded(upstream: str, server: str) -> float:
    """Return what a guarded request costs over one guarded in this process."""
    async with (
        openai.AsyncOpenAI(base_url=upstream, api_key="test") as inner,
        openai.AsyncOpenAI(base_url=server, api_key="test") as outer,
    ):
        own = guard_client(inner, n=5)

        async def create(client: openai.AsyncOpenAI) -> None:
            await client.chat.completions.create(**BODY)

        ours, theirs = await compared(lambda: create(outer), lambda: create(own))
    return ours / theirs


async def growth(server: str, process: int) -> float:
    """Return by how many MB the server grows over guarded requests."""
    async with client() as sender:

        async def post() -> None:
            answer = await sender.post(f"{server}/chat/completions", json=BODY)
            answer.raise_for_status()

        async def many(count: int) -> float:
            for _ in range(count // AT_ONCE):
                await at_once(post, AT_ONCE)
            return memory(process)

        before = await many(REQUESTS // 5)  # what is made once is there then
        return await many(REQUESTS) - before


def memory(process: int) -> float:
    """Return what a process holds in MB."""
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


async def streamed(server: str) -> int:
    """Return how many of the streams came whole, with their assessment."""
    async with client() as sender:

        async def read() -> bool:
            request = sender.stream(
                "POST", f"{server}/chat/completions", json={**BODY, "stream": True}
            )
            async with request as answer:
                lines = [line async for line in answer.aiter_lines()]
            parts = [
                json.loads(line[6:]) for line in lines if line.startswith("data: {")
            ]
            if any("error" in part for part in parts):
                return False
            texts = [part["choices"][0]["delta"].get("content", "") for part in parts]
            whole = "".join(texts) == "".join(f" {word}" for word in range(WORDS))
            return whole and "snne_guard" in parts[-1] and "data: [DONE]" in lines

        found = await asyncio.gather(*(read() for _ in range(STREAMS)))
    return sum(found)


def main() -> int:
    _, most_files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))
    missed = False

    def told(what: str, value: float, target: float, *, met: bool) -> None:
        nonlocal missed
        missed = missed or not met
        print(f"{what:<52} {value:8.2f} {target:8.2f}  {'ok' if met else 'MISSED'}")

    print(f"{'':<52} {'':>8} {'target':>8}")
    with served(seconds=SECONDS) as upstream, guarding(upstream) as (server, _, _):
        ratio = asyncio.run(passed(upstream, server))
        what = f"{AT_ONCE} at once, passed through, over no server"
        told(what, ratio, MOST, met=ratio <= MOST)
        ratio = asyncio.run(guarded(upstream, server))
        what = f"{AT_ONCE} at once, guarded, over guarded in the process"
        told(what, ratio, MOST, met=ratio <= MOST)
    with served(seconds=0) as upstream, guarding(upstream) as (server, process, log):
        grown = asyncio.run(growth(server, process))
        what = f"MB more after {REQUESTS:,} guarded requests"
        told(what, grown, MOST_MEMORY, met=grown < MOST_MEMORY)
        lines, calls = len(log.read_bytes().splitlines()), REQUESTS + REQUESTS // 5
        told("lines of the decision log", lines, calls, met=lines == calls)
    each = STREAM_SECONDS / WORDS
    with (
        served(seconds=each) as upstream,
        guarding(upstream, "--n", "2") as (server, _, _),
    ):
        whole = asyncio.run(streamed(server))
    what = f"whole streams of {WORDS} chunks over {STREAM_SECONDS:.0f} s"
    told(what, whole, STREAMS, met=whole == STREAMS)
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
