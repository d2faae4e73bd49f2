"""The batches of one run at OpenAI, by the files and batches calls of its client.

A batch carries the run's id in its metadata, so the provider itself keeps what a killed
process has submitted.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from tempfile import TemporaryFile
from typing import Any

import httpx2
import openai
from openai.types import Batch

from snne_guard.evaluation.batch import Exchanges
from snne_guard.evaluation.jsonl import json_line, read_objects

__all__ = ["FIRST_WAIT", "MOST_BYTES", "MOST_REQUESTS", "BatchApi", "ReplayTransport"]

_RUN = "snne_guard_run"
_ENDED = frozenset({"completed", "expired", "cancelled", "failed"})
_LONGEST_WAIT = 60.0

FIRST_WAIT = 0.5
"""Seconds until a batch is looked after; each wait is twice as long as the last."""

MOST_REQUESTS = 50_000
"""Of a batch, as OpenAI limits them."""

MOST_BYTES = 200_000_000
"""Of a file of requests."""


class ReplayTransport(httpx2.BaseTransport):
    """Answers the requests of a client with what batches have brought."""

    def __init__(self, exchanges: Exchanges) -> None:
        self._exchanges = exchanges

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Return the reply.

        Raises:
            httpx2.TransportError: There is none yet; the request is noted as missing.
        """
        # In a batch it is /v1/..., whatever address a server of one's own has.
        name = "/chat/completions" if "/chat/" in request.url.path else "/responses"
        reply = self._exchanges.ask(f"/v1{name}", json.loads(request.read()))
        if reply is None:
            msg = "the batch with the reply has not ended yet"
            raise httpx2.TransportError(msg)
        status, body = reply
        return httpx2.Response(status, json=body)


class BatchApi:
    """The batches of one run.

    Args:
        client: The client; its retries and settings hold.
        run: The run's id.
        tell: Is told how far the batches are, and what is odd about them.

    Attributes:
        problem: Why nothing more is submitted, None where nothing is wrong.
    """

    def __init__(
        self, client: openai.OpenAI, *, run: str, tell: Callable[[str], object]
    ) -> None:
        self.tell = tell
        self.problem: str | None = None
        self._client, self._run = client, run
        self._open: list[Batch] | None = None
        self._lines: list[bytes] = []
        self._size = 0
        self._url = ""

    def add(self, requests: Sequence[Mapping[str, Any]]) -> None:
        """Put requests into the next batch; a full one is submitted."""
        for request in requests if self.problem is None else ():
            line = json_line(request)
            full = len(self._lines) == MOST_REQUESTS
            if full or self._size + len(line) > MOST_BYTES:
                self.submit()
            self._lines.append(line)
            self._size += len(line)
            self._url = request["url"]

    def submit(self) -> None:
        """Submit what was added."""
        if not self._lines:
            return
        named = f"snne-guard-{self._run}.jsonl", b"".join(self._lines)
        uploaded = self._client.files.create(file=named, purpose="batch")
        # Sent once only: one that seems to have failed may have been taken.
        once = self._client.with_options(max_retries=0)
        endpoint: Any = self._url
        batch = once.batches.create(
            completion_window="24h",
            endpoint=endpoint,
            input_file_id=uploaded.id,
            metadata={_RUN: self._run},
        )
        self.tell(f"batch {batch.id}: {len(self._lines)} requests submitted")
        self._open = [*(self._open or ()), batch]
        self._lines, self._size = [], 0

    def replies(self) -> Iterator[dict[str, Any]]:
        """Wait for the batches in flight; yield the lines of each.

        The first time, these are the batches of earlier processes.
        """
        batches, self._open = self._open, []
        if batches is None:
            listed = self._client.batches.list(limit=100)
            tags = ((batch, batch.metadata or {}) for batch in listed)
            batches = [batch for batch, tag in tags if tag.get(_RUN) == self._run]
        for batch in sorted(batches, key=lambda batch: batch.created_at):
            try:
                yield from self._read(batch)
            except openai.NotFoundError:
                self.tell(
                    f"batch {batch.id} or its output is lost at the provider; what "
                    "has no reply is submitted again"
                )

    def _read(self, found: Batch) -> Iterator[dict[str, Any]]:
        batch = self._ended(found)
        if batch.status in {"failed", "cancelled"}:
            errors = batch.errors.data if batch.errors and batch.errors.data else []
            why = "".join(f": {error.message}" for error in errors[:1])
            told = f"batch {batch.id} {batch.status}{why}"
            if found.status in _ENDED:  # known to whoever has started the command again
                self.tell(told)
            else:
                self.problem = f"{told}; the same command submits the rest again"
        for file in (batch.output_file_id, batch.error_file_id):
            if file is not None:
                opened = self._client.files.with_streaming_response.content(file)
                with opened as content, TemporaryFile() as lines:
                    lines.writelines(content.iter_bytes())
                    lines.seek(0)
                    yield from read_objects(lines, dict, name=f"file {file}")

    def _ended(self, batch: Batch) -> Batch:
        seconds, told = FIRST_WAIT, ""
        while batch.status not in _ENDED:
            counts = batch.request_counts
            done = f", {counts.completed} of {counts.total} done" if counts else ""
            if told != (told := f"batch {batch.id}: {batch.status}{done}"):
                self.tell(told)
            time.sleep(seconds)
            seconds = min(2 * seconds, _LONGEST_WAIT)
            batch = self._client.batches.retrieve(batch.id)
        return batch
