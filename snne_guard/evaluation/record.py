"""Draw a recording: a line for each question, gone on with where a run was ended.

The file itself is the state. A line is written, whole and at once, when its question is
complete, so whatever ends a run loses at most the questions in flight.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from snne_guard.errors import ConfigurationError
from snne_guard.evaluation.jsonl import AppendFile, json_line
from snne_guard.evaluation.recordings import Question
from snne_guard.files import replace_file
from snne_guard.text import without_secrets
from snne_guard.types import Assessment, Cost, Sample

__all__ = [
    "DRAWN",
    "Ask",
    "RecordingFile",
    "Tally",
    "asked_fields",
    "check_same_settings",
    "drawn_fields",
    "failure",
    "failures_path",
    "keep",
    "known",
    "left_to_ask",
    "record",
]

Ask = Callable[[Question], Awaitable[Assessment]]
"""Draws the answer to a question and its samples."""

_GIVING_UP = 5
"""So many questions that fail one after another mean that the provider is down."""

_LONGEST_ERROR = 1_000

DRAWN = frozenset(
    {
        *("main_answer", "samples", "main_logprobs", "token_logprobs", "main_tokens"),
        *("tokens", "self_check", "label", "settings", "drawn"),
    }
)
"""Fields of a recording that belong to its draws; not asked with the question."""


@dataclass(slots=True, kw_only=True)
class Tally:
    """How a run went.

    Attributes:
        recorded: Questions that were written.
        known: Questions that the file had already.
        failed: Questions that failed, kept aside in a file of their own.
        cost: Requests, tokens and money of the run.
        stopped: Why it ended early, None where it did not.
        failed_in_a_row: Questions that failed since the last that was recorded.
    """

    recorded: int = 0
    known: int = 0
    failed: int = 0
    cost: Cost = field(default_factory=lambda: Cost(money=0.0))
    stopped: str | None = None
    failed_in_a_row: int = 0

    def count(self, cost: Cost | None, *, error: str | None) -> None:
        """Count a question; ``error`` says why it failed."""
        self.cost += cost or Cost(money=0.0)
        self.recorded += error is None
        self.failed += error is not None
        self.failed_in_a_row = 0 if error is None else self.failed_in_a_row + 1

    def stop_if_down(self, error: str | None) -> None:
        """Stop where one question after another has failed, the last with an error."""
        if self.failed_in_a_row >= _GIVING_UP:
            self.stopped = f"{_GIVING_UP} questions failed in a row: {error}"


def failures_path(recording: str | os.PathLike[str], /) -> Path:
    """Return where the questions that failed are kept: a file beside the recording.

    Example:
        >>> failures_path("answers.jsonl").name
        'answers.failed.jsonl'
    """
    return Path(recording).with_suffix(".failed.jsonl")


def check_same_settings(
    before: object, now: object, *, name: str | os.PathLike[str]
) -> None:
    """Check that two parts of a recording were drawn with the same settings.

    Args:
        before: The settings of the first.
        now: Those of the second.
        name: What the second is called, such as the path of its file.

    Raises:
        ConfigurationError: They differ; the message has the name and says how.
    """
    first = before if isinstance(before, dict) else {}
    second = now if isinstance(now, dict) else {}
    differ = [
        f"{name} was {first.get(name)!r}, here it is {second.get(name)!r}"
        for name in sorted({*first, *second})
        if first.get(name) != second.get(name)
    ]
    if differ:
        msg = f"{os.fspath(name)} was drawn with other settings: {'; '.join(differ)}"
        raise ConfigurationError(msg)


class RecordingFile(AppendFile):
    """A recording that is written line by line.

    Failures go to ``NAME.failed.jsonl`` beside the recording, with what was drawn for
    them.

    Args:
        path: The recording; it is appended to.
        settings: How the answers are drawn; each line has them.
        shard: The part of the questions that it is for, such as ``"3/16"``; each line
            has it.

    Attributes:
        ids: Of the questions that it has.
        failures: The file of failures.

    Raises:
        ConfigurationError: The file was drawn with other settings, or another process
            is writing it.
        InputError: It is no recording.
        OSError: It cannot be written.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        settings: Mapping[str, Any],
        shard: str | None = None,
    ) -> None:
        super().__init__(path)
        self.failures = failures_path(self.path)
        self.settings = dict(settings)
        self.shard = shard
        self.ids: set[str] = set()
        try:
            for row in self.read(dict):
                if not self.ids:
                    wanted = json.loads(json.dumps(self.settings))
                    check_same_settings(row.get("settings"), wanted, name=self.path)
                self.ids.add(str(row.get("id")))
        except BaseException:
            self.close()
            raise

    def failed_ids(self) -> set[str]:
        """Return the questions that failed in this run or an earlier one."""
        return {str(row.get("id")) for row in self._failed()}

    def passed_over(self, *, retry_failed: bool) -> set[str]:
        """Return the ids of the questions that a run does not ask."""
        return set(self.ids) if retry_failed else self.ids | self.failed_ids()

    def errors(self) -> list[str]:
        """Return why questions failed in this run or an earlier one."""
        return [str(row.get("error")) for row in self._failed()]

    def write(
        self, question: Question, drawn: Mapping[str, Any], *, error: str | None
    ) -> None:
        """Append a question with its ``drawn_fields``.

        Where an ``error`` says why it failed, it is kept aside with what was drawn.
        """
        if error is None:
            self.append({**asked_fields(question), **drawn})
            self.ids.add(question.id)
            return
        bare = {"id": question.id, "question": question.question}
        row = {**asked_fields(question), **drawn} if drawn else bare
        with AppendFile(self.failures) as file:
            file.append({**row, "error": error})

    def forget_recorded_failures(self) -> None:
        """Take out of the failures what has been recorded since."""
        left = [row for row in self._failed() if str(row.get("id")) not in self.ids]
        if left:
            with replace_file(self.failures) as stream:
                stream.writelines(map(json_line, left))
        else:
            self.failures.unlink(missing_ok=True)

    def _failed(self) -> list[dict[str, Any]]:
        if not self.failures.exists():
            return []
        with AppendFile(self.failures) as file:
            return list(file.read(dict))


@dataclass(slots=True, kw_only=True)
class _Budget:
    """How many requests a run may make, and how many it has made."""

    most: int | None
    each: int
    spent: int = 0

    def exhausted(self, running: Iterable[asyncio.Task[None]]) -> str | None:
        """Return why no question fits beside those in flight, None if one does."""
        n = 1 + sum(not task.done() for task in running)
        if self.most is None or self.spent + n * self.each <= self.most:
            return None
        return _over_limit(self.most, self.each)

    def take(self, assessment: Assessment | None) -> None:
        """Count the requests of a question; of one that raised they are not known."""
        self.spent += self.each if assessment is None else assessment.cost.attempts


async def record(
    questions: Iterable[Question],
    ask: Ask,
    file: RecordingFile,
    *,
    n_samples: int,
    max_concurrency: int = 4,
    retry_failed: bool = False,
    max_requests: int | None = None,
    requests_each: int = 1,
    on_done: Callable[[Tally], object] = lambda _: None,
) -> Tally:
    """Draw what the file does not have yet.

    Args:
        questions: What to ask; an id that the file has is passed over.
        ask: Draws the answer and its samples. Where it raises, or brings fewer than
            ``n_samples`` samples, the question is kept aside as failed.
        file: Where to write.
        n_samples: Samples besides the answer.
        max_concurrency: Questions in flight at once.
        retry_failed: Whether to draw again what failed in an earlier run.
        max_requests: No question is begun that would need more requests than these;
            None: no limit. Retries can exceed it, and a server that ignores ``n``.
        requests_each: Requests that a question takes if none fails.
        on_done: Called after each question.

    Returns:
        How the run went. It stops early where one question after another fails, and
        where ``max_requests`` are reached.
    """
    tally = Tally()
    budget = _Budget(most=max_requests, each=requests_each)

    async def draw(question: Question) -> None:
        drawn: Assessment | Exception
        try:
            drawn = await ask(question)
        except Exception as raised:  # noqa: BLE001 - the next question may succeed
            drawn = raised
        budget.take(None if isinstance(drawn, Exception) else drawn)
        error = keep(question, drawn, file, tally, n_samples=n_samples)
        tally.stop_if_down(error)
        on_done(tally)

    passed_over = file.passed_over(retry_failed=retry_failed)
    running: set[asyncio.Task[None]] = set()
    try:
        for question in questions:
            if question.id in passed_over:
                tally.known += question.id in file.ids
                continue
            tally.stopped = tally.stopped or budget.exhausted(running)
            if tally.stopped:
                break
            running.add(asyncio.create_task(draw(question)))
            if len(running) >= max_concurrency:
                first = asyncio.FIRST_COMPLETED
                done, running = await asyncio.wait(running, return_when=first)
                await asyncio.gather(*done)  # raises what ends a run: a full disk
        await asyncio.gather(*running)
        file.forget_recorded_failures()
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
    return tally


def keep(
    question: Question,
    drawn: Assessment | Exception,
    file: RecordingFile,
    tally: Tally,
    *,
    n_samples: int,
) -> str | None:
    """Write a question, or keep it aside as failed, and count it.

    Args:
        question: What was asked.
        drawn: What came of it, or why nothing did.
        file: Where to write.
        tally: Where to count.
        n_samples: Samples that a complete question has.

    Returns:
        Why it failed, None where it is recorded.
    """
    error = failure(drawn, n_samples=n_samples)
    fields = drawn_fields(drawn, settings=file.settings, shard=file.shard)
    file.write(question, fields, error=error)
    tally.count(None if isinstance(drawn, Exception) else drawn.cost, error=error)
    return error


def left_to_ask(
    questions: Iterable[Question],
    file: RecordingFile,
    tally: Tally,
    *,
    retry_failed: bool,
    max_requests: int | None,
    requests_each: int,
) -> tuple[list[Question], str | None]:
    """Return the questions that a run asks within its limit, and why others are not.

    The options are those of ``record``; what the file has is counted in ``tally``.
    """
    passed_over = file.passed_over(retry_failed=retry_failed)
    left = []
    for question in questions:
        tally.known += question.id in file.ids
        if question.id not in passed_over:
            left.append(question)
    if max_requests is None or len(left) * requests_each <= max_requests:
        return left, None
    most = max_requests // requests_each
    return left[:most], _over_limit(max_requests, requests_each)


def _over_limit(most: int, each: int) -> str:
    return (
        f"stopped at the limit of {most} requests, where a question takes {each}; "
        "the same command goes on"
    )


def failure(drawn: Assessment | Exception, *, n_samples: int) -> str | None:
    """Return why a question has failed, None if it has its answer and samples."""
    if isinstance(drawn, Exception):
        return _described(drawn)
    enough = drawn.answer and len(drawn.samples) >= n_samples
    return None if enough else "the answer or samples are missing"


def asked_fields(question: Question) -> dict[str, Any]:
    """Return the fields of a recording that its question brings."""
    given = {"context": question.context, "answers": question.answers}
    return {
        "id": question.id,
        "question": question.question,
        **{name: value for name, value in given.items() if value is not None},
        **{k: v for k, v in question.extra.items() if k not in DRAWN},
    }


def drawn_fields(
    drawn: Assessment | Exception,
    *,
    settings: Mapping[str, Any],
    shard: str | None = None,
) -> dict[str, Any]:
    """Return the fields of a recording that its draws bring; none without an answer."""
    if isinstance(drawn, Exception) or drawn.answer is None:
        return {}
    answer, samples = drawn.answer, drawn.samples
    replies = (answer, *samples)
    check = None if "self_check_unknown" in drawn.reasons else drawn.self_check
    return {
        "main_answer": _text(answer),
        "samples": [_text(sample) for sample in samples],
        "main_logprobs": answer.token_logprobs,
        "token_logprobs": [sample.token_logprobs for sample in samples],
        "main_tokens": answer.tokens,
        "tokens": [sample.tokens for sample in samples],
        **({} if drawn.self_check is None else {"self_check": check}),
        "settings": settings,
        "drawn": {
            **({} if shard is None else {"shard": shard}),
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "models": sorted({reply.model for reply in replies if reply.model}),
            "finish_reasons": [reply.finish_reason for reply in replies],
            "kinds": [_kind(reply) for reply in replies],
            "reasons": [why for why in drawn.reasons if why != "no_threshold"],
            "cost": drawn.cost.to_dict(),
            "draws": [known(draw.to_dict()) for draw in drawn.draws],
        },
    }


def _text(sample: Sample) -> str:
    return sample.text if sample.tool_calls is None else sample.tool_calls


def _kind(sample: Sample) -> str | None:
    """Return what a reply is, where it is not plain text."""
    if sample.refused:
        return "refused"
    if sample.tool_calls is not None:
        return "tool_calls"
    return "unreadable" if sample.unreadable else None


def known(draw: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a request took, as far as it is known and not nothing."""
    return {k: v for k, v in draw.items() if v or (k == "money" and v is not None)}


def _described(error: BaseException) -> str:
    """Return an error in a line, without keys that a provider has echoed."""
    # Masked first: half of a key that was cut off would not be recognised.
    return f"{type(error).__name__}: {without_secrets(str(error))[:_LONGEST_ERROR]}"
