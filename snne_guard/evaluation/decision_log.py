"""The decision log: a line of JSON for each guarded call, written and read."""

from __future__ import annotations

import json
import logging
import os
import stat
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from snne_guard.decision import Calibration
from snne_guard.errors import ConfigurationError, InputError
from snne_guard.evaluation.jsonl import append_whole
from snne_guard.evaluation.recorded_calls import drawn_fields
from snne_guard.evaluation.recordings import Recording
from snne_guard.files import json_object
from snne_guard.types import Assessment

if sys.platform != "win32":
    import fcntl

_log = logging.getLogger(__name__)

_ALWAYS = frozenset({"time", "id", "policy", "decision", "reasons", "n_used", "cost"})
"""Fields that tell a line of the log from other JSON."""

_TEXTS = frozenset({"prompt", "context"})
"""Fields that the server gives, and that only a log with texts has."""


class DecisionLog:
    """Writes a line of JSON for each guarded call to a file; an observer of any guard.

    A line has the time, the fields of the delivered metadata and those given here. With
    ``texts`` it is a recording too, which ``snne-guard record --from-log`` takes out.

    Lines are appended whole, by several threads and processes too. A line that cannot
    be written, as on a full disk, is lost, and ``failures`` counts it.

    Args:
        path: The file, which is created for its owner alone to read; ``-`` for standard
            output.
        texts: Whether to write question, answer, samples, how they ended and their
            log-probabilities too, withheld answers included.
        **fields: What else each line says, such as ``policy`` and, for recordings,
            ``settings``: how the replies are drawn.

    Raises:
        ConfigurationError: The file cannot be written.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "decisions.jsonl"
        ...     log = DecisionLog(path, policy="standard")
        ...     log.on_assessment(Assessment(id="a", answer=None, decision="flag"))
        ...     log.close()
        ...     [(row["id"], row["policy"], row["decision"]) for row in read_log(path)]
        [('a', 'standard', 'flag')]
    """

    def __init__(
        self, path: str | os.PathLike[str], *, texts: bool = False, **fields: object
    ) -> None:
        self._path, self._texts, self._fields = os.fspath(path), texts, fields
        self._lock = threading.Lock()
        self._failing = False
        self.failures = 0
        try:
            self._file = self._opened()
        except (OSError, ValueError) as error:
            msg = (
                f"cannot write the decision log {self._path}: {_why(error)}; name a "
                "file in a folder that exists, or - for standard output"
            )
            raise ConfigurationError(msg) from None

    def on_assessment(self, assessment: Assessment, /) -> None:
        """Write the line of a call."""
        self.write(assessment)

    def write(self, assessment: Assessment, /, **fields: object) -> bool:
        """Write the line of a call, with further fields; return whether that worked."""
        answer = assessment.answer
        row: dict[str, Any] = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "policy": None,
            "model": answer and answer.model,
            **self._fields,
            **fields,
            **assessment.to_metadata(),
        }
        settings = row.pop("settings", {})
        if self._texts:
            row["question"] = assessment.question
            row |= drawn_fields(assessment, settings=settings)
        else:
            row = {name: row[name] for name in row if name not in _TEXTS}
        try:
            line = _line(row)
            with self._lock:
                self._append(line)
        except (OSError, ValueError) as error:
            self._failed(error)
            return False
        self._failing = False
        return True

    def reopen(self) -> None:
        """Open the file anew, once something else has moved it away."""
        try:
            fresh = self._opened()
        except OSError as error:
            self._failed(error)
            return
        with self._lock:
            os.close(self._file)
            self._file = fresh

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def _opened(self) -> int:
        if self._path == "-":
            return os.dup(1)
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
        descriptor = os.open(self._path, flags, 0o600)
        status = os.fstat(descriptor)
        if stat.S_ISREG(status.st_mode) and status.st_size:
            os.lseek(descriptor, -1, os.SEEK_END)
            if os.read(descriptor, 1) != b"\n":  # a process was killed as it wrote
                os.write(descriptor, b"\n")
        return descriptor

    def _append(self, line: bytes) -> None:
        if sys.platform != "win32":
            fcntl.flock(self._file, fcntl.LOCK_EX)
        try:
            append_whole(self._file, line)
        finally:
            if sys.platform != "win32":
                fcntl.flock(self._file, fcntl.LOCK_UN)

    def _failed(self, error: Exception) -> None:
        self.failures += 1
        if not self._failing:  # once, not for each call until there is room again
            self._failing = True
            told = "the decision log cannot be written, lines are lost: %s"
            _log.error(told, _why(error))


def _why(error: Exception) -> str:
    """Return the description of a fault, without a value's text."""
    told = error.strerror if isinstance(error, OSError) else None
    return told or type(error).__name__


def _line(row: Mapping[str, Any]) -> bytes:
    """Return a line of JSON, with null for infinite numbers, which it cannot hold."""
    try:
        text = json.dumps(row, allow_nan=False, default=str)
    except ValueError:
        read = json.loads(json.dumps(row, default=str), parse_constant=lambda _: None)
        text = json.dumps(read)
    return text.encode() + b"\n"


def read_log(
    path: str | os.PathLike[str],
    *,
    policy: str | None = None,
    left_out: Counter[str] | None = None,
) -> Iterator[dict[str, Any]]:
    """Yield the calls of a decision log, or those of one policy.

    Lines of other logs in the same stream are skipped; ``left_out`` counts, by reason.
    """
    skipped = Counter[str]() if left_out is None else left_out
    with Path(path).open("rb") as lines:
        for line in lines:
            try:
                row = json_object(line)
            except InputError:
                row = {}
            if not row.keys() >= _ALWAYS:
                skipped["lines that are no calls"] += bool(line.strip())
            elif policy not in {None, row["policy"]}:
                skipped["calls of another policy"] += 1
            else:
                yield row


def is_log(path: str | os.PathLike[str]) -> bool:
    """Recognise a decision log by its first line, which is a call."""
    with Path(path).open("rb") as lines, suppress(InputError):
        return json_object(lines.readline()).keys() >= _ALWAYS
    return False


def logged_recordings(
    path: str | os.PathLike[str],
    *,
    policy: str | None = None,
    left_out: Counter[str] | None = None,
) -> Iterator[Recording]:
    """Yield the calls of a decision log as recordings.

    Calls without texts, without an answer or with samples missing are skipped; the
    arguments are those of ``read_log``.
    """
    skipped = Counter[str]() if left_out is None else left_out
    for row in read_log(path, policy=policy, left_out=skipped):
        wanted = int(row["n_requested"]) - 1
        if "question" not in row:
            skipped["calls without texts"] += 1
        elif row.get("main_answer") is None:
            skipped["calls without an answer"] += 1
        elif len(row.get("samples") or ()) < wanted:
            skipped["calls with samples missing"] += 1
        else:
            yield Recording.from_dict(row)


def logged_uncertainty(
    path: str | os.PathLike[str],
    calibration: Calibration,
    *,
    policy: str,
    left_out: Counter[str],
) -> list[float]:
    """Return ``u`` of the calls of a policy that a calibration covers, at least one."""
    found: list[float] = []
    for row in read_log(path, policy=policy, left_out=left_out):
        if row.get("calibration") != calibration.checksum:
            left_out["calls not under this calibration"] += 1
        elif row.get("uncertainty") is None or "uncalibrated" in row["reasons"]:
            left_out["calls without a score that it covers"] += 1
        else:
            found.append(float(row["uncertainty"]))
    if not found:
        told = ", ".join(f"{n} {why}" for why, n in left_out.items())
        msg = (
            f"expected calls of policy {policy!r} under this calibration in "
            f"{os.fspath(path)}, got none: {told or 'it is empty'}"
        )
        raise InputError(msg)
    return found
