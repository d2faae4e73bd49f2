"""An upstream and small helpers for tests of a server that is operated."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

from tests.server.support import Running
from tests.support.openai_server import APART, Answer, Asked

SPLIT = "split"


def knowing(asked: Asked) -> Answer:
    """Answer the same to each question, or ever another thing where told so."""
    asks = json.dumps(asked.body)
    if "hang" in asks:
        return Answer(hang=True)
    if "fail" in asks:
        return Answer(status=503, body={"error": {"message": f"no: {asks}"}})
    delay = 0.7 if "slow" in asks else 0.0
    texts = APART if SPLIT in asks and asked.is_sample else ("Paris is the answer",)
    return Answer(texts=texts, delay=delay, chunk_delay=0.3 if "slow" in asks else 0)


def body(question: str, **fields: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": question}]
    return {"model": "m", "messages": messages, **fields}


def rows(path: Path) -> list[dict[str, Any]]:
    text = path.read_text("utf-8")
    assert not text or text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


def until(check: Callable[[], Any], *, seconds: float = 20.0) -> Any:
    end = time.monotonic() + seconds
    while not (value := check()):
        assert time.monotonic() < end, "it never came"
        time.sleep(0.02)
    return value


def ready(running: Running) -> int:
    return httpx.get(f"{running.url}/ready").status_code


def stopping(running: Running) -> bool:
    return ready(running) == 503


def value(text: str, name: str, **labels: str) -> float:
    """Sum up the series of a metric that have some labels."""
    found = [line for line in text.splitlines() if line.startswith(name)]
    told = [f'{label}="{given}"' for label, given in labels.items()]
    return sum(
        float(line.rpartition(" ")[2])
        for line in found
        if all(each in line for each in told)
    )
