"""Record through batches: what is asked, matched, and asked again.

A batch is a slow way to send requests, nothing else. The call of each question is
carried out with the replies that are there; what it asks and nothing has answered goes
into the next batch, and then the call is carried out anew. So requests, readings and
reasons are those of the ordinary way.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from os import SEEK_END
from typing import IO, TYPE_CHECKING, Any

from snne_guard.call import Call, Draws, Outcome, Sender
from snne_guard.evaluation.jsonl import digest, json_line
from snne_guard.evaluation.record import RecordingRun
from snne_guard.evaluation.recordings import Question
from snne_guard.sampling.replies import Draw, Failure, Reply
from snne_guard.sampling.retrying import ATTEMPTS, is_transient_status
from snne_guard.types import Assessment

if TYPE_CHECKING:
    from snne_guard.evaluation.batch_api import BatchApi

__all__ = ["Exchanges", "record_in_batches", "replay"]

_OK, _NO_REPLY = 200, 504
_NOTHING = "no batch had a reply to this request"


class Exchanges:
    """The requests of a run, and the replies that batches have brought.

    The id of a request follows from its question, what it asks, and how many equal ones
    came before it, so that another process finds its reply again.

    Args:
        stream: A temporary file for the replies, which memory may not hold.
        run: Whose questions they are about.

    Attributes:
        missing: Requests of the open question without a reply, as lines of a file.
    """

    def __init__(self, stream: IO[bytes], run: RecordingRun) -> None:
        self.missing: list[dict[str, Any]] = []
        self._wanted = {digest(question.id) for question in run.left}
        self._known = {*map(digest, run.every_id)}
        self._question = ""
        self._equal: Counter[str] = Counter()
        self._tries: Counter[str] = Counter()  # of all requests that were made
        self._offsets: dict[str, int] = {}
        self._stream = stream
        self._unused = 0

    def take(self, line: Mapping[str, Any], *, failures: bool) -> None:
        """Keep a line of a batch's output, one that is no success only if wanted."""
        custom_id = str(line.get("custom_id"))
        question = custom_id.partition("-")[0]
        if question not in self._wanted:
            self._unused += question not in self._known
            return
        response = line.get("response") or {}
        status = int(response.get("status_code") or _NO_REPLY)
        if self._reply(custom_id)["status"] == _OK:
            self._unused += status == _OK
        elif status == _OK or failures:
            body = response.get("body") or {"error": line.get("error")}
            self._offsets[custom_id] = self._stream.seek(0, SEEK_END)
            self._stream.write(json_line({"status": status, "body": body}))

    def open(self, question_id: str, /) -> None:
        """Begin the requests of a question, from the first one on."""
        self._question = digest(question_id)
        self._equal.clear()
        self.missing = []

    def ask(self, url: str, body: Mapping[str, Any]) -> tuple[int, Any] | None:
        """Return the status and body of the reply to a request, None without one.

        What failed for a moment, and what a batch did not come to, is missing until it
        was sent as often as any request is.
        """
        content = digest(url, body)
        custom_id = f"{self._question}-{content}-{self._equal[content]}"
        self._equal[content] += 1
        tries = self._tries.setdefault(custom_id, 0)
        reply = self._reply(custom_id)
        if is_transient_status(reply["status"]) and tries < ATTEMPTS:
            line = {"custom_id": custom_id, "method": "POST", "url": url, "body": body}
            self.missing.append(line)
            return None
        return reply["status"], reply["body"]

    def _reply(self, custom_id: str) -> dict[str, Any]:
        offset = self._offsets.get(custom_id)
        if offset is None:
            return {"status": _NO_REPLY, "body": {"error": {"message": _NOTHING}}}
        self._stream.seek(offset)
        reply: dict[str, Any] = json.loads(self._stream.readline())
        return reply

    def post(self, batches: BatchApi) -> None:
        """Put what is missing into the next batch."""
        batches.add(self.missing)
        self._tries.update(line["custom_id"] for line in self.missing)

    def unused(self) -> int:
        """Return how many replies the run does not need."""
        return self._unused + len(self._offsets.keys() - self._tries.keys())


def replay(call: Call, sender: Sender, exchanges: Exchanges) -> Outcome | None:
    """Carry out a call with the replies that are there; None where one is missing.

    Args:
        call: What ``guarded_call`` returned.
        sender: Sends requests to a client that gets its replies from ``exchanges``.
        exchanges: The replies.
    """
    result: Any = None
    try:
        while True:
            wanted = call.send(result)
            if isinstance(wanted, Draws):
                result = [_sent(sender, draw) for draw in wanted.draws]
                if exchanges.missing:
                    call.close()
                    return None
            else:
                try:
                    result = wanted.function()
                except Exception as error:  # noqa: BLE001 - a failure is an outcome
                    result = Failure(error=error)
    except StopIteration as end:
        outcome: Outcome = end.value
        return outcome


def _sent(sender: Sender, draw: Draw) -> Reply | Failure:
    try:
        return sender.send(draw)
    except Exception as error:  # noqa: BLE001 - a failure is an outcome
        return Failure(error=error)


def record_in_batches(
    run: RecordingRun,
    assess: Callable[[Question], Assessment | None],
    *,
    exchanges: Exchanges,
    batches: BatchApi,
) -> None:
    """Draw what is left of a run in batches, until one failed or was cancelled.

    Args:
        run: The questions, and where to write.
        assess: Draws by ``replay``; None where replies are missing.
        exchanges: The requests and replies.
        batches: The batches of this run at the provider. Those of an earlier process
            are waited for before anything is submitted.
    """
    left, failures, at_limit = run.left, not run.retry_failed, run.stopped
    while left and batches.problem is None:
        for line in batches.replies():
            exchanges.take(line, failures=failures)
        failures = True
        waiting = []
        for question in left:
            drawn = _draw(question, assess, exchanges)
            if drawn is None:
                waiting.append(question)
                exchanges.post(batches)
            else:
                run.keep(question, drawn)
        batches.submit()
        left = waiting
    run.stopped = batches.problem or at_limit  # failures in a row end no batch
    if unused := exchanges.unused():
        batches.tell(
            f"{unused} replies were not used: the questions may have changed, or two "
            "processes may have submitted them"
        )


def _draw(
    question: Question,
    assess: Callable[[Question], Assessment | None],
    exchanges: Exchanges,
) -> Assessment | Exception | None:
    """Return what came of a question, or why nothing did; None while it is open."""
    exchanges.open(question.id)
    try:
        drawn: Assessment | Exception | None = assess(question)
    except Exception as error:  # noqa: BLE001 - the next question may succeed
        drawn = error
    return None if exchanges.missing else drawn
