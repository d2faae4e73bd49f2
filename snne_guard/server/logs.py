"""What the server's process logs to standard error: never a key, never a text."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any

from snne_guard.server.config import LogFormat, LogLevel
from snne_guard.server.errors import place_of
from snne_guard.server.records import CURRENT

_OURS = ("snne_guard", "uvicorn")
"""Loggers that get the level; others speak of warnings alone, for some log texts."""


def configure_logs(log_format: LogFormat, level: LogLevel) -> None:
    """Send all logs of this process to standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Lines(as_json=log_format == "json"))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    for name in _OURS:
        logging.getLogger(name).setLevel(level.upper())


class _Lines(logging.Formatter):
    """JSON, or a line for people, with ``name=value`` of what is known."""

    def __init__(self, *, as_json: bool) -> None:
        super().__init__()
        self._as_json = as_json

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as a line."""
        fields = _fields(record)
        if self._as_json:
            return json.dumps(fields, default=str)
        start = [fields.pop(name) for name in ("time", "level", "message")]
        line = " ".join(map(str, [*start, *(f"{k}={v}" for k, v in fields.items())]))
        return "".join(each if each.isprintable() else " " for each in line)


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    at = datetime.fromtimestamp(record.created, UTC)
    request = CURRENT.get(None)
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
