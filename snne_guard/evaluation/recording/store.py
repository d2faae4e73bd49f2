"""A recording that grows: what is there, what is to be drawn, what has failed."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from snne_guard._atomic import naming
from snne_guard.errors import ConfigurationError, InputError
from snne_guard.evaluation.recording.append import AppendFile
from snne_guard.evaluation.recording.drawn import Drawn, as_fields, from_fields
from snne_guard.evaluation.recording.fields import json_object
from snne_guard.evaluation.recording.ids import IdPlaces
from snne_guard.evaluation.recording.lines import BadLine, decode
from snne_guard.evaluation.recording.questions import Question
from snne_guard.evaluation.recording.recordings import Recording, parse_recordings

__all__ = ["Failure", "RecordingStore", "failed_path"]

_SHOWN = 60
"""Characters of a setting that a message shows."""
_WAY_OUT = "record into another file, or mix them with --mix-settings"


def failed_path(output: Path) -> Path:
    """Return the file beside a recording that keeps the questions that failed."""
    return output.with_name(f"{output.stem}.failed{output.suffix or '.jsonl'}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A question that failed in an earlier run.

    Attributes:
        drawn: What came all the same.
        tries: How often it was tried.
        outage: Whether the provider was failing as a whole, so that the question is
            to be drawn again without being asked for.
    """

    drawn: Drawn
    tries: int
    outage: bool


class RecordingStore:
    """The file of a recording and the one of its failures, held by one process.

    A recording is only ever appended to. A run that was killed while it wrote leaves
    a part of a line, which is cut off, and kept beside the file with the ending
    ``.torn``. The failures are in a file of their own (``failed_path``), which is
    gone when none is left.

    Args:
        output: The recording; created where there is none.
        settings: How everything in it is drawn: model, temperature, ...
        mix_settings: Whether to go on where what is there was drawn otherwise.

    Attributes:
        torn: Bytes of a line that were cut off when it was opened.

    Raises:
        ConfigurationError: If another run writes the file, if it holds something else
            than recordings, or recordings that were drawn under other settings.
        OSError: If a file cannot be read or written.

    Example:
        >>> import tempfile
        >>> from snne_guard import Sample
        >>> question = Question.from_dict({"id": "1", "question": "2+2?"})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "out.jsonl"
        ...     with RecordingStore(path, settings={"model": "m"}) as store:
        ...         store.record(question, Drawn(answer=Sample(text="4")))
        ...     with RecordingStore(path, settings={"model": "m"}) as store:
        ...         store.state(question)
        'recorded'
    """

    def __init__(
        self,
        output: Path,
        *,
        settings: Mapping[str, Any],
        mix_settings: bool = False,
    ) -> None:
        self.settings = settings
        self._mix = mix_settings
        self._done, self._failed = IdPlaces(), IdPlaces()
        self._failures = failed_path(output)
        self._failing: AppendFile | None = None
        self._stale = False
        self._file = AppendFile(output)
        try:
            self._load(output)
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._done)

    def state(self, question: Question) -> Literal["recorded", "failed", "new"]:
        """Return what has become of a question so far."""
        if question.id in self._done:
            return "recorded"
        return "failed" if question.id in self._failed else "new"

    def failure(self, question: Question) -> Failure | None:
        """Return how a question failed, None if it has not.

        Where the question now reads otherwise, what was drawn for it is of no use.
        """
        at = self._failed.get(question.id)
        if at is None:
            return None
        fields = decode(self._opened().line_at(at))
        about = fields["failed"]
        then = Question.from_dict(fields)
        same = (then.text, then.context) == (question.text, question.context)
        drawn = from_fields(fields) if same else Drawn()
        return Failure(drawn=drawn, tries=about["tries"], outage=about["outage"])

    def record(self, question: Question, drawn: Drawn) -> None:
        """Append a question with all its draws.

        Raises:
            OSError: If it cannot be written; the file then ends with a whole line.
        """
        self._file.append(_line(as_fields(question, drawn, self.settings)))
        self._done.add(question.id, 0)
        self._stale = self._stale or question.id in self._failed

    def fail(
        self, question: Question, drawn: Drawn, *, tries: int, outage: bool
    ) -> None:
        """Keep a question aside that could not be drawn, with what came all the same.

        Raises:
            OSError: If it cannot be written.
        """
        fields = as_fields(question, drawn, self.settings)
        fields["failed"] = {"error": drawn.why(), "tries": tries, "outage": outage}
        self._stale = self._stale or question.id in self._failed
        self._failed.put(question.id, self._opened().append(_line(fields)))

    def close(self) -> None:
        """Have everything on the disk, tidy up, and let others write."""
        try:
            if self._failing is not None:
                self._failing.close()
            if self._stale:
                self._tidy()
        finally:
            self._file.close()

    def _load(self, output: Path) -> None:
        rows = 0
        for rows, row in parse_recordings(self._file.lines()):
            self._take(row, f"{output}, line {rows},")
        backup = output.with_name(f"{output.name}.torn")
        end = self._file.whole()
        self.torn = self._file.mend(_is_recording, backup=backup)
        if self._file.whole() > end:
            [(_, row)] = parse_recordings([self._file.line_at(end)])
            self._take(row, f"{output}, line {rows + 1},")
        if self._failures.exists():
            with AppendFile(self._failures) as failures:
                failures.mend(_is_object, backup=backup)
            self._tidy()

    def _take(self, row: Recording | BadLine, where: str) -> None:
        if isinstance(row, BadLine):
            msg = f"{where} is no recording: {row.message}"
            raise ConfigurationError(msg)
        self._check(row.settings, where)
        self._done.add(row.id, 0)

    def _tidy(self) -> None:
        """Leave one line for each question that has failed and is not recorded."""
        last = IdPlaces()
        for offset, fields in self._failed_lines():
            last.put(str(fields["id"]), offset)
        kept = self._failures.with_name(
            f".{self._failures.name}.{secrets.token_hex(4)}.partial"
        )
        self._failed = IdPlaces()
        try:
            with naming(self._failures), kept.open("xb") as stream:
                for offset, fields in self._failed_lines():
                    name = str(fields["id"])
                    if last.get(name) == offset and name not in self._done:
                        self._failed.put(name, stream.tell())
                        stream.write(_line(fields))
                stream.flush()
                os.fsync(stream.fileno())
            if len(self._failed):
                kept.replace(self._failures)
            else:
                self._failures.unlink()
        finally:
            kept.unlink(missing_ok=True)

    def _failed_lines(self) -> Iterator[tuple[int, dict[str, Any]]]:
        offset = 0
        with self._failures.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                where = f"{self._failures}, line {number},"
                try:
                    fields = decode(line)
                    json_object(fields, "failed")
                except (InputError, KeyError) as error:
                    msg = f"{where} is not of this command: {error}"
                    raise ConfigurationError(msg) from error
                self._check(fields.get("settings"), where)
                yield offset, fields
                offset += len(line)

    def _check(self, settings: Mapping[str, Any] | None, where: str) -> None:
        """Raise ConfigurationError if a line was drawn under other settings."""
        if self._mix:
            return
        if settings is None:
            msg = f"{where} does not say how it was drawn; {_WAY_OUT}"
            raise ConfigurationError(msg)
        for name, now in self.settings.items():
            if (then := settings.get(name)) != now:
                msg = (
                    f"{where} was drawn with {name} {_shown(then)}, and now it is "
                    f"{_shown(now)}; {_WAY_OUT}"
                )
                raise ConfigurationError(msg)

    def _opened(self) -> AppendFile:
        if self._failing is None:
            self._failing = AppendFile(self._failures)
        return self._failing


def _line(fields: Mapping[str, Any]) -> bytes:
    return json.dumps(fields).encode() + b"\n"


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _is_object(line: bytes) -> bool:
    with suppress(InputError):
        return bool(decode(line))
    return False


def _is_recording(line: bytes) -> bool:
    with suppress(InputError):
        return bool(Recording.from_dict(decode(line)).id)
    return False
