"""Record through batches: what is asked, matched, and asked again.

A batch is only a slow way to send requests. The call of each question is replayed with
the responses that have arrived. A request without one goes into the next batch, and
then the call is replayed from the start. So requests, the reading of replies and
reasons are the same as without batches.

Batches are those of OpenAI, by the files and batches calls of its client. Each has the
run's id in its metadata, so the provider keeps what a killed process has submitted.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from os import SEEK_END
from tempfile import TemporaryFile
from typing import IO, Any

import httpx2
import openai
from openai.types import Batch

from snne_guard.engine import Failure, Request, Response, Sender, replay_call
from snne_guard.engine.protocol import Draws
from snne_guard.engine.retrying import ATTEMPTS, is_transient_status
from snne_guard.evaluation.jsonl import digest, json_line, read_objects
from snne_guard.evaluation.recorder import RecordingRun
from snne_guard.evaluation.recordings import Question
from snne_guard.types import Assessment

Prepare = Callable[[Question], tuple[Request, Sender]]
"""Returns the engine's request for a question, and the sender of its draws."""

_OK, _NO_RESPONSE = 200, 504
_NOTHING = "no batch had a reply to this request"
_RUN = "snne_guard_run"
_ENDED = frozenset({"completed", "expired", "cancelled", "failed"})
_LONGEST_WAIT = 60.0

FIRST_WAIT = 0.5
"""Seconds until a batch is first polled; each wait is twice as long as the last."""

MOST_REQUESTS = 50_000
"""OpenAI's limit on the requests in a batch."""

MOST_BYTES = 200_000_000
"""OpenAI's limit on the size of a file of requests."""


class _Exchanges:
    """The requests of a run, and the responses that batches have brought.

    The id of a request follows from its question, what it asks, and how many equal ones
    came before it, so that another process finds its response again.
    """

    def __init__(self, stream: IO[bytes], run: RecordingRun) -> None:
        self.missing: list[dict[str, Any]] = []  # requests of the open question
        self._wanted = {digest(question.id) for question in run.left}
        self._question = ""
        self._equal: Counter[str] = Counter()
        self._tries: Counter[str] = Counter()
        self._offsets: dict[str, int] = {}
        self._stream = stream  # of responses, which memory may not hold

    def take(self, line: Mapping[str, Any], *, failures: bool) -> None:
        """Keep a line of a batch's output; a failure only with ``failures``."""
        custom_id = str(line.get("custom_id"))
        question = custom_id.partition("-")[0]
        if question not in self._wanted:
            return
        response = line.get("response") or {}
        status = int(response.get("status_code") or _NO_RESPONSE)
        answered = self._response(custom_id)["status"] == _OK
        if not answered and (status == _OK or failures):
            body = response.get("body") or {"error": line.get("error")}
            self._offsets[custom_id] = self._stream.seek(0, SEEK_END)
            self._stream.write(json_line({"status": status, "body": body}))

    def open(self, question_id: str, /) -> None:
        """Begin the requests of a question, from the first one on."""
        self._question = digest(question_id)
        self._equal.clear()
        self.missing = []

    def respond(self, request: httpx2.Request) -> httpx2.Response:
        """Return the response to a request, as an HTTP transport does.

        It is missing until it has come, or was sent as often as any request may be.
        """
        # In a batch it is /v1/..., whatever address a server of one's own has.
        name = "/chat/completions" if "/chat/" in request.url.path else "/responses"
        url, body = f"/v1{name}", json.loads(request.read())
        content = digest(url, body)
        custom_id = f"{self._question}-{content}-{self._equal[content]}"
        self._equal[content] += 1
        tries = self._tries[custom_id]
        response = self._response(custom_id)
        if is_transient_status(response["status"]) and tries < ATTEMPTS:
            line = {"custom_id": custom_id, "method": "POST", "url": url, "body": body}
            self.missing.append(line)
            msg = "the batch with the response has not ended yet"
            raise httpx2.TransportError(msg)
        return httpx2.Response(response["status"], json=response["body"])

    def _response(self, custom_id: str) -> dict[str, Any]:
        offset = self._offsets.get(custom_id)
        if offset is None:
            return {"status": _NO_RESPONSE, "body": {"error": {"message": _NOTHING}}}
        self._stream.seek(offset)
        response: dict[str, Any] = json.loads(self._stream.readline())
        return response

    def post(self, batches: _Batches) -> None:
        """Put what is missing into the next batch."""
        batches.add(self.missing)
        self._tries.update(line["custom_id"] for line in self.missing)


class _MissingResponseError(Exception):
    """The batch with a response has not ended yet."""


class _Batches:
    """The batches of one run."""

    def __init__(
        self, client: openai.OpenAI, *, run: str, tell: Callable[[str], object]
    ) -> None:
        self.tell = tell
        self.problem: str | None = None  # why nothing more is submitted
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

    def responses(self) -> Iterator[dict[str, Any]]:
        """Yield the responses of batches, those of earlier processes first."""
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
                again = "run the same command again to submit the rest"
                self.problem = f"{told}; {again}"
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


def record_in_batches(
    run: RecordingRun,
    client: openai.OpenAI,
    *,
    calls: Callable[[openai.OpenAI], Prepare],
    tell: Callable[[str], object],
) -> None:
    """Draw what is left of a run in batches, until one failed or was cancelled.

    The batches of an earlier process are waited for before anything is submitted; the
    run's settings, path and shard tell which these are.

    Args:
        run: The questions, and where to write.
        client: Its retries and settings hold.
        calls: Takes a client whose responses come from batches, and returns what
            prepares the call of a question with that client.
        tell: Called with the progress of the batches, and with anything unusual.
    """
    tag = digest(run.settings, str(run.path.resolve()), run.shard)
    batches = _Batches(client, run=tag, tell=tell)
    left, failures, at_limit = run.left, not run.retry_failed, run.stopped
    with TemporaryFile() as stream:
        exchanges = _Exchanges(stream, run)
        http = openai.DefaultHttpxClient(
            transport=httpx2.MockTransport(exchanges.respond)
        )
        prepare = calls(client.with_options(http_client=http, max_retries=0))
        while left and batches.problem is None:
            for line in batches.responses():
                exchanges.take(line, failures=failures)
            failures = True
            waiting = []
            for question in left:
                drawn = _draw(question, prepare, exchanges)
                if drawn is None:
                    waiting.append(question)
                    exchanges.post(batches)
                else:
                    run.keep(question, drawn)
            batches.submit()
            left = waiting
        run.stopped = batches.problem or at_limit  # failures in a row end no batch


def _draw(
    question: Question, prepare: Prepare, exchanges: _Exchanges
) -> Assessment | Exception | None:
    """Return the outcome of a question or its failure; None while it is open."""
    exchanges.open(question.id)

    def respond(draws: Draws) -> list[Response | Failure | None]:
        results: list[Response | Failure | None] = []
        for draw in draws:
            try:
                results.append(sender.send(draw))
            except Exception as error:  # noqa: BLE001 - a failure is an outcome
                results.append(Failure(error=error))
        if exchanges.missing:
            raise _MissingResponseError
        return results

    try:
        request, sender = prepare(question)
        return replay_call(request, respond).assessed()
    except _MissingResponseError:
        return None
    except Exception as error:  # noqa: BLE001 - the next question may succeed
        return error
