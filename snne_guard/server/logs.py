"""What the server's process logs to standard error: never a key, never a text."""

from __future__ import annotations

import json
import logging
import traceback
from datetime import UTC, datetime
from typing import Any

from snne_guard.server.config import LogFormat, LogLevel
from snne_guard.server.records import CURRENT

_OURS = ("snne_guard", "uvicorn")
"""Loggers that get the level; others speak of warnings alone, for some log texts."""


def configure_logs(log_format: LogFormat, level: LogLevel) -> None:
    """Send all logs of this process to standard error.

    Args:
        log_format: ``json``: an object a line; ``text``: for people.
        level: The least that is logged.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(_JSONLines() if log_format == "json" else _TextLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    for name in _OURS:
        logging.getLogger(name).setLevel(level.upper())


class _TextLines(logging.Formatter):
    """A line for people: time, level, message, and ``name=value`` of what is known."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as a line."""
        fields = _fields(record)
        start = [fields.pop(name) for name in ("time", "level", "message")]
        told = [f"{name}={value}" for name, value in fields.items()]
        return " ".join(map(_line, [*start, *told]))


class _JSONLines(logging.Formatter):
    """A JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as a line."""
        return json.dumps(_fields(record), default=str)


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    at = datetime.fromtimestamp(record.created, UTC)
    request = CURRENT.get()
    fields = {
        "time": at.isoformat(timespec="milliseconds"),
        "level": record.levelname.lower(),
        "logger": record.name,
        "message": record.getMessage(),
        "request_id": request and request.id,
        **getattr(record, "fields", {}),
    }
    if record.exc_info and record.exc_info[1] is not None:
        fields["error"] = place_of(record.exc_info[1])
    return {name: value for name, value in fields.items() if value not in {None, ""}}


def place_of(error: BaseException) -> str:
    """Return an exception's type and place; its message may hold a text or a key."""
    last = traceback.extract_tb(error.__traceback__)[-1:]
    place = "".join(f" at {frame.filename}:{frame.lineno}" for frame in last)
    return f"{type(error).__name__}{place}"


def _line(value: object) -> str:
    return "".join(each if each.isprintable() else " " for each in str(value))
