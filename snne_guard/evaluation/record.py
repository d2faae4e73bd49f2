"""Draw a recording: a line for each question, gone on with where a run was ended.

The file itself is the state. A line is written, whole and at once, when its question is
complete, so whatever ends a run loses at most the questions in flight.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Self

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.evaluation.recordings import Question
from snne_guard.types import Assessment, Cost, Sample

__all__ = ["Ask", "RecordingFile", "Tally", "record"]

Ask = Callable[[Question], Awaitable[Assessment]]
"""Draws the answer to a question and its samples."""

_GIVING_UP = 5
"""So many questions that fail one after another mean that the provider is down."""

# What belongs to other draws of the same question.
_DRAWN = frozenset(
    {
        *("main_answer", "samples", "main_logprobs", "token_logprobs", "main_tokens"),
        *("tokens", "label", "settings", "drawn"),
    }
)
_KEY = re.compile(r"\b(?:sk|gsk|xai|pplx|hf|AIza|Bearer)[-_ ]?[A-Za-z0-9_-]{8,}")


@dataclass(slots=True, kw_only=True)
class Tally:
    """How a run went.

    Attributes:
        recorded: Questions that were written.
        known: Questions that the file had already.
        failed: Questions that failed, kept aside in a file of their own.
        cost: What the run took.
        stopped: Why it ended early, None where it did not.
    """

    recorded: int = 0
    known: int = 0
    failed: int = 0
    cost: Cost = field(default_factory=lambda: Cost(money=0.0))
    stopped: str | None = None


class RecordingFile:
    """A recording that is written line by line.

    A torn last line, left by a process that was killed, is moved to a file with the
    ending ``.torn``. Failures go to ``NAME.failed.jsonl`` beside the recording, with
    what was drawn for them. One process writes at a time.

    Args:
        path: The recording; it is appended to.
        settings: How the answers are drawn; each line has them.

    Raises:
        ConfigurationError: The file was drawn with other settings, or another process
            is writing it.
        InputError: It is no recording.
        OSError: It cannot be written.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, settings: Mapping[str, Any]
    ) -> None:
        self.path = Path(path)
        self.failures = self.path.with_suffix(".failed.jsonl")
        self.settings = dict(settings)
        self._stream: IO[bytes] = self.path.open("ab+")
        try:
            self._lock()
            self._mend()
            self.ids = self._read()
        except BaseException:
            self._stream.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def failed_ids(self) -> set[str]:
        """Return the questions that failed in this run or an earlier one."""
        if not self.failures.exists():
            return set()
        lines = self.failures.read_bytes().splitlines()
        return {str(_loads(line).get("id")) for line in lines if line.strip()}

    def write(self, question: Question, assessment: Assessment) -> None:
        """Append a complete question."""
        _append(self._stream, self._row(question, assessment))
        self.ids.add(question.id)

    def fail(
        self, question: Question, error: BaseException | None, made: Assessment | None
    ) -> None:
        """Keep a question that failed, with what was drawn for it."""
        row = {"id": question.id, "question": question.question}
        if made is not None and made.answer is not None:
            row = self._row(question, made)
        told = "samples are missing" if error is None else _described(error)
        with self.failures.open("ab") as stream:
            _append(stream, {**row, "error": told})

    def forget_recorded_failures(self) -> None:
        """Take out of the failures what has been recorded since."""
        if not self.failures.exists():
            return
        lines = self.failures.read_bytes().splitlines(keepends=True)
        left = [line for line in lines if str(_loads(line).get("id")) not in self.ids]
        if left:
            self.failures.write_bytes(b"".join(left))
        else:
            self.failures.unlink()

    def _row(self, question: Question, made: Assessment) -> dict[str, Any]:
        assert made.answer is not None  # noqa: S101 - without one a question has failed
        extra = {k: v for k, v in question.extra.items() if k not in _DRAWN}
        given = {"context": question.context, "answers": question.answers}
        replies = (made.answer, *made.samples)
        models = sorted({one.model for one in replies if one.model})
        return {
            "id": question.id,
            "question": question.question,
            **{name: value for name, value in given.items() if value is not None},
            **extra,
            "main_answer": _said(made.answer),
            "samples": [_said(sample) for sample in made.samples],
            "main_logprobs": made.answer.token_logprobs,
            "token_logprobs": [sample.token_logprobs for sample in made.samples],
            "main_tokens": made.answer.tokens,
            "tokens": [sample.tokens for sample in made.samples],
            "settings": self.settings,
            "drawn": {
                "at": datetime.now(UTC).isoformat(timespec="seconds"),
                "models": models,
                "finish_reasons": [one.finish_reason for one in replies],
                "kinds": [_kind(one) for one in replies],
                "reasons": [one for one in made.reasons if one != "no_threshold"],
                "cost": made.cost.to_dict(),
            },
        }

    def _lock(self) -> None:
        try:
            fcntl.flock(self._stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            msg = f"another process is writing {self.path}"
            raise ConfigurationError(msg) from None

    def _mend(self) -> None:
        """Move a line that was torn off in the middle out of the way."""
        self._stream.seek(0)
        content = self._stream.read()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            torn = self.path.with_name(f"{self.path.name}.torn")
            with torn.open("ab") as stream:
                stream.write(content[whole:] + b"\n")
            self._stream.truncate(whole)

    def _read(self) -> set[str]:
        """Return the ids that are there; check the settings of the first line."""
        self._stream.seek(0)
        ids: set[str] = set()
        for number, line in enumerate(self._stream, start=1):
            if not line.strip():
                continue
            try:
                row = _loads(line)
            except InputError as error:
                msg = f"{self.path}, line {number}: {error}"
                raise InputError(msg) from None
            if not ids:
                self._check_settings(row.get("settings"))
            ids.add(str(row.get("id")))
        return ids

    def _check_settings(self, found: object) -> None:
        before = found if isinstance(found, dict) else {}
        wanted = json.loads(json.dumps(self.settings))
        differ = [
            f"{name} was {before.get(name)!r}, here it is {wanted.get(name)!r}"
            for name in sorted({*before, *wanted})
            if before.get(name) != wanted.get(name)
        ]
        if differ:
            msg = f"{self.path} was drawn with other settings: {'; '.join(differ)}"
            raise ConfigurationError(msg)


async def record(
    questions: Iterable[Question],
    ask: Ask,
    file: RecordingFile,
    *,
    n_samples: int,
    max_concurrency: int = 4,
    retry_failed: bool = False,
    on_done: Callable[[Tally], object] = lambda _: None,
) -> Tally:
    """Draw what the file does not have yet.

    Args:
        questions: They are taken one by one, so they need not fit in memory.
        ask: Draws the answer and its samples. Where it raises, or brings fewer than
            ``n_samples`` samples, the question is kept aside as failed.
        file: Where to write.
        n_samples: Samples besides the answer.
        max_concurrency: Questions in flight at once.
        retry_failed: Whether to draw again what failed in an earlier run.
        on_done: Is told after each question.

    Returns:
        How the run went. It stops early where one question after another fails.
    """
    run = _Run(ask, file, n_samples=n_samples, on_done=on_done)
    passed_over = file.ids if retry_failed else file.ids | file.failed_ids()
    running: set[asyncio.Task[None]] = set()
    try:
        for question in questions:
            if question.id in passed_over:
                run.tally.known += question.id in file.ids
                continue
            if run.tally.stopped:
                break
            running.add(asyncio.create_task(run.draw(question)))
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
    return run.tally


class _Run:
    """Draws one question after the other and counts."""

    def __init__(
        self,
        ask: Ask,
        file: RecordingFile,
        *,
        n_samples: int,
        on_done: Callable[[Tally], object],
    ) -> None:
        self.tally = Tally()
        self._ask, self._file = ask, file
        self._n_samples, self._on_done = n_samples, on_done
        self._failed_in_a_row = 0

    async def draw(self, question: Question) -> None:
        """Draw a question; write it, or keep it aside."""
        made: Assessment | None = None
        error: BaseException | None = None
        try:
            made = await self._ask(question)
        except Exception as raised:  # noqa: BLE001 - the next question may succeed
            error = raised
        else:
            self.tally.cost += made.cost
        if made is not None and len(made.samples) >= self._n_samples:
            self._file.write(question, made)
            self.tally.recorded += 1
            self._failed_in_a_row = 0
        else:
            self._file.fail(question, error, made)
            self.tally.failed += 1
            self._failed_in_a_row += 1
        if self._failed_in_a_row >= _GIVING_UP:
            why = "samples are missing" if error is None else _described(error)
            self.tally.stopped = f"{_GIVING_UP} questions failed in a row: {why}"
        self._on_done(self.tally)


def _said(sample: Sample) -> str:
    return sample.text if sample.tool_calls is None else sample.tool_calls


def _kind(sample: Sample) -> str | None:
    """Return what a reply is, where it is not plain text."""
    if sample.refused:
        return "refused"
    if sample.tool_calls is not None:
        return "tool_calls"
    return "unreadable" if sample.unreadable else None


def _described(error: BaseException) -> str:
    """Return an error in a line, without keys that a provider has echoed."""
    text = str(error)[:1_000]
    for name, value in os.environ.items():
        secret = name.upper().endswith(("KEY", "TOKEN", "SECRET", "PASSWORD"))
        if secret and len(value) >= 8:  # noqa: PLR2004 - shorter is a word
            text = text.replace(value, "***")
    return f"{type(error).__name__}: {_KEY.sub('***', text)}"


def _append(stream: IO[bytes], row: Mapping[str, Any]) -> None:
    try:
        line = json.dumps(row, allow_nan=False).encode() + b"\n"
    except (TypeError, ValueError) as error:
        msg = f"question {row.get('id')!r} cannot be written as JSON: {error}"
        raise InputError(msg) from error
    stream.write(line)
    stream.flush()
    os.fsync(stream.fileno())


def _loads(line: bytes) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError, MemoryError):
        row = None
    if not isinstance(row, dict):
        msg = "expected a JSON object"
        raise InputError(msg)
    return row
